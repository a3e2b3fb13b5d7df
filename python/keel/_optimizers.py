"""Optimizers of Keras's that functions of libkeel apply: their rates, and their states on both sides."""

import ctypes

import numpy as np

from . import _library as c
from . import _rows
from ._library import check, lib


class Applied:
    """An optimizer of Keras's that libkeel applies. count: how often it has been. variables: those that it moves, in
    the order of libkeel's weights; known: in that of the step."""

    def __init__(self, optimizer, variables, known):
        self.of, self.count = optimizer, int(optimizer._iterations)  # steps that only add up gradients, too
        if not optimizer.built:
            optimizer.build(known)
        like = type(optimizer).from_config(optimizer.get_config())
        like.build(variables)
        self.states = [self.counterpart(like, v) for v in like.variables]
        self.states = [v for v in self.states if v is not None]

    def counterpart(self, like, v):
        """The caller's variable in place of one of an optimizer that was built in libkeel's order."""
        at = {id(w): i for i, w in enumerate(self.of._trainable_variables)}
        for name, held in vars(like).items():
            if held is v:
                return None if name in ("_iterations", "_learning_rate") else getattr(self.of, name)
            if name.startswith(("_trainable_var", "_variables")) or not isinstance(held, (list, tuple)):
                continue
            for i, w in enumerate(held):
                if w is v:
                    return getattr(self.of, name)[at[id(like._trainable_variables[i])]]
        raise c.Unsupported(f"the state of the optimizer '{self.of.name}' is not understood")

    def rate(self):
        rate, of = self.of._learning_rate, self.of.gradient_accumulation_steps or 1
        return float(rate if hasattr(rate, "assign") else rate(self.count // of) if callable(rate) else rate)

    def give(self, function, k):
        """To a function of libkeel, as its k-th optimizer."""
        if lib.keel_function_state_count(function, k) != len(self.states):
            raise c.Unsupported(f"the state of the optimizer '{self.of.name}' is not understood")
        self.count = int(self.of._iterations)  # a callback may have loaded it
        if not self.count:
            return
        check(lib.keel_function_set_iterations(function, k, self.count))
        for i, v in enumerate(self.states):
            kept, value = [], np.asarray(v.numpy())
            kind = np.float32 if np.issubdtype(value.dtype, np.floating) else np.int32
            tensor = _rows.as_tensor(np.ascontiguousarray(value, kind).reshape(value.shape), v.path, kept)
            check(lib.keel_function_set_state(function, k, i, ctypes.byref(tensor)))

    def take_back(self, function, k):
        self.of._iterations.assign(self.count)
        for i, v in enumerate(self.states):
            v.assign(_rows.taken(lib.keel_function_state, function, k, i))


def move_state(function, k, to, at):
    """What the k-th optimizer of a function has, to that of another one, of the same weights."""
    check(lib.keel_function_set_iterations(to, at, lib.keel_function_iterations(function, k)))
    for i in range(lib.keel_function_state_count(function, k)):
        kept, value = [], _rows.taken(lib.keel_function_state, function, k, i)
        tensor = _rows.as_tensor(value, "a state", kept)
        check(lib.keel_function_set_state(to, at, i, ctypes.byref(tensor)))
