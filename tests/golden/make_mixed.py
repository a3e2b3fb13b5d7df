#!/usr/bin/env python3
"""Make mixed.json and mixed_*.keras: trainings by the real Keras under the policy mixed_bfloat16.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder. mixed_MODEL.keras is the
model before its first step, compiled; mixed.json holds for each model the history of training under
its policies, and that of the same model in float32: what bfloat16 changes is what tests may differ
by. Rows, batch and epochs are those of make_training.py.
"""
import json
import os

import make_training as mt  # sets up Keras on one device; makes nothing when imported
import keras
from keras import layers

EPOCHS = 12
MIXED = "mixed_bfloat16"


def mlp(policy, last):
    return [
        layers.Input((20,)),
        layers.Dense(32, activation="relu", name="hidden", dtype=policy),
        layers.Dense(mt.CLASSES, activation="softmax", name="out", dtype=last),
    ]


def cnn(policy, last):
    return [
        layers.Input((12, 12, 3)),
        layers.Conv2D(8, 3, use_bias=False, name="conv", dtype=policy),
        layers.BatchNormalization(momentum=0.875, name="bn", dtype=policy),
        layers.ReLU(name="relu", dtype=policy),
        layers.MaxPooling2D(2, name="pool", dtype=policy),
        layers.Flatten(name="flat", dtype=policy),
        layers.Dense(mt.CLASSES, activation="softmax", name="out", dtype=last),
    ]


CASES = {  # name: layers, dtype of the last, optimizer, rows
    "mlp": (mlp, MIXED, mt.sgd(), "mlp"),
    "cnn": (cnn, "float32", mt.sgd(2**-6), "cnn"),
}


def compiled(name, layers_of, policy, last, optimizer):
    m = keras.Sequential(layers_of(policy, last), name="mixed_" + name)
    m.compile(optimizer(), "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=False)
    return m


def main():
    keras.utils.set_random_seed(12)
    out = {}
    for name, (layers_of, last, optimizer, kind) in CASES.items():
        m = compiled(name, layers_of, MIXED, last, optimizer)
        plain = compiled(name, layers_of, "float32", "float32", optimizer)
        plain.set_weights(m.get_weights())
        m.save("mixed_%s.keras" % name)
        x, y = mt.rows(kind, mt.ROWS, 7)
        one = {}
        for which, model in (("mixed", m), ("float32", plain)):
            h = model.fit(x, y, batch_size=mt.BATCH, epochs=EPOCHS, shuffle=False, verbose=0)
            one[which] = {k: [round(float(v), 6) for v in h.history[k]] for k in h.history}
        out[name] = one
    with open("mixed.json", "w") as f:
        json.dump(out, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
