#!/usr/bin/env python3
"""Make orthogonal.keras and orthogonal.json: a model with OrthogonalRegularizers, before its first
step; the losses of two epochs, what it predicts then, its loss in evaluate, and the weights. Rows
and targets are those of make_constraints.py. Run with Keras 3 on TensorFlow,
KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L
from keras.regularizers import OrthogonalRegularizer

ROWS = 22


def number(shape, k):
    return (((np.arange(np.prod(shape)) * 37 + 29 * k + 11) % 101 - 50) / 32).reshape(shape)


keras.utils.set_random_seed(4)
still = L.Dense(6, kernel_regularizer="orthogonal_regularizer", trainable=False, name="still")
m = keras.Sequential(
    [
        keras.Input((6, 5, 2)),
        L.Reshape((6, 10)),
        L.LSTM(3, kernel_regularizer=OrthogonalRegularizer(0.25, "columns"),
               recurrent_initializer="glorot_uniform", # of orthogonal rows the sign is rounding
               recurrent_regularizer=OrthogonalRegularizer(0.5)),
        L.Dense(140, "tanh", kernel_regularizer=OrthogonalRegularizer(2.0, mode="columns")),
        L.Dense(5, "tanh", kernel_regularizer=OrthogonalRegularizer(1.0), bias_regularizer="l2"),
        still,
        L.Dense(2, kernel_regularizer=OrthogonalRegularizer()),
    ]
)
m.compile(keras.optimizers.SGD(0.1, momentum=0.9, clipnorm=0.75), "mse")
m.save("orthogonal.keras")
x, y = number((ROWS, 6, 5, 2), 0).astype("float32"), number((ROWS, 2), 1).astype("float32")
h = m.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
got = {
    "rows": ROWS,
    "loss": h.history["loss"],
    "after": [float(v) for v in m.predict(x, verbose=0).ravel()],
    "evaluate": float(m.evaluate(x, y, batch_size=8, verbose=0)),
    "weights": {w.path: [float("%.8g" % v) for v in np.ravel(w)] for w in m.weights},
}
with open("orthogonal.json", "w") as f:
    json.dump(got, f)
    f.write("\n")
