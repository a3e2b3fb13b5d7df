#!/usr/bin/env python3
"""keel.fit with metrics that Keras computes of the rows of each step, beside Keras's own fit.

python_metrics.py [NAME...]      needs Keras 3, and libkeel (KEEL_LIBRARY)
"""

import sys
import warnings
from functools import partial

from beside_keras import PLAIN, ROWS, Batches, beside, case, close, labels, mlp, rows, run_cases, two_by_two
import keras
import numpy as np
from keras import callbacks as kc, layers, ops

import keel


class F1(keras.metrics.Metric):
    """Of two classes, with a state of its own."""

    def __init__(self, name="f1", **options):
        super().__init__(name=name, **options)
        self.hits, self.all = (self.add_weight(name=n, initializer="zeros") for n in ("hits", "all"))

    def update_state(self, y_true, y_pred, sample_weight=None):
        y_true, y_pred = ops.cast(y_true, "float32"), ops.cast(y_pred > 0, "float32")
        if sample_weight is not None:
            weight = ops.reshape(ops.cast(sample_weight, "float32"), (-1, 1))
            y_true, y_pred = y_true * ops.sqrt(weight), y_pred * ops.sqrt(weight)
        self.hits.assign_add(2 * ops.sum(y_true * y_pred))
        self.all.assign_add(ops.sum(y_true**2) + ops.sum(y_pred**2))

    def result(self):
        return self.hits / (self.all + 1e-7)


class Parts(F1):
    """Several numbers by their names."""

    def result(self):
        return {f"{self.name}_hits": self.hits + 0.0, f"{self.name}_all": self.all + 0.0}


class Of(F1):
    """Of labels."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        found = ops.equal(ops.argmax(y_pred, axis=-1), ops.cast(y_true, "int64"))
        super().update_state(ops.cast(found, "float32"), ops.max(y_pred, axis=-1) - 0.3)


class Logs(kc.Callback):
    """What callbacks get."""

    def __init__(self):
        super().__init__()
        self.batches, self.epochs = [], []

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append(dict(logs))

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(dict(logs))


class Each(F1):
    def result(self):
        return ops.stack([self.hits + 0.0, self.all + 0.0])


class One(F1):
    """A number that is not alone."""

    def result(self):
        return ops.reshape(super().result(), (1,))


class Learnt(keras.metrics.Mean):
    """Reads a weight of its own."""

    def __init__(self, **options):
        super().__init__(**options)
        self.factor = self.add_variable((), keras.initializers.Constant(0.25), name="factor")

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(self.factor * ops.mean(ops.square(y_true - y_pred), axis=-1), sample_weight)


def spread(y_true, y_pred):
    """Compares rows."""
    return ops.mean(ops.matmul(y_pred, ops.transpose(y_pred))) + ops.max(y_true)


def by_numpy(y_true, y_pred):
    return np.median(np.abs(ops.convert_to_numpy(y_true) - ops.convert_to_numpy(y_pred)), axis=-1)


def scored(metrics=None, weighted=None, eagerly=False, dropout=0):
    def make():
        i = layers.Input((9,))
        h = layers.Dense(6, "tanh")(i)
        m = keras.Model(i, layers.Dense(2)(layers.Dropout(dropout)(h) if dropout else h))
        m.compile(
            "sgd",
            "mse",
            metrics=metrics and metrics(),
            weighted_metrics=weighted and weighted(),
            run_eagerly=eagerly,
        )
        return m

    return make


@case
def metrics_that_keras_computes():
    """Of the rows of each step: libkeel has no program for them."""
    data = lambda: (rows(), np.float32(rows(1, 2) > 0))
    weight = {"sample_weight": np.linspace(0, 2, ROWS, dtype="float32")}
    f1 = lambda: [F1()]
    for what, make, options in [
        ("a state of its own", scored(f1), {}),
        ("beside others", scored(lambda: ["mae", F1(), "accuracy"]), {}),
        ("rows that are compared", scored(lambda: [spread, F1()]), {}),
        ("a weight that it reads", scored(lambda: [Learnt(name="learnt")]), {}),
        ("numbers by their names", scored(lambda: [Parts(name="parts"), "mse"]), {}),
        ("NumPy", scored(lambda: [by_numpy if keras.backend.backend() != "jax" else spread], eagerly=True), {}),
        ("weights of rows", scored(f1, lambda: [F1(), "mae"]), weight),
        ("weights of rows in a mean", scored(None, lambda: [Learnt(name="learnt")]), weight),
        ("weights, but none of this metric", scored(f1), weight),
        ("a validation with weights", scored(None, f1), {"validation_data": (*data(), weight["sample_weight"])}),
        ("steps", scored(f1), {"validation_steps": 2}),
        ("not each epoch", scored(f1), {"validation_freq": 2}),
        ("the name of another", scored(lambda: [F1("mae"), "mae"], lambda: ["mae"]), {}),
        ("the name of another behind it", scored(lambda: ["mae", F1("mae")]), {}),
    ]:  # fmt: skip
        try:
            if "validation_data" not in options:
                options["validation_split"] = 0.3
            m, k, *_ = beside(make, data, epochs=2, **options)
            tested = {n: v for n, v in options.items() if n == "sample_weight"}
            mine, theirs = (f(*data(), verbose=0, **tested) for f in (partial(keel.evaluate, m), k.evaluate))
            close(mine, theirs, "evaluate")
        except Exception as error:
            raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error


@case
def metrics_of_several_outputs():
    def two(kind=list):
        def make():
            m = two_by_two(kind)
            metrics = [["accuracy", Of(name="of")], [F1(), spread, Learnt(name="learnt"), "mae"]]
            weighted = [[], [F1()]]
            if kind is dict:
                metrics, weighted = (dict(zip(("kind", "size"), x)) for x in (metrics, weighted))
            m.compile("sgd", m.loss, metrics=metrics, weighted_metrics=weighted)
            return m

        return make

    x, size, weight = (
        [rows(), rows(1, 5)],
        np.float32(rows(3, 1) > 0),
        np.linspace(0, 2, ROWS, dtype="float32"),
    )
    beside(two(), lambda: (x, [labels(), size]), epochs=2, validation_split=0.3)
    m, k, *_ = beside(two(), lambda: (x, [labels(), size]), epochs=2, sample_weight=[weight, 2 - weight])
    given = dict(batch_size=8, verbose=0, return_dict=True)
    mine, theirs = (f(x, [labels(), size], **given) for f in (partial(keel.evaluate, m), k.evaluate))
    assert set(mine) == set(theirs), f"{set(mine)} and {set(theirs)}"
    for name in set(theirs) - {"kind_loss", "size_loss"}:  # Keras weighs them by batches, Keel by rows
        close(mine[name], theirs[name], name)

    def without_a_loss():
        i = layers.Input((9,))
        m = keras.Model(i, [layers.Dense(4, "softmax", name="kind")(i), layers.Dense(1, name="size")(i)])
        m.compile("sgd", [None, "mse"], metrics=[[Of(name="of")], [F1()]])
        return m

    beside(without_a_loss, lambda: (x[0], [labels(), size]), epochs=2, validation_split=0.3)

    def nested():
        i = layers.Input((9,))
        a, b, d = (layers.Dense(k, name=name)(i) for k, name in enumerate("abd", 1))
        m = keras.Model(i, {"x": [a, b], "y": d})
        metrics = {"x": [[F1()], ["mae"]], "y": [F1()]}
        m.compile("sgd", {"x": ["mse", "mse"], "y": "mse"}, metrics=metrics)
        return m

    targets = [np.float32(rows(k, k) > 0) for k in (1, 2, 3)]
    keras.utils.set_random_seed(3)
    m, k = nested(), nested()
    m.set_weights(k.get_weights())
    mine = keel.fit(m, rows(), dict(zip("abd", targets)), **{**PLAIN, "epochs": 2}).history
    theirs = k.fit(rows(), {"x": targets[:2], "y": targets[2]}, **{**PLAIN, "epochs": 2}).history
    for name in ("loss", "a_f1", "b_mae", "d_f1"):
        close(mine[name], theirs[name], name)

    named = lambda: ({"left": x[0], "right": x[1]}, {"kind": labels(), "size": size})
    beside(two(dict), named, epochs=2)


@case
def metrics_are_watched_and_the_same_on_any_devices():
    data = lambda: (rows(), np.float32(rows(1, 2) > 0))
    best = lambda: kc.EarlyStopping("val_f1", mode="max", patience=0, restore_best_weights=True)
    stops = lambda: {"callbacks": [best()]}
    beside(scored(lambda: [F1(), "mae"]), data, per_side=stops, epochs=5, validation_split=0.3)
    first = None
    for devices in "cpu:0", "cpu:0-1", "cpu:0-2":
        keras.utils.set_random_seed(3)
        m, logs = scored(lambda: [F1(), spread, Each(name="each"), "mse"], dropout=0.5)(), Logs()
        own = "EarlyStopping(monitor='val_f1', mode='max', patience=1)"
        h = keel.fit(
            m, *data(), batch_size=8, epochs=4, verbose=0, validation_split=0.3, devices=devices, seed=1,
            callbacks=[own, logs], reproducible=True,
        )  # fmt: skip
        assert len(logs.batches) == len(h.epoch) * 5 and all("f1" in x for x in logs.batches), logs.batches
        assert {"f1", "val_f1", "spread", "val_mse", "each[0]", "val_each[1]"} <= set(
            logs.epochs[0]
        ), logs.epochs
        first = first or h.history
        assert first == h.history, "devices give other values"


@case
def metrics_get_what_a_step_has_computed():
    """With dropout and shuffled rows, as those that libkeel computes beside them."""

    class Squares(keras.metrics.Mean):
        def update_state(self, y_true, y_pred, sample_weight=None):
            super().update_state(ops.mean(ops.square(y_true - y_pred), axis=-1), sample_weight)

    squares = lambda: [Squares(name="squares"), "mse", One(name="one")]
    m = scored(squares, squares, dropout=0.5)()
    h = keel.fit(
        m,
        rows(),
        rows(1, 2),
        sample_weight=np.arange(ROWS) % 3 + 0.5,
        validation_split=0.2,
        epochs=3,
        verbose=0,
    ).history
    assert all(isinstance(v, float) for v in h["one"] + h["val_weighted_one"]), h
    for name in ("squares", "weighted_squares"):
        for prefix in ("", "val_"):
            close(h[prefix + name], h[prefix + name.replace("squares", "mse")], prefix + name)


@case
def metrics_of_other_rows_and_models():
    class OfClasses(Of):
        def update_state(self, y_true, y_pred, sample_weight=None):
            kind = "int32" if keras.backend.backend() == "jax" else "int64"
            assert keras.backend.standardize_dtype(y_true.dtype) == kind, y_true.dtype
            super().update_state(y_true, y_pred)

    class Inside(keras.Model):
        def __init__(self):
            super().__init__()
            self.of = layers.Dense(4, "softmax")

        def call(self, x):
            return self.of(x)

    def inside():
        m = Inside()
        m(rows()[:1])
        m.compile("sgd", "sparse_categorical_crossentropy", metrics=[Of(name="of")])
        return m

    class Named(keras.Model):
        def __init__(self):
            super().__init__()
            self.of, self.by = layers.Dense(4, "softmax"), layers.Dense(1)

        def call(self, x):
            return {"size": self.by(x), "kind": self.of(x)}

    def by_name():
        m = Named()
        m(rows()[:1])
        metrics = {"kind": [Of(name="of"), "accuracy"], "size": [spread, lambda y, p: ops.max(p, -1)]}
        m.compile("sgd", {"kind": "sparse_categorical_crossentropy", "size": "mse"}, metrics=metrics)
        return m

    classes = lambda metric=OfClasses: lambda: mlp(
        metrics=["accuracy", metric(name="of")], weighted_metrics=[]
    )
    beside(classes(), lambda: (rows(), labels()), validation_data=(rows(1), labels()))
    beside(classes(Of), lambda: (Batches(),))
    beside(classes(Of), lambda: (rows(), labels()), class_weight={0: 2.0, 3: 0.25})
    beside(inside, lambda: (rows(), labels()), epochs=2)
    targets = {"kind": labels(), "size": rows(3, 1)}
    beside(by_name, lambda: (rows(), targets), epochs=2, validation_split=0.3)
    m = classes(Of)()
    assert "of" in keel.fit(m, ((rows(), labels()) for _ in range(2)), verbose=0).history
    assert set(keel.evaluate(m, rows(), labels(), verbose=0, return_dict=True)) == {"loss", "accuracy", "of"}
    assert keel.predict(m, rows(), verbose=0).shape == (ROWS, 4)


@case
def what_a_metric_raises_comes_out():
    class Fails(F1):
        def update_state(self, y_true, y_pred, sample_weight=None):
            raise ValueError("of its own")

    m = scored(lambda: [Fails()])()
    try:
        keel.fit(m, rows(), rows(1, 2), verbose=0)
    except ValueError as error:
        assert "of its own" in str(error)
    else:
        raise AssertionError("nothing was raised")


@case
def metrics_of_an_output_with_a_mask():
    def masked(metrics, **options):
        def make():
            x = layers.Embedding(9, 5, mask_zero=True)(i := layers.Input((6,), dtype="int32"))
            m = keras.Model(i, layers.Dense(4, "sigmoid")(x))
            m.compile("sgd", "mse", metrics=metrics, weighted_metrics=metrics, **options)
            return m

        return make

    places = lambda y, p: ops.mean(ops.square(y - p), axis=-1) + 0.01 * ops.max(p)
    if keras.backend.backend() != "tensorflow":
        return  # on JAX, Keras's metrics do not see the mask; on PyTorch it changes their weights
    data = lambda: (np.random.default_rng(3).integers(0, 3, (ROWS, 6)), rows(2, 6, 4))
    m, k, *_ = beside(masked([places, "mae"]), data, epochs=2, validation_split=0.3)
    mine, theirs = (f(*data(), verbose=0) for f in (partial(keel.evaluate, m), k.evaluate))
    close(mine, theirs, "evaluate")
    beside(masked([places]), data, epochs=2, sample_weight=np.abs(rows(4, 6)))


@case
def metrics_that_cannot_be_had_are_left_out():
    m = scored(lambda: [F1()])()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert set(keel.fit(m, rows(), rows(1, 2), verbose=0, micro_batch=2).history) == {"loss"}
    lines = [str(w.message) for w in said]
    assert any("F1" in line and "which micro_batch does not keep" in line for line in lines), lines


sys.exit(run_cases(__file__))
