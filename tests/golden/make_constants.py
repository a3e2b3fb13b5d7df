#!/usr/bin/env python3
"""Make constants.json: operations with a number as an operand, on values that are that number.

A number has the type of the values beside it, or float32: an operation that jumps there shows which.
For each policy there is one model, Input -> Activation "linear" of the policy -> each operation ->
Activation "linear" of float32: its config, a row, and what each operation makes of it.
Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L
from keras import ops as O

NUMBERS = (0.1, 0.7)
OPERATIONS = {
    "equal": lambda x, c: O.equal(x, c),
    "not_equal": lambda x, c: O.not_equal(c, x),
    "greater": lambda x, c: O.greater(x, c),
    "greater_equal": lambda x, c: O.greater_equal(x, c),
    "less": lambda x, c: O.less(x, c),
    "less_equal": lambda x, c: O.less_equal(x, c),
    "sign of a difference": lambda x, c: O.sign(x - c),
    "floor_divide": lambda x, c: O.floor_divide(x, c),
    "mod": lambda x, c: O.mod(x, c),
    "digitize": lambda x, c: O.digitize(x, np.array([c, 2 * c])),
    "threshold": lambda x, c: O.threshold(x, c, 9.0),
    "hard_shrink": lambda x, c: O.hard_shrink(x, c),
    "soft_shrink": lambda x, c: O.soft_shrink(x, c),
    "clip": lambda x, c: O.clip(x, -c, c),
    "ReLU": lambda x, c: L.ReLU(threshold=c)(x),
}


def row():
    v = []
    for c in NUMBERS:
        one = np.float32(c)
        v += [one, -one, one * 3, np.nextafter(one, np.float32(9)), np.nextafter(one, np.float32(0))]
    return np.array([v], "float32")


def case(policy):
    keras.backend.clear_session()
    keras.config.set_dtype_policy(policy)
    x = row()
    inputs = keras.Input(x.shape[1:])
    held = L.Activation("linear")(inputs)
    names = ["%s, %s" % (n, c) for n in OPERATIONS for c in NUMBERS]
    outs = [L.Activation("linear", dtype="float32")(O.cast(f(held, c), "float32"))
            for f in OPERATIONS.values() for c in NUMBERS]
    m = keras.Model(inputs, outs)
    got = m.predict(x, verbose=0)
    flat = [[float("%.9g" % v) for v in o.ravel()] for o in got]
    return {"policy": policy, "config": json.loads(m.to_json()), "row": [float("%.9g" % v) for v in x[0]],
            "outputs": dict(zip(names, flat))}


with open("constants.json", "w") as f:
    cases = [json.dumps(case(p), separators=(",", ":"))
             for p in ("float32", "mixed_bfloat16", "mixed_float16")]
    f.write("[\n" + ",\n".join(cases) + "\n]\n")
