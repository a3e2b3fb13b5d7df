#!/usr/bin/env python3
"""Make compiled_schedule.keras: a model whose file asks for a learning rate schedule, and for a
metric of its own, which Keel does not have, after five steps of Adam. And compiled_frozen.keras,
whose first layer was frozen after that: the optimizer has the state of both layers' weights.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np



@keras.saving.register_keras_serializable("mine")
class Overlap(keras.metrics.MeanSquaredError):
    pass


keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
x = rng.random((40, 4)).astype("float32")
y = (x[:, 0] > x[:, 1]).astype("float32")
model = keras.Sequential(
    [keras.Input((4,)), keras.layers.Dense(3, "relu"), keras.layers.Dense(1, "sigmoid")]
)
model.compile(
    optimizer=keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.01, 1000)),
    loss="binary_crossentropy",
    metrics=["accuracy", Overlap(name="overlap")],
)
model.fit(x, y, batch_size=8, epochs=1, verbose=0)
model.save("compiled_schedule.keras")
model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy")
model.fit(x, y, batch_size=8, epochs=1, verbose=0)
model.layers[0].trainable = False
model.save("compiled_frozen.keras")
