"""A step of the caller's that sees its batch whole (_whole_steps.py), on the devices of a strategy.

Losses are computed by libkeel, once for all rows (keel_whole_loss). What the step gives on else, as to metrics, is
computed by Keras of what libkeel gives back."""

import ctypes
import os
import tempfile

import numpy as np

from . import _library as c
from . import _penalties
from ._functions import UNWEIGHTED, made
from ._library import check, lib
from ._lifted import Lifted
from ._model import loaded
from ._program import Program, at_once, tensors_given
from ._whole_steps import WholeLoss

MANY = 1 << 20  # numbers of a batch that every device takes
FORMS = 5  # numbers of rows


class Inner:
    """A loss of all rows as a function of libkeel's, in which they are one row. of(rows): the loss in a step of so
    many rows."""

    def __init__(self, keras, of):
        self.keras, self.of, self.models, self.raised = keras, of, {}, None
        self.step = c.Step(self.trace)

    def names(self, loss):
        """Of the inputs: one for each part of the rows of each leaf."""
        parts = [loss.steps.parts_of(t) for t in loss.inputs]
        return [f"all_{k}".encode() for k in range(sum(parts))]

    def model(self, rows):
        if rows not in self.models:
            loss = self.of(rows)
            form = self.form(loss)
            with tempfile.TemporaryDirectory(prefix="keel-") as folder:
                path = os.path.join(folder, "loss.keras")
                form.save(path)
                self.models[rows] = loaded(path, False, f"{path}: config.json", loss.steps.name)
        return self.models[rows]

    def form(self, loss):
        keras, steps, inputs, tensors = self.keras, loss.steps, [], []
        for leaf, t in zip(loss.leaves, loss.inputs):
            shape = steps.rows, *t.shape[1:]
            parts = [keras.Input(shape, dtype=leaf.dtype) for _ in range(steps.parts_of(t))]
            joined = keras.ops.concatenate(parts, axis=1) if len(parts) > 1 else parts[0]
            tensors.append(joined[:, 0] if steps.kinds[id(leaf)][0] == "weight" else joined)
            inputs += parts
        outputs = Lifted(keras, dict(zip(map(id, loss.leaves), tensors)), steps.refuse).of([loss.loss])
        form = keras.Model(inputs, outputs, name="loss")
        self.check(form, loss)
        return form

    def check(self, form, loss):
        """Of made-up numbers, the graph of one row gives what that of the batch gives."""
        rng, tensor = np.random.default_rng(0), self.keras.ops.convert_to_tensor
        real = self.keras.backend.is_float_dtype
        draw = lambda t: rng.normal(size=t.shape[1:]) if real(t.dtype) else rng.integers(0, 2, t.shape[1:])
        arrays, batch = [draw(t).astype(t.dtype) for t in form.inputs], []
        parts = iter(arrays)
        for leaf, t in zip(loss.leaves, loss.inputs):
            rows = np.concatenate([next(parts) for _ in range(loss.steps.parts_of(t))])
            batch.append(rows[0] if loss.steps.kinds[id(leaf)][0] == "weight" else rows)
        mine = form([tensor(a[None]) for a in arrays], training=False)
        theirs = self.keras.Function(loss.leaves, [loss.loss])(list(map(tensor, batch)))[0]
        ops, narrow = self.keras.ops, loss.loss.dtype != self.keras.config.floatx()
        number = lambda t: float(np.ravel(ops.convert_to_numpy(ops.cast(t, "float32")))[0])
        if not np.isclose(number(mine), number(theirs), 5e-2 if narrow else 1e-3, 1e-5, equal_nan=True):
            loss.steps.refuse("its loss of a whole batch is not understood")

    def trace(self, _, t):
        try:
            shape = c.Shape()
            check(lib.keel_trace_input_shape(t, b"all_0", ctypes.byref(shape)))
            model = self.model(shape.dim[0])
            values = [made(lib.keel_trace_input, t, name) for name in self.names(self.of(shape.dim[0]))]
            given = (ctypes.c_int * len(values))(*values)
            wanted = (ctypes.c_bool * 1)(True)
            out = made(lib.keel_trace_outputs, t, model.handle, c.INFERENCE, given, len(values), wanted)
            check(lib.keel_trace_return_scalar(t, b"loss", made(lib.keel_trace_mean, t, out, UNWEIGHTED)))
            return c.OK
        except BaseException as error:
            self.raised = error
            return lib.keel_error_set(c.ECALLBACK, f"{type(error).__name__}: {error}".encode())

    def close(self):
        for model in self.models.values():
            model.close()


class Form:
    """What a step with some number of rows has: its losses, and what it gives on, which Keras computes."""

    def __init__(self, steps):
        self.steps = steps
        self.losses = [loss_of(steps, asked) for asked in steps.asked]
        self.said = steps.said()
        own = {id(loss.tensor) for loss in self.losses}
        self.tensors = [t for t in tensors_given(steps) if id(t) not in own]
        self.given = ByKeras(steps, self.tensors)
        self.made = ByKeras(steps, [steps.kinds[id(t)][1] for t in steps.made])
        # by id of an input of the graph, or of what stands for a penalty, its number
        self.at = {id(t): k for of in (steps.inputs, steps.penalties) for k, t in enumerate(of)}


class ByKeras:
    """Tensors of a step with some number of rows, as Keras computes them of numbers."""

    def __init__(self, steps, tensors):
        self.steps, keras = steps, steps.keras
        self.leaves = steps.leaves_of(tensors)
        self.inputs = [None if self.is_penalty(t) else steps.input_of(t) for t in self.leaves]
        computed = keras.Function(self.leaves, tensors) if tensors else None
        self.compute = at_once(keras, lambda given: computed(given)) if tensors else None

    def is_penalty(self, t):
        return self.steps.kinds[id(t)][0] == "penalty"

    def values(self, array):
        """array(leaf, the input of the graph for it): what it is now."""
        if not self.compute:
            return []
        ops, pairs = self.steps.keras.ops, zip(self.leaves, self.inputs)
        tensors = [ops.cast(ops.convert_to_tensor(array(t, given)), t.dtype) for t, given in pairs]
        return [np.asarray(ops.convert_to_numpy(value)) for value in self.compute(tensors)]


def loss_of(steps, asked):
    parted = _penalties.Parted(steps, asked.loss)
    if isinstance(parted.rest, float):
        steps.refuse("a loss is not computed of its rows")
    penalties = [(p, parted.times[id(p)]) for p in steps.penalties if id(p) in parted.times]
    loss = WholeLoss(steps, asked.loss, parted.rest, penalties)
    if not any(steps.keras.backend.is_float_dtype(t.dtype) for t in loss.leaves):
        steps.refuse("a loss is not computed of its rows")
    return loss


class WholeProgram(Program):
    def find_values(self):
        steps, regularized = self.steps, []
        self.forms = {steps.rows: Form(steps)}
        for k, (asked, loss) in enumerate(zip(steps.asked, self.form.losses)):
            asked.group = self.values[id(loss.tensor)] = loss
            self.say_if_slow(loss)
            loss.inner = Inner(steps.keras, lambda rows, k=k: self.forms[rows].losses[k])
            regularized += _penalties.check(steps, asked, loss.penalties)
        self.shown = steps.penalties
        return regularized

    def say_if_slow(self, loss):
        numbers = sum(int(np.prod(t.shape)) for t in loss.leaves)
        if numbers > MANY:
            c.tell(
                f"a loss of '{self.steps.model.name}' is of whole batches: {numbers} numbers go to every device in"
                " each step, which is slow; a mean over rows of what each gives stays where the rows are"
            )

    form = property(lambda self: self.forms[self.steps.rows])

    def read_back(self):
        found = {}
        for t in self.form.given.inputs:
            self.read(t, found)
        for stage, t, group, k in found.values():
            self.stages[stage].returned.append((t.name, group, k))
        return [(stage, t) for stage, t, *_ in found.values()]

    def read(self, t, found):
        kind, *what = self.steps.kinds[id(t)] if t is not None else ("penalty",)
        if kind == "group":
            found[id(t)] = what[0].stage, t, *what
        elif kind == "slope":
            self.steps.refuse("it gives on what is computed of a gradient, beside the loss")
        elif kind != "penalty":
            for source in self.steps.sources(t):
                self.read(source, found)

    def run(self, data):
        self.prepare(data)
        return super().run(data)

    def prepare(self, data):
        """The step anew, with as many rows as these."""
        first, rows = self.steps, len(data[0])
        if rows not in self.forms:
            again = type(first)(
                first.keras, first.model, first.function, first.keras.tree.pack_sequence_as(first.data, data)
            )
            form = Form(again)
            if form.said != self.form.said:
                first.refuse("it does something else with another number of rows")
            self.forms[rows] = form
            if len(self.forms) == FORMS:
                c.tell(
                    f"batches have {FORMS} numbers of rows and more: for each new one the step is made anew"
                )
        self.now = self.forms[rows].steps

    def begin_run(self, values):
        form = self.forms[self.now.rows]
        made = form.made.values(lambda leaf, t: self.array(form, leaf, t, values, {}))
        for t, array in zip(self.steps.made, made):
            values[id(t)] = np.split(np.ascontiguousarray(array), self.steps.parts_of(t))

    def end_run(self, values, penalties, given):
        form = self.forms[self.now.rows]
        now = form.given.values(lambda leaf, t: self.array(form, leaf, t, values, penalties))
        for t, array in zip(form.tensors, now):
            given[id(t)] = array if array.shape else float(array)
        for first, loss in zip(self.form.losses, form.losses):
            given[id(loss.tensor)] = given[id(first.tensor)]

    def array(self, form, leaf, t, values, penalties):
        """What a leaf is now. t: the input of the graph for it."""
        if t is None:
            return penalties[id(self.steps.penalties[form.at[id(leaf)]])]
        rows = self.rows_of(self.steps.inputs[form.at[id(t)]], values)
        return rows[0] if form.steps.kinds[id(leaf)][0] == "weight" else rows

    def rows_of(self, t, values):
        kind, *what = self.steps.kinds[id(t)]
        if kind == "part":
            rows, (given, first, count) = self.now.rows, what
            return self.rows_of(given, values)[first * rows : (first + count) * rows]
        parts = [self.rows_of(part, values) for part in what[0]] if kind == "joined" else values[id(t)]
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def close(self):
        for loss in self.form.losses:
            loss.inner.close()
        super().close()
