#!/usr/bin/env python3
"""Make constraints.keras and constraints.json: a model all of whose layers have constraints, before
its first step; the losses of two epochs, what it predicts then, and the weights. Element i of the
rows is number(i, 0), of the targets number(i, 1). "sets" has what constraints make of weights of
number(i, 2): arguments at the edge of what Keras takes. Run with Keras 3 on TensorFlow,
KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import constraints as C
from keras import layers as L

ROWS = 22


def number(shape, k):
    return (((np.arange(np.prod(shape)) * 37 + 29 * k + 11) % 101 - 50) / 32).reshape(shape)


SETS = [  # constraint, shape of the weight
    (C.MaxNorm(0.5, axis=None), (3, 2)),
    (C.MaxNorm(1.5, axis=[]), (2, 3)),
    (C.MaxNorm(0.75, axis=[2, 0]), (2, 3, 2)),
    (C.MaxNorm(-1.0), (3, 2)),
    (C.UnitNorm(axis=None), (2, 2, 2)),
    (C.UnitNorm(axis=-2), (2, 3, 2)),
    (C.MinMaxNorm(2.0, 0.5, axis=1), (3, 2)),
    (C.MinMaxNorm(2.0, 0.5, rate=0.25, axis=None), (5,)),
    (C.MinMaxNorm(-1.0, 0.5, rate=1.5), (3, 2)),
    (C.MinMaxNorm(0.0, 0.5, rate=-0.5, axis=[-1, 0]), (3, 2)),
    (C.MinMaxNorm(0.25, 3.0, rate=0.0, axis=()), (4,)),
]


def projected(c, shape):
    values = np.ravel(c(number(shape, 2).astype("float32")))
    return [type(c).__name__, c.get_config(), shape, [float("%.8g" % v) for v in values]]


keras.utils.set_random_seed(4)
m = keras.Sequential(
    [
        keras.Input((6, 5, 2)),
        L.Conv2D(4, 3, kernel_constraint=C.MaxNorm(0.9, axis=[0, 1, 2]), bias_constraint="non_neg"),
        L.BatchNormalization(gamma_constraint=C.MinMaxNorm(0.5, 1.5, rate=0.25), beta_constraint=C.NonNeg()),
        L.SeparableConv2D(3, 2, depthwise_constraint=C.MaxNorm(0.5), pointwise_constraint="unit_norm"),
        L.ConvLSTM1D(3, 2, padding="same", return_sequences=True, kernel_constraint=C.UnitNorm(axis=[0, 1]),
                     recurrent_constraint=C.MaxNorm(0.6), bias_constraint="non_neg"),
        L.Flatten(),
        L.Dense(5, activation="tanh", kernel_constraint=C.UnitNorm(axis=-1)),
        L.Reshape((5, 1)),
        L.GRU(3, kernel_constraint=C.NonNeg(), recurrent_constraint=C.MaxNorm(0.8, axis=0)),
        L.LayerNormalization(gamma_constraint=C.MaxNorm(1.2)),
        L.PReLU(alpha_constraint="non_neg"),
        L.Dense(2, kernel_constraint=C.MinMaxNorm(0.1, 0.3, rate=0.5, axis=1), bias_constraint=C.MaxNorm(0.01)),
    ]
)
m.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
m.save("constraints.keras")
x, y = number((ROWS, 6, 5, 2), 0).astype("float32"), number((ROWS, 2), 1).astype("float32")
h = m.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
got = {
    "rows": ROWS,
    "loss": h.history["loss"],
    "after": [float(v) for v in m.predict(x, verbose=0).ravel()],
    "sets": [projected(*s) for s in SETS],
    "weights": {w.path: [float("%.8g" % v) for v in np.ravel(w)] for w in m.trainable_weights},
}
with open("constraints.json", "w") as f:
    f.write(",\n".join('%s"%s": %s' % ("" if i else "{", k, json.dumps(v)) for i, (k, v) in enumerate(got.items())) + "}\n")
