"""What a step of the caller's makes of its rows: their number, which is not known while it is made, and rows of
several tensors in one."""

import numpy as np

from ._assigned import put_operators
from ._folds import has_rows
from ._means import counting
from ._ops import FILLED, Rows
from ._patches import Patches


def rows_of_step(steps, draws):
    """Functions of Keras in the place of which there are others until the Patches that it gives are closed. draws:
    by their names those of keras.random, as they draw numbers."""
    keras, patches = steps.keras, Patches()

    def put(where, name, of):
        patches.put(where, name, of(steps, getattr(where, name)))

    try:
        for name, draw in draws.items():
            patches.put(keras.random, name, drawn(steps, draw, getattr(keras.random, name)))
        variable = put_operators(keras, steps.weight, patches.put)
        put(variable, "assign", assigned)
        for name in FILLED:
            put(keras.ops, name, filled)
        for name in ("cast", "convert_to_tensor"):
            put(keras.ops, name, counted)
        put(keras.ops, "concatenate", joined)
        put(keras.ops, "split", split)
        put(keras.KerasTensor, "__getitem__", part)
        return patches
    except BaseException:
        patches.close()
        raise


def is_of_step(steps, *tensors):
    """Whether the step itself works on tensors of rows."""
    is_tensor = lambda t: isinstance(t, steps.keras.KerasTensor)
    return steps.tracer.is_step() and all(is_tensor(t) and has_rows(t) for t in tensors)


def drawn(steps, draw, of_layer):
    def draws(shape, *args, **kwargs):
        if steps.tracer.is_step() and steps.tracer.branches.layer is None:
            return steps.drawn(draw, tuple(shape), args, kwargs)
        return of_layer(shape, *args, **kwargs)

    return draws


def assigned(steps, original):
    def assign(v, value):
        return steps.assign(v, value) if steps.tracer.is_step() else original(v, value)

    return assign


def filled(steps, original):
    """What is there for each row is so several times where rows were joined."""

    def fill(shape, *args, **kwargs):
        rows = original(shape, *args, **kwargs)
        first = shape[0] if isinstance(shape, (list, tuple)) and len(shape) else shape
        parts = first.factor if isinstance(first, Rows) else 1
        return rows if parts == 1 else steps.joined([rows] * parts)

    return fill


def counted(steps, original):
    """The number of rows, where the step computes with it, is a sum over them."""

    def of(x, *args, **kwargs):
        if not isinstance(x, Rows):
            return original(x, *args, **kwargs)
        if not steps.tracer.is_step():
            steps.refuse("a layer computes with the number of its rows, which devices do not have")
        ones = steps.tracer.in_each_row(np.ones((1,), "float32"), (-1,))
        return counting(original(steps.keras.ops.sum(ones) * x.factor, *args, **kwargs), x.factor)

    return of


def joined(steps, original):
    def concatenate(xs, axis=-1):
        return steps.joined(list(xs)) if axis == 0 and is_of_step(steps, *xs) else original(xs, axis)

    return concatenate


def split(steps, original):
    def of(x, parts, axis=0):
        if axis != 0 or not isinstance(parts, int) or not is_of_step(steps, x):
            return original(x, parts, axis)
        each = steps.parts_of(steps.cut(x)) // parts
        return [steps.parted(x, k * each, each) for k in range(parts)]

    return of


def part(steps, original):
    def of(t, key):
        ends = (key.start, key.stop) if isinstance(key, slice) and key.step is None else ()
        if not any(isinstance(end, Rows) for end in ends):
            return original(t, key)
        first = ends[0].factor if isinstance(ends[0], Rows) else 0
        stop = ends[1].factor if isinstance(ends[1], Rows) else steps.parts_of(steps.cut(t))
        return steps.parted(t, first, stop - first)

    return of
