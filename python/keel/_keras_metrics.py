"""Metrics that libkeel does not have: Keras computes them of the rows of each step, which libkeel shows."""

import collections
import ctypes
import sys

import numpy as np

from . import _library as c
from . import _rows
from ._callbacks import listen
from ._library import lib
from ._masks import set_mask
from ._scores import fields_of, is_callers, output_names, target_shapes

# name: in logs; output: its number in the order of compile().
Named = collections.namedtuple("Named", "name metric output weighted")
HOOKS = "train_begin epoch_begin train_batch_end epoch_end test_begin test_batch_end test_end".split()


def named(metrics):
    """The built metrics of compile() with the names that Keras gives them in logs."""
    counts = collections.Counter()
    for weighted, lists in ((False, metrics._flat_metrics), (True, metrics._flat_weighted_metrics)):
        for output, of_output in enumerate(lists):
            for m in of_output.metrics if of_output else ():
                prefix = f"{of_output.output_name}_" if of_output.output_name else ""
                name = prefix + m.name
                if weighted and counts[name]:
                    name = f"{prefix}weighted_{m.name}"
                counts[name] += 1
                if counts[name] > 1:
                    name = f"{name}_{counts[name] - 1}"
                yield Named(name, m, output, weighted)


def numbers(name, result):
    """The numbers in a metric's result, by their names in logs; those of a dict have their own."""
    if isinstance(result, dict):
        return {k: v for key, value in result.items() for k, v in numbers(key, value).items()}
    values = np.asarray(sys.modules["keras"].ops.convert_to_numpy(result), "float64")
    if values.size == 1:
        return {name: float(values.item())}
    return {f"{name}[{i}]": float(v) for i, v in enumerate(values.ravel())}


class KerasMetrics:
    """A keel_callback that gives the rows of each step to metrics of Keras's, and their results to the logs."""

    def __init__(self, twin, rows, say):
        self.twin, self.say, self.keras = twin, say, sys.modules["keras"]
        self.all = getattr(twin.keras, "_compile_metrics", None)
        self.names_of_outputs = output_names(twin.form)
        self.kinds = [
            spec and spec[1] for spec in target_shapes(self.names_of_outputs, fields_of(rows), None)
        ]
        if self.all is not None and None not in self.kinds:
            twin.build_metrics(rows)
        if self.all is None or not self.all.built:
            raise c.Unsupported("Keras could compute them if it was known what targets each output has")
        self.order = self.all._resolved_output_names
        self.chosen, self.trained, self.names, self.per_batch = None, None, {}, False
        self.c = c.Callback(ctypes.sizeof(c.Callback), b"metrics by Keras")
        self.c.sees_rows = True

    def open(self, run, per_batch):
        """For this Run. per_batch: somebody looks at the logs of each step."""
        self.per_batch = per_batch
        listen(self.c, run, {hook: getattr(self, hook) for hook in HOOKS})

    def choose(self, given):
        """The metrics that names of libkeel's logs lack, or that share their name with one of the caller's."""
        given = {name.split("[")[0] for name in given}
        every = list(named(self.all))
        lacking = {
            (x.output, x.metric.name) for x in every if x.name not in given or is_callers(type(x.metric))
        }
        self.chosen = [x for x in every if (x.output, x.metric.name) in lacking]

    def place(self, output):
        """The number of an output in libkeel's order."""
        names = self.twin.model.outputs
        of_dict = self.order is not None and set(self.order) == set(names)
        return names.index(self.order[output]) if of_dict else output

    # ---- what a step has shown -------------------------------------------------------------------

    def target(self, at, k):
        """In the type that the data has."""
        kind = self.kinds[self.names_of_outputs.index(self.twin.model.outputs[k])]
        real = self.keras.backend.is_float_dtype(kind)
        return _rows.copied(at.targets[k]).astype(self.keras.config.floatx() if real else kind, copy=False)

    def tensors(self, at, k):
        """Target, prediction and weights of output k; None: rows have none."""
        tensor = self.keras.ops.convert_to_tensor
        weight = tensor(_rows.copied(at.weights[k])) if at.weights[k].data else None
        y_true, y_pred = tensor(self.target(at, k)), tensor(_rows.copied(at.outputs[k]))
        if at.masks[k].data:
            set_mask(y_pred, tensor(_rows.copied(at.masks[k]) != 0))
        return y_true, y_pred, weight

    def update(self, at):
        if self.chosen is None:
            self.choose(c.dict_of(at.logs.contents))
        shown = {}
        for x in list(self.chosen):
            k = self.place(x.output)
            if not at.targets[k].data:
                self.say(f"Keel leaves out metric '{x.name}': the rows have no target for its output")
                self.chosen.remove(x)
                continue
            y_true, y_pred, weight = shown[k] = shown.get(k) or self.tensors(at, k)
            x.metric.update_state(y_true, y_pred, sample_weight=weight if x.weighted else None)
        if self.per_batch:
            self.log(at, self.values())

    def values(self):
        found = {}
        for x in self.chosen:
            found.update(numbers(x.name, x.metric.result()))
        return found

    def first_names(self):
        """Of values before the first step."""
        found = []
        for x in self.chosen:
            try:
                found += numbers(x.name, x.metric.result())
            except Exception:  # it may need rows
                found.append(x.name)
        return found

    def log(self, at, values):
        """Logs of a fit have the names that it began with."""
        for name, value in values.items():
            if name in self.names or not at.fits:
                self.put(at, name, value)

    def put(self, at, name, value):
        text = self.names.setdefault(name, name.encode())
        c.check(lib.keel_logs_set(ctypes.byref(at.logs.contents), text, value))

    def listed(self, values):
        """As Keras's evaluate lists them: of its metrics by their own names, then others by the alphabet."""
        names = ["loss", *(m.name for m in self.all.metrics)]
        names += (
            [m.name for m in self.twin.keras._compile_loss.metrics] if self.twin.keras._compile_loss else []
        )
        found = [name for name in names if name in values]
        return [values[name] for name in (*found, *sorted(set(values) - set(names)))]

    # ---- functions of a callback -------------------------------------------------------------------

    def train_begin(self, at):
        given = c.dict_of(at.logs.contents)
        self.choose(given)
        names = self.first_names()
        if any(name.startswith("val_") for name in given):
            names += [f"val_{name}" for name in names]
        for name in names:
            self.put(at, name, float("nan"))

    def epoch_begin(self, at):
        self.trained = None
        self.all.reset_state()

    def train_batch_end(self, at):
        self.update(at)

    def test_begin(self, at):
        if at.fits:
            self.trained = self.values()
        self.all.reset_state()

    def test_batch_end(self, at):
        self.update(at)

    def test_end(self, at):
        self.log(at, self.values() if self.chosen is not None else {})

    def epoch_end(self, at):
        self.log(at, self.values() if self.trained is None else self.trained)
