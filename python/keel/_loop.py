"""fit and evaluate of models with a step of their own: epochs and batches as in Keras, each step by libkeel."""

import ctypes
import sys
import time

import numpy as np

from . import _dry, _rows
from . import _library as c
from ._callbacks import hook_of, sees_logs_only
from ._program import Program
from ._library import check, lib
from ._ops import Rows
from ._steps import Result, Slope, Steps

OF_BOTH = ("compute_loss", "compute_metrics")


def is_own(model, *names):
    return any(not getattr(type(model), name).__module__.startswith("keras.") for name in names)


def has_own_step(model):
    """Whether a training step of the model's is code of the caller."""
    return is_own(model, "train_step", *OF_BOTH)


def has_own_test(model):
    return is_own(model, "test_step", *OF_BOTH)


def step_of(model, trains):
    """A function of data and a hand: the caller's own, or what Keras's does on each backend."""
    name = "train_step" if trains else "test_step"
    if is_own(model, name):
        own = getattr(model, name)
        if sys.modules["keras"].backend.backend() == "jax":
            raise c.Unsupported(
                f"'{model.name}' has a {name} of its own, which Keel takes on TensorFlow and PyTorch"
            )
        if hasattr(model, "zero_grad"):
            model.zero_grad()  # PyTorch's list of its parameters is made at the first call
        return lambda data, hand: own(data)
    return lambda data, hand: of_keras(model, data, hand, trains)


def of_keras(model, data, hand, trains):
    keras = sys.modules["keras"]
    x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
    told = {"training": trains} if model._call_has_training_arg else {}
    y_pred = model(x, **told)
    loss = model._compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=weight, training=trains)
    rows = keras.ops.shape(keras.tree.flatten(x)[0])[0]
    model._loss_tracker.update_state(loss, sample_weight=rows)
    if trains:
        weights = model.trainable_variables
        asked = hand.of_loss(loss, weights)
        model.optimizer.apply([Slope(asked, v) for v in weights], weights)
    return model.compute_metrics(x, y, y_pred, sample_weight=weight)


class Batches:
    """Of arrays, of a PyDataset, or of anything that gives batches: what a step gets, as a list of arrays."""

    def __init__(self, keras, x, y, weight, batch_size, shuffle, seed):
        self.keras, self.source, self.arrays = keras, x, None
        self.rng, self.shuffle, self.batch_size = np.random.default_rng(seed), shuffle, batch_size or 32
        self.is_sequence = _rows.is_sequence(x)
        if self.is_sequence or _rows.is_iterable(x):
            if y is not None or weight is not None:
                raise c.ArgumentError(
                    f"{type(x).__name__} gives batches, so y and sample_weight must be None"
                )
            self.structure = x[0] if self.is_sequence else self.first_of(x)
            self.first = self.flat(self.structure)
            return
        if x is None or isinstance(x, _rows.Rows) or hasattr(x, "handle"):
            raise c.Unsupported("a step of one's own takes arrays, a PyDataset, or what gives batches")
        self.structure = keras.utils.pack_x_y_sample_weight(x, y, weight)
        self.arrays = self.flat(self.structure)
        self.rows = len(self.arrays[0])
        if not self.rows or any(len(a) != self.rows for a in self.arrays):
            raise c.ArgumentError(f"arrays of {[len(a) for a in self.arrays]} rows")
        self.first = [a[: self.batch_size] for a in self.arrays]

    def first_of(self, source):
        iterator = iter(source)
        if iterator is source:
            raise c.Unsupported("a step of one's own, of rows that can be had only once")
        first = next(iterator, None)
        if first is None:
            raise c.ArgumentError(f"{type(source).__name__} yields nothing")
        return first

    def flat(self, batch):
        arrays = [_rows.as_array(a, "a batch") for a in self.keras.tree.flatten(batch)]
        if any(a.dtype.kind in "OUS" for a in arrays):
            raise c.Unsupported("texts in a step of one's own")
        real = self.keras.config.floatx()
        return [np.ascontiguousarray(a, real) if a.dtype.kind == "f" else a for a in arrays]

    def of_epoch(self):
        if self.arrays:
            order = self.rng.permutation(self.rows) if self.shuffle else None
            for i in range(0, self.rows, self.batch_size):
                at = slice(i, i + self.batch_size) if order is None else order[i : i + self.batch_size]
                yield [a[at] for a in self.arrays]
        elif self.is_sequence:
            count = len(self.source)
            for i in self.rng.permutation(count) if self.shuffle else range(count):
                yield self.flat(self.source[int(i)])
            self.source.on_epoch_end()
        else:
            yield from map(self.flat, self.source)

    def passes(self, steps):
        """Batches without an end if an epoch has a number of `steps`, else those of one pass."""
        while True:
            none = True
            for batch in self.of_epoch():
                none = False
                yield batch
            if none or steps is None:
                return

    def steps(self):
        if self.arrays:
            return -(-self.rows // self.batch_size)
        if hasattr(self.source, "cardinality"):
            n = int(self.source.cardinality())
            return n if n >= 0 else None
        return len(self.source) if hasattr(self.source, "__len__") else None


class Mean:
    """The running mean of a metric of Keras's that is only that, until the metric is looked at."""

    def __init__(self, metric):
        self.metric, self.total, self.count = metric, 0.0, 0.0

    def reset(self):
        self.total = self.count = 0.0

    def add(self, value, weight):
        self.total, self.count = self.total + value * weight, self.count + weight

    def result(self):
        return self.total / self.count if self.count else 0.0

    def write(self):
        self.metric.total.assign(self.total)
        self.metric.count.assign(self.count)


class Metrics:
    """The metrics of the caller's, which get the numbers of each step."""

    def __init__(self, keras, model, steps):
        self.keras, self.model, self.steps, self.given = keras, model, steps, {}
        self.means = {}  # by id of a metric
        others = {id(u.metric) for u in steps.updates if not self.is_mean(u)}
        for u in steps.updates:
            if id(u.metric) not in others:
                self.means[id(u.metric)] = Mean(u.metric)

    def is_mean(self, update):
        values = [*update.args, *update.kwargs.values()]
        numbers = not values[0].shape if isinstance(values[0], self.keras.KerasTensor) else False
        weight = values[1] if len(values) > 1 else None
        plain = weight is None or isinstance(weight, (int, float))
        return type(update.metric) is self.keras.metrics.Mean and numbers and plain and len(values) <= 2

    def reset(self):
        self.model.reset_metrics()
        for mean in self.means.values():
            mean.reset()

    def update(self, given, rows):
        self.given, tree = given, self.keras.tree

        def now(a):
            if isinstance(a, self.keras.KerasTensor):
                return given[id(a)]
            return rows if isinstance(a, Rows) else a

        for u in self.steps.updates:
            args, kwargs = tree.map_structure(now, (u.args, u.kwargs))
            mean = self.means.get(id(u.metric))
            if mean:
                weight = [*args[1:], *(v for k, v in kwargs.items() if k == "sample_weight")]
                mean.add(
                    args[0] if args else kwargs["values"],
                    1.0 if not weight or weight[0] is None else weight[0],
                )
            else:
                u.metric.update_state(*tree.map_structure(self.tensor, args), **kwargs)

    def tensor(self, a):
        return self.keras.ops.convert_to_tensor(a) if isinstance(a, np.ndarray) else a

    def result(self):
        def of(r):
            if isinstance(r, Result):
                mean = self.means.get(id(r.metric))
                r = mean.result() if mean else r.metric.result()
            elif isinstance(r, self.keras.KerasTensor):
                r = self.given[id(r)]
            if isinstance(r, dict):
                return {k: of(v) for k, v in r.items()}
            return float(r) if np.ndim(r) == 0 else np.asarray(r)

        if not isinstance(self.steps.result, dict):
            self.steps.refuse("it returns no dict of logs")
        return flat({name: of(r) for name, r in self.steps.result.items()})

    def write(self):
        for mean in self.means.values():
            mean.write()


def flat(logs):
    """As Keras gives them to callbacks: what is in a dict within is there by its own name."""
    found = {}
    for name, value in sorted(logs.items()):
        found.update(flat(value) if isinstance(value, dict) else {name: value})
    return found


class Runs:
    """Steps of one kind on the devices of a strategy."""

    def __init__(self, keras, model, batches, trains, strategy, seed):
        if hasattr(model, "_compile_metrics"):
            build_metrics(keras, model, batches)
        data = keras.tree.pack_sequence_as(batches.structure, batches.first)
        self.trains = trains
        self.steps = Steps(keras, model, step_of(model, trains), data)
        if trains and not self.steps.asked:
            self.steps.refuse("no optimizer gets gradients in it")
        _dry.check(self.steps, batches.first)
        self.metrics = Metrics(keras, model, self.steps)
        self.program = Program(self.steps, strategy, seed)

    def write(self):
        """Metrics, weights and optimizers of the caller's become what they are now."""
        self.metrics.write()
        if self.trains:
            self.program.network.take_back()
            for optimizer in self.program.optimizers.values():
                optimizer.write()

    def step(self, data):
        given = self.program.run(data)
        self.metrics.update(given, len(data[0]))
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


def strategy_of(devices, reproducible, recompute=False):
    strategy = ctypes.c_void_p()
    check(lib.keel_strategy_create(ctypes.byref(strategy), devices.encode() if devices else None))
    if reproducible:
        check(lib.keel_strategy_reproducible(strategy, c.SHARDS if reproducible is True else reproducible))
    lib.keel_strategy_recompute(strategy, recompute)
    return strategy


NOT_OF_STEPS = {"class_weight": None, "end": "keep", "float32": "exact", "micro_batch": 0, "threads": None,
                "input_memory": None}  # fmt: skip


class Fit:
    """A fit of a model with a step of its own. o: the options of fit, by name."""

    def __init__(self, model, o):
        self.keras, self.model, self.o = sys.modules["keras"], model, o
        for name, default in NOT_OF_STEPS.items():
            if o[name] != default:
                raise c.Unsupported(f"{name}, of a model with a step of its own")
        self.seed = int(np.random.randint(2**31)) if o["seed"] is None else o["seed"]
        self.tests = self.runs = None
        self.strategy = strategy_of(o["devices"], o["reproducible"], o["recompute"])

    def batches(self, data, weight, batch_size, shuffle):
        x, y, *more = data if isinstance(data, (list, tuple)) else (data, None)
        return Batches(self.keras, x, y, *(more or [weight]), batch_size, shuffle, self.seed)

    def open(self, x, y, sample_weight):
        o, validation = self.o, self.o["validation_data"]
        if o["validation_split"] and validation is None:
            (x, y, sample_weight), validation = split(
                self.keras, (x, y, sample_weight), o["validation_split"]
            )
        self.rows = self.batches((x, y), sample_weight, o["batch_size"], o["shuffle"])
        self.runs = Runs(self.keras, self.model, self.rows, True, self.strategy, self.seed)
        if validation is not None:
            rows = self.batches(validation, None, o["validation_batch_size"] or o["batch_size"], False)
            self.tests = Tests(self.keras, self.model, rows, self.strategy, self.seed)

    def open_callbacks(self, callbacks, verbose):
        callbacks = [] if callbacks is None else callbacks if isinstance(callbacks, list) else [callbacks]
        if any(isinstance(x, str) for x in callbacks):
            raise c.Unsupported("Keel's own callbacks, of a model with a step of its own: give Keras's")
        self.per_batch = [x for x in callbacks if looks(x, "batch")]
        self.looking = [x for x in callbacks if looks(x, "epoch")]
        if self.per_batch:
            names = ", ".join(type(x).__name__ for x in self.per_batch)
            c.tell(f"{names} may look at the weights in each step, so they are copied each time: slow")
        self.per_epoch = self.o["steps_per_epoch"] or self.rows.steps()
        self.calls = self.keras.callbacks.CallbackList(
            callbacks, add_history=True, add_progbar=verbose != 0, verbose=1 if verbose == "auto" else verbose,
            epochs=self.o["epochs"], steps=self.per_epoch, model=self.model,
        )  # fmt: skip

    def run(self):
        o, model, calls = self.o, self.model, self.calls
        model.stop_training, logs = False, {}
        began, steps, rows = time.monotonic(), 0, 0
        self.of_all = self.rows.passes(o["steps_per_epoch"])
        calls.on_train_begin()
        for epoch in range(o["initial_epoch"], o["epochs"]):
            self.runs.metrics.reset()
            calls.on_epoch_begin(epoch)
            step = 0
            for data in self.of_all if o["steps_per_epoch"] else self.rows.passes(None):
                calls.on_train_batch_begin(step)
                logs = self.runs.step(data)
                if self.per_batch:
                    self.look(lambda: calls.on_train_batch_end(step, logs))
                else:
                    calls.on_train_batch_end(step, logs)
                step, rows = step + 1, rows + len(data[0])
                if model.stop_training or step == o["steps_per_epoch"]:
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

    def __init__(self, keras, model, rows, strategy, seed):
        self.rows, self.runs = rows, Runs(keras, model, rows, False, strategy, seed)

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


def split(keras, data, share):
    """The rows to train on, and the last ones to validate with, as Keras parts them."""
    flat = [a for a in keras.tree.flatten(data) if a is not None]
    if any(not hasattr(a, "__getitem__") or not hasattr(a, "shape") for a in flat):
        raise c.ArgumentError("validation_split takes arrays")
    rows = len(flat[0])
    at = int(np.floor(rows * (1 - share)))
    if not 0 < at < rows:
        raise c.ArgumentError(f"validation_split={share} of {rows} rows leaves none for one of the parts")
    part = lambda rows: keras.tree.map_structure(lambda a: None if a is None else a[rows], data)
    return part(slice(0, at)), part(slice(at, None))


def looks(callback, when):
    """Whether a callback may look at weights in functions of batches, or of epochs."""
    hooks = [h for h in c.HOOKS if "train" in h or "epoch" in h]
    return any(
        hook_of(callback, h) and not sees_logs_only(callback, h)
        for h in hooks
        if ("batch" in h) == (when == "batch")
    )


def fit_by_steps(model, x, y, sample_weight, callbacks, verbose, o):
    fit = Fit(model, o)
    try:
        fit.open(x, y, sample_weight)
        fit.open_callbacks(callbacks, verbose)
        try:
            return fit.run()
        except BaseException:
            fit.runs.write()  # the model is as after the last function that was finished
            raise
    finally:
        fit.close()


def evaluate_by_steps(model, x, y, sample_weight, callbacks, verbose, return_dict, o):
    keras = sys.modules["keras"]
    strategy, tests = strategy_of(o["devices"], o["reproducible"]), None
    try:
        rows = Batches(keras, x, y, sample_weight, o["batch_size"], False, 0)
        tests = Tests(keras, model, rows, strategy, int(np.random.randint(2**31)))
        calls = keras.callbacks.CallbackList(
            callbacks, add_progbar=verbose != 0, verbose=1 if verbose == "auto" else verbose, epochs=1,
            steps=o["steps"] or rows.steps(), model=model,
        )  # fmt: skip
        logs = tests.run(calls, o["steps"])
        if return_dict:
            return logs
        values = [logs[name] for name in ("loss", *(n for n in logs if n != "loss")) if name in logs]
        return values[0] if len(values) == 1 else values
    finally:
        if tests:
            tests.runs.program.close()
        lib.keel_strategy_destroy(strategy)
