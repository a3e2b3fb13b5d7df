#!/usr/bin/env python3
"""keel.fit of classes of the caller whose calls do something else in training, draw numbers, have masks,
or make rows of dims, beside Keras's own fit.

python_calls.py [NAME...]      needs Keras 3 on TensorFlow, and libkeel (KEEL_LIBRARY)
"""

import sys

from beside_keras import ROWS, SPARSE, beside, case, close, fails, rows, run_cases, traced
import keras
import numpy as np
from keras import layers, ops

import keel


class Told(layers.Layer):
    """What it computes of x depends on whether it is trained."""

    def __init__(self, call, units=6):
        super().__init__()
        self.of, self.dense = call, units and layers.Dense(units, "tanh")

    def build(self, shape):
        if self.dense:
            self.dense.build(shape)

    def call(self, x, training=None):
        return self.of(self, x, training)


class Outermost(layers.Layer):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.norm = inner, layers.BatchNormalization()

    def call(self, x, training=None):
        return self.norm(self.inner(x, training=training), training=training)


class DropsPaths(layers.Layer):
    """Stochastic depth, as in Keras's examples."""

    def __init__(self):
        super().__init__()
        self.seed_generator = keras.random.SeedGenerator(1)

    def call(self, x, training=None):
        if not training:
            return x
        keep = 0.75 + keras.random.uniform((ops.shape(x)[0], 1), 0, 1, seed=self.seed_generator)
        return x / 0.75 * ops.floor(keep)


@case
def calls_that_do_something_else_in_training():
    def make(*calls):
        x = i = layers.Input((6,))
        for call in calls:
            x = Outermost(call if isinstance(call, layers.Layer) else Told(call))(x)
        m = keras.Model(i, layers.Dense(2)(x))
        m.compile("sgd", "mse")
        return m

    for calls in [
        (lambda l, x, training: l.dense(x * 2 if training else x),),
        (lambda l, x, training: l.dense(x) * (0.5 if training else 0.25),),
        (
            lambda l, x, training: l.dense(x) if training else x,
            lambda l, x, training: l.dense(x) + 1.0 * bool(training),
        ),
        (lambda l, x, training: l.dense(ops.flip(x, 1) if training else x),),
        (
            lambda l, x, training: (
                l.dense(x) + 0.0 * keras.random.normal(ops.shape(x)) if training else l.dense(x)
            ),
        ),
    ]:
        data = lambda: (rows(0, 6), rows(1, 2))
        m, k, *_ = beside(lambda: make(*calls), data, epochs=2, validation_split=0.2)
        close(keel.predict(m, rows(0, 6), verbose=0), k.predict(rows(0, 6), verbose=0), "predict")

    def paths():
        i = layers.Input((6,))
        m = keras.Model(i, layers.Dense(2)(i + DropsPaths()(layers.Dense(6)(i))))
        m.compile("sgd", "mse")
        return m

    m = paths()
    before = keel.evaluate(m, rows(0, 6), rows(1, 2), verbose=0)
    keel.fit(m, rows(0, 6), rows(1, 2), epochs=5, verbose=0)
    m.fit(rows(0, 6), rows(1, 2), verbose=0)
    assert keel.evaluate(m, rows(0, 6), rows(1, 2), verbose=0) < before

    def of_noise(call):
        """What the only weight learns, which is the mean of what `call` makes of ones."""
        i = layers.Input((1,))
        one = layers.Dense(1, kernel_initializer="zeros", use_bias=False)
        drawn = Told(call, units=None)(i)
        m = keras.Model(i, one(ops.ones_like(i)) + ops.stop_gradient(0.0 * drawn) - drawn)
        m.compile(keras.optimizers.SGD(0.25), "mse")
        ones = np.ones((4000, 1), "float32")
        m.set_weights([np.zeros_like(w) for w in m.get_weights()])
        keel.fit(m, ones, 0 * ones, batch_size=4000, epochs=60, verbose=0, seed=1)
        loss = keel.fit(m, ones, 0 * ones, batch_size=4000, verbose=0, seed=2).history["loss"][0]
        return float(one.get_weights()[0][0, 0]), loss

    random = keras.random
    draws = {
        "normal": (lambda l, x, t: random.normal(ops.shape(x), 1.0, 0.5) if t else x, 1.0, 0.25),
        "uniform": (lambda l, x, t: random.uniform(ops.shape(x), 1.0, 3.0) if t else x, 2.0, 1 / 3),
        "dropout": (lambda l, x, t: random.dropout(x, 0.2) if t else x, 1.0, 0.25),
        "paths": (
            lambda l, x, t: x / 0.75 * ops.floor(0.75 + random.uniform(ops.shape(x))) if t else x,
            1.0,
            1 / 3,
        ),
    }
    for name, (call, mean, variance) in draws.items():
        found = of_noise(call)
        assert np.allclose(found, (mean, variance), atol=0.06), f"{name}: {found}"


@case
def draws_outside_of_training():
    """The numbers are others than Keras's, so their mean and variance are compared."""

    class Sampling(layers.Layer):
        def __init__(self):
            super().__init__()
            self.seeds = keras.random.SeedGenerator(3)

        def call(self, inputs):
            mean, log_variance = inputs
            noise = keras.random.normal(ops.shape(mean), seed=self.seeds)
            return mean + ops.exp(0.5 * log_variance) * noise

    class Between(layers.Layer):
        def call(self, x):
            drawn = keras.random.uniform(ops.shape(x), -1, 3)
            return drawn + keras.random.dropout(ops.ones_like(x), 0.75)

    class Autoencoder(keras.Model):
        def __init__(self):
            super().__init__()
            self.parts = [layers.Dense(2) for _ in range(2)]
            self.sampling, self.decoder = Sampling(), layers.Dense(9)

        def call(self, x):
            mean, log_variance = (part(x) for part in self.parts)
            apart = 1 + log_variance - ops.square(mean) - ops.exp(log_variance)
            self.add_loss(-0.05 * ops.mean(ops.sum(apart, axis=1)))
            return self.decoder(self.sampling((mean, log_variance)))

    i, j = layers.Input((3,)), layers.Input((3,))
    m = keras.Model([i, j], [Sampling()([i, j]), Between()(i)])
    many = [np.full((20000, 3), 2.0, "float32"), np.full((20000, 3), np.log(9.0), "float32")]
    for again in range(2):
        normal, between = keel.predict(m, many, batch_size=5000, verbose=0)
        close([normal.mean(), normal.std()], [2, 3], "normal draws", 0.02)
        close([between.mean(), between.var()], [2, 16 / 12 + 0.25 * 16 - 1], "the sum of two", 0.03)
        again and fails(AssertionError, lambda: close(normal, before, "other draws"))
        before = normal

    auto = Autoencoder()
    auto(rows()[:1])
    auto.compile(keras.optimizers.Adam(0.01), "mse")
    theirs = Autoencoder()
    theirs(rows()[:1])
    theirs.compile(keras.optimizers.Adam(0.01), "mse")
    theirs.set_weights(auto.get_weights())
    g = keel.fit(auto, rows(), rows(), batch_size=8, epochs=60, verbose=0, seed=1)
    h = theirs.fit(rows(), rows(), batch_size=8, epochs=60, verbose=0)
    close(np.mean(g.history["loss"][-10:]), np.mean(h.history["loss"][-10:]), "the loss at the end", 0.05)


class Words(layers.Layer):
    """Embeddings of ids and of their places; 0 is no word."""

    def __init__(self, size):
        super().__init__()
        self.of_ids, self.of_places = layers.Embedding(20, size), layers.Embedding(9, size)

    def build(self, shape):
        self.of_ids.build(shape)
        self.of_places.build(shape)

    def call(self, ids):
        return self.of_ids(ids) + self.of_places(ops.arange(0, ops.shape(ids)[-1], 1))

    def compute_mask(self, ids, mask=None):
        return ops.not_equal(ids, 0)


class Reads(layers.Layer):
    """The encoder of Keras's example of a translation."""

    def __init__(self, size):
        super().__init__()
        self.supports_masking = True
        self.attention, self.norm = layers.MultiHeadAttention(2, size), layers.LayerNormalization()

    def build(self, shape):
        self.attention.build(shape, shape)
        self.norm.build(shape)

    def call(self, x, mask=None):
        seen = None if mask is None else ops.cast(mask[:, None, :], "int32")
        return self.norm(x + self.attention(query=x, value=x, key=x, attention_mask=seen))


class Writes(layers.Layer):
    """Its decoder."""

    def __init__(self, size):
        super().__init__()
        self.supports_masking = True
        self.first, self.second = (layers.MultiHeadAttention(2, size) for _ in range(2))
        self.norm = layers.LayerNormalization()

    def build(self, shapes):
        self.first.build(shapes[0], shapes[0])
        self.second.build(*shapes)
        self.norm.build(shapes[0])

    def call(self, inputs, mask=None):
        x, read = inputs
        known, seen = (None, None) if mask is None else mask
        rows, places = ops.shape(x)[0], ops.shape(x)[1]
        before = ops.arange(places)[:, None] >= ops.arange(places)
        before = ops.broadcast_to(ops.cast(before, "int32")[None], (rows, places, places))
        x = self.norm(x + self.first(query=x, value=x, key=x, attention_mask=before, query_mask=known))
        return x + self.second(query=x, value=read, key=read, query_mask=known, key_mask=seen)


class Masked(layers.Layer):
    """A layer that is given `call` and what becomes of masks behind it."""

    def __init__(self, call, gives_on=None, **weights):
        super().__init__()
        self.use, self.shapes, self.dense = call, weights, layers.Dense(6)
        if gives_on is not None:
            self.supports_masking = gives_on

    def build(self, shape):
        for name, dims in self.shapes.items():
            setattr(self, name, self.add_weight(shape=dims, name=name))

    def call(self, x, mask=None, training=False):
        return self.use(self, x, mask, training)


class Halves(layers.Layer):
    def call(self, x):
        return ops.split(x, 2, axis=1)

    def compute_mask(self, x, mask=None):
        return None if mask is None else ops.split(mask, 2, axis=1)


@case
def masks_of_classes_of_the_caller():
    generator = np.random.default_rng(5)
    ids, others = (generator.integers(0, 4, (ROWS, 8)) for _ in range(2))

    def translation():
        i, o = (layers.Input((8,), dtype="int32") for _ in range(2))
        read = Reads(6)(Words(6)(i))
        m = keras.Model([i, o], layers.Dense(20, "softmax")(Writes(6)([Words(6)(o), read])))
        m.compile(keras.optimizers.SGD(0.1), SPARSE, metrics=["accuracy"], weighted_metrics=["accuracy"])
        return m

    traced(translation, lambda: ([ids, others], others), validation_split=0.2)

    def behind(*uses, embedding=True, then=lambda x: layers.Dense(3)(x)):
        def make():
            i = layers.Input((8,), dtype="int32")
            x = layers.Embedding(20, 6, mask_zero=True)(i) if embedding else Words(6)(i)
            for use in uses:
                x = use()(x)
            m = keras.Model(i, then(x))
            m.compile("sgd", "mse")
            return m

        return make

    weighted = lambda l, x, mask, _: x * ops.cast(mask, x.dtype)[..., None]
    told = lambda l, x, mask, training: weighted(l, x, mask, training) if training else l.dense(x)
    product = lambda l, x, *_: ops.matmul(x, l.w)
    inner = lambda l, x, *_: l.dense(x)
    outer = lambda l, x, *_: l.dense(x) + 1.0
    both = lambda x: [layers.LSTM(3, name="kind")(x), layers.Dense(2, name="size")(x)]
    of_halves = lambda x: layers.Concatenate()([layers.LSTM(5)(x[0]), layers.GRU(4)(x[1])])
    mean = (
        lambda l, x, mask, _: ops.sum(weighted(l, x, mask, _), 1)
        / (1e-3 + ops.sum(ops.cast(mask, x.dtype), 1))[:, None]
    )
    for what, make, y in [
        (
            "what a class makes, its own product gives on",
            behind(lambda: Masked(product, True, w=(6, 4)), embedding=False),
            rows(1, 8, 3),
        ),
        (
            "a product of a class that gives none on",
            behind(lambda: Masked(product, False, w=(6, 4))),
            rows(1, 8, 3),
        ),
        ("a layer within makes it", behind(lambda: Masked(inner, False)), rows(1, 8, 3)),
        ("an operation within loses it", behind(lambda: Masked(outer, False)), rows(1, 8, 3)),
        (
            "it is used, and goes on",
            behind(lambda: Masked(weighted, True), lambda: Masked(weighted, True)),
            rows(1, 8, 3),
        ),
        ("it is used in training alone", behind(lambda: Masked(told, True)), rows(1, 8, 3)),
        ("a mean over what is there", behind(lambda: Masked(mean, False)), rows(1, 3)),
        (
            "a layer behind, and the loss, see it",
            behind(lambda: Masked(inner, True), then=both),
            [rows(1, 3), rows(2, 8, 2)],
        ),
        ("it is cut in two", behind(Halves, then=of_halves), rows(1, 9)),
    ]:
        try:
            traced(make, lambda: (ids, y), validation_split=0.2)
        except Exception as error:
            raise AssertionError(f"{what}: {error}") from error

    class Recurrent(keras.Model):
        def __init__(self):
            super().__init__()
            self.words, self.lstm = layers.Embedding(20, 6, mask_zero=True), layers.LSTM(5)

        def call(self, ids):
            return self.lstm(self.words(ids))

    def recurrent():
        m = Recurrent()
        m(ids[:1])
        m.compile("sgd", "mse")
        return m

    traced(recurrent, lambda: (ids, rows(1, 5)))


class Frames(keras.Model):
    """A network of images for each frame of a film, whose frames become rows."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.pool = (
            layers.Conv2D(3, 3, use_bias=False),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
        )
        self.flat, self.lstm, self.out = layers.Flatten(), layers.LSTM(4), layers.Dense(2)

    def call(self, x, training=False):
        rows, frames = ops.shape(x)[0], ops.shape(x)[1]
        y = ops.reshape(x, (-1, *x.shape[2:])) / 2.0
        y = self.flat(self.pool(ops.relu(self.norm(self.conv(y), training=training))))
        return self.out(self.lstm(ops.reshape(y, (rows, frames, -1))))


class Windows(layers.Layer):
    """Attention within windows of an image, with a bias for each pair of places: a block of a Swin transformer."""

    def __init__(self, shift):
        super().__init__()
        self.shift, self.qkv, self.out = shift, layers.Dense(24), layers.Dense(8)
        self.norm, self.drop = layers.LayerNormalization(epsilon=1e-5), layers.Dropout(0.0)

    def build(self, shape):
        self.norm.build(shape)
        self.qkv.build((None, 4, 8))
        self.out.build((None, 4, 8))
        self.table = self.add_weight(shape=(9, 2), name="table")
        apart = np.array(
            [[(i // 2 - j // 2 + 1) * 3 + i % 2 - j % 2 + 1 for j in range(4)] for i in range(4)]
        )
        self.apart = self.add_weight(
            (4, 4), dtype="int32", initializer="zeros", trainable=False, name="apart"
        )
        self.apart.assign(apart)

    def call(self, x):
        y = ops.reshape(self.norm(x), (-1, 4, 4, 8))
        y = ops.roll(y, [-self.shift] * 2, axis=[1, 2]) if self.shift else y
        y = ops.transpose(ops.reshape(y, (-1, 2, 2, 2, 2, 8)), (0, 1, 3, 2, 4, 5))
        y = self.attended(ops.reshape(y, (-1, 4, 8)))
        y = ops.transpose(ops.reshape(y, (-1, 2, 2, 2, 2, 8)), (0, 1, 3, 2, 4, 5))
        y = ops.reshape(y, (-1, 4, 4, 8))
        y = ops.roll(y, [self.shift] * 2, axis=[1, 2]) if self.shift else y
        return x + ops.reshape(y, (-1, 16, 8))

    def attended(self, x):
        qkv = ops.transpose(ops.reshape(self.qkv(x), (-1, 4, 3, 2, 4)), (2, 0, 3, 1, 4))
        scores = qkv[0] * 0.5 @ ops.transpose(qkv[1], (0, 1, 3, 2))
        biases = ops.reshape(ops.take(self.table, ops.reshape(self.apart, (-1,)), axis=0), (4, 4, -1))
        scores = scores + ops.expand_dims(ops.transpose(biases, (2, 0, 1)), 0)
        if self.shift:  # windows at the edge see two parts of the image
            there = np.where(np.arange(4)[:, None, None] % 2 == np.arange(4)[None, :, None] % 2, 0.0, -1.0)
            scores = ops.reshape(scores, (-1, 4, 2, 4, 4)) + there.reshape(1, 4, 1, 4, 1).astype("float32")
            scores = ops.reshape(scores, (-1, 2, 4, 4))
        y = ops.transpose(self.drop(ops.softmax(scores)) @ qkv[2], (0, 2, 1, 3))
        return self.out(ops.reshape(y, (-1, 4, 8)))


@case
def dims_that_become_rows_and_come_back():
    def frames():
        m = Frames()
        m(rows(0, 5, 8, 8, 2)[:1])
        m.compile(keras.optimizers.SGD(0.1), "mse")
        return m

    traced(frames, lambda: (rows(0, 5, 8, 8, 2), rows(1, 2)), validation_split=0.2)

    def windows():
        i = layers.Input((16, 8))
        x = Windows(1)(Windows(0)(i))
        m = keras.Model(i, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))
        m.compile(keras.optimizers.SGD(0.1, momentum=0.5), "mse")
        return m

    m, k, *_ = traced(windows, lambda: (rows(0, 16, 8), rows(1, 3)), validation_split=0.2)
    close(keel.predict(m, rows(0, 16, 8), verbose=0), k.predict(rows(0, 16, 8), verbose=0), "predict")


sys.exit(run_cases(__file__))
