#!/usr/bin/env python3
"""Make weights_state.json: models that were read from a file, load weights from another one, and
train an epoch: as whose steps the optimizer goes on, and at which loss. Keras takes over the
optimizer's state of the file where it has as many variables.

The models are weights_state_adam.keras (compiled, not trained) and weights_state_sgd.keras; the
files are weights_state.weights.h5 (Adam, trained) and weights_state_none.weights.h5 (not compiled).
Rows are number() below, targets are 1.
Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np


def model(optimizer):
    keras.utils.set_random_seed(1)
    x = keras.Input((3,))
    m = keras.Model(x, keras.layers.Dense(2)(x))
    if optimizer:
        m.compile(optimizer, "mse")
    return m


def train(m):
    x = (((np.arange(60) * 37 + 11) % 101 - 50) / 32).astype("float32").reshape(20, 3)
    return m.fit(x, np.ones((20, 2), "float32"), batch_size=5, shuffle=False, verbose=0)


model(None).save_weights("weights_state_none.weights.h5")
model(keras.optimizers.Adam(0.5)).save("weights_state_adam.keras")
for optimizer, save in [
    (keras.optimizers.SGD(0.1, momentum=0.9), lambda m: m.save("weights_state_sgd.keras")),
    (keras.optimizers.Adam(0.01), lambda m: m.save_weights("weights_state.weights.h5")),
]:
    m = model(optimizer)
    train(m)
    save(m)

with open("weights_state.json", "w") as out:
    cases = []
    for name in ["adam", "sgd"]:
        for file in ["weights_state.weights.h5", "weights_state_none.weights.h5"]:
            m = keras.models.load_model(f"weights_state_{name}.keras")
            m.load_weights(file)
            loss = train(m).history["loss"][0]
            cases.append({"model": f"weights_state_{name}.keras", "file": file, "loss": loss,
                          "steps": int(m.optimizer.iterations), "rate": float(m.optimizer.learning_rate)})  # fmt: skip
    out.write("[" + ",\n".join(json.dumps(c) for c in cases) + "]\n")
