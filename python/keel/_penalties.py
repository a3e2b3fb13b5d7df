"""What regularizers add to a loss of the caller's: `self.losses` in a step, as terms that libkeel adds itself.

A symbolic number stands for them while the step is made. It is parted from a loss, whose gradient libkeel adds
it to; for logs it is computed here."""

import contextlib

import numpy as np

from ._branches import node_of, nodes_behind
from ._unsaved import replaced

AFFINE = ("Add", "Subtract", "Multiply", "Divide", "TrueDivide", "Negative", "Cast")


def regularized(layer):
    return [v for v in layer.trainable_weights if v.regularizer is not None]


def value_of(regularizer, w):
    """Of an array."""
    if type(regularizer).__name__ in ("L1", "L2", "L1L2") and type(regularizer).__module__.startswith(
        "keras."
    ):
        w = np.asarray(w, "float64")
        l1, l2 = (float(getattr(regularizer, name, 0.0) or 0.0) for name in ("l1", "l2"))
        return l1 * float(np.abs(w).sum()) + l2 * float(np.square(w).sum())
    return float(np.asarray(regularizer(w.astype("float32"))))


class Parted:
    """A number of a step: `rest`, and by id of a symbolic number how many times it has that."""

    def __init__(self, steps, t):
        self.steps, self.keras, self.times = steps, steps.keras, {}
        self.rest = self.part(t, 1.0)

    def is_penalty(self, t):
        return self.steps.kinds.get(id(t), ("",))[0] == "penalty"

    def part(self, t, times):
        nodes = nodes_behind(self.keras, [t]).values() if isinstance(t, self.keras.KerasTensor) else ()
        if not any(n.is_input and self.is_penalty(n.outputs[0]) for n in nodes):
            return t
        if self.is_penalty(t):
            self.times[id(t)] = self.times.get(id(t), 0.0) + times
            return 0.0
        node = node_of(t)
        operation, args = node.operation, node.arguments.args
        name = type(operation).__name__
        numbers = [a for a in args if not isinstance(a, self.keras.KerasTensor)]
        scales = name in ("Multiply", "Divide", "TrueDivide")
        if name not in AFFINE or (
            scales and (len(numbers) != 1 or name != "Multiply" and numbers[0] is args[0])
        ):
            self.steps.refuse(f"what regularizers give to a loss goes through a {name}")
        if scales:
            factor = float(np.asarray(self.keras.ops.convert_to_numpy(numbers[0])))
            times *= factor if name == "Multiply" else 1 / factor
        signs = {"Negative": (-1.0,), "Subtract": (1.0, -1.0)}.get(name, (1.0, 1.0))
        parts = [self.part(a, times * s) for a, s in zip(args, signs)]
        if name == "Cast":
            return parts[0]
        if any(isinstance(p, self.keras.KerasTensor) for p in parts):
            return operation(*parts)
        ops = self.keras.ops
        return float(np.asarray(ops.convert_to_numpy(operation(*map(ops.convert_to_tensor, parts)))))


def check(steps, asked, times):
    """A loss whose gradient an optimizer gets has the terms of its regularized weights once, or not at all. Gives
    the variables that libkeel adds them for."""
    terms = [v for t, n in times for v in steps.kinds[id(t)][1]]
    if any(n != 1 for _, n in times) or len({id(v) for v in terms}) != len(terms):
        steps.refuse("a loss has what its regularizers give several times, or times a number")
    moved = {id(v) for v in asked.variables}
    return [v for v in terms if id(v) in moved]


@contextlib.contextmanager
def only_of(form, kept):
    """While a model is saved, it has the regularizers of these variables only, and none of activities."""
    ids = {id(v) for v in kept}

    def is_left_out(layer, name, value):
        of_kept = [v.regularizer for v in layer._trainable_variables if id(v) in ids]
        return name.endswith("_regularizer") and value is not None and not any(value is r for r in of_kept)

    with replaced(form, is_left_out, None):
        yield
