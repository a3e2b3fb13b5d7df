#!/usr/bin/env python3
"""Make multi.keras and undecayed.keras with their .json, as make_orthogonal.py does: a model whose
weights are moved by the optimizers of a MultiOptimizer, before its first step and (multi_begun.keras)
after an epoch; and one with exclude_from_weight_decay, whose names are in undecayed.json. Run with
Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L
from keras import optimizers as O

ROWS, EPOCHS = 22, 2


def number(shape, k):
    return (((np.arange(np.prod(shape)) * 37 + 29 * k + 11) % 101 - 50) / 32).reshape(shape)


def model():
    return keras.Sequential(
        [
            keras.Input((6, 5, 2)),
            L.Conv2D(4, 3, activation="tanh", name="first"),
            L.BatchNormalization(name="norm"),
            L.Flatten(),
            L.Dense(7, "tanh", name="middle"),
            L.Dense(6, "tanh", name="other"),
            L.Dense(2, name="last"),
        ],
        name="m",
    )


def multi():
    slow = O.schedules.ExponentialDecay(0.05, 2, 0.5)
    return O.MultiOptimizer(
        O.OptimizerMap(
            O.SGD(slow, momentum=0.5, clipnorm=0.5),
            {
                ".*/first/.*": O.Adam(0.01, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2),
                "m/middle/kernel": O.Lamb(0.02, weight_decay=0.125),
                ".*/middle/.*": O.RMSprop(0.01, global_clipnorm=0.25),
                ".*/(none|no)/.*": O.Nadam(),
                ".*/other/kernel": O.Adam(0.02, gradient_accumulation_steps=2),
            },
        )
    )


def undecayed():
    return O.AdamW(0.02, weight_decay=0.5)


x, y = number((ROWS, 6, 5, 2), 0).astype("float32"), number((ROWS, 2), 1).astype("float32")
for name, make in {"multi": multi, "undecayed": undecayed}.items():
    keras.utils.set_random_seed(4)
    m = model()
    optimizer = make()
    got = {"rows": ROWS}
    m.compile(optimizer, "mse")
    m.save(name + ".keras")
    if name == "undecayed":
        got["words"], got["list"] = ["bias", "gamma"], "middle/kernel"
        optimizer.exclude_from_weight_decay(m.get_layer("middle").weights[:1], got["words"])
    begun = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: name == "multi" and epoch == 0 and m.save("multi_begun.keras")
    )
    h = m.fit(x, y, batch_size=8, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[begun])
    got["loss"] = h.history["loss"]
    got["after"] = [float(v) for v in m.predict(x, verbose=0).ravel()]
    got["weights"] = {w.path: [float("%.8g" % v) for v in np.ravel(w)] for w in m.weights}
    with open(name + ".json", "w") as f:
        json.dump(got, f)
        f.write("\n")
