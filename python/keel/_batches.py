"""The rows of a fit whose steps are the caller's, batch by batch."""

import itertools

import numpy as np

from . import _library as c
from . import _rows


class Batches:
    """Of arrays, of a PyDataset, or of anything that gives batches: what a step gets, as a list of arrays. what: the
    model has, for messages. class_weight: Keras's dict. drop: rows that do not fill a batch are left out."""

    def __init__(self, keras, what, x, y, weight, batch_size, shuffle, seed, class_weight=None, drop=False):
        self.class_weight, self.drop = class_weight, drop
        self.keras, self.what, self.source, self.arrays = keras, what, x, None
        self.rng, self.shuffle, self.batch_size = np.random.default_rng(seed), shuffle, batch_size or 32
        self.is_sequence = _rows.is_sequence(x)
        if self.is_sequence or _rows.is_iterable(x):
            if y is not None or weight is not None:
                raise c.ArgumentError(
                    f"{type(x).__name__} gives batches, so y and sample_weight must be None"
                )
            first = x[0] if self.is_sequence else self.first_of(x)
            self.structure, self.first = self.weighed(first), self.flat(first)
            return
        if x is None or isinstance(x, _rows.Rows) or hasattr(x, "handle"):
            raise c.Unsupported(f"a model with {self.what} takes arrays, a PyDataset, or what gives batches")
        given = keras.utils.pack_x_y_sample_weight(x, y, weight)
        self.structure, self.arrays = self.weighed(given), self.flat(given)
        self.rows = len(self.arrays[0])
        if not self.rows or any(len(a) != self.rows for a in self.arrays):
            counts = ", ".join(str(len(a)) for a in self.arrays)
            raise c.ArgumentError(
                f"x, y and sample_weight have {counts} rows: give as many of each, and some"
            )
        self.first = [a[: self.batch_size] for a in self.arrays]
        if drop and self.rows < self.batch_size:
            raise c.ArgumentError(
                f"end='drop' leaves none of {self.rows} rows: a batch has {self.batch_size}"
            )

    def weighed(self, batch):
        """A batch with weights of rows in the place of those of classes."""
        if self.class_weight is None:
            return batch
        x, y, weight = self.keras.utils.unpack_x_y_sample_weight(batch)
        if weight is not None or y is None or self.keras.tree.is_nested(y):
            raise c.ArgumentError("class_weight needs one y, and no sample_weight beside it")
        labels = _rows.as_array(y, "y")
        if labels.ndim > 1:
            labels = labels.argmax(-1) if labels.shape[-1] != 1 else labels[..., 0]
        whole = np.round(labels).astype("int32").ravel()
        weights = np.array([self.class_weight.get(int(k), 1.0) for k in whole], self.keras.config.floatx())
        return x, y, weights

    def first_of(self, source):
        iterator = iter(source)
        first = next(iterator, None)
        if first is None:
            raise c.ArgumentError(f"{type(source).__name__} yields nothing")
        if iterator is source:  # these rows can be had once
            self.source = itertools.chain([first], iterator)
        return first

    def flat(self, batch):
        arrays = [_rows.as_array(a, "a batch") for a in self.keras.tree.flatten(self.weighed(batch))]
        if any(a.dtype.kind in "OUS" for a in arrays):
            raise c.Unsupported(f"a model with {self.what} takes no texts: make numbers of them before")
        real = self.keras.config.floatx()
        return [np.ascontiguousarray(a, real) if a.dtype.kind == "f" else a for a in arrays]

    def of_epoch(self):
        if self.arrays:
            order = self.rng.permutation(self.rows) if self.shuffle else None
            for i in range(0, self.rows, self.batch_size):
                at = slice(i, i + self.batch_size) if order is None else order[i : i + self.batch_size]
                yield [a[at] for a in self.arrays]
        elif self.is_sequence:
            count = len(self.source)
            for i in self.rng.permutation(count) if self.shuffle else range(count):
                yield self.flat(self.source[int(i)])
            self.source.on_epoch_end()
        else:
            yield from map(self.flat, self.source)

    def passes(self, steps):
        """Batches without an end if an epoch has a number of `steps`, else those of one pass."""
        while True:
            none = True
            for batch in self.of_epoch():
                if self.drop and len(batch[0]) < len(self.first[0]):
                    continue
                none = False
                yield batch
            if none or steps is None:
                return

    def short(self):
        """The rows of a batch that has fewer than the first, as the last one of arrays, or as there might be; 0: none."""
        most = len(self.first[0])
        if self.drop:
            return 0
        return self.rows % self.batch_size if self.arrays else most - 1

    def steps(self):
        if self.arrays:
            return self.rows // self.batch_size if self.drop else -(-self.rows // self.batch_size)
        if hasattr(self.source, "cardinality"):
            n = int(self.source.cardinality())
            return n if n >= 0 else None
        return len(self.source) if hasattr(self.source, "__len__") else None


def split(keras, data, share):
    """The rows to train on, and the last ones to validate with, as Keras parts them."""
    flat = [a for a in keras.tree.flatten(data) if a is not None]
    if any(not hasattr(a, "__getitem__") or not hasattr(a, "shape") for a in flat):
        raise c.ArgumentError("validation_split takes arrays")
    rows = len(flat[0])
    at = int(np.floor(rows * (1 - share)))
    if not 0 < at < rows:
        raise c.ArgumentError(f"validation_split={share} of {rows} rows leaves none for one of the parts")
    part = lambda rows: keras.tree.map_structure(lambda a: None if a is None else a[rows], data)
    return part(slice(0, at)), part(slice(at, None))
