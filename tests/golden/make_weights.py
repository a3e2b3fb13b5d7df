#!/usr/bin/env python3
"""Make weights.keras, a model with zeros for weights, and files of its weights as Keras writes them:
weights_new.weights.h5 (Keras 3), weights_old.h5 (legacy, by Keras 3), weights_keras_2.h5
(the same with the names of Keras 2), weights_other.h5 (legacy, of layers with other names),
weights_whole.h5 (a whole model, save). Element k of weight i is
(37 k + 29 i + 11) % 101 / 32.
Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import h5py
import keras
import numpy as np
from keras import layers as L
from keras.src.legacy.saving import legacy_h5_format


def model():
    inner = keras.Sequential([keras.Input((6,)), L.Dense(4, name="narrow"), L.Dense(3, name="out")],
                             name="head")
    return keras.Sequential([keras.Input((5, 5, 2)), L.Conv2D(3, 3, name="conv"),
                             L.DepthwiseConv2D(2, name="depth"), L.BatchNormalization(name="norm"),
                             L.GlobalAveragePooling2D(), L.Dense(6, name="dense"), inner])


m = model()
for w in m.weights:
    w.assign(np.zeros(w.shape))
m.save("weights.keras")
for i, w in enumerate(m.weights):
    k = np.arange(int(np.prod(w.shape)))
    w.assign(((37 * k + 29 * i + 11) % 101 / 32).reshape(w.shape).astype("float32"))
m.save_weights("weights_new.weights.h5")
m.save("weights_whole.h5")
with h5py.File("weights_old.h5", "w") as f:
    legacy_h5_format.save_weights_to_hdf5_group(f, m)
for layer, name in zip(m.layers, ("dense_1", "block/depth", "block/norm", "pool", "conv", "top")):
    layer.name = name
with h5py.File("weights_other.h5", "w") as f:
    legacy_h5_format.save_weights_to_hdf5_group(f, m)
# Weights of a depthwise convolution have another name in Keras 2.
with h5py.File("weights_old.h5") as old, h5py.File("weights_keras_2.h5", "w") as f:
    for key, value in old.attrs.items():
        f.attrs[key] = value
    for layer, group in old.items():
        to = f.create_group(layer)
        names = [n if isinstance(n, str) else n.decode() for n in group.attrs["weight_names"]]
        today = [n + ":0" for n in names]
        if layer == "depth":
            today = [n.replace("/kernel", "/depthwise_kernel") for n in today]
        to.attrs["weight_names"] = [n.encode() for n in today]
        for a, b in zip(names, today):
            to[b] = group[a][...]
for name in ("weights_old.h5", "weights_keras_2.h5", "weights_whole.h5"):
    h5py.File(name).visititems(lambda n, o: print(n) if isinstance(o, h5py.Dataset) else None)
