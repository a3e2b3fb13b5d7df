"""What weights have that is code of the caller: Keras computes constraints behind each step of a fit, and adds what
regularizers give to the loss of an evaluation."""

import contextlib
import ctypes
import sys

import numpy as np

from . import _library as c
from . import _rows
from ._callbacks import listen
from ._library import check, lib
from ._traced import module_of
from ._unsaved import replaced


def is_own(value):
    """Of an object, or of a function, which may be one, too."""
    of = value if hasattr(value, "__name__") else type(value)
    return value is not None and not module_of(of).startswith("keras.")


def own_of(keras, kind):
    """The trained weights of a model that have one. kind: an attribute of variables."""
    return [v for v in keras.trainable_variables if is_own(getattr(v, kind, None))]


def refuse_regularizers(keras):
    for v in own_of(keras, "regularizer"):
        name = getattr(v.regularizer, "__name__", type(v.regularizer).__name__)
        raise c.Unsupported(
            f"weight '{v.path}' has a regularizer of its own, '{name}': a fit takes Keras's (L1, L2, L1L2,"
            " OrthogonalRegularizer)"
        )


@contextlib.contextmanager
def without_own(form, trains):
    """While a model is saved, it has no constraints of the caller's; nor regularizers of weights, unless it trains."""
    kinds = ("_constraint",) if trains else ("_constraint", "_regularizer")
    is_meant = lambda layer, name, value: (
        name.endswith(kinds) and not name.startswith("activity") and is_own(value)
    )
    with replaced(form, is_meant, None):
        yield


class Penalties:
    """A keel_callback that adds what regularizers of the caller's give to the loss of an evaluation."""

    def __init__(self, keras):
        self.variables, self.value = own_of(keras, "regularizer"), 0.0
        self.c = c.Callback(ctypes.sizeof(c.Callback), b"regularizers by Keras")

    def open(self, run):
        listen(self.c, run, {"test_begin": self.begin, "test_batch_end": self.add, "test_end": self.add})

    def begin(self, _):
        numbers = sys.modules["keras"].ops.convert_to_numpy
        self.value = sum(float(numbers(v.regularizer(v))) for v in self.variables)

    def add(self, at):
        loss = c.dict_of(at.logs.contents)["loss"]
        check(lib.keel_logs_set(ctypes.byref(at.logs.contents), b"loss", loss + self.value))


def names_of(form, model, variables):
    """The names of variables in libkeel's model, which has weights in the order of `form`."""
    count = lib.keel_model_weight_count(model.handle)
    names = [lib.keel_model_weight_name(model.handle, i).decode() for i in range(count)]
    real, numbers = sys.modules["keras"].backend.is_float_dtype, sys.modules["keras"].ops.convert_to_numpy
    known = dict(zip((id(v) for v in form.weights if real(v.dtype)), names))
    for v in variables:
        name = known.get(id(v), "")
        now = _rows.taken(lib.keel_model_get_weight, model.handle, name.encode()) if name else None
        if now is None or not np.array_equal(now, numbers(v), equal_nan=True):
            raise c.Unsupported(
                f"weight '{v.path}' has a constraint of its own, but Keel does not find it by its path"
            )
    return [known[id(v)] for v in variables]


class Constraints:
    """A keel_callback that puts weights back where the caller wants them, as Keras's optimizers do."""

    def __init__(self, keras, form, model):
        """keras: the caller's model; form: what libkeel's, `model`, was read from."""
        self.variables = own_of(keras, "constraint")
        if self.variables and keras.optimizer.use_ema:
            raise c.Unsupported(
                f"weight '{self.variables[0].path}' has a constraint of its own, which the averages of an optimizer"
                " with use_ema would not have"
            )
        self.names = names_of(form, model, self.variables)
        self.c = c.Callback(ctypes.sizeof(c.Callback), b"constraints by Keras")

    def open(self, run):
        listen(self.c, run, {"train_batch_end": self.apply})

    def apply(self, at):
        ops = sys.modules["keras"].ops
        for name, v in zip(self.names, self.variables):
            now = _rows.taken(lib.keel_model_get_weight, at.model, name.encode())
            value = np.asarray(ops.convert_to_numpy(v.constraint(ops.convert_to_tensor(now))), now.dtype)
            if np.array_equal(value, now, equal_nan=True):
                continue
            tensor = _rows.as_tensor(np.ascontiguousarray(value), name, [value])
            check(lib.keel_model_set_weight(at.model, name.encode(), ctypes.byref(tensor)))
