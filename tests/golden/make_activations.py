#!/usr/bin/env python3
"""Make activations.json: every activation that Keras knows by name, its values and gradients.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.

{x [rows][last], upstream, cases}; a case is {name, y, grad}; grad is that of sum(y * upstream),
upstream cut to the shape of y.
"""
import json
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf
from keras.src.activations import ALL_OBJECTS_DICT

rng = np.random.default_rng(9)
x = np.round(rng.normal(size=(3, 6)) * 3, 3)
x[0] = [-0.4, 0.3, 7.5, -7.5, 0.9, -1.2]
x[1] *= 0.2
upstream = np.round(rng.normal(size=x.shape), 3)
cases = []
for name in sorted(ALL_OBJECTS_DICT):
    if name == "threshold":  # has no defaults
        continue
    v = tf.constant(x, "float64")
    with tf.GradientTape() as tape:
        tape.watch(v)
        y = keras.activations.get(name)(v)
        total = tf.reduce_sum(y * upstream[:, : y.shape[-1]])
    grad = tape.gradient(total, v)
    cases.append(dict(name=name, y=y.numpy().ravel().tolist(), grad=grad.numpy().ravel().tolist()))
with open("activations.json", "w") as f:
    head = f'{{"x": {x.ravel().tolist()}, "upstream": {upstream.tolist()}, "cases": [\n'
    f.write(head + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")
