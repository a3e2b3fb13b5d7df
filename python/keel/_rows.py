"""What Keras's fit takes as data, as a dataset of libkeel: arrays, in lists and dicts too; a
PyDataset; a generator or any other iterable of batches, as a tf.data.Dataset or a DataLoader."""

import ctypes
import itertools

import numpy as np

from . import _library as c

DTYPES = {
    np.dtype(np.float32): c.FLOAT32,
    np.dtype(np.float64): c.FLOAT64,
    np.dtype(np.uint8): c.UINT8,
    np.dtype(np.int32): c.INT32,
    np.dtype(np.int64): c.INT64,
    np.dtype(np.bool_): c.BOOL,
}
WIDER = {"int8": np.int32, "int16": np.int32, "uint16": np.int32, "uint32": np.int64, "float16": np.float32}


def as_array(value, what):
    """A dense array of a type that libkeel has; a copy only if it is not one already."""
    if hasattr(value, "detach"):  # a tensor of PyTorch may have a gradient, or lie on a device
        value = value.detach().cpu()
    array = np.asarray(value)
    if array.dtype.kind == "O" and not all(isinstance(t, (str, bytes)) for t in array.flat):
        raise c.Unsupported(f"{what} is an array of objects that are not all texts; give it a dtype")
    if array.dtype.kind in "OUS":
        return array
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    wider = WIDER.get(array.dtype.name)
    if array.dtype.name == "bfloat16":
        wider = np.float32
    if wider:
        array = array.astype(wider)
    if array.dtype not in DTYPES:
        raise c.Unsupported(f"{what} has dtype {array.dtype}, which Keel does not read")
    return np.ascontiguousarray(array)


def as_shape(dims, what):
    if len(dims) > c.RANK_MAX:
        raise c.ArgumentError(f"{what} has {len(dims)} dims; Keel has at most {c.RANK_MAX}")
    return c.Shape(len(dims), (ctypes.c_int64 * c.RANK_MAX)(*dims))


def as_tensor(array, what, kept):
    """A keel_tensor over an array, which `kept` keeps alive."""
    if array.dtype.kind in "OUS":
        texts = [t if isinstance(t, bytes) else str(t).encode() for t in array.ravel()]
        strings = (c.String * max(len(texts), 1))(*((t, len(t)) for t in texts))
        kept += [texts, strings]
        return c.Tensor(c.STRING, as_shape(array.shape, what), ctypes.addressof(strings))
    kept.append(array)
    return c.Tensor(DTYPES[array.dtype], as_shape(array.shape, what), array.ctypes.data)


def copied(t):
    """An array of its own of what a keel_tensor has."""
    kind = {v: k for k, v in DTYPES.items()}[t.dtype]
    array = np.empty(t.shape.dim[: t.shape.rank], kind)
    ctypes.memmove(array.ctypes.data, t.data, array.nbytes)
    return array


def taken(function, *args):
    """An array of the keel_tensor that a function of libkeel makes in its last argument."""
    out = c.Tensor()
    c.check(function(*args, ctypes.byref(out)))
    try:
        return copied(out)
    finally:
        c.lib.keel_tensor_free(ctypes.byref(out))


def named(values, names, what):
    """Pairs of a name and a value: of a dict its keys, else the model's names in their order."""
    if values is None:
        return []
    if isinstance(values, dict):
        return [(str(key), value) for key, value in values.items() if value is not None]
    if isinstance(values, (list, tuple)) and values and hasattr(values[0], "shape"):
        if len(values) > max(len(names), 1):
            raise c.ArgumentError(f"{what} is a list of {len(values)} arrays, but the model has {len(names)}")
        return [(name, value) for name, value in zip(names, values) if value is not None]
    return [(names[0] if names else what, values)]


def fields_of(model, x, y, weight):
    """The fields of rows, in the model's names, as a list of (path, role, target, array)."""
    fields = [(n, c.INPUT, None, as_array(v, f"x ('{n}')")) for n, v in named(x, model.inputs, "x")]
    fields += [(n, c.TARGET, None, as_array(v, f"y ('{n}')")) for n, v in named(y, model.outputs, "y")]
    each = isinstance(weight, (dict, list, tuple)) and len(model.outputs) > 1  # target has its own
    for name, value in named(weight, model.outputs, "sample_weight"):
        array = as_array(value, "sample_weight")
        fields.append((f"sample_weight_{name}", c.WEIGHT, name if each else None, array))
    return fields


class Rows:
    """A keel_dataset and what it borrows. A failure of the caller's own code is in `raised`."""

    def __init__(self):
        self.handle = ctypes.c_void_p()
        self.kept = []
        self.raised = None

    def close(self):
        c.lib.keel_dataset_destroy(self.handle)
        self.handle = ctypes.c_void_p()

    def split(self, fraction):
        """Two datasets; the last rows are those of the second."""
        training, validation = Rows(), Rows()
        training.kept = validation.kept = [self.kept]
        c.check(
            c.lib.keel_dataset_split(
                self.handle, fraction, 0, ctypes.byref(training.handle), ctypes.byref(validation.handle)
            )
        )
        return training, validation

    def guard(self, function, *args):
        """Calls the caller's code for libkeel: an exception becomes a status, and is kept."""
        try:
            return function(*args)
        except BaseException as error:  # it is raised again when libkeel has returned
            self.raised = error if self.raised is None else self.raised
            text = f"{type(error).__name__}: {error}"
            return c.lib.keel_error_set(c.ECALLBACK, text.encode())


def from_arrays(fields):
    d = Rows()
    array = (c.ArrayField * len(fields))()
    for at, (path, role, target, value) in zip(array, fields):
        at.path, at.role, at.target = path.encode(), role, target.encode() if target else None
        at.array = as_tensor(value, f"'{path}'", d.kept)
    c.check(c.lib.keel_dataset_from_fields(ctypes.byref(d.handle), array, len(fields)))
    return d


class Batches:
    """Writes batches of the caller into the memory that libkeel gives for them."""

    def __init__(self, model, first, what):
        self.model = model
        parts = fields_of(model, *unpacked(first))
        self.rows = len(parts[0][3])
        self.kinds = [(path, role, target, a.dtype, a.shape[1:]) for path, role, target, a in parts]
        self.described = (c.DataField * len(parts))()
        for at, (path, role, target, a) in zip(self.described, parts):
            if a.dtype not in DTYPES:
                raise c.Unsupported(f"{what} yields texts, which Keel takes from arrays only")
            at.path, at.role, at.target = path.encode(), role, target.encode() if target else None
            at.dtype, at.shape = DTYPES[a.dtype], as_shape(a.shape[1:], f"'{path}'")

    def describe(self, source, what):
        """To a keel_generator or keel_sequence."""
        source.max_rows, source.name = self.rows, what.encode()
        source.n_field, source.field = len(self.kinds), self.described

    def write(self, batch, to, capacity, rows):
        parts = fields_of(self.model, *unpacked(batch))
        n = len(parts[0][3])
        if n > capacity:
            raise ValueError(
                f"a batch of {n} rows behind a first one of {capacity}: the first must be the largest"
            )
        if [p[:3] for p in parts] != [k[:3] for k in self.kinds]:
            raise ValueError("a batch has other fields than the first one")
        for (path, _, _, array), (_, _, _, dtype, shape), address in zip(parts, self.kinds, to):
            if array.shape != (n, *shape):
                raise ValueError(
                    f"'{path}' has shape {array.shape}, but {(n, *shape)} is expected: rows are those of the first batch"
                )
            if not np.can_cast(array.dtype, dtype, "safe"):
                raise ValueError(f"'{path}' has dtype {array.dtype}, behind a first batch of {dtype}")
            array = np.ascontiguousarray(array, dtype)
            ctypes.memmove(address, array.ctypes.data, array.nbytes)
        rows[0] = n
        return c.OK


def unpacked(batch):
    """x, y and sample_weight of a batch, as keras.utils.unpack_x_y_sample_weight."""
    if isinstance(batch, (tuple, list)) and 1 <= len(batch) <= 3:
        return (*batch, None, None)[:3]
    return batch, None, None


def from_iterable(model, source):
    d = Rows()
    what = type(source).__name__
    iterator = iter(source)
    again = iterator is not source  # iter() begins anew
    try:
        first = next(iterator)
    except StopIteration:
        raise c.ArgumentError(f"{what} yields nothing") from None
    batches = Batches(model, first, what)
    state = {"at": itertools.chain([first], iterator)}
    del first

    def write(_, to, capacity, rows):
        try:
            batch = next(state["at"])
        except StopIteration:
            return c.END
        return batches.write(batch, to, capacity, rows)

    def reset(_):
        state["at"] = iter(source)
        return c.OK

    g = c.Generator(ctypes.sizeof(c.Generator))
    batches.describe(g, what)
    g.endless = int(source.cardinality()) == -1 if hasattr(source, "cardinality") else False
    g.next_fields = c.Next(lambda *args: d.guard(write, *args))
    if again:
        g.reset = c.Reset(lambda *args: d.guard(reset, *args))
    d.kept = [g, batches, source]
    c.check(c.lib.keel_dataset_from_generator(ctypes.byref(d.handle), ctypes.byref(g)))
    return d


def from_sequence(model, source):
    """A keras.utils.PyDataset, or anything else with len() whose items are batches."""
    d = Rows()
    what = type(source).__name__
    batches = Batches(model, source[0], what)

    def get(_, i, to, capacity, rows):
        return batches.write(source[i], to, capacity, rows)

    def ended(_):
        source.on_epoch_end()
        return c.OK

    s = c.Sequence(ctypes.sizeof(c.Sequence))
    batches.describe(s, what)
    s.length = c.Length(lambda _: max(d.guard(len, source), 0))
    s.get_fields = c.Get(lambda *args: d.guard(get, *args))
    if hasattr(source, "on_epoch_end"):
        s.on_epoch_end = c.Reset(lambda *args: d.guard(ended, *args))
    s.workers = max(1, min(64, getattr(source, "workers", 1)))
    d.kept = [s, batches, source]
    c.check(c.lib.keel_dataset_from_sequence(ctypes.byref(d.handle), ctypes.byref(s)))
    return d


def is_sequence(x):
    return hasattr(x, "__getitem__") and hasattr(x, "__len__") and hasattr(x, "on_epoch_end")


def is_iterable(x):
    if isinstance(x, (dict, list, tuple, str, bytes)) or hasattr(x, "__array__") or hasattr(x, "shape"):
        return False
    return hasattr(x, "__iter__") or hasattr(x, "__next__")


def first_of(x, y=None):
    """Some rows: x, y and sample_weight, in their structures, if they can be had without taking them away; else
    None. Of arrays the weights are not looked at."""
    if is_sequence(x):
        return unpacked(x[0])
    if is_iterable(x):
        iterator = iter(x)
        return (None,) * 3 if iterator is x else unpacked(next(iterator, None))
    return (None,) * 3 if isinstance(x, Rows) else (x, y, None)


def rows(model, x, y, weight):
    """The dataset for what Keras's fit, evaluate and predict take as x, y and sample_weight."""
    if x is None:
        raise c.ArgumentError("x is None: there are no rows")
    if not is_sequence(x) and not is_iterable(x):
        return from_arrays(fields_of(model, x, y, weight))
    if y is not None or weight is not None:
        raise c.ArgumentError(
            f"{type(x).__name__} gives batches of (x, y, sample_weight), so y and sample_weight must be None"
        )
    return from_sequence(model, x) if is_sequence(x) else from_iterable(model, x)
