"""fit, evaluate and predict: Keras's arguments as options of libkeel, and the run."""

import ctypes
import sys

import numpy as np

from . import _callbacks, _rows
from . import _library as c
from ._keras_metrics import KerasMetrics
from ._library import lib, whole
from ._loop import evaluate_by_steps, fit_by_steps, has_own, has_own_step, has_own_test
from ._model import Model, open_strategy
from ._processes import in_processes
from ._scores import OfAllRows
from ._sources import Dataset
from ._twin import Twin, is_keras


class History:
    """What a fit gives, as keras.callbacks.History: history["loss"] has a number for each epoch of
    `epoch`. `report` has Keel's own numbers, `note` its line for the user, or None."""

    REPORT = ("steps", "rows", "seconds", "compile_seconds", "step_seconds", "wait_seconds", "validation_seconds",
              "memory_planned", "memory_used")  # fmt: skip

    def __init__(self, h, added, params):
        names = [h.name[i].decode() for i in range(h.count)]
        self.epoch = [h.initial_epoch + i for i in range(h.epochs)]
        self.history, self.params, self.stopped = {}, params, h.stopped
        self.note = h.note.decode() if h.note else None
        self.report = {name: getattr(h, name) for name in self.REPORT}
        for i, epoch in enumerate(self.epoch):
            logs = {name: h.value[i * h.count + k] for k, name in enumerate(names)}
            validated = any(k.startswith("val_") and v == v for k, v in logs.items())
            for name, value in {**logs, **added.get(epoch, {})}.items():
                if validated or not name.startswith("val_"):
                    self.history.setdefault(name, []).append(value)


class Job:
    """What a run needs: the model, devices, rows, options and callbacks. together: the processes that run it
    (_processes.py). trains: the run is a fit."""

    def __init__(self, together, model, trains, machine, options, given):
        self.together, self.machine = together, machine
        self.twin = self.run = self.metrics = None
        self.strategy, self.data, self.said = ctypes.c_void_p(), [], set()
        self.options = c.FitOptions(ctypes.sizeof(c.FitOptions))
        self.line = c.Line(lambda _, line: self.say(line.decode(errors="replace")))
        self.options.explain_devices = self.line
        try:
            for name, value in options.items():
                if value is not None:
                    setattr(self.options, name, value)
            self.open_model(model, trains, given)
        except BaseException:
            self.close()
            raise

    def open_model(self, model, trains, given):
        self.model = self.shown = model  # `shown` to callbacks
        if isinstance(model, Model):
            return
        if not is_keras(model):
            raise TypeError(f"{type(model).__name__} is neither a Keras model nor a keel.Model")
        self.twin = Twin(model, trains, given, self.say, self.together)
        self.model = self.twin.model

    def open_metrics(self, rows, micro_batch=0):
        """Metrics that libkeel leaves out are computed by Keras, of the rows of each step."""
        left_out = lib.keel_model_metrics_left_out(self.model.handle) if self.twin else None
        if not left_out:
            return
        try:
            if micro_batch:
                raise c.Unsupported(
                    "Keras would compute them of whole steps, which micro_batch does not keep"
                )
            self.metrics = KerasMetrics(self.twin, rows, self.say)
        except c.Unsupported as why:
            for line in self.twin.left_out:
                self.say(line)
            self.say(f"Keel leaves out metrics that it does not have, {left_out.decode()}: {why}")

    def open_rows(self, x, y=None, weight=None):
        if isinstance(x, Dataset):
            if y is not None or weight is not None:
                raise c.ArgumentError(
                    "a keel.Dataset has its targets and weights, so y and sample_weight must be None"
                )
            return x
        self.data.append(_rows.rows(self.model, x, y, weight))
        return self.data[-1]

    def default(self, x, shuffle):
        """What a Dataset says of batches and their order, unless the options do."""
        if isinstance(x, Dataset):
            self.options.batch_size = self.options.batch_size or x.batch_size or 0
            shuffle = shuffle and x.shuffle
        self.options.no_shuffle = not shuffle

    def open_callbacks(self, callbacks, verbose, what, params):
        """And they learn which model they are for, as Keras tells them."""
        if callbacks is not None and not isinstance(callbacks, (list, tuple)):
            callbacks = [callbacks]
        live = verbose in ("auto", 1) and sys.stdout.isatty()
        progress = _callbacks.Progress(live, what) if verbose and self.together.first else None
        more = self.together.first, self.metrics
        self.run = _callbacks.Run(callbacks or [], self.shown, self.twin, progress, self.say, *more)
        self.options.callbacks = self.run.array
        self.shown.stop_training = False
        for x in self.run.python:
            if hasattr(x, "set_params"):
                x.set_params({"verbose": int(bool(verbose)), **params})
            if hasattr(x, "set_model"):
                x.set_model(self.shown)

    def say(self, line):
        """One line for the user, once."""
        if line not in self.said:
            self.said.add(line)
            c.tell(line)

    def start(self, function, data, *out):
        """Runs libkeel. What the caller's own code has raised goes on to the caller."""
        self.together.begin()
        open_strategy(self.together, self.strategy, **self.machine)
        with self.run:
            status = function(self.model.handle, self.strategy, data.handle, ctypes.byref(self.options), *out)
            failed = c.failure(status) if status < 0 else None
        if self.twin and self.twin.trains:
            self.twin.take_back()  # after a failure, too: the model is as after the last finished step
        rates = self.twin.rates if self.twin else None
        for raised in (x.raised for x in (rates, self.run, *self.data) if x):
            if raised is not None:
                raise raised
        if self.run.interrupted:
            raise KeyboardInterrupt
        if failed:
            raise failed

    def close(self):
        if self.run:
            self.run.close()
        for d in self.data:
            d.close()
        lib.keel_strategy_destroy(self.strategy)
        if self.twin:
            self.twin.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def steps_of(data, x, batch_size):
    """Steps of an epoch, for the params of callbacks; None: not known."""
    rows = lib.keel_dataset_rows(data.handle)
    if _rows.is_sequence(x):
        return len(x)
    return -(-rows // (batch_size or 32)) if rows >= 0 else None


def counts(**values):
    """None is libkeel's 0: its default. So 0 of the caller would become something else."""
    return {name: None if value is None else whole(name, value, 1) for name, value in values.items()}


def seed_of(run, given=None):
    """The one that was given; else that which the first process has, or draws by NumPy. All ask for it, in any case."""
    seed = int(np.random.randint(2**31)) if given is None else whole("seed", given, 0)
    of_first = run.of_first(seed)
    return of_first if given is None else seed


def by_class(weights):
    """A list of Keras's dict: a class that is not in it weighs 1."""
    classes = {whole("a class of class_weight", k, 0): float(w) for k, w in weights.items()}
    if max(classes) >= 1 << 20:
        raise c.ArgumentError(f"class_weight has class {max(classes)}, which is more than a million")
    return [classes.get(k, 1.0) for k in range(max(classes) + 1)]


@in_processes
def fit(run, model, x=None, y=None, batch_size=None, epochs=1, verbose="auto", callbacks=None,
        validation_split=0.0, validation_data=None, shuffle=True, class_weight=None, sample_weight=None,
        initial_epoch=0, steps_per_epoch=None, validation_steps=None, validation_batch_size=None,
        validation_freq=1, *, devices=None, reproducible=False, seed=None, end="keep", float32="exact",
        recompute=False, micro_batch=0, threads=None, input_memory=None):  # fmt: skip
    """Train a compiled Keras model, or a keel.Model. As keras.Model.fit; see help(keel) for the rest.

    Raises keel.Error, or what a callback or the data raised; then the model is as after the last step
    that was finished. Ctrl-C ends the run after its step, and raises KeyboardInterrupt."""
    if not isinstance(validation_freq, int):
        raise c.Unsupported("validation_freq is a list; Keel takes a number of epochs")
    options = {
        **counts(batch_size=batch_size, epochs=epochs, steps_per_epoch=steps_per_epoch, threads=threads,
                 validation_steps=validation_steps, validation_batch_size=validation_batch_size,
                 validation_freq=validation_freq, input_memory=input_memory),
        "seed": seed_of(run, seed),
        "initial_epoch": whole("initial_epoch", initial_epoch, 0),
        "end": c.place("end", end, c.ENDS),
        "float32": c.place("float32", float32, c.FLOAT32_WAYS),
    }  # fmt: skip
    by_steps = lambda: fit_by_steps(
        run, model, x, y, sample_weight, callbacks, verbose,
        {
            **options, "shuffle": shuffle, "devices": devices, "reproducible": reproducible, "recompute": recompute,
            "validation_data": validation_data, "validation_split": validation_split, "class_weight": class_weight,
            "micro_batch": micro_batch, "end": end, "float32": float32,
        },
    )  # fmt: skip
    if is_keras(model) and has_own_step(model):
        return by_steps()
    machine = {
        "devices": devices,
        "reproducible": reproducible,
        "recompute": recompute,
        "micro_batch": micro_batch,
    }
    weights = [sample_weight, class_weight]
    if isinstance(validation_data, (tuple, list)):
        weights += validation_data[2:]
    weighted = any(w is not None for w in weights)
    try:
        job = Job(run, model, True, machine, options, (x, y, weighted))
    except OfAllRows as error:
        return of_all_rows(by_steps, error)
    with job:
        data = job.open_rows(x, y, sample_weight)
        job.default(x, shuffle)
        if validation_data is not None:
            several = isinstance(validation_data, (tuple, list))
            validation = job.open_rows(*(validation_data if several else [validation_data]))
            job.options.validation = validation.handle
        elif validation_split:
            data, validation = data.split(validation_split)
            job.data += [data, validation]
            job.options.validation = validation.handle
        if class_weight:
            weights = by_class(class_weight)
            job.options.class_weight = (ctypes.c_double * len(weights))(*weights)
            job.options.class_weight_count = len(weights)
        job.open_metrics(data, micro_batch)
        params = {"epochs": epochs, "steps": steps_per_epoch or steps_of(data, x, job.options.batch_size)}
        job.open_callbacks(callbacks, verbose, None, params)
        if job.twin and job.run.python:
            job.twin.build_metrics(data)
        h = c.History()
        try:
            job.start(lib.keel_fit, data, ctypes.byref(h))
            history = History(h, job.run.added, params)
        finally:
            lib.keel_history_free(ctypes.byref(h))
        if history.note:
            job.say(history.note)
        if job.twin:
            model.history = history
        return history


def inference(
    run, what, model, x, y, weight, callbacks, verbose, steps, batch_size, threads, float32, **machine
):
    """The job of evaluate or predict, and its rows."""
    options = {
        **counts(batch_size=batch_size, steps_per_epoch=steps, threads=threads),
        "float32": c.place("float32", float32, c.FLOAT32_WAYS),
    }
    job = Job(run, model, False, machine, options, (x, y, None if what == "predict" else weight is not None))
    try:
        if job.twin and job.twin.draws:
            job.options.seed = seed_of(run)
        data = job.open_rows(x, y, weight)
        job.default(x, False)
        if what == "evaluate":
            job.open_metrics(data)
        job.open_callbacks(callbacks, verbose, what, {"steps": steps})
        return job, data
    except BaseException:
        job.close()
        raise


def of_all_rows(by_steps, error):
    """What a run by steps gives, which sees whole batches, in the place of one that `error` refused."""
    try:
        if not error.called:
            c.tell(f"{error}; so it runs step by step, as a model with a step of its own")
        return by_steps()
    except c.Unsupported as of_steps:
        if not error.called:
            raise error from None
        raise c.Unsupported(f"{error}; nor can it be taken as a loss of whole batches: {of_steps}") from None


@in_processes
def evaluate(run, model, x=None, y=None, batch_size=None, verbose="auto", sample_weight=None, steps=None, callbacks=None,
             return_dict=False, *, devices=None, reproducible=False, threads=None, float32="exact"):  # fmt: skip
    """Loss and metrics, as keras.Model.evaluate: a number, a list in Keras's order, or a dict."""
    given = {
        **counts(batch_size=batch_size, steps=steps),
        "devices": devices,
        "reproducible": reproducible,
    }
    by_steps = lambda: evaluate_by_steps(
        run, model, x, y, sample_weight, callbacks, verbose, return_dict, given
    )
    if is_keras(model) and has_own_test(model):
        return by_steps()
    try:
        job, data = inference(run, "evaluate", model, x, y, sample_weight, callbacks, verbose, steps, batch_size, threads,
                              float32, devices=devices, reproducible=reproducible)  # fmt: skip
    except OfAllRows as error:
        return of_all_rows(by_steps, error)
    with job:
        logs = c.Logs()
        job.start(lib.keel_evaluate, data, ctypes.byref(logs))
        values = c.dict_of(logs)
        if return_dict:
            return values
        values = job.metrics.listed(values) if job.metrics else list(values.values())
        return values[0] if len(values) == 1 else values


@in_processes
def predict(run, model, x, batch_size=None, verbose="auto", steps=None, callbacks=None, *, devices=None,
            reproducible=False, threads=None, float32="exact"):  # fmt: skip
    """The outputs for each row, as keras.Model.predict: an array, or a list or dict of them."""
    if is_keras(model) and has_own(model, "predict_step"):
        raise c.Unsupported(f"'{model.name}' has a predict_step of its own")
    job, data = inference(run, "predict", model, x, None, None, callbacks, verbose, steps, batch_size, threads,
                          float32, devices=devices, reproducible=reproducible)  # fmt: skip
    with job:
        out = (c.Tensor * len(job.model.outputs))()
        try:
            job.start(lib.keel_predict_outputs, data, out)
            arrays = [_rows.copied(t) for t in out]
        finally:
            for t in out:
                lib.keel_tensor_free(ctypes.byref(t))
        kind = job.twin.kind_of_outputs() if job.twin else None
        if kind is dict:
            return dict(zip(job.model.outputs, arrays))
        return arrays if len(arrays) > 1 or kind in (list, tuple) else arrays[0]
