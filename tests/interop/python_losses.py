#!/usr/bin/env python3
"""keel.fit with losses and metrics that are functions or classes of the caller, beside Keras's own fit.

python_losses.py [NAME...]      needs Keras 3 on TensorFlow, and libkeel (KEEL_LIBRARY)
"""

import os
import sys
import tempfile
import warnings

from beside_keras import (
    PLAIN,
    ROWS,
    Batches,
    beside,
    case,
    close,
    equal,
    fails,
    labels,
    mlp,
    rows,
    run_cases,
    traced,
    two_by_two,
)
import keras
import numpy as np
from keras import callbacks as kc, layers, ops

import keel


def squares(y_true, y_pred):
    return ops.mean(ops.square(y_true - y_pred), axis=-1)


def of_the_batch(y_true, y_pred):
    return 0.5 * ops.mean(ops.abs(y_true - y_pred)) + ops.mean(y_pred**2)


def each_number(y_true, y_pred):
    apart = y_true - y_pred
    return ops.where(apart > 0, apart * 0.9, -0.1 * apart)


def both_kinds(y_true, y_pred):
    sure = keras.losses.BinaryCrossentropy()(y_true, ops.sigmoid(y_pred))
    return sure + keras.losses.mean_squared_error(y_true, y_pred) - 0.1 * ops.mean(ops.abs(y_pred))


def overlap(y_true, y_pred):
    y_pred = ops.sigmoid(y_pred)
    shared = ops.sum(y_true * y_pred, axis=-1)
    return 1 - (2 * shared + 1) / (ops.sum(y_true, axis=-1) + ops.sum(y_pred, axis=-1) + 1)


def entropy_of_labels(y_true, y_pred):
    hot = ops.one_hot(ops.cast(ops.reshape(y_true, (-1,)), "int32"), 4)
    return -ops.sum(hot * ops.log(y_pred + 1e-7), axis=-1)


def largest(y_true, y_pred):
    return ops.max(ops.abs(y_true - y_pred), axis=-1)


class Exponents(keras.losses.Loss):
    def __init__(self, factor=0.3, **options):
        super().__init__(**options)
        self.factor = factor

    def call(self, y_true, y_pred):
        return ops.sum(ops.exp(self.factor * (y_pred - y_true)), axis=-1)


@case
def losses_and_metrics_of_the_caller():
    def of_two(loss, **compile):
        def make():
            i = layers.Input((9,))
            m = keras.Model(i, layers.Dense(2)(layers.Dense(5, "tanh")(i)))
            m.compile("adam", loss, **compile)
            return m

        return make

    data = lambda: (rows(), np.float32(rows(1, 2) > 0))
    for loss in [
        squares,
        of_the_batch,
        each_number,
        both_kinds,
        overlap,
        Exponents(),
        Exponents(0.2, reduction="sum"),
        keras.losses.MeanSquaredError.__mro__[1](squares),
    ]:
        m, k, *_ = beside(of_two(loss, metrics=["mae", largest]), data, epochs=2, validation_split=0.3)
        mine, theirs = (
            f(*data(), verbose=0) for f in (lambda *a, **o: keel.evaluate(m, *a, **o), k.evaluate)
        )
        close(mine, theirs, "evaluate")
    weights = {"sample_weight": np.linspace(0, 2, ROWS, dtype="float32")}
    for loss in squares, Exponents(reduction="mean_with_sample_weight"):
        beside(of_two(loss, weighted_metrics=[largest]), data, **weights)

    def classes():
        m = mlp()
        m.compile("adam", entropy_of_labels, metrics=["accuracy"])
        return m

    beside(classes, lambda: (rows(), labels()), class_weight={0: 2.0, 3: 0.25})
    beside(classes, lambda: (rows(), labels()[:, None]), validation_split=0.2)
    beside(classes, lambda: (Batches(),))
    stops = lambda: {
        "callbacks": [kc.EarlyStopping("val_largest", mode="min", patience=0, restore_best_weights=True)]
    }
    beside(of_two(squares, metrics=[largest]), data, per_side=stops, epochs=6, validation_split=0.3)

    with tempfile.TemporaryDirectory() as folder:
        named = {"x": rows(), "y": labels()}
        np.savez(os.path.join(folder, "d.npz"), **named)
        np.savez(os.path.join(folder, "w.npz"), **named, sample_weight=np.ones(ROWS, "float32"))
        read, weighed = (keel.open(os.path.join(folder, name)) for name in ("d.npz", "w.npz"))
        m, same = classes(), classes()
        same.set_weights(m.get_weights())
        keel.fit(m, rows(), labels(), **PLAIN)
        keel.fit(same, read, **PLAIN)
        equal(m, same)
        batch = mlp()
        batch.compile("sgd", lambda y, p: ops.mean(p) + entropy_of_labels(y, p))
        fails(keel.Unsupported, lambda: keel.fit(batch, weighed, verbose=0), "one for each row")

    def several():
        m = two_by_two()
        m.compile("sgd", [squares, "mse"], loss_weights=[0.5, 2.0], metrics=[[largest], [largest, "mae"]])
        return m

    beside(several, lambda: ([rows(), rows(1, 5)], [rows(2, 4), rows(3, 1)]), epochs=2)

    class Inside(keras.Model):
        def __init__(self):
            super().__init__()
            self.of = layers.Dense(2)

        def call(self, x):
            return self.of(x)

    def own_model():
        m = Inside()
        m(rows()[:1])
        m.compile("sgd", Exponents(), metrics=[largest])
        return m

    beside(own_model, data)
    image = lambda y, p: 1 - ops.mean(ops.square(y - p), axis=(1, 2))

    def images():
        i = layers.Input((6, 6, 3))
        m = keras.Model(i, layers.Conv2D(3, 3, padding="same")(i))
        m.compile("sgd", image)
        return m

    beside(images, lambda: (rows(0, 6, 6, 3), rows(1, 6, 6, 3)))


@case
def functions_that_are_no_program_are_refused():
    class Counts(keras.metrics.Metric):
        def update_state(self, y_true, y_pred, sample_weight=None):
            pass

        def result(self):
            return 0.0

    def fitted(loss, metrics=None, **options):
        m = keras.Sequential([layers.Input((9,)), layers.Dense(2)])
        m.compile("sgd", loss, metrics=metrics)
        return keel.fit(m, rows(), rows(1, 2), verbose=0, **options)

    numbers = lambda y, p: ops.mean(ops.convert_to_tensor(np.sin(ops.convert_to_numpy(p))))
    for loss, *parts in [
        (numbers, "must be of keras.ops"),
        (lambda y, p: 1.0, "not computed of", "no loss"),
    ]:
        fails(keel.Unsupported, lambda: fitted(loss), *parts)
    weights = {"sample_weight": np.ones(ROWS, "float32")}
    both = lambda y, p: ops.mean(p) + ops.square(y - p)
    fails(keel.Unsupported, lambda: fitted(both, **weights), "one for each row")
    fails(keel.Unsupported, lambda: fitted(both, class_weight={0: 2.0}), "one for each row")
    tested = {"validation_data": (rows(), rows(1, 2), weights["sample_weight"])}
    fails(keel.Unsupported, lambda: fitted(both, **tested), "one for each row")
    fails(keel.ArgumentError, lambda: fitted({"none": squares}), "none")
    m = keras.Sequential([layers.Input((9,)), layers.Dense(2)])
    m.compile("sgd", squares)
    close(keel.predict(m, rows(), verbose=0), m.predict(rows(), verbose=0), "predictions")
    keel.fit(m, iter([(rows(), rows(1, 2))]), verbose=0)  # whose shapes are known from its first batch alone
    metrics = [largest, Counts(name="counts"), lambda y, p: ops.sqrt(ops.mean(p**2))]
    assert set(fitted("mse", metrics).history) == {"loss", "largest", "counts", "lambda"}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        logs = fitted("mse", metrics, micro_batch=2).history
        batch = fitted("mse", [of_the_batch]).history
    assert set(logs) == {"loss", "largest"} and set(batch) == {"loss", "of_the_batch"}, (logs, batch)
    for part in "Counts", "Sqrt", "which micro_batch does not keep", "over batches in Keras":
        assert any(
            part in str(w.message) for w in said
        ), f"'{part}' is not in {[str(w.message) for w in said]}"


@case
def one_number_for_a_batch():
    """A loss of sums over all rows of a step."""

    def masked(y, p):
        there = ops.cast(y > 0.2, p.dtype)
        return ops.sum(ops.square(y - p) * there) / ops.maximum(ops.sum(there), 1.0)

    def dice(y, p):  # of each class, over the batch
        shared, all = ops.sum(y * p, axis=0), ops.sum(y + p, axis=0)
        return 1 - ops.mean((2 * shared + 1) / (all + 1))

    def determination(y, p):
        rest, spread = ops.sum(ops.square(y - p)), ops.sum(ops.square(y)) - ops.square(ops.sum(y)) / 20
        return rest / (spread + 1e-3)

    def geometric(y, p):
        return ops.exp(0.5 * ops.log(ops.mean(ops.abs(y - p)) * ops.mean(p**2)))

    root = lambda y, p: ops.sqrt(ops.mean(ops.square(y - p)))

    def flat_dice(y, p):
        y, p = ops.reshape(y, [-1]), ops.ravel(p)
        return 1 - (2 * ops.sum(y * p) + 1) / (ops.sum(y) + ops.sum(p) + 1)

    class Masked(keras.losses.Loss):
        def call(self, y, p):
            return masked(y, p)

    def make(loss, dtype=None):
        def made():
            m = keras.Sequential([layers.Input((9,)), layers.Dense(6, "tanh"), layers.Dense(4, "sigmoid")])
            m.compile(keras.optimizers.SGD(0.1, momentum=0.5), loss, metrics=["mae"])
            return m

        return made

    y, weight = (rows(1, 4) > 0).astype("float32"), np.arange(ROWS) % 3 + 0.5
    for loss in masked, dice, determination, geometric, root, flat_dice, Masked(reduction="sum"):
        m, k, *_ = beside(make(loss), lambda: (rows(), y), validation_split=0.2, epochs=2)
        close(keel.evaluate(m, rows(), y, verbose=0), k.evaluate(rows(), y, verbose=0), "evaluate")
    for loss in masked, Masked(reduction="sum"), Masked(reduction="mean_with_sample_weight"), of_the_batch:
        beside(make(loss), lambda: (rows(), y), epochs=2, sample_weight=weight)
    beside(make(dice), lambda: (rows(), y), epochs=2, class_weight={0: 0.5, 2: 2.0})

    def behind_a_mask(loss):
        def made():
            x = layers.Embedding(9, 5, mask_zero=True)(i := layers.Input((6,), dtype="int32"))
            m = keras.Model(i, layers.Dense(4, "sigmoid")(x))
            m.compile("sgd", loss)
            return m

        return made

    ids, places = np.random.default_rng(3).integers(0, 3, (ROWS, 6)), rows(2, 6, 4)
    for loss in masked, root, of_the_batch:
        beside(behind_a_mask(loss), lambda: (ids, places), epochs=2)
    of_rows = behind_a_mask(lambda y, p: ops.mean(ops.square(y - p), axis=(1, 2)))()
    fails(keel.Unsupported, lambda: keel.fit(of_rows, ids, places, verbose=0), "mask of places", "whole rows")

    def two():
        i = layers.Input((9,))
        m = keras.Model(i, [layers.Dense(4, name="kind")(i), layers.Dense(4, name="size")(i)])
        m.compile("sgd", [masked, root], loss_weights=[0.5, 2.0])
        return m

    beside(two, lambda: (rows(), [y, rows(1, 4)]), epochs=2)


class Adds(layers.Layer):
    """Passes on what it gets, and adds to the loss what it is told."""

    def __init__(self, loss, **weights):
        super().__init__()
        self.loss_of, self.shapes = loss, weights

    def build(self, shape):
        for name, dims in self.shapes.items():
            setattr(self, name, self.add_weight(shape=dims, name=name))

    def call(self, x, training=False):
        self.add_loss(self.loss_of(self, x, training))
        return x


class Rebuilds(keras.Model):
    def __init__(self):
        super().__init__()
        self.less, self.more = layers.Dense(2), layers.Dense(9)

    def call(self, x):
        y = self.more(self.less(x))
        self.add_loss(ops.mean(keras.losses.mean_squared_error(x, y)))
        self.add_loss(0.5 * keras.losses.MeanAbsoluteError()(x, y))
        return y


class Endpoint(layers.Layer):
    """Its targets are inputs of the model, as in Keras's guide."""

    def __init__(self):
        super().__init__()
        self.loss_of = keras.losses.BinaryCrossentropy(from_logits=True)

    def call(self, targets, logits, weights=None):
        self.add_loss(self.loss_of(targets, logits, weights))
        return ops.softmax(logits)


@case
def terms_that_calls_add_to_the_loss():
    weight, targets = np.arange(ROWS) % 3 + 0.5, (rows(2, 4) > 0).astype("float32")

    def adds(loss, several=False, policy=None, **weights):
        def make():
            i = layers.Input((9,))
            x = layers.Dense(6, "tanh", kernel_regularizer="l2", dtype=policy)(i)
            x = Adds(loss, **weights)(x)
            y = [layers.Dense(4, name=name)(x) for name in ("kind", "size")[: 1 + several]]
            m = keras.Model(i, y)
            m.compile(keras.optimizers.SGD(0.1, momentum=0.5), "mse")
            return m

        return make

    def near(layer, x, _):
        apart = ops.sum(ops.square(x[:, None, :] - layer.centres[None]), axis=-1)
        return [0.2 * ops.mean(ops.min(apart, axis=1)), 0.1 * ops.sum(ops.square(layer.centres))]

    means = lambda _, x, __: 0.3 * ops.mean(ops.square(x)) - ops.mean(ops.abs(x)) / 2
    told = lambda _, x, training: ops.mean(ops.square(x)) if training else 0.1 * ops.mean(x)
    for what, make, data, options in [
        ("means", adds(means), lambda: (rows(), rows(1, 4)), {"validation_split": 0.2}),
        ("beside weights of rows, which are not for them", adds(means), lambda: (rows(), rows(1, 4)), {"sample_weight": weight}),
        ("several outputs", adds(means, True), lambda: (rows(), [rows(1, 4), rows(2, 4)]), {}),
        ("what is near to weights of its own", adds(near, centres=(5, 6)), lambda: (rows(), rows(1, 4)), {}),
        ("another in training", adds(told), lambda: (rows(), rows(1, 4)), {"validation_split": 0.2}),
    ]:  # fmt: skip
        try:
            traced(make, data, **options)
        except Exception as error:
            raise AssertionError(f"{what}: {error}") from error

    def rebuilds(loss):
        def make():
            m = Rebuilds()
            m(rows()[:1])
            m.compile("adam", loss)
            return m

        return make

    m, k, *_ = traced(rebuilds("mse"), lambda: (rows(), rows()))
    close(keel.evaluate(m, rows(), rows(), verbose=0), k.evaluate(rows(), rows(), verbose=0), "evaluate")
    m, k, *_ = traced(rebuilds(None), lambda: (rows(),), validation_split=0.2)
    close(keel.predict(m, rows(), verbose=0), k.predict(rows(), verbose=0), "predict")

    def endpoint():
        i, t = layers.Input((9,), name="rows"), layers.Input((4,), name="targets")
        m = keras.Model([i, t], Endpoint()(t, layers.Dense(4)(i)))
        m.compile("adam")
        return m

    traced(endpoint, lambda: ({"rows": rows(), "targets": targets},))
    several = endpoint()
    several.get_layer(index=-1).loss_of.reduction = "sum"
    fails(keel.Unsupported, lambda: keel.fit(several, [rows(), targets], verbose=0), "without a mean")


sys.exit(run_cases(__file__))
