"""Models with classes of the caller's own, as a Functional model of Keras's layers.

A subclass of keras.Model, or of Layer, says in `call` what it computes, by Keras's layers and keras.ops.
Its call is made on symbolic tensors. What it calls becomes the graph, in which the class itself is not;
the layers are the caller's, so the weights are the same variables. Such a graph does not show Python code
that decides by values, or that adds losses: then the model is refused, by name."""

import contextlib
import inspect
import os
import traceback

import numpy as np

from . import _library as c
from . import _added, _masks
from ._branches import Branches, middles, node_of, nodes_behind
from ._folds import Factors, without_folds
from ._means import losses_give_means
from ._ops import RowOps, Rows, known
from ._patches import Patches
from ._rows import as_array, first_of
from ._tf_names import put_functions
from ._weights import StandIns, a_number_of_each_row, give_all, graph_with_rows

STILL = ("BatchNormalization", "GaussianNoise", "GaussianDropout", "AlphaDropout", "SpectralNormalization")
OF_LIBRARIES = ("keras", "tensorflow", "jax", "torch")  # whose functions have Keras's names, as relu
ACTIVATED = set("""Activation Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose Dense
DepthwiseConv1D DepthwiseConv2D EinsumDense SeparableConv1D SeparableConv2D""".split())


def is_own(layer):
    """Whether its `call` is code of the caller."""
    return not type(layer).__module__.startswith("keras.") or type(layer).__name__ == "Lambda"


def has_own_call(layer):
    """Not so a class of the caller's whose `call` is that of Keras's Functional model."""
    functional = hasattr(layer, "_functional") or hasattr(layer, "_inputs_struct")
    return is_own(layer) and not (functional and type(layer).call.__module__.startswith("keras."))


def module_of(thing):
    """Of a class or function, or of the class of an object."""
    return getattr(thing, "__module__", None) or type(thing).__module__


def own_activation(layer):
    """The function of the caller that a layer of Keras applies, or None."""
    function = None if is_own(layer) else getattr(layer, "activation", None)
    of_a_library = function is None or module_of(function).partition(".")[0] in OF_LIBRARIES
    return None if of_a_library else function


def needs_tracing(model):
    return any(is_own(layer) or own_activation(layer) for layer in model._flatten_layers())


def refuse(layer, why):
    raise c.Unsupported(
        f"'{layer.name}' is a {type(layer).__name__}, whose call Keel cannot take as a graph: {why}"
    )


def one_line(error):
    text = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
    return text + place_of(error)


def place_of(error):
    """The last line of the caller's own code that it came through."""
    place, of_python = "", os.path.dirname(os.__file__)
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        own = frame.f_globals.get("__package__") != __package__ and not file.startswith(of_python)
        if own and "site-packages" not in file:
            place = f" (line {line} of {os.path.basename(file)})"
    return place


class Tracer:
    """While it is open, layers of the caller's own classes, and models that have some, are inlined.
    Keras's layers stay."""

    def __init__(self, keras):
        self.keras, self.refuse = keras, refuse
        self.root = None  # a symbolic input
        self.within = []  # whose calls are running
        self.inside = 0  # of how many calls of Keras's layers
        self.read = {}  # by id: variables that are real numbers, whose value no `call` of the caller may read
        self.shared = {}  # by id: tensors of which all rows have the same
        self.plain = {}  # by id: a layer whose activation is code of the caller, and the same without it
        self.factors = Factors(keras, self.refuse_call)
        self.stand_ins = StandIns(keras, refuse)
        zeros = lambda shape, dtype: self.in_each_row(np.zeros((1, *shape[1:]), dtype), known(shape))
        self.branches = Branches(keras, zeros, refuse)

    def symbolic(self, values):
        return [v for v in self.keras.tree.flatten(values) if isinstance(v, self.keras.KerasTensor)]

    def call(self, original, layer, args, kwargs):
        if not self.symbolic((args, kwargs)):
            if not isinstance(layer, self.keras.layers.Embedding) or len(args) != 1 or kwargs:
                return self.of_keras(original, layer, args, kwargs)
            args = (self.spread(args[0]),)
            if not is_own(layer):
                out = self.of_keras(original, layer, args, kwargs)
                self.shared[id(out)] = out
                return out
        inlined = is_own(layer) or (isinstance(layer, self.keras.Model) and needs_tracing(layer))
        if inlined or is_own(self.within[-1]):
            kwargs = self.untold(layer, kwargs)
        if inlined:
            return self.inline(layer, args, kwargs)
        activation = own_activation(layer)
        args, kwargs = _masks.as_libkeel_reads(self.keras, layer, args, kwargs)
        out = self.of_keras(original, self.without_activation(layer) if activation else layer, args, kwargs)
        return _masks.marked(self.keras, activation(out), _masks.mask_of(out)) if activation else out

    def of_keras(self, original, layer, args, kwargs):
        """The call of a layer of Keras, which has its weights."""
        self.inside += 1
        self.stand_ins.put_tensors(False)
        try:
            out = original(layer, *args, **kwargs)
        finally:
            self.inside -= 1
            self.stand_ins.put_tensors(not self.inside)
        return self.closed(layer, args, out)

    def closed(self, layer, args, out):
        """The result of an EinsumDense, whose output_shape may leave dims open that its input has."""
        if not isinstance(layer, self.keras.layers.EinsumDense) or None not in out.shape[1:]:
            return out
        terms, result = layer.equation.split("->")
        sizes = dict(zip(terms.split(",")[0], args[0].shape)) if args and "..." not in terms else {}
        dims = [d or sizes.get(letter) for letter, d in zip(result, out.shape)][1:]
        if None in dims:
            return out
        return _masks.marked(self.keras, self.keras.ops.reshape(out, (-1, *dims)), _masks.mask_of(out))

    def value_of(self, original, v):
        """What a variable's `value` gives: a number read in a `call` would stay as it is in the graph."""
        if id(v) in self.read and not self.inside and self.within:
            refuse(self.within[-1], f"it reads '{v.path}', outside of the layer that has it")
        return original(v)

    def without_activation(self, layer):
        """The same layer with the same weights."""
        if type(layer).__name__ not in ACTIVATED or layer.activity_regularizer is not None:
            refuse(layer, "its activation is a Python function, which Keel applies behind a layer only")
        if id(layer) not in self.plain:
            plain = type(layer).from_config({**layer.get_config(), "activation": None})
            plain.build(layer._build_shapes_dict["input_shape"] if layer.weights else None)
            give_all(self.keras, plain, layer)
            self.plain[id(layer)] = layer, plain
        return self.plain[id(layer)][1]

    def untold(self, layer, kwargs):
        """Without `training`: all layers of a graph are told by who runs it."""
        training, caller = kwargs.get("training"), self.within[-1]
        passed_on = training in (None, self.branches.fixed) or (training is True and self.branches.trained)
        if has_own_call(caller) and not passed_on:  # a Functional model overrules it
            refuse(caller, f"it calls '{layer.name}' with training={training}")
        return {k: v for k, v in kwargs.items() if k != "training"}

    def inline(self, layer, args, kwargs):
        own = has_own_call(layer)
        if own and getattr(layer, "activity_regularizer", None) is not None:
            refuse(layer, "it has an activity_regularizer")
        if getattr(layer, "autocast", True):
            as_it = lambda t: self.cast(t, layer.compute_dtype)
            args, kwargs = self.keras.tree.map_structure(as_it, (args, kwargs))
        self.within.append(layer)
        try:
            if not own:
                return layer.call(*args, **kwargs)
            kwargs, first, masks = _masks.given(self.keras, layer, args, kwargs)
            if not layer.built and not getattr(layer.build, "_is_default", False):
                self.build(layer, args, kwargs)
            with self.stand_ins.of(layer):
                behind = lambda out: _masks.behind(self.keras, layer, first, masks, out)
                return self.branches.of_call(layer, args, kwargs, self.symbolic((args, kwargs)), behind)
        except Exception as error:
            if not own or isinstance(error, c.Error):
                raise
            refuse(layer, one_line(error))
        finally:
            self.within.pop()

    def build(self, layer, args, kwargs):
        """As Keras does before the first call: the `build` of a class makes weights, and layers that `call` uses."""
        tree, names = self.keras.tree, list(inspect.signature(layer.build).parameters)
        given = inspect.signature(layer.call).bind_partial(*args, **kwargs).arguments
        shape_of = lambda value: tree.map_structure(lambda t: tuple(t.shape), value)
        shapes = {f"{k}_shape": shape_of(v) for k, v in given.items() if self.symbolic(v)}
        if len(names) == 1 and names[0] not in shapes:
            layer.build(next(iter(shapes.values()), None))
        else:
            layer.build(**{name: shapes[name] for name in names if name in shapes})
        floats = [v for v in layer.variables if self.keras.backend.is_float_dtype(v.dtype)]
        self.read.update({id(v): v for v in floats})

    def refuse_call(self, why):
        refuse(self.within[-1], why)

    def cast(self, t, dtype):
        floats = isinstance(t, self.keras.KerasTensor) and self.keras.backend.is_float_dtype(t.dtype)
        if not floats or t.dtype == dtype:
            return t
        return _masks.marked(self.keras, self.keras.ops.cast(t, dtype), _masks.mask_of(t))

    def spread(self, values):
        """Places, as of ops.arange, for each row of the input: so an Embedding of them is in the graph."""
        ops = self.keras.ops
        values = np.asarray(ops.convert_to_numpy(values)).astype("int32")
        if values.ndim > 1 and values.shape[0] == 1:
            values = values[0]
        return self.zeros(values.ndim + 1, "int32") + values[None]

    @contextlib.contextmanager
    def rooted(self, values, training):
        """While a layer is called on these, in training or not: what it makes for each row is there for their rows."""
        before, self.branches.fixed = self.root, training
        self.root = next((v for v in self.symbolic(values) if v.shape[:1] == (None,)), self.root)
        try:
            yield
        finally:
            self.root, self.branches.fixed = before, None

    def zeros(self, rank, dtype):
        """[rows, 1, 1, ...]"""
        ops = self.keras.ops
        zeros = ops.cast(ops.zeros_like(a_number_of_each_row(self.root)), dtype)
        return ops.reshape(zeros, (-1,) + (1,) * (rank - 1))

    def in_each_row(self, x, shape):
        """x, whose first dim is 1 or left out, as broadcast to this shape of which that dim is the rows."""
        ops = self.keras.ops
        dtype = self.keras.backend.standardize_dtype(x.dtype)
        zeros = self.zeros(len(shape), "int32" if dtype == "bool" else dtype)
        x = zeros + (ops.cast(x, "int32") if dtype == "bool" else x)
        if tuple(x.shape[1:]) != tuple(shape[1:]):
            x = x + np.zeros((1, *shape[1:]), x.dtype)
        return ops.cast(x, dtype)

    @contextlib.contextmanager
    def watched(self, model):
        """Variables of the model give way to stand-ins, or are refused, where the caller's code reads them."""
        floats = [v for v in model.variables if self.keras.backend.is_float_dtype(v.dtype)]
        self.read = {id(v): v for v in floats}
        classes = {next(t for t in type(v).__mro__ if "value" in vars(t)) for v in floats}
        kept = {t: vars(t)["value"] for t in classes}
        for t, value in kept.items():
            t.value = property(lambda v, original=value.fget: self.value_of(original, v))
        try:
            with self.stand_ins.of_embeddings(model):
                yield
        finally:
            for t, value in kept.items():
                t.value = value

    def is_symbolic(self, values):
        """Whether there are tensors without numbers among them, or the number of rows."""
        symbolic = lambda a: isinstance(a, (self.keras.KerasTensor, Rows))
        return any(map(symbolic, self.keras.tree.flatten(values)))

    def libraries(self):
        """Until the Patches that it gives are closed, functions of TensorFlow and NumPy take tensors without numbers."""
        patches, tensor = Patches(), self.keras.KerasTensor
        tensor.__array_ufunc__ = None  # so that `array * tensor` asks the tensor
        patches.callback(delattr, tensor, "__array_ufunc__")
        if self.keras.backend.backend() == "tensorflow":
            import tensorflow as tf

            put_functions(tf, self.keras.ops, self.is_symbolic, patches.put)
        return patches

    @contextlib.contextmanager
    def open(self):
        """Not while another thread calls layers: it changes Layer's own __call__."""
        layer_class, tracer = self.keras.layers.Layer, self
        call = layer_class.__call__
        layer_class.__call__ = lambda layer, *args, **kwargs: tracer.call(call, layer, args, kwargs)
        try:
            with contextlib.ExitStack() as opened:
                row_ops = RowOps(self.keras, self.in_each_row, self.factors, lambda t: id(t) in self.shared)
                for part in (row_ops.open(), self.branches.open(), self.libraries(), losses_give_means(self.keras),
                             _added.collected(self.keras, self)):  # fmt: skip
                    opened.enter_context(part)
                yield
        finally:
            layer_class.__call__ = call


def inputs_of(keras, model, x):
    """New inputs: those of a Functional model, or such as the arrays `x` are, by shape and type."""
    struct = getattr(getattr(model, "_functional", model), "_inputs_struct", None)
    if struct is not None:
        name = lambda t: t._keras_history.operation.name
        rows = shapes_by_name([name(t) for t in keras.tree.flatten(struct)], x)

        def like(t):  # a dim that is open has what the rows have: code of the caller computes with it
            dims = rows.get(name(t), ())
            dims = dims if len(dims) == len(t.shape) else t.shape
            closed = [a if d is None else d for d, a in zip(t.shape[1:], dims[1:])]
            return keras.Input(closed, dtype=t.dtype, name=name(t))

        return keras.tree.map_structure(like, struct)
    if x is None:
        refuse(model, "its inputs are known from arrays, or from data that can be begun anew")
    return keras.tree.map_structure(lambda a: keras.Input(a.shape[1:], dtype=a.dtype.name), x)


def shapes_by_name(names, x):
    """Of arrays for these inputs, as far as there are any."""
    if isinstance(x, dict):
        return {name: np.shape(x[name]) for name in names if name in x}
    arrays = list(x) if isinstance(x, (list, tuple)) else [] if x is None else [x]
    return dict(zip(names, map(np.shape, arrays)))


def is_still(model):
    """Keras tells a model that it is trained only if its call asks; else its layers never learn of it."""
    return is_own(model) and "training" not in inspect.signature(model.call).parameters


def with_names(keras, outputs, names):
    """Losses and logs go by the names of the layers that outputs come from."""
    flat = keras.tree.flatten(outputs)
    if isinstance(outputs, dict) or len(names or []) != len(flat):
        return outputs
    makers = [t._keras_history.operation.name for t in flat]
    flat = [t if maker == n else keras.layers.Identity(name=n)(t) for t, maker, n in zip(flat, makers, names)]
    return keras.tree.pack_sequence_as(outputs, flat)


def make_names_unique(keras, outputs, at_end):
    """Layers of several classes may have one name, which no Functional model may. at_end: an ExitStack, which
    gives them their names back."""
    taken, makers = set(), [node_of(t).operation for t in outputs]
    nodes = nodes_behind(keras, outputs).values()
    inputs = [n.operation for n in nodes if n.is_input]
    # rows go by the names of inputs, and losses by those of what makes the outputs
    for operation in {id(o): o for o in (*inputs, *makers, *(n.operation for n in nodes))}.values():
        name, k = operation.name, 0
        while operation.name in taken:
            k += 1
            operation.name = f"{name}_{k}"
        taken.add(operation.name)
        if k:
            at_end.callback(setattr, operation, "name", name)


def trace(keras, model, x, at_end):
    """The Functional model, and names of layers that are slow in it."""
    tracer = Tracer(keras)
    inputs = inputs_of(keras, model, x)
    tracer.root = keras.tree.flatten(inputs)[0]
    try:
        with tracer.watched(model), tracer.open():
            outputs = tracer.inline(model, (inputs,), {})
        names = getattr(model, "output_names", None)
        outputs = _added.with_losses(keras, outputs, tracer.branches.added, names)
        slow = ()
        make_names_unique(keras, keras.tree.flatten(outputs), at_end)
        outputs = without_folds(keras, outputs, lambda why: refuse(model, why))
        if tracer.stand_ins.used(outputs):
            outputs, slow = graph_with_rows(keras, outputs, tracer.root, tracer.stand_ins)
        make_names_unique(keras, keras.tree.flatten(outputs), at_end)
        if is_still(model):  # a model within, which is never told that it is trained
            within = keras.Model(inputs, outputs, name=f"{model.name}_graph")
            inputs = keras.tree.map_structure(
                lambda t: keras.Input(batch_shape=t.shape, dtype=t.dtype), inputs
            )
            outputs = within(inputs, training=False)
        outputs = with_names(keras, outputs, names)
        return keras.Model(inputs, outputs, name=model.name), slow
    except c.Error:
        raise
    except Exception as error:
        refuse(model, one_line(error))


def check_variables(keras, model, form):
    there, trained = {id(v) for v in form.variables}, {id(v) for v in form.trainable_variables}
    for v in model.variables:
        real = keras.backend.is_float_dtype(v.dtype)  # others are constants, or seeds of what Keel draws
        if real and id(v) not in there:
            refuse(model, f"variable '{v.path}' is not reached from the inputs")
    if {id(v) for v in model.trainable_variables} != trained:
        refuse(model, "other weights would be trained")


def check_values(keras, model, form):
    """Of a few made-up rows both give the same."""
    rng = np.random.default_rng(0)

    def made_up(t):
        shape = (3, *(d or 4 for d in t.shape[1:]))
        floats = keras.backend.is_float_dtype(t.dtype)
        return (rng.random(shape) if floats else np.arange(np.prod(shape)).reshape(shape) % 2).astype(t.dtype)

    if any(t.dtype == "string" for t in form.inputs):
        refuse(model, "it takes texts")
    x = keras.tree.map_structure(made_up, form._inputs_struct)

    numbers = lambda t: None if t is None else np.asarray(keras.ops.convert_to_numpy(t), "float64")

    def results(m):
        outputs = keras.tree.flatten(m(x, training=False))
        losses = sum(numbers(v).sum() for v in m.losses)
        return [*map(numbers, (*outputs, *map(_masks.mask_of, outputs))), losses]

    try:
        with middles(keras):
            pairs = zip(results(model), results(form))
    except Exception as error:
        refuse(model, one_line(error))
    apart = 1e-4 if form.compute_dtype == "float32" else 1e-2
    for a, b in pairs:
        if np.shape(a) != np.shape(b) or not (a is b or np.allclose(a, b, apart, apart / 10)):
            refuse(model, "the graph gives other values, masks or losses")


def functional(keras, model, data, say, at_end):
    """The same model of Keras's layers alone, with the same variables; not compiled. `data`: x of the run.
    `say` is told what its author may not have meant. Until at_end, an ExitStack, is closed, layers may have
    other names."""
    x, *_ = first_of(data)
    if x is not None:
        x = keras.tree.map_structure(lambda a: as_array(a, "x"), x)
    if not model.built and x is not None:
        model(keras.tree.map_structure(lambda a: a[:1], x))
    form, slow = trace(keras, model, x, at_end)
    check_variables(keras, model, form)
    check_values(keras, model, form)
    for name in slow:
        say(
            f"'{name}' multiplies by what it makes of its weights: each row of a batch has its own, which is slow"
        )
    names = {type(layer).__name__ for layer in form._flatten_layers()}
    if is_still(model) and any(name in STILL or "Dropout" in name for name in names):
        say(
            f"{type(model).__name__}.call takes no 'training', so its layers are in inference mode, as in Keras"
        )
    return form


class Optimizer:
    """The optimizer of a traced model beside the caller's, whose variables are in another order."""

    def __init__(self, model, form):
        self.of = model.optimizer
        made = type(self.of).from_config(self.of.get_config())
        made.build(form.trainable_variables)
        options = dict(model._compile_config.config)
        form.compile(**{**options, "optimizer": made})
        here, there = self.by_path(self.of), self.by_path(made)
        if here.keys() != there.keys() or len(here) != len(self.of.variables):
            refuse(
                model,
                "two of its weights have the same path, so the optimizer's variables cannot be told apart",
            )
        self.pairs = [(here[path], there[path]) for path in here]
        for mine, its in self.pairs:
            its.assign(mine)

    @staticmethod
    def by_path(optimizer):
        return {v.path: v for v in optimizer.variables}

    def take_back(self):
        for mine, its in self.pairs:
            mine.assign(its)
