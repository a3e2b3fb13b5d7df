#!/usr/bin/env python3
"""Make keras_3_0.keras and .npz, as make_keras_files.py does, by the first versions of Keras 3.

Run with Keras 3.0.5 on TensorFlow 2.15, KERAS_BACKEND=tensorflow, in this folder. Its initializers,
convolutions, tensors and lists of outputs are written otherwise than by Keras 3.15.
"""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L

assert keras.__version__ == "3.0.5", keras.__version__
keras.utils.set_random_seed(4)
i = L.Input((6, 3), name="x")
shared = L.Dense(3, "tanh", kernel_regularizer=keras.regularizers.L2(0.01), name="shared")
a = L.Add(name="sum")([shared(i), shared(keras.ops.abs(i))])
a = L.BatchNormalization(name="norm")(L.Conv1D(2, 2, padding="same", name="conv")(a))
m = keras.Model(i, L.Dense(2, "softmax", name="out")(L.Flatten(name="flat")(a)))
m.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
chance = np.random.default_rng(4)
x = chance.normal(size=(7, 6, 3)).astype("float32")
m.fit(x, chance.integers(0, 2, 7), 4, epochs=2, shuffle=False, verbose=0)
m.save("keras_3_0.keras")
np.savez_compressed("keras_3_0.npz", x=x, predict=m.predict(x, verbose=0))
