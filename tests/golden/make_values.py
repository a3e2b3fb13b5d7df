#!/usr/bin/env python3
"""values.json: losses and metrics that are Python functions, and terms of a loss that a layer adds, as the
package for Python writes them, and what the real Keras makes of them: the logs of two epochs and the weights
behind them.

    KEEL_LIBRARY=build/libkeel.so.0 python3 tests/golden/make_values.py
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../python"))
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
from keras import ops

from keel._package_layers import added_loss
from keel._scores import Scores

ROWS, BATCH, EPOCHS, INPUTS, OUTPUTS = 26, 8, 2, 6, 4


def number(i, k, step, modulus):
    return (i * 131 + k * 37 + i * k * step) % modulus


def squares(y_true, y_pred):
    return ops.mean(ops.square(y_true - y_pred), axis=-1)


def each_number(y_true, y_pred):
    apart = y_true - y_pred
    return ops.where(apart > 0, apart * 0.9, -0.1 * apart)


def of_the_batch(y_true, y_pred):
    return 0.5 * ops.mean(ops.abs(y_true - y_pred)) + ops.mean(y_pred**2)


def overlap(y_true, y_pred):
    shared = ops.sum(y_true * y_pred, axis=-1)
    return 1 - (2 * shared + 1) / (ops.sum(y_true, axis=-1) + ops.sum(y_pred, axis=-1) + 1)


def largest(y_true, y_pred):
    return ops.max(ops.abs(y_true - y_pred), axis=-1)


def ratio(y_true, y_pred):
    there = ops.cast(y_true > 0.5, y_pred.dtype)
    return ops.sum(ops.square(y_true - y_pred) * there) / ops.maximum(ops.sum(there), 1.0)


def overlap_of_the_batch(y_true, y_pred):
    shared = ops.sum(y_true * y_pred, axis=0)
    return 1 - ops.mean((2 * shared + 1) / (ops.sum(y_true + y_pred, axis=0) + 1))


class Summed(keras.losses.Loss):
    def call(self, y_true, y_pred):
        return ops.sum(ops.exp(0.25 * (y_pred - y_true)), axis=-1)


def main():
    x = np.array([[(number(i, k, 7, 256) - 128) / 128 for k in range(INPUTS)] for i in range(ROWS)], "float32")
    y = np.array([[number(i, k, 3, 3) // 2 for k in range(OUTPUTS)] for i in range(ROWS)], "float32")
    weight = np.array([i % 4 / 2 for i in range(ROWS)], "float32")
    cases = []
    for loss, weighted, adds in [
        (squares, True, False),
        (each_number, False, False),
        (of_the_batch, False, False),
        (overlap, True, False),
        (Summed(reduction="sum"), False, False),
        (Summed(reduction="mean_with_sample_weight"), True, False),
        (ratio, False, False),
        (ratio, True, False),
        (overlap_of_the_batch, False, False),
        (squares, True, True),
        (None, False, True),
    ]:
        i = keras.Input((INPUTS,))
        o = keras.layers.Dense(OUTPUTS, "sigmoid", name="out")(i)
        m = keras.Model(i, added_loss(keras)([o, keras.layers.Dense(3, "tanh")(o)]) if adds else o)
        m.set_weights(
            [
                np.array([(n * 7919 + 131 * k) % 1021 - 510 for n in range(w.size)], "float32").reshape(w.shape) / 512
                for k, w in enumerate(m.get_weights())
            ]
        )
        m.compile(keras.optimizers.SGD(0.0625, momentum=0.5), loss, metrics=[largest] if loss else None)
        w = weight if weighted else None
        config = Scores(keras, m, m, (x, y, weighted), print).compile_config()
        targets = None if loss is None else y
        logs = m.fit(x, targets, sample_weight=w, batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0).history
        weights = [v.ravel().tolist() for v in m.get_weights()]
        cases.append({"compile": config, "weighted": weighted, "adds": adds, "logs": logs, "weights": weights})
    with open(os.path.join(HERE, "values.json"), "w") as f:
        json.dump(cases, f, sort_keys=True, default=float)
        f.write("\n")


main()
