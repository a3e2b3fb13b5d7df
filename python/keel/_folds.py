"""Dims that a `call` of the caller's moves into the rows, as frames of a film or windows of an image:
reshape(x, (-1, height, width, channels)).

libkeel's rows stay rows. The graph is made anew, in which such a dim stays behind the rows, until a reshape takes
it back: operations are the same with one dim more, and a layer is there once for each place of that dim."""

import numpy as np

from ._branches import in_order, node_of
from ._weights import EACH, give_all

# Layers that compute the same with one dim more; others are in a TimeDistributed.
AS_THEY_ARE = set("""Activation Add Average Dense Dropout ELU Embedding Identity LeakyReLU Maximum Minimum
Multiply ReLU Softmax Subtract""".split())  # fmt: skip
WITH_AXIS = set("""Argmax Argmin Concatenate ExpandDims Flip LogSoftmax Logsumexp Max Mean Min Norm Normalize
Prod Roll Softmax Split Squeeze Stack Std Sum Take Unstack Var""".split())  # fmt: skip
WITH_AXES = {"Swapaxes": ("axis1", "axis2"), "Moveaxis": ("source", "destination")}


class Factors:
    """How many rows each row of the input has become in a tensor of a graph. refuse(why)"""

    def __init__(self, keras, refuse):
        self.keras, self.refuse = keras, refuse
        self.known = {}  # by id: a tensor, and its factor

    def of(self, t):
        todo = [t]
        while todo:
            t = todo[-1]
            node = node_of(t)
            given = [] if node.is_input else [a for a in node.arguments.keras_tensors if has_rows(a)]
            unknown = [a for a in given if id(a) not in self.known]
            if unknown and id(t) not in self.known:
                todo += unknown
                continue
            todo.pop()
            if id(t) not in self.known:
                self.known[id(t)] = t, self.behind(node, t, given)
        return self.known[id(t)][1]

    def behind(self, node, t, given):
        factors = {self.known[id(a)][1] for a in given if has_rows(t)}
        if len(factors) > 1:
            self.refuse("rows that another dim has been moved into meet others")
        factor = factors.pop() if factors else 1
        if type(node.operation).__name__ != "Reshape" or not given:
            return factor
        before, now = places(given[0].shape), places(t.shape)
        if not before or not now or before == now:
            return factor
        if factor * before % now:
            self.refuse(f"a reshape from {given[0].shape} to {t.shape} mixes rows")
        return factor * before // now


def has_rows(t):
    return t.shape[:1] == (None,)


def places(shape):
    """How many numbers a row has; None: that is not known."""
    return None if None in shape[1:] else int(np.prod(shape[1:]))


class Folds:
    """Of the graph of `outputs`."""

    def __init__(self, keras, outputs, refuse):
        self.keras, self.refuse, self.outputs = keras, refuse, outputs
        self.nodes = in_order(keras, keras.tree.flatten(outputs))
        self.factors = Factors(keras, refuse)
        self.new = {}  # by id of a tensor: the same in the graph made anew
        self.timed = {}  # by id of a layer: the TimeDistributed that has it

    def is_tensor(self, t):
        return isinstance(t, self.keras.KerasTensor)

    def find(self):
        """Whether there are any."""
        return any(self.factors.of(t) != 1 for node in self.nodes for t in node.outputs if has_rows(t))

    def factor(self, t):
        return self.factors.of(t) if has_rows(t) else 1

    def renewed(self):
        for node in self.nodes:
            if node.is_input:
                continue
            old = node.arguments.args, node.arguments.kwargs
            now = lambda t: self.new.get(id(t), t) if self.is_tensor(t) else t
            args, kwargs = self.keras.tree.map_structure(now, old)
            factor = self.factor(node.outputs[0])
            given = [self.factor(t) for t in node.arguments.keras_tensors]
            if factor == 1 and set(given) <= {1}:
                same = all(a is b for a, b in zip(*map(self.keras.tree.flatten, ((args, kwargs), old))))
                made = node.outputs if same else node.operation(*args, **kwargs)
            else:
                made = self.folded(node, args, kwargs, factor)
            for t, other in zip(node.outputs, self.keras.tree.flatten(made)):
                self.new[id(t)] = other
        for node in self.nodes:
            factors = [self.factor(t) for t in node.arguments.keras_tensors]
            if id(node.operation) in self.timed and set(factors) == {1} and node.operation.weights:
                self.refuse(f"'{node.operation.name}' has rows as they are, and such that have another dim")
        for t in self.keras.tree.flatten(self.outputs):
            if self.factor(t) != 1:
                self.refuse("an output has rows that another dim has been moved into")
        return self.keras.tree.map_structure(lambda t: self.new.get(id(t), t), self.outputs)

    def folded(self, node, args, kwargs, factor):
        operation, name, ops = node.operation, type(node.operation).__name__, self.keras.ops
        if name == "Reshape":
            within = () if factor == 1 else (factor,)
            return ops.reshape(args[0], (-1, *within, *node.outputs[0].shape[1:]))
        if isinstance(operation, self.keras.layers.Layer):
            return self.layer(operation, args, kwargs)
        if name in EACH or name == "Matmul" or (name == "OneHot" and operation.axis == -1):
            return operation(*args, **kwargs)
        config = operation.get_config()
        config.pop("name", None)
        if name in WITH_AXIS:
            return type(operation)(**{**config, "axis": self.behind(name, config.get("axis"))})(
                *args, **kwargs
            )
        if name == "Transpose" and config.get("axes") and config["axes"][0] == 0:
            return ops.transpose(args[0], (0, 1, *(a + 1 for a in config["axes"][1:])))
        if name in WITH_AXES:
            moved = {key: self.behind(name, config[key]) for key in WITH_AXES[name]}
            return type(operation)(**{**config, **moved})(*args, **kwargs)
        if name == "GetItem":
            key = tuple(args[1]) if isinstance(args[1], (list, tuple)) else (args[1],)
            if key[0] == slice(None) or key[0] is Ellipsis:
                return args[0][key if key[0] is Ellipsis else (slice(None), *key)]
        if name == "Einsum":
            return self.einsum(operation, node, args)
        self.refuse(f"a {name} has rows that another dim has been moved into")

    def behind(self, name, axis):
        several = isinstance(axis, (list, tuple))
        axes = list(axis) if several else [axis]
        if any(a is None or a == 0 for a in axes):
            self.refuse(f"a {name} goes over rows that another dim has been moved into")
        axes = [a + 1 if a > 0 else a for a in axes]
        return axes if several else axes[0]

    def layer(self, layer, args, kwargs):
        kwargs = {k: v for k, v in kwargs.items() if k != "training"}
        last = type(layer).__name__ in ("LayerNormalization", "RMSNormalization") and layer.axis in (-1, [-1])
        softmax = type(layer).__name__ == "Softmax" and layer.axis != -1
        if (type(layer).__name__ in AS_THEY_ARE and not softmax) or last:
            return layer(*args, **kwargs)
        if len(args) != 1 or any(v is not None for v in kwargs.values()) or not self.is_tensor(args[0]):
            self.refuse(f"'{layer.name}' has rows that another dim has been moved into")
        if id(layer) not in self.timed:
            self.timed[id(layer)] = self.timed_layer(layer, args[0])
        return self.timed[id(layer)](args[0])

    def timed_layer(self, layer, x):
        """What computes the same of rows of one dim more, with the same weights."""
        layers, real = self.keras.layers, self.keras.backend.is_float_dtype
        if type(layer) is layers.BatchNormalization and layer.axis in (-1, len(x.shape) - 2):
            wide = layers.BatchNormalization.from_config({**layer.get_config(), "axis": -1})
            wide.build(x.shape)
            give_all(self.keras, wide, layer)
            return wide
        for part in layer._flatten_layers():
            if any(real(v.dtype) for v in part._non_trainable_variables):  # it would learn place by place
                self.refuse(f"'{part.name}' has rows that another dim has been moved into")
        return layers.TimeDistributed(layer)

    def einsum(self, operation, node, args):
        left, arrow, out = operation.subscripts.replace(" ", "").partition("->")
        letter = next(x for x in "zyxwvutsrqponmlkjihgfedcba" if x not in left + out)
        has = [has_rows(t) for t in node.arguments.args]
        terms = [t[:1] + letter + t[1:] if h else t for t, h in zip(left.split(","), has)]
        if not arrow or "." in left or any(h and t[:1] != out[:1] for t, h in zip(left.split(","), has)):
            self.refuse("an Einsum has rows that another dim has been moved into")
        return self.keras.ops.einsum(f"{','.join(terms)}->{out[:1]}{letter}{out[1:]}", *args)


def without_folds(keras, outputs, refuse):
    """The outputs of a graph in which rows stay rows."""
    folds = Folds(keras, outputs, refuse)
    return folds.renewed() if folds.find() else outputs
