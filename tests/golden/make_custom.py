#!/usr/bin/env python3
"""Make custom.keras and custom.json: a model with layers, a loss and metrics of Python classes of
one's own, which tests/custom_classes.h has in C; its predictions before and after two epochs, and
their losses and metrics. Element i of the rows is number(i, 0), of the targets number(i, 1).

    make_custom.py            make the two files
    make_custom.py FILE       load FILE, which Keel has saved, and print what it predicts

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L
from keras import ops

ROWS = 22
register = keras.saving.register_keras_serializable("tests")


def number(shape, k):
    return (((np.arange(np.prod(shape)) * 37 + 29 * k + 11) % 101 - 50) / 32).reshape(shape)


@register
class Bend(L.Layer):
    """tanh(slope (x - shift)) kernel + bias on the last axis; shift is not trained."""

    def __init__(self, units, slope=1.0, use_bias=True, mode="tanh", axes=(1,), **kwargs):
        super().__init__(**kwargs)
        self.units, self.slope, self.use_bias, self.mode, self.axes = units, slope, use_bias, mode, axes

    def build(self, shape):
        c = shape[-1]
        self.kernel = self.add_weight(name="kernel", shape=(c, self.units))
        self.shift = self.add_weight(name="shift", shape=(c,), trainable=False,
                                     initializer=keras.initializers.Constant(0.125))
        if self.use_bias:
            self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")

    def call(self, x):
        z = self.slope * (x - self.shift)
        y = ops.matmul(ops.tanh(z) if self.mode == "tanh" else z, self.kernel)
        return y + self.bias if self.use_bias else y

    def get_config(self):
        return {**super().get_config(), "units": self.units, "slope": self.slope, "mode": self.mode,
                "use_bias": self.use_bias, "axes": self.axes}


@register
class Gate(L.Layer):
    """a sigmoid(b)"""

    def call(self, inputs):
        a, b = inputs
        return a * ops.sigmoid(b)


@register
class PowerLoss(keras.losses.Loss):
    def __init__(self, power=2.0, **kwargs):
        super().__init__(**kwargs)
        self.power = power

    def call(self, y_true, y_pred):
        return ops.mean(ops.power(ops.abs(y_pred - y_true), self.power), axis=-1)

    def get_config(self):
        return {**super().get_config(), "power": self.power}


@register
class Largest(keras.metrics.Metric):
    """The largest error of all."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.most = self.add_variable((), "zeros", name="most")

    def update_state(self, y_true, y_pred, sample_weight=None):
        off = ops.abs(ops.cast(y_pred, "float32") - ops.cast(y_true, "float32"))
        self.most.assign(ops.maximum(self.most, ops.max(off)))

    def result(self):
        return self.most


@register
class Within(keras.metrics.Metric):
    """The share of numbers that are off by at most `limit`."""

    def __init__(self, limit=0.5, **kwargs):
        super().__init__(**kwargs)
        self.limit = limit
        self.near, self.all = (self.add_variable((), "zeros", name=n) for n in ("near", "all"))

    def update_state(self, y_true, y_pred, sample_weight=None):
        off = ops.abs(ops.cast(y_pred, "float32") - ops.cast(y_true, "float32"))
        self.near.assign_add(ops.sum(ops.cast(off <= self.limit, "float32")))
        self.all.assign_add(ops.cast(ops.size(off), "float32"))

    def result(self):
        return self.near / self.all

    def get_config(self):
        return {**super().get_config(), "limit": self.limit}


def floats(a):
    return [float("%.9g" % v) for v in np.ravel(a)]


def make():
    keras.utils.set_random_seed(5)
    x = keras.Input((4, 3))
    a = Bend(5, slope=0.75, name="first")(x)
    b = L.Dense(5, activation="tanh")(x)
    y = Gate()([a, b])
    y = Bend(4, use_bias=False, mode="linear", axes=(1, 2), trainable=False)(y)
    y = L.Flatten()(y)
    y = Bend(2)(y)
    m = keras.Model(x, y)
    m.compile(keras.optimizers.SGD(0.05, momentum=0.9), PowerLoss(3.0), metrics=[Largest(), Within(0.75)])
    m.save("custom.keras")
    x, y = number((ROWS, 4, 3), 0).astype("float32"), number((ROWS, 2), 1).astype("float32")
    got = {"rows": ROWS, "before": floats(m.predict(x, verbose=0))}
    h = m.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    got["history"] = h.history
    got["after"] = floats(m.predict(x, verbose=0))
    with open("custom.json", "w") as f:
        json.dump(got, f, indent=0)
        f.write("\n")


def show(path):
    m = keras.models.load_model(path)
    x = number((ROWS, 4, 3), 0).astype("float32")
    want = np.array(json.load(open("custom.json"))["after"])
    off = np.abs(np.ravel(m.predict(x, verbose=0)) - want).max()
    print(path, "is off by %.3g of custom.json; iterations" % off, int(m.optimizer.iterations))
    print([(l.name, l.get_config().get("units"), l.trainable) for l in m.layers], m.loss.get_config())
    y = number((ROWS, 2), 1).astype("float32")
    print(m.evaluate(x, y, verbose=0, return_dict=True), m.train_on_batch(x, y, return_dict=True))


show(sys.argv[1]) if len(sys.argv) > 1 else make()
