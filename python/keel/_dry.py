"""A step of the caller's on numbers, without a change, beside its graph: both must give the same.

Layers of Keras are called in inference, and random numbers are the middle of what they may be."""

import contextlib

import numpy as np

from . import _library as c
from ._branches import middles, nodes_behind
from ._patches import DRAWS, Patches, open_patches
from ._steps import Asked, Draw, Slope, Update, told
from ._traced import is_own, one_line


class Dry:
    """The recorder of a step that runs on numbers."""

    def __init__(self, keras):
        self.keras, self.asked, self.updates, self.last = keras, [], [], None
        self.assigned, self.tapes, self.depth = [], [], 0  # of how many calls of layers

    def is_symbolic(self, values):
        return False

    def watch(self, tape, tensors):
        tape.watch(tensors)

    def gradient(self, target, sources, tape):
        flat = self.keras.tree.flatten(sources)
        if not any(isinstance(s, self.keras.Variable) or hasattr(s, "assign") for s in flat):
            return tape.tape.gradient(target, sources)
        asked = Asked(self.keras.ops.sum(target))
        return self.keras.tree.pack_sequence_as(sources, [Slope(asked, s) for s in flat])

    def of_loss(self, loss, variables):
        return Asked(loss, variables)

    def backward(self, loss):
        self.last = Asked(loss)

    def apply(self, optimizer, gradients, variables):
        gradients = list(gradients)
        self.asked.append(gradients[0].asked if isinstance(gradients[0], Slope) else self.last)

    def updated(self, metric, *args, **kwargs):
        self.updates.append(Update(metric, args, kwargs))

    def result(self, metric):
        return self.keras.ops.zeros(())

    def set(self, call, what):
        return call()

    def losses(self, layer, original):
        return original(layer)

    def drawn(self, function, shape, args, kwargs, within=None):
        return Draw(self.keras, function, shape, args, kwargs).middle(shape[0])

    @contextlib.contextmanager
    def middles(self):
        """Random numbers are the middle of what they may be."""
        own = {name: getattr(self.keras.random, name) for name in DRAWS}
        with middles(self.keras), Patches() as patches:
            for name, function in own.items():
                drawn = lambda shape, *a, function=function, **k: self.drawn(function, shape, a, k)
                patches.put(self.keras.random, name, drawn)
            yield

    def unmoved(self):
        """Layers of Keras are in inference, and weights that the step sets stay as they are."""
        patches, layer_class = Patches(), self.keras.layers.Layer
        variable = next(k for k in self.keras.Variable.__mro__[::-1] if "assign" in vars(k))
        call_of, assign_of = layer_class.__call__, variable.assign

        def call(layer, *args, **kwargs):
            own = is_own(layer) or isinstance(layer, self.keras.Model)
            if not self.depth or not own:
                training, args, kwargs = told(layer, args, kwargs)
                if getattr(layer, "_call_has_training_arg", False):
                    kwargs["training"] = own and training
            self.depth += 1
            try:
                return call_of(layer, *args, **kwargs)
            finally:
                self.depth -= 1

        def assign(v, value):
            return self.assigned.append(value) if self.depth == 0 else assign_of(v, value)

        patches.put(layer_class, "__call__", call)
        patches.put(variable, "assign", assign)
        return patches


class Numbers:
    """Of the graph of a step, for these data."""

    def __init__(self, steps, data):
        self.steps, self.keras, self.data = steps, steps.keras, data
        self.known, self.tape = {}, None
        stand_ins = steps.tracer.stand_ins
        held = [*stand_ins.known.values(), *stand_ins.embeddings]
        self.weights = {id(tensor): v for tensor, v, _ in held}

    def of(self, t):
        """Of a tensor of the graph."""
        if id(t) not in self.known:
            kind, *what = self.steps.kinds.get(id(t), (None,))
            self.known[id(t)] = t, self.of_kind(t, kind, *what)
        return self.known[id(t)][1]

    def watched(self, value):
        if self.tape and self.keras.backend.is_float_dtype(value.dtype):
            self.tape.watch(value)
        return value

    def of_kind(self, t, kind, *what):
        ops = self.keras.ops
        if kind == "data":
            return self.watched(ops.convert_to_tensor(self.data[what[0]]))
        if kind == "drawn":
            return self.watched(what[0].middle(len(self.data[0]) * self.steps.parts_of(t)))
        if kind == "made":
            return self.watched(self.computed(what[0]))
        if kind == "weight":
            return what[0].value
        if kind == "penalty":
            return sum(v.regularizer(v.value) for v in what[0])
        if kind == "joined":
            return ops.concatenate([self.of(part) for part in what[0]], axis=0)
        if kind == "part":
            rows, (given, first, count) = len(self.data[0]), what
            return self.of(given)[first * rows : (first + count) * rows]
        if kind == "slope":
            y, x = self.of(what[0]), self.of(what[1])
            with self.tape.stop_recording():
                slope = self.tape.gradient(y, x)
                return slope / len(self.data[0]) if id(t) in self.steps.shares else slope
        if kind == "group":
            return self.watched(self.computed(what[0].outputs[what[1]]))
        return self.computed(t)

    def computed(self, t):
        inputs = [n.outputs[0] for n in nodes_behind(self.keras, [t]).values() if n.is_input]
        value = lambda i: self.weights[id(i)].value if id(i) in self.weights else self.of(i)
        if any(t is i for i in inputs):
            return value(t)
        return self.keras.Function(inputs, [t])([value(i) for i in inputs])[0]


def check(steps, data):
    """data: arrays, as the step gets them."""
    keras, ops = steps.keras, steps.keras.ops
    numbers = lambda a: np.asarray(ops.convert_to_numpy(ops.cast(a, "float32")), "float64")
    dry, tensor = Dry(keras), keras.ops.convert_to_tensor
    of_graph = Numbers(steps, data)
    try:
        with contextlib.ExitStack() as opened:
            opened.enter_context(dry.middles())
            opened.enter_context(dry.unmoved())
            opened.enter_context(open_patches(keras, dry))
            steps.function(keras.tree.pack_sequence_as(steps.data, list(map(tensor, data))), dry)
    except c.Error:
        raise
    except Exception as error:
        steps.refuse(one_line(error))
    pairs = [(a.loss, b.loss) for a, b in zip(steps.asked, dry.asked)]
    pairs += [(a.value, value) for a, value in zip(steps.assigned, dry.assigned)]
    leaves = lambda update: keras.tree.flatten((update.args, update.kwargs))
    given = [pair for a, b in zip(steps.updates, dry.updates) for pair in zip(leaves(a), leaves(b))]
    pairs += [pair for pair in given if isinstance(pair[0], keras.KerasTensor)]
    noted = lambda recorder: tuple(map(len, (recorder.asked, recorder.updates, recorder.assigned)))
    if noted(steps) != noted(dry):
        steps.refuse("it does not do the same in each step")
    narrow = any(layer.compute_dtype != keras.config.floatx() for layer in steps.model._flatten_layers())
    apart = 5e-2 if narrow else 1e-3
    with dry.middles(), dry.unmoved(), tape_of(keras) as of_graph.tape:
        for mine, theirs in pairs:
            a, b = numbers(of_graph.of(mine)), numbers(theirs)
            if a.shape != b.shape or not np.allclose(a, b, apart, apart / 10, equal_nan=True):
                steps.refuse("its graph gives other values than it does on numbers")


def tape_of(keras):
    if keras.backend.backend() != "tensorflow":
        return contextlib.nullcontext()
    import tensorflow as tf

    return tf.GradientTape(persistent=True)
