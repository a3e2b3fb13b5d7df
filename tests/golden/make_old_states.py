#!/usr/bin/env python3
"""Make old_state_nadam.keras and old_state_ema.keras: the state of optimizers whose variables were
in another order before Keras 3.10. keras.models.load_model of Keras 3.15 refuses both files, since
the shapes of variables differ; with compile=False it loads them.

Run with Keras 3.8, KERAS_BACKEND=tensorflow, in this folder.
"""
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np

assert keras.__version__.startswith("3.8.")
x = np.random.default_rng(5).random((8, 3)).astype("float32")
optimizers = {
    "nadam": keras.optimizers.Nadam(0.01),
    "ema": keras.optimizers.SGD(0.01, use_ema=True, gradient_accumulation_steps=2),
}
for name, optimizer in optimizers.items():
    keras.utils.set_random_seed(5)
    m = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(2)])
    m.compile(optimizer, "mse")
    m.fit(x, x[:, :2], batch_size=2, verbose=0)
    m.save(f"old_state_{name}.keras")
