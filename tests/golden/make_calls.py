#!/usr/bin/env python3
"""Make calls.json and calls_*.keras: models that call a BatchNormalization several times, trained by
the real Keras.

Each call moves the moving statistics from where the call before left them, in the order in which
Keras runs the calls: the longest way to an output first, whatever was written first. calls_CASE.keras
is the model before its first step, compiled; calls.json has the rows and every weight after an epoch.

A call inside a model that is called with training=False reads the statistics as the calls before it
left them in the same step. Keras 3.15 lets fit override such a training=False of a Functional model,
so what trains here is a subclass that obeys it, as Keras's guide to transfer learning says.
Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L

WIDTH, ROWS, BATCH = 4, 28, 8  # the last step has 4 rows


def dense(activation=None):
    return L.Dense(WIDTH, activation, use_bias=False)


def norm():
    return L.BatchNormalization(momentum=0.7, name="norm")


def outer(base):
    i = keras.Input((WIDTH,))
    return keras.Model(i, L.Dense(1, use_bias=False)(base(i)))


def deep_last():
    """The call that is written first runs last but one."""
    n, i = norm(), keras.Input((WIDTH,))
    z = n(dense()(i))
    x = n(dense()(i))
    y = n(dense("tanh")(x))
    return keras.Model(i, L.Dense(1, use_bias=False)(L.Concatenate()([x, y, z])))


def inside():
    """The same in a model inside another, with a call that is deeper still."""
    n, i = norm(), keras.Input((WIDTH,))
    z = n(dense()(i))
    x = n(dense()(i))
    y = n(dense("tanh")(x))
    w = n(dense()(dense()(dense()(i))))
    return outer(keras.Model(i, L.Concatenate()([w, z, y, x]), name="base"))


def alike():
    """Calls of equal depth run as the next layer names them."""
    n, i = norm(), keras.Input((WIDTH,))
    z, w, v, u = n(dense()(i)), n(dense("tanh")(i)), n(i), n(dense()(i))
    return outer(keras.Model(i, L.Concatenate()([v, u, w, z]), name="base"))


def twice():
    """A model that calls it twice is called twice."""
    n, i = norm(), keras.Input((WIDTH,))
    late = n(i)
    base = keras.Model(i, L.Add()([n(dense("tanh")(n(dense()(i)))), late]), name="base")
    i = keras.Input((WIDTH,))
    first = base(i)
    second = base(dense()(dense()(i)))
    return keras.Model(i, L.Dense(1, use_bias=False)(L.Add()([first, second])))


Model = keras.Model  # what the models of the mixed cases are made of


class Obeying(keras.Model):
    """A Functional model in which a model that is called with training=False stays so."""

    def call(self, inputs, training=None, mask=None):
        def operation(op):
            def call(*args, **kwargs):
                if isinstance(op, keras.Model):
                    kwargs["training"] = kwargs.get("training", training)
                elif getattr(op, "_call_has_training_arg", False):
                    kwargs["training"] = training
                return op(*args, **kwargs)

            return call

        return self._run_through_graph([inputs], operation_fn=operation)


def apart(n):
    i = keras.Input((WIDTH,))
    return Model(i, n(i), name=f"apart_{n.name}")


def mixed_first():
    """A call without statistics of the batch, and then one with them."""
    n, i = apart(norm()), keras.Input((WIDTH,))
    x = n(dense()(dense()(i)), training=False)
    y = n(dense("tanh")(x))
    return Model(i, L.Dense(1, use_bias=False)(L.Concatenate()([x, y])))


def mixed_last():
    """The other way round: the moved statistics are read, also by what is written first."""
    n, i = apart(norm()), keras.Input((WIDTH,))
    late = n(i, training=False)
    x = n(dense()(dense()(i)))
    y = n(dense("tanh")(x), training=False)
    return Model(i, L.Dense(1, use_bias=False)(L.Concatenate()([late, x, y])))


def mixed_between():
    """Calls of both kinds in turn, in models inside each other, some without beta."""
    scaled = L.BatchNormalization(momentum=0.7, center=False, name="scaled")
    n, scaled, i = apart(norm()), apart(scaled), keras.Input((WIDTH,))
    x = n(dense("tanh")(i))
    x = scaled(n(dense()(x), training=False))
    x = n(dense()(x))
    x = scaled(n(x, training=False), training=False)
    base, i = Model(i, scaled(n(x)), name="base"), keras.Input((WIDTH,))
    return Model(i, L.Dense(1, use_bias=False)(base(i)))


rng = np.random.default_rng(5)
x = (rng.integers(-24, 25, (ROWS, WIDTH)) / 8 + np.arange(WIDTH)).astype("float32")
y = (rng.integers(-16, 17, (ROWS, 1)) / 8).astype("float32")
data = {"rows": ROWS, "x": x.ravel().tolist(), "y": y.ravel().tolist(), "cases": {}}
for case in (deep_last, inside, alike, twice, mixed_first, mixed_last, mixed_between):
    Model = keras.Model
    keras.backend.clear_session()
    keras.utils.set_random_seed(7)
    m = case()
    m.compile(keras.optimizers.SGD(0.02), "mse")
    m.save(f"calls_{case.__name__}.keras")
    if "mixed" in case.__name__:
        weights, Model = m.get_weights(), Obeying
        keras.backend.clear_session()
        m = case()
        m.set_weights(weights)
        m.compile(keras.optimizers.SGD(0.02), "mse")
    m.fit(x, y, batch_size=BATCH, epochs=1, shuffle=False, verbose=0)
    data["cases"][case.__name__] = [
        {"name": w.path, "values": [float(v) for v in w.numpy().astype("float64").ravel()]}
        for w in m.weights
    ]
text = json.dumps(data, separators=(",", ":"))
with open("calls.json", "w") as f:
    f.write(text.replace('{"name"', '\n{"name"') + "\n")
