"""Weights that a step of the caller's sets itself, as moving averages of others: `v.assign(0.99 * v + 0.01 * w)`.

They are computed by Keras behind the function of libkeel that has moved what they are made of."""

import ctypes

import numpy as np

from . import _rows
from ._branches import nodes_behind
from ._library import check, lib


class Assigned:
    """A variable and the tensor that it becomes. at: how many gradients were applied before."""

    def __init__(self, variable, value, at):
        self.variable, self.value, self.at = variable, value, at


OPERATORS = {"__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__truediv__": "divide"}


def put_operators(keras, tensor_of, put):
    """Arithmetic of variables, whose values are symbolic where tensor_of(v) is not None."""
    base = next(k for k in keras.Variable.__mro__[::-1] if "__mul__" in vars(k))

    def two(original, ops, turned):
        def computed(v, other):
            mine = tensor_of(v)
            if mine is None:
                return original(v, other)
            other = tensor_of(other) if isinstance(other, keras.Variable) else other
            return ops(other, mine) if turned else ops(mine, other)

        return computed

    for name, function in OPERATORS.items():
        for own, turned in ((name, False), (f"__r{name[2:]}", True)):
            put(base, own, two(getattr(base, own), getattr(keras.ops, function), turned))
    return base


class Averages:
    """Those of a step that a program runs. network: whose weights are libkeel's."""

    def __init__(self, steps, network):
        self.steps, self.network, self.keras = steps, network, steps.keras
        self.held = {}  # by id of a variable that libkeel does not have: its array
        # by the number of a stage: a function of arrays, the variables it reads, those it sets
        self.runs = {}
        by_stage = {}
        for a in steps.assigned:
            if not a.at:
                steps.refuse(f"it assigns to '{a.variable.path}' before an optimizer has moved weights")
            by_stage.setdefault(steps.asked[a.at - 1].stage, []).append(a)
        for stage, assigned in by_stage.items():
            self.runs[stage] = self.made(assigned)

    def made(self, assigned):
        reads = {}
        for a in assigned:
            for t in self.read(a):
                reads[id(t)] = t
        tensors = list(reads.values())
        compute = self.keras.Function(tensors, [a.value for a in assigned])
        variables = [self.steps.kinds[id(t)][1] for t in tensors]
        return compute, variables, [a.variable for a in assigned]

    def read(self, a):
        """The weights that a value is made of, which must not move between."""
        found = [n.outputs[0] for n in nodes_behind(self.keras, [a.value]).values() if n.is_input]
        for t in found:
            kind, *what = self.steps.kinds.get(id(t), (None,))
            if kind != "weight":
                self.steps.refuse(f"it assigns to '{a.variable.path}' what is not made of weights alone")
            stage = self.steps.asked[a.at - 1].stage
            for k, asked in enumerate(self.steps.asked):
                between = what[1] <= k < a.at or (k >= a.at and asked.stage == stage)
                if between and any(v is what[0] for v in asked.variables):
                    self.steps.refuse(
                        f"it reads '{what[0].path}' before an optimizer moves it, to assign it later"
                    )
        return found

    def run(self, stage):
        """After the function of a stage."""
        if stage not in self.runs:
            return
        compute, variables, targets = self.runs[stage]
        values = compute([self.keras.ops.convert_to_tensor(self.value(v)) for v in variables])
        for v, value in zip(targets, values):
            self.put(v, np.ascontiguousarray(self.keras.ops.convert_to_numpy(value)))

    def value(self, v):
        name = self.network.names.get(id(v))
        if name is None:
            if id(v) not in self.held:
                self.held[id(v)] = v, np.array(self.keras.ops.convert_to_numpy(v))
            return self.held[id(v)][1]
        return _rows.taken(lib.keel_model_get_weight, self.network.model.handle, name.encode())

    def put(self, v, value):
        name = self.network.names.get(id(v))
        if name is None:
            self.held[id(v)] = v, value
            return
        tensor = _rows.as_tensor(value, name, [])
        check(lib.keel_model_set_weight(self.network.model.handle, name.encode(), ctypes.byref(tensor)))

    def write(self):
        for v, value in self.held.values():
            v.assign(value)
        self.held = {}
