#!/usr/bin/env python3
"""Make calls.json and calls_*.keras: models that call a BatchNormalization several times, trained by
the real Keras.

Each call moves the moving statistics from where the call before left them, in the order in which
Keras runs the calls: the longest way to an output first, whatever was written first. calls_CASE.keras
is the model before its first step, compiled; calls.json has the rows and every weight after an epoch.
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


rng = np.random.default_rng(5)
x = (rng.integers(-24, 25, (ROWS, WIDTH)) / 8 + np.arange(WIDTH)).astype("float32")
y = (rng.integers(-16, 17, (ROWS, 1)) / 8).astype("float32")
data = {"rows": ROWS, "x": x.ravel().tolist(), "y": y.ravel().tolist(), "cases": {}}
for case in (deep_last, inside, alike, twice):
    keras.backend.clear_session()
    keras.utils.set_random_seed(7)
    m = case()
    m.compile(keras.optimizers.SGD(0.02), "mse")
    m.save(f"calls_{case.__name__}.keras")
    m.fit(x, y, batch_size=BATCH, epochs=1, shuffle=False, verbose=0)
    data["cases"][case.__name__] = [
        {"name": w.path, "values": [float(v) for v in w.numpy().astype("float64").ravel()]}
        for w in m.weights
    ]
text = json.dumps(data, separators=(",", ":"))
with open("calls.json", "w") as f:
    f.write(text.replace('{"name"', '\n{"name"') + "\n")
