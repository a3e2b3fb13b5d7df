#!/usr/bin/env python3
"""Make weightless.json and weightless_*.keras: steps whose sample weights sum to 0, by the real Keras.

Such a step is like any other: the losses and their gradients are 0, regularisers of weights and of
activations are there, and moments, moving statistics and the step counter move. weightless_CASE.keras
is the model before its first step, compiled; weightless.json has the rows, the loss of the epoch and
every weight after it. Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L

WIDTH, ROWS, BATCH = 4, 28, 8  # steps of 8, 8, 8 and 4 rows; the second and the last have no weight
L2 = keras.regularizers.L2


def regularised():
    """Both regularisers, momentum, statistics of the batch."""
    i = keras.Input((WIDTH,))
    x = L.BatchNormalization(momentum=0.7)(L.Dense(3, kernel_regularizer=L2(0.1))(i))
    x = L.Dense(3, "tanh", activity_regularizer=L2(0.5))(x)
    m = keras.Model(i, L.Dense(1)(x))
    m.compile(keras.optimizers.SGD(0.02, momentum=0.9), "mse")
    return m


def by_weights():
    """The divisor is the sum of weights, and the optimizer counts its steps."""
    i = keras.Input((WIDTH,))
    m = keras.Model(i, L.Dense(1)(L.Dense(3, "tanh", kernel_regularizer=L2(0.1))(i)))
    loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    m.compile(keras.optimizers.Adam(0.02), loss)
    return m


def plain():
    """Nothing but momentum moves."""
    i = keras.Input((WIDTH,))
    m = keras.Model(i, L.Dense(1)(L.Dense(3, "tanh")(i)))
    m.compile(keras.optimizers.SGD(0.02, momentum=0.9), "mse")
    return m


rng = np.random.default_rng(6)
x = (rng.integers(-24, 25, (ROWS, WIDTH)) / 8).astype("float32")
y = (rng.integers(-16, 17, (ROWS, 1)) / 8).astype("float32")
w = rng.integers(1, 9, ROWS).astype("float32") / 4
w[BATCH : 2 * BATCH] = w[3 * BATCH :] = 0
data = {"rows": ROWS, "x": x.ravel().tolist(), "y": y.ravel().tolist(), "w": w.tolist(), "cases": {}}
for case in (regularised, by_weights, plain):
    keras.backend.clear_session()
    keras.utils.set_random_seed(7)
    m = case()
    m.save(f"weightless_{case.__name__}.keras")
    h = m.fit(x, y, BATCH, sample_weight=w, shuffle=False, verbose=0)
    data["cases"][case.__name__] = {
        "loss": h.history["loss"][0],
        "iterations": int(m.optimizer.iterations),
        "weights": [
            {"name": v.path, "values": [float(k) for k in v.numpy().astype("float64").ravel()]}
            for v in m.weights
        ],
    }
text = json.dumps(data, separators=(",", ":"))
with open("weightless.json", "w") as f:
    f.write(text.replace('{"name"', '\n{"name"') + "\n")
