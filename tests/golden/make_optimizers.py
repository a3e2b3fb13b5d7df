#!/usr/bin/env python3
"""Make optimizers.json: a weight under several steps of Keras's optimizers, and their slots after.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.

{start, gradients [steps][n], cases}; a case is {optimizer, config, real, weights [steps][n],
slots [[name, [n]]]}.
"""
import json
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(5)
STEPS, N = 6, 7
start = np.round(rng.normal(size=N), 4)
gradients = np.round(rng.normal(size=(STEPS, N)), 4)
gradients[:, 2] = 0.0
gradients[:, 3] *= 1e-4
cases = []


def numbers(v, real):
    return [float(f"{x:.9g}" if real == "float32" else x) for x in v.numpy()]


def case(name, config, real):
    keras.config.set_floatx(real)
    o = getattr(keras.optimizers, name)(**config)
    v = keras.Variable(start, dtype=real)
    o.build([v])
    after = []
    for g in gradients:
        o.apply([tf.constant(g, real)], [v])
        after.append(numbers(v, real))
    slots = {s.name: numbers(s, real) for s in o.variables[2:]}
    assert [s.name for s in o.variables[:2]] == ["iteration", "learning_rate"]
    slots = {k.split("_", 1)[1] if k.startswith("variable") else k: x for k, x in slots.items()}
    cases.append(
        dict(optimizer=name, config=config, real=real, weights=after, slots=list(slots.items()))
    )


for real in ("float32", "float64"):
    for common in (dict(), dict(weight_decay=0.01), dict(clipvalue=0.3), dict(clipnorm=0.5),
                   dict(weight_decay=0.1, clipnorm=0.5, learning_rate=0.05)):
        case("SGD", common, real)
        case("SGD", dict(common, momentum=0.9), real)
        case("SGD", dict(common, momentum=0.8, nesterov=True), real)
        case("Adam", common, real)
        case("Adam", dict(common, amsgrad=True, beta_1=0.8, beta_2=0.99, epsilon=1e-4), real)
        case("AdamW", common, real)
        case("AdamW", dict(common, amsgrad=True), real)
with open("optimizers.json", "w") as f:
    head = f'{{"start": {start.tolist()}, "gradients": {gradients.round(8).tolist()}, "cases": [\n'
    f.write(head + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")
