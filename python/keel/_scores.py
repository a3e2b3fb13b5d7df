"""Losses and metrics that are Python functions, as programs of keras.ops.

A function of y_true and y_pred is called once, on symbolic tensors. The graph of what it calls gives a value
for each row, or several, which libkeel computes and differentiates in its steps (losses/values.h). A function
that gives one number for a batch is understood if that is a mean over all rows."""

import contextlib
import ctypes
import re

import numpy as np

from . import _library as c
from . import _rows
from ._masks import mask_of
from ._means import is_mean, values_of_rows
from ._traced import Tracer, module_of, one_line
from ._totals import CLASS as TOTALS
from ._totals import Totals

CLASS = "KeelValues"
METRICS = "metrics", "weighted_metrics"  # of compile()


class OfAllRows(c.Unsupported):
    """A loss that is a function has no value for each row. called: a graph of it was made."""

    def __init__(self, error, called):
        super().__init__(str(error))
        self.called = called


def is_callers(thing):
    """Whether a class or function is code of the caller, not of Keras."""
    return not module_of(thing).startswith("keras.")


def function_of(leaf):
    """The function of the caller that a loss or metric is, or wraps; None: it has none."""
    if type(leaf).__name__ in ("LossFunctionWrapper", "MeanMetricWrapper") and not is_callers(type(leaf)):
        function = getattr(leaf, "fn", None) or getattr(leaf, "_fn", None)
        return function if function is not None and is_callers(function) else None
    plain = callable(leaf) and not isinstance(leaf, type) and not hasattr(leaf, "get_config")
    return leaf if plain and is_callers(leaf) else None


def unknown(name):
    """In place of a metric in a file: one that libkeel leaves out, whatever its name is."""
    return {"module": "caller", "class_name": name, "config": {}, "registered_name": f"caller>{name}"}


def snake(name):
    """The name of a function in Keras's logs."""
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def fields_of(x):
    """Of a dataset of libkeel the path, role, shape and type of each field."""
    fields, kinds = [], {v: k.name for k, v in _rows.DTYPES.items()}
    for i in range(c.lib.keel_dataset_field_count(x.handle)) if isinstance(x, _rows.Rows) else ():
        f = c.DataField()
        c.check(c.lib.keel_dataset_field(x.handle, i, ctypes.byref(f)))
        shape = tuple(d if d >= 0 else None for d in f.shape.dim[: f.shape.rank])
        fields.append((f.path.decode(), f.role, shape, kinds.get(f.dtype)))
    return fields


def output_names(form):
    """Of a model of Keras's the names by which compile() and data mean its outputs: of a dict its keys."""
    form = getattr(form, "_functional", None) or form
    struct, names = getattr(form, "_outputs_struct", None), list(getattr(form, "output_names", ()))
    flat_dict = isinstance(struct, dict) and all(hasattr(t, "shape") for t in struct.values())
    if not flat_dict or set(struct) == set(names):
        return names
    keys = {id(t): key for key, t in struct.items()}
    return [keys.get(id(t), name) for t, name in zip(form.outputs, names)]


def target_shapes(names, fields, y):
    """For each output the shape of its target and its type; None: not known."""
    arrays = [(name, _rows.as_array(a, "y")) for name, a in _rows.named(y, names, "y")]
    targets = [(path, (shape, kind)) for path, role, shape, kind in fields if role == c.TARGET]
    targets += [(name, (a.shape[1:], a.dtype.name)) for name, a in arrays]
    by_name = dict(targets)
    if len(names) == len(targets) and not set(names) <= set(by_name):
        return [spec for _, spec in targets]
    return [by_name.get(name) for name in names]


@contextlib.contextmanager
def programs(keras, model, form, given, say, left_out):
    """While `form`, which stands for `model`, is saved, programs are in place of functions. For predictions it is
    saved as if it was not compiled: given[2] is None. To the list left_out goes why metrics are no programs.
    """
    scores = Scores(keras, model, form, given, say, left_out)
    if not scores.is_needed() or given[0] is None:
        yield
        return
    config = None if given[2] is None else scores.compile_config()
    form.get_compile_config = lambda: config
    try:
        yield
    finally:
        del form.get_compile_config


class Scores:
    """What of a compiled model is code of the caller. given: x and y of the run, and whether its rows have
    weights, or None."""

    def __init__(self, keras, model, form, given, say, left_out):
        self.keras, self.model, self.say, self.left_out = keras, form, say, left_out
        self.names = output_names(form)
        self.given, self.weighted = given, None
        self.config = dict(model._compile_config.config) if getattr(model, "_compile_config", None) else {}
        self.targets = None

    def is_needed(self):
        leaves = [leaf for k in ("loss", *METRICS) for leaf in flat(self.config.get(k))]
        own = any(map(self.is_own_metric, leaves)) and not self.is_nested()
        return own or any(map(self.has_function, leaves))

    def is_own_metric(self, leaf):
        return isinstance(leaf, self.keras.metrics.Metric) and is_callers(type(leaf))

    def is_nested(self):
        """Whether outputs are in a structure of several levels."""
        outputs = getattr(getattr(self.model, "_functional", self.model), "_outputs_struct", None)
        if isinstance(outputs, dict):
            outputs = outputs.values()
        several = outputs if hasattr(outputs, "__iter__") and not hasattr(outputs, "shape") else ()
        return any(map(self.keras.tree.is_nested, several))

    def has_function(self, leaf):
        own_loss = isinstance(leaf, self.keras.losses.Loss) and is_callers(type(leaf))
        return own_loss or function_of(leaf) is not None

    def compile_config(self):
        """The compile_config of the model, with programs in place of functions."""
        x, y, weighted = self.given
        _, y, weight = _rows.first_of(x, y)
        fields = fields_of(x)
        self.weighted = weighted or weight is not None or any(role == c.WEIGHT for _, role, *_ in fields)
        self.targets = target_shapes(self.names, fields, y)
        if self.is_nested():
            raise c.Unsupported("losses or metrics that are Python functions, of outputs in several levels")
        others = {k: v for k, v in self.model._compile_config.config.items() if k not in ("loss", *METRICS)}
        config = {k: self.written(v) for k, v in others.items()}
        config["loss"] = self.by_output(self.config.get("loss"), self.loss)
        config["metrics"] = self.by_output(self.config.get("metrics"), self.metric)
        config["weighted_metrics"] = self.by_output(self.config.get("weighted_metrics"), self.weighted_metric)
        return config

    def by_output(self, value, of):
        """A structure of losses or metrics with each leaf as it is written; a single loss is for all outputs."""
        names, several = self.names, len(self.names) > 1
        if value is None:
            return None
        if isinstance(value, dict):
            unknown = sorted(set(value) - set(names))
            if unknown:
                raise c.ArgumentError(f"outputs {unknown} have a loss or metric, but the model has {names}")
            return {name: self.of_one(v, of, names.index(name)) for name, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.of_one(v, of, i if several else 0) for i, v in enumerate(value)]
        return [of(value, i) for i in range(len(names))] if several else of(value, 0)

    def of_one(self, value, of, output):
        if isinstance(value, (list, tuple)):
            return [of(v, output) for v in value]
        return None if value is None else of(value, output)

    def written(self, leaf):
        return leaf if isinstance(leaf, str) else self.keras.saving.serialize_keras_object(leaf)

    def loss(self, leaf, output):
        if not self.has_function(leaf):
            return self.written(leaf)
        losses = self.keras.losses
        loss = leaf if isinstance(leaf, losses.Loss) else keras_loss(self.keras, leaf)
        found = self.program_of_loss(loss, output)
        return {"class_name": found.pop("class"), "config": {"reduction": loss.reduction, **found}}

    def program_of_loss(self, loss, output):
        made = []

        def call(*args):
            values = loss.call(*args)
            made.append(values)
            return values

        try:
            return self.program(loss.name, call, output, False)
        except c.Unsupported as error:
            raise OfAllRows(error, bool(made)) from None

    def weighted_metric(self, leaf, output):
        return self.metric(leaf, output, True)

    def metric(self, leaf, output, weighs=False):
        if self.is_own_metric(leaf) or isinstance(leaf, self.keras.losses.Loss) and is_callers(type(leaf)):
            return unknown(type(leaf).__name__)
        if not self.has_function(leaf) or isinstance(leaf, self.keras.losses.Loss):
            return self.written(leaf)
        metric = leaf if isinstance(leaf, self.keras.metrics.Metric) else None
        function = function_of(leaf)
        name = metric.name if metric else snake(getattr(function, "__name__", type(function).__name__))
        options = getattr(metric, "_fn_kwargs", None) or {}
        call = lambda y_true, y_pred: function(y_true, y_pred, **options)
        try:
            found = self.program(name, call, output, True, weighs)
        except c.Unsupported as error:  # libkeel will leave it out
            self.left_out.append(str(error))
            return unknown(name)
        return {"class_name": found.pop("class"), "config": {"name": name, **found}}

    # ---- the program -----------------------------------------------------------------------------

    def refuse(self, name, why):
        raise c.Unsupported(f"'{name}' is a Python function, which Keel cannot take as a program: {why}")

    def program(self, name, call, output, is_metric, weighs=True):
        """The class of a loss or metric that computes it, and the arguments of that class."""
        keras = self.keras
        target, prediction = self.targets[output], self.model.outputs[output]
        if target is None:
            self.refuse(name, "the shape of y is known from arrays, or from data that can be begun anew")
        shape, kind = target
        real = self.keras.config.floatx() if prediction.dtype != "float64" else "float64"
        inputs = keras.Input(shape, dtype=real, name="y_true"), keras.Input(
            prediction.shape[1:], dtype=real, name="y_pred"
        )
        if not is_metric:  # a loss gets real numbers
            kind = real
        y_true = inputs[0] if kind == real else keras.ops.cast(inputs[0], kind)
        values = self.called(name, lambda: call(y_true, inputs[1]), inputs[1])
        made_up = MadeUp(keras, call, kind, shape, prediction.shape[1:], real)
        refuse = lambda why: self.refuse(name, why)
        weighed = self.weighted and weighs
        # by its weight each row counts as the whole number, and a mask changes nothing
        masked = mask_of(self.model.outputs[output]) is not None
        if not is_metric and not values.shape and (weighed or masked or not is_mean(keras, values)):
            return self.totals(values, inputs, made_up, refuse)
        by_rows = values_of_rows(keras, values, refuse)
        of_rows = by_rows is values  # as the function gives them
        if not of_rows and weighed:
            refuse(
                "a part of it is one number for a batch, so weights of rows cannot weigh it: give one for each row"
            )
        if not of_rows and is_metric:
            self.say(
                f"metric '{name}' gives one number for a batch; its mean is over rows here, and over batches in Keras"
            )
        if masked and len(by_rows.shape) < len(mask_of(self.model.outputs[output]).shape):
            refuse("its output has a mask of places, but it gives values of whole rows")
        if by_rows.shape[0] is not None:
            refuse(f"its result has shape {by_rows.shape}, of which the first dim is not the rows")
        values = keras.ops.expand_dims(keras.ops.cast(by_rows, real), -1)
        made = self.model_of(inputs, values, refuse)
        made_up.check(made, refuse, None if of_rows else np.mean)
        return {"class": CLASS, "program": keras.saving.serialize_keras_object(made)}

    def called(self, name, call, root):
        """What the function makes of symbolic tensors."""
        tracer = Tracer(self.keras)
        tracer.root = root
        tracer.branches.refuse = lambda _, why: self.refuse(name, why)
        try:
            with tracer.open(), flat_rows(self.keras):
                values = call()
        except c.Error:
            raise
        except Exception as error:
            self.refuse(name, f"{one_line(error)}; it must be of keras.ops")
        if not isinstance(values, self.keras.KerasTensor):
            self.refuse(name, "it is not computed of y_true and y_pred")
        return values

    def model_of(self, inputs, values, refuse):
        made = self.keras.Model(list(inputs), values, name="values")
        if made.variables:
            refuse("it has weights")
        return made

    def totals(self, number, inputs, made_up, refuse):
        totals = Totals(self.keras, number, refuse)
        made = self.model_of(inputs, self.keras.ops.cast(totals.terms, inputs[1].dtype), refuse)
        made_up.check(made, refuse, totals.number)
        program = self.keras.saving.serialize_keras_object(made)
        return {"class": TOTALS, "program": program, "total": totals.steps}


@contextlib.contextmanager
def flat_rows(keras):
    """Numbers of all rows in one dim, as of reshape(y, [-1]), stay with their rows: they are added up anyway."""
    ops, reshape, ravel = keras.ops, keras.ops.reshape, keras.ops.ravel

    def flat(x, newshape=(-1,)):
        alone = isinstance(newshape, int) or tuple(newshape) == (-1,)
        dims = tuple(x.shape)[1:] if isinstance(x, keras.KerasTensor) and x.shape[:1] == (None,) else ()
        several = dims and None not in dims and np.prod(dims) > 1
        return reshape(x, (-1, int(np.prod(dims))) if alone and several else newshape)

    ops.reshape = ops.ravel = flat
    try:
        yield
    finally:
        ops.reshape, ops.ravel = reshape, ravel


class MadeUp:
    """Rows on which a function and its program are compared."""

    def __init__(self, keras, call, kind, shape, prediction, real):
        rng, size = np.random.default_rng(0), lambda dims: (5, *(d or 4 for d in dims))
        self.keras, self.call, self.kind = keras, call, kind
        self.y_true = rng.integers(0, 2, size(shape)).astype(real)
        self.y_pred = rng.random(size(prediction)).astype(real)

    def check(self, program, refuse, number):
        """A row does not depend on the others, and the function gives the same: values, or, where it gives
        one for a batch, number(values of all rows)."""
        numbers = lambda t: np.asarray(self.keras.ops.convert_to_numpy(t), "float64")
        same = lambda a, b: np.shape(a) == np.shape(b) and np.allclose(a, b, 1e-4, 1e-5, equal_nan=True)
        tensor, all_rows = self.keras.ops.convert_to_tensor, None
        for rows in (5, 2):
            y_true, y_pred = self.y_true[:rows], self.y_pred[:rows]
            try:
                mine = numbers(program([y_true, y_pred]))
                theirs = numbers(self.call(tensor(y_true.astype(self.kind)), tensor(y_pred)))
            except Exception as error:
                refuse(one_line(error))
            if len(mine) != rows:
                refuse("it does not give a value for each row")
            if not (same(number(mine), theirs.mean()) if number else same(mine[..., 0], theirs)):
                refuse("the program gives other values")
            if all_rows is not None and not same(mine, all_rows[:rows]):
                refuse("the value of a row depends on other rows")
            all_rows = mine


def keras_loss(keras, function):
    """A function as Keras's compile wraps it."""
    wrapper = keras.losses.MeanSquaredError.__mro__[1]  # LossFunctionWrapper, which has no public name
    return wrapper(function, name=getattr(function, "__name__", None))


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [x for v in value for x in flat(v)] if isinstance(value, (list, tuple)) else [value]
