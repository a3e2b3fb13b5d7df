"""Constraints of weights that are code of the caller: Keras computes them behind each step."""

import contextlib
import ctypes
import sys

import numpy as np

from . import _library as c
from . import _rows
from ._library import check, lib
from ._traced import module_of
from ._unsaved import replaced


def is_own(constraint):
    """Of an object, or of a function, which may be one, too."""
    of = constraint if hasattr(constraint, "__name__") else type(constraint)
    return constraint is not None and not module_of(of).startswith("keras.")


@contextlib.contextmanager
def without_own(form):
    """While a model is saved, it has no such constraints."""
    is_meant = lambda layer, name, value: name.endswith("_constraint") and is_own(value)
    with replaced(form, is_meant, None):
        yield


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
        self.variables = [v for v in keras.trainable_variables if is_own(getattr(v, "constraint", None))]
        if self.variables and keras.optimizer.use_ema:
            raise c.Unsupported(
                f"weight '{self.variables[0].path}' has a constraint of its own, which the averages of an optimizer"
                " with use_ema would not have"
            )
        self.names = names_of(form, model, self.variables)
        self.c = c.Callback(ctypes.sizeof(c.Callback), b"constraints by Keras")

    def open(self, run):
        call = lambda at: self.apply(at) or c.OK
        self.c.on_train_batch_end = c.On(lambda _, at: run.guard(call, at.contents))

    def apply(self, at):
        ops = sys.modules["keras"].ops
        for name, v in zip(self.names, self.variables):
            now = _rows.taken(lib.keel_model_get_weight, at.model, name.encode())
            value = np.asarray(ops.convert_to_numpy(v.constraint(ops.convert_to_tensor(now))), now.dtype)
            if np.array_equal(value, now, equal_nan=True):
                continue
            tensor = _rows.as_tensor(np.ascontiguousarray(value), name, [value])
            check(lib.keel_model_set_weight(at.model, name.encode(), ctypes.byref(tensor)))
