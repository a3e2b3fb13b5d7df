#!/usr/bin/env python3
"""Make spectral.keras and spectral.json: a model with layers inside SpectralNormalization, before its
first step; the losses of two epochs, what it predicts then, and the weights. Element i of the rows is
number(i, 0), of the targets number(i, 1). One kernel is zero and one layer frozen, which Keras treats
in its own way. Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L

ROWS = 22


def number(shape, k):
    return (((np.arange(np.prod(shape)) * 37 + 29 * k + 11) % 101 - 50) / 32).reshape(shape)


keras.utils.set_random_seed(4)
m = keras.Sequential(
    [
        keras.Input((6, 5, 2)),
        L.SpectralNormalization(L.Conv2D(4, 3, kernel_regularizer="l2")),
        L.SpectralNormalization(L.Conv2DTranspose(3, 2, use_bias=False), power_iterations=3),
        L.Flatten(),
        L.SpectralNormalization(L.Dense(5, activation="tanh"), name="frozen"),
        L.Reshape((5, 1)),
        L.SpectralNormalization(L.EinsumDense("abc,cd->abd", output_shape=(None, 3))),
        L.Reshape((15,)),
        L.Dense(4),
        L.SpectralNormalization(L.Dense(2, kernel_initializer="zeros")),
    ]
)
m.get_layer("frozen").trainable = False
m.compile(keras.optimizers.SGD(0.05, momentum=0.9), "mse")
m.save("spectral.keras")
x, y = number((ROWS, 6, 5, 2), 0).astype("float32"), number((ROWS, 2), 1).astype("float32")
h = m.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
got = {
    "rows": ROWS,
    "loss": h.history["loss"],
    "after": [float(v) for v in m.predict(x, verbose=0).ravel()],
    "weights": {w.path: [float("%.8g" % v) for v in np.ravel(w)] for w in m.weights},
}
with open("spectral.json", "w") as f:
    json.dump(got, f, indent=0)
    f.write("\n")
