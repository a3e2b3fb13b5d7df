"""fit and evaluate of models with a step of their own: epochs and batches as in Keras, each step by libkeel."""

import ctypes
import sys

import numpy as np

from . import _dry, _rows
from . import _library as c
from ._functions import Program
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
        self.steps = Steps(keras, model, step_of(model, trains), data)
        if trains and not self.steps.asked:
            self.steps.refuse("no optimizer gets gradients in it")
        _dry.check(self.steps, batches.first)
        self.metrics = Metrics(keras, model, self.steps)
        self.program = Program(self.steps, strategy, seed)
        self.optimizers = list({id(a.optimizer): a.optimizer for a in self.steps.asked}.values())

    def step(self, data):
        given = self.program.run(data)
        for optimizer in self.optimizers:
            optimizer.iterations.assign_add(1)
        self.metrics.update(given, len(data[0]))
        return self.metrics.result()


def build_metrics(keras, model, batches):
    """Keras makes the metrics of compile() from the first batch."""
    metrics = model._compile_metrics
    if metrics is not None and not metrics.built:
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


def fit_by_steps(model, x, y, sample_weight, callbacks, verbose, o):
    """o: what fit was given besides, by name."""
    keras = sys.modules["keras"]
    seed = int(np.random.randint(2**31)) if o["seed"] is None else o["seed"]
    batches = Batches(keras, x, y, sample_weight, o["batch_size"], o["shuffle"], seed)
    strategy, runs = strategy_of(o["devices"], o["reproducible"], o["recompute"]), None
    try:
        runs = Runs(keras, model, batches, True, strategy, seed)
        per_epoch = o["steps_per_epoch"] or batches.steps()
        calls = keras.callbacks.CallbackList(
            callbacks, add_history=True, add_progbar=verbose != 0, verbose=1 if verbose == "auto" else verbose,
            epochs=o["epochs"], steps=per_epoch, model=model,
        )  # fmt: skip
        model.stop_training = False
        calls.on_train_begin()
        logs, rows = {}, batches.passes(o["steps_per_epoch"])
        for epoch in range(o["initial_epoch"], o["epochs"]):
            runs.metrics.reset()
            calls.on_epoch_begin(epoch)
            step = 0
            for data in rows if o["steps_per_epoch"] else batches.passes(None):
                calls.on_train_batch_begin(step)
                logs = runs.step(data)
                calls.on_train_batch_end(step, logs)
                step += 1
                if model.stop_training or step == o["steps_per_epoch"]:
                    break
            runs.metrics.write()
            runs.program.take_back()
            calls.on_epoch_end(epoch, dict(logs))
            if model.stop_training:
                break
        calls.on_train_end(logs)
        return model.history
    finally:
        if runs:
            runs.program.close()
        lib.keel_strategy_destroy(strategy)
