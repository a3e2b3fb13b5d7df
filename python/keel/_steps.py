"""A `train_step` of the caller's, as groups of a graph and what it does with them.

The step is made once on symbolic tensors. Each layer or model that it calls is a *group*: its results are
inputs of what follows, so that libkeel's function (keel/function.h) can call groups one by one, again for a
second gradient, or in another function. Where an optimizer has moved weights and a layer that has them is
called after that, a new *stage* begins, which sees them; each stage is a function."""

import contextlib
import inspect

from . import _library as c
from . import _penalties
from ._assigned import Assigned
from ._branches import nodes_behind
from ._folds import has_rows
from ._masks import mask_of
from ._ops import Rows
from ._patches import DRAWS, open_patches
from ._step_rows import rows_of_step
from ._traced import Tracer, one_line

OF_BOTH = ("compute_loss", "compute_metrics")


def has_own(model, *names):
    """Whether one of these functions of a model is code of the caller."""
    return any(not getattr(type(model), name).__module__.startswith("keras.") for name in names)


def what_of(model):
    """Why a model is trained by steps, for messages."""
    own = has_own(model, "train_step", "test_step", *OF_BOTH)
    return "a step of its own" if own else "a loss of all rows together"


class Group:
    """Tensors that are computed together. layer: whose call it is; None: operations alone. loss: a number of all rows,
    of which it is the group; None: it has rows (see WholeLoss)."""

    loss = None

    def __init__(self, outputs, stage, training, layer=None, tapes=None):
        self.outputs, self.stage, self.training, self.layer = outputs, stage, training, layer
        self.tapes = tapes  # those that have recorded it; None: all
        self.variables = {id(v) for v in layer.variables} if layer else set()
        self.inputs, self.parts = [], 1  # of the graph: those that it needs; see Steps.parts_of


class Asked:
    """Gradients of a loss for some variables; None: any. tape: which gives them; None: one that records all."""

    def __init__(self, loss, variables=None, tape=None):
        self.loss, self.variables, self.tape = loss, variables, tape
        self.optimizer = self.stage = None
        self.clip = {}  # an argument of an optimizer's that stands for how the step clips the gradients

    def records(self, group):
        return self.tape is None or group.tapes is None or any(t is self.tape for t in group.tapes)


class Slope:
    """The gradient for one variable, which only an optimizer takes."""

    def __init__(self, asked, variable, clip=()):
        self.asked, self.variable, self.clip = asked, variable, clip

    def clipped(self, how, most, of=1):
        """By an argument of optimizers; of: the norm of so many gradients."""
        if self.clip:
            raise c.Unsupported("gradients are clipped twice")
        return Slope(self.asked, self.variable, (how, float(most), of))

    def __array__(self, *_, **__):
        raise c.Unsupported("gradients are changed before an optimizer takes them")


class Value:
    """What a step on PyTorch gets as the value of a variable: its gradient is all that can be asked for."""

    def __init__(self, grad):
        self.grad = grad


class Result:
    """What a metric will give."""

    def __init__(self, metric):
        self.metric = metric


class Update:
    """What a metric will get."""

    def __init__(self, metric, args, kwargs):
        self.metric, self.args, self.kwargs = metric, args, kwargs


class Draw:
    """Random numbers for some rows, by a function of Keras or TensorFlow. shape: with the dim of the rows."""

    def __init__(self, keras, function, shape, args, kwargs):
        self.keras, self.function, self.shape, self.args, self.kwargs = (
            keras,
            function,
            shape[1:],
            args,
            kwargs,
        )
        given = inspect.signature(function).bind(shape, *args, **kwargs)
        given.apply_defaults()
        self.given = given.arguments
        whole = function.__name__ == "randint"
        dtype = self.given.get("dtype") or ("int32" if whole else keras.config.floatx())
        self.dtype = keras.backend.standardize_dtype(dtype)

    def __call__(self, rows):
        return self.function((rows, *self.shape), *self.args, **self.kwargs)

    def middle(self, rows):
        """What the numbers may be, in the middle."""
        if "mean" in self.given:
            value = self.given["mean"]
        else:
            most = self.given["maxval"]
            value = (self.given["minval"] + (1 if most is None else most)) / 2
        ops = self.keras.ops
        return ops.cast(ops.zeros((rows, *self.shape)) + value, self.dtype)


class StepTracer(Tracer):
    """Layers that a step calls become groups."""

    def __init__(self, keras, steps):
        super().__init__(keras)
        self.steps = steps

    def is_step(self):
        """Whether the step itself is what runs, not a layer that it calls."""
        return not self.inside and len(self.within) == 1

    def call(self, original, layer, args, kwargs):
        traced = lambda *a, **k: super(StepTracer, self).call(original, layer, a, k)
        return self.steps.call(traced, layer, args, kwargs) if self.is_step() else traced(*args, **kwargs)

    def value_of(self, original, v):
        if self.is_step() and self.steps.last is not None and id(v) in self.read:
            return Value(Slope(self.steps.last, v))
        return super().value_of(original, v)


class Steps:
    """What a step does: a recorder of its patches. function(data, recorder): the step; data: arrays in its structure."""

    def __init__(self, keras, model, function, data):
        self.keras, self.model, self.function, self.data = keras, model, function, data
        self.what, self.name = what_of(model), f"the step of '{model.name}'"
        self.kinds = {}  # by id of an input of the graph: what it stands for, as input() is told
        self.inputs, self.groups, self.asked, self.updates = [], [], [], []
        self.weights, self.assigned = {}, []  # see weight(); Assigned
        self.tapes = []
        self.shares = set()  # ids of inputs that are gradients of a mean over rows
        self.penalties = []  # symbolic numbers, see losses()
        self.added = []  # a layer and the term that its call has added to the loss, for each row
        self.stage, self.moved, self.last = 0, {}, None
        self.cuts = {}  # by id of a tensor: the tensor, and the input that is in its place behind it
        self.tracer = StepTracer(keras, self)
        self.factors = self.tracer.factors
        refuse = self.tracer.branches.refuse
        self.tracer.branches.refuse = lambda layer, why: refuse(layer, why) if layer else self.refuse(why)
        flat = keras.tree.flatten(data)
        tensors = [self.input(a.shape, a.dtype.name, "data", i) for i, a in enumerate(flat)]
        self.tracer.root = tensors[0]
        self.result = self.record(keras.tree.pack_sequence_as(data, list(map(self.shown, tensors))))

    def refuse(self, why):
        raise c.Unsupported(f"'{self.model.name}' has {self.what}, which Keel cannot take: {why}")

    def record(self, data):
        tracer = self.tracer
        tracer.within.append(self.model)
        try:
            with contextlib.ExitStack() as opened:
                self.put_compute_loss(opened)
                self.random = {name: getattr(self.keras.random, name) for name in DRAWS}
                opened.enter_context(tracer.watched(self.model))
                opened.enter_context(tracer.open())
                opened.enter_context(open_patches(self.keras, self))
                opened.enter_context(rows_of_step(self, self.random))
                return self.function(data, self)
        except c.Error:
            raise
        except Exception as error:
            self.refuse(one_line(error))
        finally:
            tracer.within.pop()

    def put_compute_loss(self, opened):
        """Keras's adds up what symbolic numbers have no sum for."""
        of_keras = lambda k: k.__module__.startswith("keras.")
        keras_s = next(k for k in type(self.model).__mro__ if "compute_loss" in vars(k) and of_keras(k))
        opened.callback(setattr, keras_s, "compute_loss", keras_s.compute_loss)
        keras_s.compute_loss = lambda *args, **kwargs: self.compute_loss(*args, **kwargs)

    # ---- inputs of the graph ---------------------------------------------------------------------

    def input(self, shape, dtype, *kind, parts=1):
        """kind: "data", its number; "drawn", a Draw; "group", it, the number of its output; "joined", tensors;
        "part", a tensor of joined rows, the first of its parts, and how many; "slope", y, x: the gradient of y with
        respect to x; "made", a tensor of the step's. Others have no rows: "weight", a variable, and "penalty",
        variables, each with how many gradients were applied before."""
        t = self.keras.Input(
            batch_shape=(None, *shape[1:]), dtype=dtype, name=f"{kind[0]}_{len(self.inputs)}"
        )
        self.inputs.append(t)
        self.kinds[id(t)] = kind
        if parts > 1:
            self.factors.known[id(t)] = t, parts
        return t

    def shown(self, t):
        """What the step has in the place of an input of the graph."""
        return t

    def weight(self, v):
        """A tensor for a weight that the step itself reads, as it is when so many gradients were applied."""
        return self.weight_now(v) if self.tracer.is_step() and id(v) in self.tracer.read else None

    def weight_now(self, v):
        key = id(v), len(self.asked)
        if key not in self.weights:
            t = self.keras.Input(batch_shape=v.shape, dtype=v.dtype, name=f"weight_{len(self.weights)}")
            self.weights[key], self.kinds[id(t)] = t, ("weight", v, len(self.asked))
        return self.weights[key]

    def sources(self, t):
        """The inputs of the graph that an input is made of, if it is made of others."""
        kind, *what = self.kinds[id(t)]
        if kind == "joined":
            return what[0]
        return what if kind == "slope" else what[:1] if kind == "part" else []

    def parts_of(self, *tensors):
        """How many times the rows of the batch they have: rows of several tensors are joined in one."""
        found = {self.factors.of(t) for t in tensors} or {1}
        if len(found) > 1:
            self.refuse("rows that were joined with others meet some that were not")
        return found.pop()

    def given(self, t):
        """The inputs of the graph that a tensor is computed of."""
        inputs = [n.outputs[0] for n in nodes_behind(self.keras, [t]).values() if n.is_input]
        return [i for i in inputs if id(i) in self.kinds]

    def call(self, call, layer, args, kwargs):
        """A layer that the step calls."""
        if not self.tracer.symbolic((args, kwargs)):
            self.refuse(f"it calls '{layer.name}' on numbers that no rows have")
        training, args, kwargs = told(layer, args, kwargs)
        if any(id(v) in self.moved for v in layer.variables):
            self.stage, self.moved = self.stage + 1, {}
        tree = self.keras.tree
        args, kwargs = tree.map_structure(self.cut, (args, kwargs))
        self.tracer.branches.added = added = []
        with self.tracer.rooted(tree.flatten((args, kwargs)), training):
            out = call(*args, **kwargs)
        flat, cast = tree.flatten(out), self.keras.ops.cast
        masked = [k for k, t in enumerate(flat) if mask_of(t) is not None]
        masks = [cast(mask_of(flat[k]), "float32") for k in masked]
        group = self.group([*flat, *masks, *added], training, layer)
        tensors = [self.of_group(group, k) for k in range(len(group.outputs))]
        tensors = list(map(self.shown, tensors))
        for k, mask in zip(masked, tensors[len(flat) :]):
            tensors[k]._keras_mask = cast(mask, "bool")
        self.added += [(layer, t) for t in tensors[len(flat) + len(masks) :]]
        return tree.pack_sequence_as(out, tensors[: len(flat)])

    def group(self, outputs, training=True, layer=None):
        tapes = recording_now(self.keras, self.tapes) if layer else None
        self.groups.append(Group(outputs, self.stage, training, layer, tapes))
        return self.groups[-1]

    def of_group(self, group, k):
        """Its output. libkeel gives values on in float32, also those of layers that compute in a narrow type."""
        t, real = group.outputs[k], self.keras.config.floatx()
        narrow = self.keras.backend.is_float_dtype(t.dtype) and t.dtype != real
        parts = self.parts_of(*self.given(t))
        out = self.input(t.shape, real if narrow else t.dtype, "group", group, k, parts=parts)
        return self.keras.ops.cast(out, t.dtype) if narrow else out

    def cut(self, t):
        """The input that stands for a tensor which the step has computed."""
        if not isinstance(t, self.keras.KerasTensor) or id(t) in self.kinds:
            return t
        if id(t) not in self.cuts:
            if not has_rows(t):
                self.refuse("a layer is called on a number of the batch")
            self.cuts[id(t)] = t, self.of_group(self.group([t]), 0)
        return self.cuts[id(t)][1]

    def joined(self, tensors):
        """Rows of several tensors, which stay apart: what follows is called on each."""
        tensors = list(map(self.cut, tensors))
        if len({t.shape for t in tensors}) > 1:
            self.refuse(f"rows of shapes {[t.shape for t in tensors]} are joined")
        parts = sum(map(self.parts_of, tensors))
        return self.input(tensors[0].shape, tensors[0].dtype, "joined", tensors, parts=parts)

    def parted(self, t, first, count):
        """Parts of rows that were joined."""
        t = self.cut(t)
        kind, *what = self.kinds[id(t)]
        if self.parts_of(t) == 1:
            self.refuse("it takes rows of a batch apart")
        if kind != "joined":
            return self.input(t.shape, t.dtype, "part", t, first, count, parts=count)
        at, found = 0, []
        for tensor in what[0]:
            if first <= at < first + count:
                found.append(tensor)
            at += self.parts_of(tensor)
        if sum(map(self.parts_of, found)) != count:
            self.refuse("it takes rows apart elsewhere than where they were joined")
        return found[0] if len(found) == 1 else self.joined(found)

    # ---- the recorder --------------------------------------------------------------------------------

    def watch(self, tape, tensors):
        pass

    def gradient(self, target, sources, tape):
        tree = self.keras.tree
        flat = tree.flatten(sources)
        if all(isinstance(s, self.keras.KerasTensor) for s in flat):
            slope_of = lambda x: self.shown(self.slope(self.cut(target), self.cut(x)))
            return tree.map_structure(slope_of, sources)
        by_value = {id(getattr(v, "_value", v)): v for v in self.model.variables}
        variables = [s if isinstance(s, self.keras.Variable) else by_value.get(id(s)) for s in flat]
        if any(v is None for v in variables):
            self.refuse("it takes the gradient for what is no weight of it")
        asked = self.of_loss(target, variables, tape)
        return tree.pack_sequence_as(sources, [Slope(asked, v) for v in variables])

    def slope(self, y, x):
        return self.input(x.shape, x.dtype, "slope", y, x)

    def of_loss(self, target, variables=None, tape=None):
        if not isinstance(target, self.keras.KerasTensor) or target.shape:
            self.refuse("it takes the gradient of what is no loss: one number of the batch")
        return Asked(target, variables, tape)

    def backward(self, loss):
        """PyTorch's, before gradients are asked for."""
        self.last = self.of_loss(loss, tape=GRAD)

    def apply(self, optimizer, gradients, variables):
        gradients = list(gradients)
        variables = (
            [getattr(g, "variable", None) for g in gradients] if variables is None else list(variables)
        )
        if not gradients or not all(isinstance(g, Slope) for g in gradients):
            self.refuse("an optimizer gets other gradients than those of a tape")
        asked = gradients[0].asked
        if any(g.asked is not asked or g.variable is not v for g, v in zip(gradients, variables)):
            self.refuse("an optimizer gets gradients of several losses, or of other variables")
        if asked.optimizer is not None:
            if {id(v) for v in asked.variables} & {id(v) for v in variables}:
                self.refuse("an optimizer gets gradients that another one has taken")
            asked = Asked(asked.loss, tape=asked.tape)
        if hasattr(optimizer, "inner_optimizer"):
            self.refuse("its optimizer scales the loss")
        if optimizer.use_ema:
            self.refuse("its optimizer keeps moving averages (use_ema)")
        asked.clip = self.clip_of(optimizer, gradients)
        asked.optimizer, asked.stage, asked.variables = optimizer, self.stage, variables
        self.asked.append(asked)
        self.moved.update({id(v): v for v in variables})

    def clip_of(self, optimizer, gradients):
        """How the step has clipped gradients, as an argument of the optimizer."""
        clips = {g.clip for g in gradients}
        if clips == {()}:
            return {}
        how, most, of = next(iter(clips)) or ("", 0, 0)
        own = [name for name in ("clipnorm", "global_clipnorm", "clipvalue") if getattr(optimizer, name)]
        if len(clips) > 1 or (how == "global_clipnorm" and of != len(gradients)) or own:
            self.refuse("gradients are clipped in another way than an optimizer clips all that it gets")
        return {how: most}

    def updated(self, metric, *args, **kwargs):
        self.updates.append(Update(metric, args, kwargs))

    def result(self, metric):
        return Result(metric)

    def losses(self, layer, _):
        """What calls have added by add_loss, and a number that stands for what the regularizers of weights give."""
        parts = layer._flatten_layers()
        for part in parts:
            if getattr(part, "activity_regularizer", None) is not None:
                self.refuse(f"it adds what the activity_regularizer of '{part.name}' gives to the loss")
        within = {id(part) for part in parts}
        terms = [self.keras.ops.mean(t) for adds, t in self.added if id(adds) in within]
        variables = _penalties.regularized(layer)
        if variables:
            t = self.keras.Input(batch_shape=(), name=f"penalty_{len(self.penalties)}")
            self.kinds[id(t)] = "penalty", variables, len(self.asked)
            self.penalties.append(t)
            terms.append(t)
        return terms

    def compute_loss(self, model, x=None, y=None, y_pred=None, sample_weight=None, **_):
        """Keras's own."""
        loss = model._compile_loss and model._compile_loss(y, y_pred, sample_weight)
        terms = [*([] if loss is None else [loss]), *self.losses(model, None)]
        if not terms:
            raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`.")
        return sum(terms[1:], terms[0])

    def set(self, call, what):
        """What would be set once, by this call, while the step is made."""
        if self.tracer.is_step():
            self.refuse(f"it sets {what}")
        return call()

    def assign(self, variable, value):
        if not isinstance(value, self.keras.KerasTensor):
            self.refuse(f"it assigns to '{variable.path}' what is not made of weights alone")
        self.assigned.append(Assigned(variable, value, len(self.asked)))
        return value

    def drawn(self, function, shape, args, kwargs, within=None):
        """Random numbers of the step itself, which Keras draws in each step; within: those of layers, for each row."""
        if within and (not self.tracer.is_step() or self.tracer.branches.layer is not None):
            return within(shape, *args, **kwargs)
        parts = self.parts_in(shape[0]) if len(shape) else None
        if parts is None:
            self.refuse("it draws random numbers that are not of its rows")
        draw = Draw(self.keras, function, shape, args, kwargs)
        return self.shown(self.input(shape, draw.dtype, "drawn", draw, parts=parts))

    def parts_in(self, dim):
        """How many times the rows of the batch a dim is; None: it is another."""
        return dim.factor if isinstance(dim, Rows) else None


GRAD = object()  # in place of a tape: PyTorch's


def recording_now(keras, tapes):
    if keras.backend.backend() != "torch":
        return list(tapes)
    import torch

    return [GRAD] if torch.is_grad_enabled() else []


def told(layer, args, kwargs):
    """Whether a layer is called for training, and its arguments without that."""
    training = kwargs.get("training")
    kwargs = {k: v for k, v in kwargs.items() if k != "training"}
    parameters = inspect.signature(layer.call).parameters
    at = list(parameters).index("training") if "training" in parameters else len(args)
    if at < len(args):
        training, args = args[at], (*args[:at], *args[at + 1 :])
    if training is None and "training" in parameters:
        default = parameters["training"].default
        training = default is True
    return bool(training), args, kwargs
