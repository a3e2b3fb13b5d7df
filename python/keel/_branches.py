"""What a `call` of the caller's computes only in training, as a graph for both, and what it draws.

The call is made twice, told and not told that it is trained. If the graphs differ, each row takes the values
of the one that applies: a Dropout of ones, which gives 0 or 2 in training, else 1, knows which. Random
numbers are draws of libkeel for each row, in training and in inference."""

import contextlib
import inspect

import numpy as np

from . import _masks
from ._package_layers import drawn
from ._patches import Patches

DRAWN = ("beta", "binomial", "categorical", "gamma", "randint", "shuffle", "truncated_normal")


class Branches:
    """zeros(shape, dtype): a tensor of zeros of this shape, whose first dim is the rows."""

    def __init__(self, keras, zeros, refuse):
        self.keras, self.zeros, self.refuse = keras, zeros, refuse
        self.trained = False  # the call that runs has been told so
        self.fixed = None  # whether all calls are trained with, if that is known
        self.layer = None  # whose call it is
        self.is_trained = None  # [rows], bool
        self.added = []  # terms of the loss, of each row, that the call has added so far

    def of_call(self, layer, args, kwargs, given, behind):
        """What the call of `layer` computes of these arguments, whose tensors are `given`, with masks from `behind`."""
        if "training" not in inspect.signature(layer.call).parameters:
            return self.run(layer, lambda _: behind(layer.call(*args, **kwargs)), self.trained)
        call = lambda training: behind(layer.call(*args, **kwargs, training=training))
        if self.fixed is not None:
            return self.run(layer, call, self.fixed)
        before, self.added = self.added, []
        out, added, self.added = self.run(layer, call, None), self.added, []
        trained, added_trained, self.added = self.run(layer, call, True), self.added, before
        both = (out, added), (trained, added_trained)
        same = [same_graphs(self.keras, *pair) for pair in zip(*both)]
        if not all(same):
            for name in twice_made(self.keras, *map(self.keras.tree.flatten, both), given):
                self.refuse(layer, f"it computes something else in training, of which '{name}' learns twice")
        if not same[1]:
            added = [sum(values, self.zeros((-1,), "float32")) for values in (added_trained, added)]
            added = [self.keras.ops.where(self.told(), *added)]
        self.added += added
        return out if same[0] else self.joined(layer, out, trained)

    def told(self):
        """[rows], bool: whether they are trained with."""
        if self.is_trained is None:
            ones = self.zeros((-1,), "float32") + 1.0
            self.is_trained = self.layer_of("Dropout", 0.5)(ones) != 1.0
        return self.is_trained

    def joined(self, layer, out, trained):
        ops = self.keras.ops

        def of(t, other):
            if not is_tensor(self.keras, t) or not is_tensor(self.keras, other) or t.shape != other.shape:
                self.refuse(layer, "what it returns has another form in training")
            masks = _masks.mask_of(t), _masks.mask_of(other)
            if not same_graphs(self.keras, *([m] for m in masks)):
                self.refuse(layer, "its mask is another in training")
            joined = ops.where(ops.reshape(self.told(), (-1,) + (1,) * (len(t.shape) - 1)), other, t)
            return _masks.marked(self.keras, joined, masks[0])

        return self.keras.tree.map_structure(of, out, trained)

    def run(self, layer, call, training):
        before, self.layer, self.trained = (self.layer, self.trained), layer, training is True
        try:
            return call(training)
        finally:
            self.layer, self.trained = before

    def layer_of(self, name, rate, dtype="float32", **options):
        seed = np.random.randint(1 << 31)
        return getattr(self.keras.layers, name)(rate, dtype=dtype, seed=seed, **options)

    @contextlib.contextmanager
    def open(self):
        """Random numbers of keras.random are drawn for each row."""
        with random_numbers(self.keras, self.normal, self.uniform, self.dropout, self.fail_to_draw):
            yield

    def fail_to_draw(self, name):
        self.refuse(self.layer, f"it draws by random.{name}")

    def drawn(self, shape):
        return drawn(self.keras)(self.zeros(self.of_rows(shape), "float32"))

    def of_rows(self, shape):
        if self.layer is None:
            self.refuse(None, "it draws random numbers")
        if tuple(shape)[:1] != (-1,):
            self.refuse(self.layer, "it draws random numbers that all rows share")
        return shape

    def normal(self, shape, mean=0.0, stddev=1.0, dtype=None, seed=None):
        numbers = self.drawn(shape) * stddev + mean
        return self.keras.ops.cast(numbers, dtype or self.keras.config.floatx())

    def uniform(self, shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
        ops = self.keras.ops
        share = ops.minimum(0.5 + 0.5 * ops.erf(self.drawn(shape) * 0.5**0.5), 1 - 2.0**-24)
        return ops.cast(share * (maxval - minval) + minval, dtype or self.keras.config.floatx())

    def dropout(self, inputs, rate, noise_shape=None, seed=None):
        shape = self.of_rows((-1, *inputs.shape[1:]) if noise_shape is None else noise_shape)
        x = _masks.unmarked(self.keras, inputs)
        if self.trained:
            return self.layer_of("Dropout", rate, inputs.dtype, noise_shape=(None, *shape[1:]))(x)
        kept = self.keras.ops.cast(self.uniform(shape) >= rate, inputs.dtype)
        return x * kept / (1 - rate)


@contextlib.contextmanager
def random_numbers(keras, normal, uniform, dropout, other):
    """Functions in place of those of keras.random and tf.random; other(name) in place of the rest."""
    random, replaced = keras.random, {"normal": normal, "uniform": uniform, "dropout": dropout}
    replaced.update({name: lambda *_, name=name, **__: other(name) for name in DRAWN})
    with Patches() as patches:
        for name, function in replaced.items():
            patches.put(random, name, function)
        if keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            for name in ("normal", "uniform"):
                patches.put(tf.random, name, of_tensorflow(replaced[name], getattr(tf.random, name)))
        yield


def of_tensorflow(draw, original):
    """A function of keras.random by the arguments of the one of that name in tf.random."""

    def drawn(shape, low=0.0, high=1.0, dtype=None, seed=None, name=None, **named):
        low = named.get("mean", named.get("minval", low))
        high = named.get("stddev", named.get("maxval", high))
        return draw(tuple(shape), low, 1.0 if high is None else high, dtype=dtype)

    drawn.original = getattr(original, "original", original)
    return drawn


def middles(keras):
    """Where a class is compared with its graph: draws are the middle of what they may be."""
    ops, floatx = keras.ops, keras.config.floatx
    full = lambda shape, value, dtype: ops.cast(ops.zeros(shape) + value, dtype or floatx())
    normal = lambda shape, mean=0.0, stddev=1.0, dtype=None, seed=None: full(shape, mean, dtype)
    uniform = lambda shape, minval=0.0, maxval=1.0, dtype=None, seed=None: full(
        shape, (minval + maxval) / 2, dtype
    )
    dropout = lambda x, rate, noise_shape=None, seed=None: x * ops.cast(0.5 >= rate, x.dtype) / (1 - rate)
    return random_numbers(keras, normal, uniform, dropout, lambda name: None)


def is_tensor(keras, t):
    return isinstance(t, keras.KerasTensor)


def node_of(t):
    operation, index, _ = t._keras_history
    return operation._inbound_nodes[index]


def made_of(node):
    args = {k: v for k, v in node.arguments.kwargs.items() if k != "training"}
    return node.arguments.args, args


def nodes_behind(keras, outputs, given=()):
    """By id the nodes that make these tensors of those given."""
    stop, found, todo = {id(t) for t in given}, {}, list(outputs)
    while todo:
        t = todo.pop()
        if is_tensor(keras, t) and id(t) not in stop and id(node_of(t)) not in found:
            found[id(node_of(t))] = node_of(t)
            todo += keras.tree.flatten(made_of(node_of(t)))
    return found


def in_order(keras, outputs):
    """The nodes that make these tensors, each behind those whose tensors it takes."""
    inputs = [n.outputs[0] for n in nodes_behind(keras, outputs).values() if n.is_input]
    by_depth = keras.Function(inputs, outputs)._nodes_by_depth
    return [n for depth in sorted(by_depth)[::-1] for n in by_depth[depth]]


def same_graphs(keras, some, others):
    """Whether two graphs compute the same, but for random numbers."""
    todo, seen = [(some, others)], set()
    while todo:
        a, b = todo.pop()
        a, b = keras.tree.flatten(a), keras.tree.flatten(b)
        if len(a) != len(b):
            return False
        for s, t in zip(a, b):
            tensors = is_tensor(keras, s), is_tensor(keras, t)
            if not all(tensors):
                if any(tensors) or not same_values(s, t):
                    return False
            elif s is not t and (id(s), id(t)) not in seen:
                seen.add((id(s), id(t)))
                if s._keras_history.tensor_index != t._keras_history.tensor_index:
                    return False
                n, m = node_of(s), node_of(t)
                if not same_operations(keras, n.operation, m.operation):
                    return False
                todo.append((made_of(n), made_of(m)))
    return True


def same_values(a, b):
    if a is b or (isinstance(a, (str, int, float, slice, type(None))) and type(a) is type(b) and a == b):
        return True
    try:
        a, b = np.asarray(a), np.asarray(b)
        return a.dtype == b.dtype and a.dtype != object and np.array_equal(a, b)
    except (TypeError, ValueError):
        return False


def same_operations(keras, a, b):
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, keras.layers.Layer):  # made in the call
        of = lambda layer: {k: v for k, v in layer.get_config().items() if k not in ("name", "seed")}
        return not a.weights and not b.weights and of(a) == of(b)
    of = lambda o: {k: v for k, v in vars(o).items() if not k.startswith("_") and k != "name"}
    flat = lambda o: keras.tree.flatten(of(o))
    return of(a).keys() == of(b).keys() and all(map(same_values, flat(a), flat(b)))


def twice_made(keras, some, others, given):
    """Names of layers that learn from each of their calls, and are called in only one of the graphs."""
    a, b = (nodes_behind(keras, outputs, given) for outputs in (some, others))
    for node in [n for key, n in (*a.items(), *b.items()) if (key in a) != (key in b)]:
        learnt = getattr(node.operation, "non_trainable_variables", ())
        if any(keras.backend.is_float_dtype(v.dtype) for v in learnt):
            yield node.operation.name
