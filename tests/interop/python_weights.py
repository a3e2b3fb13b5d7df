#!/usr/bin/env python3
"""keel.fit of classes of the caller that have weights of their own, beside Keras's own fit.

python_weights.py [NAME...]      needs Keras 3 on TensorFlow, and libkeel (KEEL_LIBRARY)
"""

import sys
import warnings

from beside_keras import (
    PLAIN,
    ROWS,
    SPARSE,
    Weighs,
    beside,
    case,
    close,
    equal,
    fails,
    labels,
    rows,
    run_cases,
    traced,
)
import keras
import numpy as np
from keras import layers, ops

import keel


def gram(x):
    return ops.sqrt(ops.sum(ops.square(x), 0, keepdims=True))


VECTORS, STEPS, IMAGES = (6,), (4, 6), (8, 8, 3)
# Of what rows, which weights, and how they are used
USES = {
    "a product and a bias": (VECTORS, {"w": (6, 5), "b": (5,)}, lambda l, x: ops.matmul(x, l.w) + l.b),
    "a bias before it": (STEPS, {"w": (6, 5), "b": (5,)}, lambda l, x: l.b + x @ l.w),
    "both, twice": (
        VECTORS,
        {"w": (6, 6), "b": (6,)},
        lambda l, x: ops.tanh(ops.tanh(x @ l.w + l.b) @ l.w + l.b),
    ),
    "a bias for two": (VECTORS, {"w": (6, 6), "b": (6,)}, lambda l, x: (x @ l.w + l.b) * l.b),
    "a scale": (STEPS, {"g": (6,)}, lambda l, x: l.g * x),
    "a number": (STEPS, {"g": ()}, lambda l, x: ops.sigmoid(l.g) * x + (1 - ops.sigmoid(l.g)) * x**2),
    "places": (STEPS, {"p": (1, 4, 6)}, lambda l, x: x + l.p),
    "the first places": (STEPS, {"p": (9, 6)}, lambda l, x: x + l.p[: ops.shape(x)[1]]),
    "a step before all": (
        STEPS,
        {"p": (1, 1, 6)},
        lambda l, x: ops.concatenate([ops.broadcast_to(l.p, [ops.shape(x)[0], 1, 6]), x], 1),
    ),
    "two steps before all": (
        STEPS,
        {"p": (1, 1, 6)},
        lambda l, x: ops.concatenate([ops.tile(l.p, [ops.shape(x)[0], 2, 1]), x], 1),
    ),
    "a product there and back": (STEPS, {"w": (6, 3)}, lambda l, x: x @ l.w @ ops.transpose(l.w)),
    "a turned product": (STEPS, {"w": (5, 6)}, lambda l, x: x @ ops.swapaxes(l.w, 0, 1)),
    "a product from the left": (STEPS, {"w": (5, 4)}, lambda l, x: ops.matmul(l.w, x)),
    "einsum": (STEPS, {"w": (6, 2, 3)}, lambda l, x: ops.einsum("btd,dhk->bthk", x, l.w)),
    "einsum with dots": (
        STEPS,
        {"w": (6, 3), "b": (3,)},
        lambda l, x: ops.einsum("...d,dk->...k", x, l.w) + l.b,
    ),
    "tensordot": (STEPS, {"w": (6, 3)}, lambda l, x: ops.tensordot(x, l.w, axes=1)),
    "scores of steps": (
        STEPS,
        {"w": (6, 1), "b": (4, 1)},
        lambda l, x: ops.sum(x * ops.softmax(ops.tanh(ops.dot(x, l.w) + l.b), axis=1), axis=1),
    ),
    "prototypes": (
        VECTORS,
        {"c": (5, 6), "s": (5,)},
        lambda l, x: ops.exp(-ops.softplus(l.s) * ops.sum((x[:, None, :] - l.c) ** 2, -1)),
    ),
    "a weight of length 1": (VECTORS, {"c": (6, 5)}, lambda l, x: ops.matmul(x, l.c / gram(l.c))),
    "weights times weights": (
        VECTORS,
        {"u": (6, 2), "v": (2, 6)},
        lambda l, x: ops.matmul(x, ops.matmul(l.u, l.v)),
    ),
    "a table": (
        VECTORS,
        {"t": (5, 3)},
        lambda l, x: ops.take(l.t, ops.cast(ops.clip(ops.abs(x) * 4, 0, 4), "int32"), axis=0),
    ),
    "a convolution": (
        IMAGES,
        {"k": (3, 3, 3, 4), "b": (4,)},
        lambda l, x: ops.relu(ops.conv(x, l.k, strides=2, padding="same") + l.b),
    ),
    "questions": (
        STEPS,
        {"q": (3, 6)},
        lambda l, x: ops.softmax(ops.matmul(l.q, ops.transpose(x, (0, 2, 1))), -1) @ x,
    ),
}


@case
def weights_of_the_layers_of_the_caller():
    def make(name, optimizer="sgd", **options):
        shape, *uses = USES[name]
        i = layers.Input(shape)
        m = keras.Model(i, layers.Dense(2)(layers.Flatten()(Weighs(*uses, **options)(i))))
        m.compile(optimizer, "mse")
        return m

    def both(name, *made, **options):
        shape = USES[name][0]
        try:
            return beside(
                lambda: make(name, *made, **options),
                lambda: (rows(0, *shape), rows(1, 2)),
                epochs=2,
            )
        except Exception as error:
            error.args = (f"{name}: {error}",)
            raise

    for name in USES:
        both(name)
    m, k, *_ = both("a product and a bias", "adam", regularizer="l2", constraint="unit_norm")
    for go_on in (keel.fit, lambda model, *data, **named: model.fit(*data, **named)):
        go_on(m, rows(0, *VECTORS), rows(1, 2), **PLAIN)
        k.fit(rows(0, *VECTORS), rows(1, 2), **PLAIN)
        equal(m, k)
    both("a scale", "adam", trainable=False)
    USES["many numbers"] = (VECTORS, {"c": (6, 12000)}, lambda l, x: ops.matmul(x, ops.tanh(l.c)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        keel.predict(make("many numbers"), rows(0, *VECTORS), verbose=0)
    assert any("each row of a batch has its own" in str(w.message) for w in said)

    class Tower(keras.Model):
        """Weights in a list, one of them in a layer of the same name."""

        def __init__(self):
            super().__init__()
            self.first = Weighs({"w": (9, 6)}, lambda l, x: x @ l.w)
            self.last = [self.add_weight(shape=(6, 4), name="w", initializer="glorot_uniform")]
            self.bias = self.add_weight(shape=(4,), name="b", initializer="zeros")

        def call(self, x, training=False):
            return ops.softmax(ops.relu(self.first(x)) @ self.last[0] + self.bias)

    def tower():
        m = Tower()
        m(rows()[:1])
        m.compile("adam", SPARSE, metrics=["accuracy"])
        return m

    m, k, *_ = beside(tower, lambda: (rows(), labels()), epochs=2, validation_split=0.2)
    close(keel.predict(m, rows(), verbose=0), k.predict(rows(), verbose=0), "predict")


class Tied(keras.Model):
    """Logits by the table of the embeddings. own: the table is a weight of this class."""

    def __init__(self, own, masked, logits):
        super().__init__()
        self.own, self.logits, self.lstm = own, logits, layers.LSTM(6, return_sequences=True)
        self.words = layers.Embedding(12, 6, mask_zero=masked)
        self.bias = self.add_weight(shape=(12,), name="bias")
        if own:
            self.table = self.add_weight(shape=(12, 6), name="table")

    def call(self, ids):
        x = ops.take(self.table, ids, axis=0) if self.own else self.words(ids)
        return self.logits(self.lstm(x), self.table if self.own else self.words.embeddings) + self.bias


@case
def tables_that_are_looked_up_and_give_logits():
    ids = np.random.default_rng(5).integers(0, 4, (ROWS, 7))
    products = [
        lambda x, table: x @ ops.transpose(table),
        lambda x, table: ops.einsum("btd,vd->btv", x, table),
        lambda x, table: ops.tensordot(x, table, axes=[[2], [1]]),
    ]
    for own, masked, logits in [(False, False, 0), (False, True, 1), (True, False, 2), (True, False, 1)]:

        def make():
            m = Tied(own, masked, products[logits])
            m(ids[:1])
            m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
            return m

        m, *_ = traced(make, lambda: (ids, ids), validation_split=0.2)
        keel.fit(m, ids, ids, verbose=0)

    otherwise = Tied(False, False, lambda x, table: x @ ops.transpose(table) + ops.sum(table))
    otherwise(ids[:1])
    otherwise.compile("adam", "mse")
    fails(
        keel.Unsupported,
        lambda: keel.fit(otherwise, ids, ids, verbose=0),
        "embedding",
        "table is used otherwise",
    )


@case
def whole_numbers_of_classes_are_constants():
    class Biased(layers.Layer):
        """A table of biases, which says where each is: as in a Swin transformer."""

        def build(self, shape):
            self.where = self.add_weight(
                (4, 4), dtype="int32", initializer="zeros", trainable=False, name="where"
            )
            self.where.assign(np.arange(16).reshape(4, 4) % 5)
            self.table = self.add_weight(shape=(5, 2), name="table")

        def call(self, x):
            biases = ops.reshape(ops.take(self.table, ops.reshape(self.where, (-1,)), axis=0), (4, 4, 2))
            return x + ops.sum(ops.transpose(biases, (2, 0, 1)), axis=0)[None]

    def make():
        i = layers.Input((4, 4))
        m = keras.Model(i, Biased()(i))
        m.compile("sgd", "mse")
        return m

    traced(make, lambda: (rows(0, 4, 4), rows(1, 4, 4)))


class Learnt(layers.Layer):
    """Places of a sequence of any length, as in keras-hub."""

    def build(self, shape):
        self.table = self.add_weight(shape=(9, shape[-1]), name="table")

    def call(self, x):
        rows, length, size = ops.shape(x)
        table = ops.slice(ops.convert_to_tensor(self.table), (0, 0), (length, size))
        return ops.broadcast_to(ops.take(table, ops.arange(0, length), axis=0), (rows, length, size))


class Attends(layers.Layer):
    """Attention by hand; each has layers of the same names."""

    def __init__(self, heads, size):
        super().__init__()
        shapes = "bte,ehd->bthd", (None, heads, size)
        self.parts = [layers.EinsumDense(*shapes, name=name) for name in ("query", "key", "value")]
        self.softmax, self.out = layers.Softmax(), layers.Dense(heads * size, name="out")

    def build(self, shape):
        for part in self.parts:
            part.build(shape)
        self.out.build((*shape[:-1], shape[-1]))

    def call(self, x, mask=None):
        rows, length, size = ops.shape(x)
        query, key, value = (part(x) for part in self.parts)
        scores = ops.einsum("bqhd,bkhd->bhqk", query, key)
        before = ops.arange(ops.shape(query)[1])[:, None] >= ops.arange(length)
        before = ops.repeat(ops.cast(before, "bool")[None, None], rows, axis=0)
        seen = self.softmax(scores, before)
        return x + self.out(ops.reshape(ops.einsum("bhqk,bkhd->bqhd", seen, value), (rows, -1, size)))


@case
def models_of_open_dims_and_layers_of_one_name():
    ids = np.random.default_rng(5).integers(0, 9, (ROWS, 7))

    def make():
        i = layers.Input((None,), dtype="int32", name="query")
        x = layers.Embedding(9, 6)(i)
        x = Attends(2, 3)(Attends(3, 2)(x + Learnt()(x)))
        m = keras.Model(i, layers.Dense(4, "softmax", name="out")(x))
        m.compile("sgd", SPARSE, metrics=["accuracy"])
        return m

    m, *_ = traced(make, lambda: ({"query": ids}, ids % 4), validation_split=0.2)
    names = [part.name for block in (m.layers[-2], m.layers[-3]) for part in (*block.parts, block.out)]
    assert names == ["query", "key", "value", "out"] * 2, names
    close(keel.predict(m, ids[:, :5], verbose=0), m.predict(ids[:, :5], verbose=0), "predict shorter rows")
    keel.fit(m, ids, ids % 4, **PLAIN)


sys.exit(run_cases(__file__))
