"""fit and evaluate of models with a step of their own: epochs and batches as in Keras, each step by libkeel."""

import ctypes
import sys
import time

import numpy as np

from . import _dry
from . import _library as c
from ._batches import Batches, split
from ._callbacks import hook_of, sees_logs_only, writes_files
from ._library import lib
from ._logs import Metrics
from ._model import open_strategy
from ._program import Program
from ._steps import OF_BOTH, Slope, Steps, has_own, what_of
from ._whole_program import WholeProgram
from ._whole_steps import WholeSteps


def has_own_step(model):
    """Whether a training step of the model's is code of the caller."""
    return has_own(model, "train_step", *OF_BOTH)


def has_own_test(model):
    return has_own(model, "test_step", *OF_BOTH)


def step_of(model, trains):
    """A function of data and a recorder: the caller's own, or what Keras's does on each backend."""
    name = "train_step" if trains else "test_step"
    if has_own(model, name):
        own = getattr(model, name)
        if sys.modules["keras"].backend.backend() == "jax":
            raise c.Unsupported(
                f"'{model.name}' has a {name} of its own, which Keel takes on TensorFlow and PyTorch"
            )
        if hasattr(model, "zero_grad"):
            model.zero_grad()  # PyTorch's list of its parameters is made at the first call
        return lambda data, recorder: own(data)
    return lambda data, recorder: of_keras(model, data, recorder, trains)


def of_keras(model, data, recorder, trains):
    keras = sys.modules["keras"]
    x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
    told = {"training": trains} if model._call_has_training_arg else {}
    y_pred = model(x, **told)
    loss = model._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=weight, training=trains)
    rows = keras.ops.shape(keras.tree.flatten(x)[0])[0]
    model._loss_tracker.update_state(loss, sample_weight=rows)
    if trains:
        weights = model.trainable_variables
        asked = recorder.of_loss(loss, weights)
        model.optimizer.apply([Slope(asked, v) for v in weights], weights)
    return model.compute_metrics(x, y, y_pred, sample_weight=weight)


class Runs:
    """Steps of one kind on the devices of a strategy. together: the processes that make them (_processes.py)."""

    def __init__(self, keras, model, batches, trains, strategy, seed, together):
        if hasattr(model, "_compile_metrics"):
            build_metrics(keras, model, batches)
        data = keras.tree.pack_sequence_as(batches.structure, batches.first)
        self.batches = batches
        self.trains = trains
        self.old = False  # a step was made since the caller's model was as libkeel's
        self.strategy, self.seed, self.together = strategy, seed, together
        if not self.opened(Steps, Program, keras, model, data, batches.first):
            self.open(WholeSteps, WholeProgram, keras, model, data, batches.first)

    def opened(self, *args):
        """Whether a step can be taken row by row."""
        try:
            self.open(*args)
            return True
        except c.Unsupported:
            return False

    def open(self, steps, program, keras, model, data, first):
        self.steps = steps(keras, model, step_of(model, self.trains), data)
        if self.trains and not self.steps.asked:
            self.steps.refuse("no optimizer gets gradients in it")
        _dry.check(self.steps, first)
        optimizers = {id(a.optimizer): a.optimizer for a in self.steps.asked if a.optimizer is not None}
        of_optimizers = [v for o in optimizers.values() for v in o.variables]
        self.together.give_variables([*model.variables, *of_optimizers])
        self.metrics = Metrics(keras, model, self.steps)
        self.program = program(self.steps, self.strategy, self.seed)
        try:
            self.prepare(first)
        except BaseException:
            self.program.close()
            raise

    def prepare(self, first):
        """The program for short batches, before the first step; and so that it is known whether there can be any."""
        rows = self.batches.short()
        if rows:
            self.program.prepare([a[:rows] for a in first])

    def write(self):
        """Metrics, weights and optimizers of the caller's become what they are now."""
        self.metrics.write()
        if self.trains and self.old:
            self.program.write()
        self.old = False

    def step(self, data):
        self.old = True
        given = self.program.run(data)
        self.metrics.update(self.program.now, given, len(data[0]))
        return self.metrics.result()


def build_metrics(keras, model, batches):
    """Keras makes the metrics of compile() from the first batch."""
    metrics = model._compile_metrics
    own = metrics is not None and (metrics._user_metrics or metrics._user_weighted_metrics)
    if own and not metrics.built:
        with_batch = keras.tree.pack_sequence_as(batches.structure, [a[:1] for a in batches.first])
        x, y, _ = keras.utils.unpack_x_y_sample_weight(with_batch)
        if y is not None:
            tensors = lambda s: keras.tree.map_structure(keras.ops.convert_to_tensor, s)
            metrics.build(tensors(y), model(tensors(x)))


NOT_OF_STEPS = {"float32": "exact", "micro_batch": 0, "threads": None,
                "input_memory": None}  # fmt: skip


class Fit:
    """A fit of a model with a step of its own. o: the options of fit, by name."""

    def __init__(self, together, model, o):
        self.together = together
        self.keras, self.model, self.o = sys.modules["keras"], model, o
        if not getattr(model, "compiled", True):
            raise c.ArgumentError(f"model '{model.name}' is not compiled: call its compile() first")
        if hasattr(getattr(model, "optimizer", None), "inner_optimizer"):
            raise c.Unsupported(
                f"a model with {what_of(model)} takes no optimizer that scales the loss (mixed_float16)"
            )
        for name, default in NOT_OF_STEPS.items():
            if o[name] != default:
                raise c.Unsupported(f"a model with {what_of(model)} takes no {name}")
        if o["end"] not in ("keep", "drop"):
            raise c.Unsupported(f"a model with {what_of(model)} takes end='keep' or 'drop'")
        if getattr(model, "run_eagerly", False) and self.keras.backend.backend() == "tensorflow":
            c.tell(
                "run_eagerly runs a step's Python code each time in Keras; Keel runs it once, before the first step"
            )
        self.seed = o["seed"]
        self.tests = self.runs = None
        self.strategy = ctypes.c_void_p()

    def batches(self, data, weight, batch_size, shuffle, **options):
        x, y, *more = data if isinstance(data, (list, tuple)) else (data, None)
        of = x, y, *(more or [weight]), batch_size, shuffle, self.seed
        return Batches(self.keras, what_of(self.model), *of, **options)

    def open(self, x, y, sample_weight):
        o, validation = self.o, self.o["validation_data"]
        open_strategy(self.together, self.strategy, o["devices"], o["reproducible"], o["recompute"])
        if o["validation_split"] and validation is None:
            (x, y, sample_weight), validation = split(
                self.keras, (x, y, sample_weight), o["validation_split"]
            )
        rows = {"class_weight": o["class_weight"], "drop": o["end"] == "drop"}
        self.rows = self.batches((x, y), sample_weight, o["batch_size"], o["shuffle"], **rows)
        self.runs = Runs(self.keras, self.model, self.rows, True, self.strategy, self.seed, self.together)
        if validation is not None:
            rows = self.batches(validation, None, o["validation_batch_size"] or o["batch_size"], False)
            self.tests = Tests(self.keras, self.model, rows, self.strategy, self.seed, self.together)

    def open_callbacks(self, callbacks, verbose):
        callbacks = [] if callbacks is None else callbacks if isinstance(callbacks, list) else [callbacks]
        if not self.together.first:
            callbacks, verbose = [x for x in callbacks if not writes_files(x)], 0
        if any(isinstance(x, str) for x in callbacks):
            raise c.Unsupported(
                f"a model with {what_of(self.model)} takes none of Keel's own callbacks: give Keras's"
            )
        self.per_batch = [x for x in callbacks if looks(x, "batch")]
        self.looking = [x for x in callbacks if looks(x, "epoch")]
        if self.per_batch:
            names = ", ".join(type(x).__name__ for x in self.per_batch)
            c.tell(f"{names} may look at the weights in each step, so they are copied each time: slow")
        self.calls = self.keras.callbacks.CallbackList(
            callbacks, add_history=True, add_progbar=verbose != 0, verbose=1 if verbose == "auto" else verbose,
            epochs=self.o["epochs"], steps=self.o["steps_per_epoch"] or self.rows.steps(),
            model=self.model,
        )  # fmt: skip

    def run(self):
        o, model, calls = self.o, self.model, self.calls
        model.stop_training, logs = False, {}
        began, steps, rows = time.monotonic(), 0, 0
        of_all = self.rows.passes(o["steps_per_epoch"])
        self.look(calls.on_train_begin)
        first = getattr(model, "_initial_epoch", None) or o["initial_epoch"]  # BackupAndRestore sets it
        for epoch in range(first, o["epochs"]):
            self.runs.metrics.reset()
            self.look(lambda: calls.on_epoch_begin(epoch))
            step = 0
            for data in of_all if o["steps_per_epoch"] else self.rows.passes(None):
                self.look_at_batch(lambda: calls.on_train_batch_begin(step))
                logs = self.runs.step(data)
                self.look_at_batch(lambda: calls.on_train_batch_end(step, logs))
                step, rows = step + 1, rows + len(data[0])
                if model.stop_training or step == o["steps_per_epoch"]:
                    break
            if step < (o["steps_per_epoch"] or 1) and not model.stop_training:
                c.tell(
                    f"the data ended in epoch {epoch + 1}, so the fit ends: give more rows, or fewer steps_per_epoch"
                )
                model.stop_training = True
                if not step:
                    break
            steps += step
            self.runs.metrics.write()
            if self.tests or self.looking or self.per_batch:
                self.runs.write()
            logs = {**logs, **self.tested(epoch)}
            self.look(lambda: calls.on_epoch_end(epoch, logs))
            if model.stop_training:
                break
        self.runs.write()
        calls.on_train_end(logs)
        model.history.report = {"steps": steps, "rows": rows, "seconds": time.monotonic() - began}
        model.history.note = None
        return model.history

    def tested(self, epoch):
        o = self.o
        if not self.tests or (epoch + 1) % o["validation_freq"]:
            return {}
        return {f"val_{k}": v for k, v in self.tests.run(self.calls, o["validation_steps"]).items()}

    def look_at_batch(self, call):
        if self.per_batch:
            self.look(call)
        else:
            call()

    def look(self, call):
        """Callbacks may look at weights, and set others."""
        if not self.looking and not self.per_batch:
            return call()
        if self.per_batch:
            self.runs.write()
        before = [np.array(w) for w in self.model.get_weights()]
        call()
        same = lambda a, b: np.array_equal(a, b, equal_nan=True)
        if not all(map(same, before, self.model.get_weights())):
            self.runs.program.network.give()

    def close(self):
        for runs in (self.runs, self.tests and self.tests.runs):
            if runs:
                runs.program.close()
        lib.keel_strategy_destroy(self.strategy)


class Tests:
    """Passes over rows that are not trained on."""

    def __init__(self, keras, model, rows, strategy, seed, together):
        self.rows, self.runs = rows, Runs(keras, model, rows, False, strategy, seed, together)

    def run(self, calls, steps):
        """The logs at the end."""
        logs, step = {}, 0
        self.runs.program.network.give()
        self.runs.metrics.reset()
        calls.on_test_begin()
        for data in self.rows.passes(steps):
            calls.on_test_batch_begin(step)
            logs = self.runs.step(data)
            calls.on_test_batch_end(step, logs)
            step += 1
            if step == steps:
                break
        self.runs.metrics.write()
        calls.on_test_end(logs)
        return logs


def looks(callback, when):
    """Whether a callback may look at weights in functions of batches, or of epochs."""
    hooks = [h for h in c.HOOKS if "train" in h or "epoch" in h]
    return any(
        hook_of(callback, h) and not sees_logs_only(callback, h)
        for h in hooks
        if ("batch" in h) == (when == "batch")
    )


def fit_by_steps(together, model, x, y, sample_weight, callbacks, verbose, o):
    fit = Fit(together, model, o)
    try:
        fit.open(x, y, sample_weight)
        fit.open_callbacks(callbacks, verbose)
        together.begin()
        try:
            return fit.run()
        except BaseException as error:
            fit.runs.write()  # the model is as after the last function that was finished
            together.leave(fit.strategy, error)
            raise
    finally:
        fit.close()


def evaluate_by_steps(together, model, x, y, sample_weight, callbacks, verbose, return_dict, o):
    keras = sys.modules["keras"]
    strategy, tests = ctypes.c_void_p(), None
    try:
        open_strategy(together, strategy, o["devices"], o["reproducible"])
        rows = Batches(keras, what_of(model), x, y, sample_weight, o["batch_size"], False, 0)
        tests = Tests(
            keras, model, rows, strategy, together.of_first(int(np.random.randint(2**31))), together
        )
        verbose = verbose if together.first else 0
        calls = keras.callbacks.CallbackList(
            callbacks, add_progbar=verbose != 0, verbose=1 if verbose == "auto" else verbose, epochs=1,
            steps=o["steps"] or rows.steps(), model=model,
        )  # fmt: skip
        together.begin()
        try:
            logs = tests.run(calls, o["steps"])
        except BaseException as error:
            together.leave(strategy, error)
            raise
        if return_dict:
            return logs
        values = [logs[name] for name in ("loss", *(n for n in logs if n != "loss")) if name in logs]
        return values[0] if len(values) == 1 else values
    finally:
        if tests:
            tests.runs.program.close()
        lib.keel_strategy_destroy(strategy)
