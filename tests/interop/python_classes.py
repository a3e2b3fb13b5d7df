#!/usr/bin/env python3
"""keel.fit of layers and models that are classes of the caller, beside Keras's own fit.

python_classes.py [NAME...]      needs Keras 3 on TensorFlow, and libkeel (KEEL_LIBRARY)
"""

import sys
import warnings

from beside_keras import (
    PLAIN,
    ROWS,
    SPARSE,
    Batches,
    Seen,
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
import tensorflow as tf
from keras import callbacks as kc, layers, ops

import keel


class Block(layers.Layer):
    """As in Keras's examples: attention and a network, with what is normalised and added."""

    def __init__(self, width, rate=0.0):
        super().__init__()
        self.ffn = keras.Sequential([layers.Dense(2 * width, "gelu"), layers.Dense(width, use_bias=False)])
        self.att = layers.MultiHeadAttention(2, width)
        self.norms = [layers.LayerNormalization(epsilon=1e-6), layers.BatchNormalization(momentum=0.9)]
        self.drop = layers.Dropout(rate)

    def call(self, x, training=False):
        y = self.norms[0](x + self.drop(self.att(x, x), training=training))
        return self.norms[1](y + self.ffn(y), training=training)


class Places(layers.Layer):
    def __init__(self, words, length, width):
        super().__init__()
        self.places, self.words = layers.Embedding(length, width), layers.Embedding(words, width)
        self.length = length

    def call(self, x):
        return self.words(x) + self.places(ops.arange(0, self.length))


class Patches(layers.Layer):
    def call(self, images):
        patches = ops.image.extract_patches(images, 3)
        n, h, w, c = ops.shape(patches)
        return ops.reshape(patches, (n, h * w, c))


class Encoder(layers.Layer):
    def __init__(self, count, width):
        super().__init__()
        self.count, self.project, self.place = count, layers.Dense(width), layers.Embedding(count, width)

    def call(self, x):
        return self.project(x) + self.place(ops.expand_dims(ops.arange(self.count), axis=0))


class Inner(keras.Model):
    def __init__(self):
        super().__init__()
        self.last, self.first = layers.Dense(6), layers.Dense(5, "tanh")  # not in the order of the calls
        self.norm = layers.BatchNormalization()

    def call(self, x):
        return self.last(self.norm(self.first(x)))


class Outer(keras.Model):
    def __init__(self, inner=None):
        super().__init__()
        self.head, self.inner = layers.Dense(4, "softmax", name="head"), inner or Inner()

    def call(self, x, training=None):
        return self.head(ops.relu(self.inner(x)) + 0.1)


class Still(Outer):
    def call(self, x):
        return self.head(ops.relu(self.inner(x)) + 0.1)


@case
def layers_of_the_caller():
    def texts_of_numbers():
        i = layers.Input((12,), dtype="int32")
        x = layers.GlobalAveragePooling1D()(Block(8)(Block(8)(Places(30, 12, 8)(i))))
        m = keras.Model(i, layers.Dense(4, "softmax")(x))
        m.compile(keras.optimizers.SGD(0.1, momentum=0.9), SPARSE, metrics=["accuracy"])
        return m

    words = np.random.default_rng(4).integers(0, 30, (ROWS, 12))
    m, k, *_ = traced(texts_of_numbers, lambda: (words, labels()), validation_split=0.2)
    close(keel.predict(m, words, verbose=0), k.predict(words, verbose=0), "predict")
    close(keel.evaluate(m, words, labels(), verbose=0), k.evaluate(words, labels(), verbose=0), "evaluate")
    keel.fit(m, words, labels(), **PLAIN)  # goes on, and so does Keras
    k.fit(words, labels(), **PLAIN)
    equal(m, k)

    def images():
        i = layers.Input((9, 12, 3))
        x = Block(8)(Encoder(12, 8)(Patches()(i)))
        m = keras.Model(i, layers.Dense(4, "softmax")(layers.Flatten()(x)))
        m.compile("sgd", SPARSE)
        return m

    traced(images, lambda: (rows(0, 9, 12, 3), labels()), per_side=lambda: {"callbacks": [Seen(False)]})


@case
def models_of_the_caller():
    def outer(optimizer="adam"):
        m = Outer()
        m(rows()[:1])
        m.compile(optimizer, SPARSE, metrics=["accuracy"])
        return m

    m, k, *_ = traced(outer, lambda: (rows(), labels()), validation_split=0.2)
    for go_on in (keel.fit, lambda model, *data, **named: model.fit(*data, **named)):
        go_on(m, rows(), labels(), **PLAIN)
        k.fit(rows(), labels(), **PLAIN)
        equal(m, k)
    stops = lambda: {"callbacks": [kc.EarlyStopping("val_loss", patience=1, restore_best_weights=True)]}
    beside(
        lambda: outer(keras.optimizers.SGD(0.8)),
        lambda: (rows(), labels()),
        epochs=9,
        per_side=stops,
        validation_split=0.3,
    )

    def still():
        m = Still()
        m(rows()[:1])
        m.compile("sgd", SPARSE)
        return m

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        traced(still, lambda: (rows(), labels()))
    assert any("takes no 'training'" in str(w.message) for w in said)
    for data in (Batches(), tf.data.Dataset.from_tensor_slices((rows(), labels())).batch(8)):
        unbuilt = Outer()
        unbuilt.compile("sgd", SPARSE)
        assert keel.fit(unbuilt, data, verbose=0).history["loss"]
    fails(keel.Unsupported, lambda: keel.predict(Outer(), iter([rows()]), verbose=0), "begun anew")
    unbuilt = Outer()
    unbuilt.compile("sgd", SPARSE)
    assert keel.fit(unbuilt, rows(), labels(), verbose=0).history["loss"] and len(unbuilt.weights) == 10

    def heads():
        i = layers.Input((9,))
        x = Inner()(i)
        named = {
            "size": layers.Dense(1, name="size")(x),
            "kind": Outer(keras.Sequential([layers.Dense(6)]))(x),
        }
        m = keras.Model(i, named)
        m.compile("sgd", {"kind": SPARSE, "size": "mse"}, loss_weights={"kind": 0.5, "size": 2.0})
        return m

    m, k, *_ = traced(heads, lambda: (rows(), {"kind": labels(), "size": rows(1, 1)}))
    mine, theirs = keel.predict(m, rows(), verbose=0), k.predict(rows(), verbose=0)
    for name in theirs:
        close(mine[name], theirs[name], name)


class Weighs(layers.Layer):
    """A layer with weights of its own, and how it uses them."""

    def __init__(self, shapes, use, **options):
        super().__init__()
        self.shapes, self.use, self.options = shapes, use, options

    def build(self, shape):
        for name, dims in self.shapes.items():
            normal = keras.initializers.RandomNormal(0.0, 0.5, seed=len(name) + sum(dims))
            setattr(self, name, self.add_weight(shape=dims, initializer=normal, name=name, **self.options))

    def call(self, x):
        return self.use(self, x)


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


def squashed(x):
    return x * ops.sigmoid(1.5 * x)


@case
def functions_of_the_caller_in_layers():
    def make():
        i = layers.Input((6, 6, 3))
        x = layers.Lambda(lambda t: t / 2 + ops.mean(t, axis=(1, 2), keepdims=True))(i)
        x = layers.Conv2D(4, 3, activation=squashed, kernel_regularizer="l2")(x)
        x = layers.Activation(squashed)(layers.SeparableConv2D(4, 2, activation="relu")(x))
        same = layers.Dense(4, lambda t: ops.maximum(t, 0.1 * t))
        x = layers.Flatten()(same(same(x)))
        x = layers.Lambda(lambda t, scale: t * scale, arguments={"scale": 0.5})(x)
        m = keras.Model(i, layers.Dense(4, "softmax")(layers.Dense(5, tf.nn.relu)(x)))
        m.compile("adam", SPARSE)
        return m

    m, k, *_ = traced(make, lambda: (rows(0, 6, 6, 3), labels()), validation_split=0.2)
    close(keel.predict(m, rows(0, 6, 6, 3), verbose=0), k.predict(rows(0, 6, 6, 3), verbose=0), "predict")

    def recurrent():
        m = keras.Sequential([layers.Input((5, 3)), layers.LSTM(4, activation=squashed), layers.Dense(2)])
        m.compile("sgd", "mse")
        return m

    def masked():
        of = [layers.Input((5, 3)), layers.Masking(), layers.Dense(4, squashed), layers.LSTM(2)]
        m = keras.Sequential(of)
        m.compile("sgd", "mse")
        return m

    traced(masked, lambda: (ops.relu(rows(0, 5, 3)), rows(1, 2)))

    def regularized():
        return keras.Sequential([layers.Input((5, 3)), layers.Dense(2, squashed, activity_regularizer="l2")])

    for model, *parts in (recurrent(), "lstm", "activation"), (regularized(), "behind"):
        fails(keel.Unsupported, lambda: keel.predict(model, rows(0, 5, 3), verbose=0), *parts)


@case
def attention_to_what_came_before():
    """A mask for each row, as in Keras's example of a small GPT."""

    class Causal(layers.Layer):
        def __init__(self):
            super().__init__()
            self.att = layers.MultiHeadAttention(2, 4)

        def call(self, x):
            n, length, _ = ops.shape(x)
            i, j = ops.arange(length)[:, None], ops.arange(length)
            mask = ops.reshape(ops.cast(i >= j, "bool"), [1, length, length])
            return x + self.att(x, x, attention_mask=ops.tile(mask, (n, 1, 1)))

    def make():
        i = layers.Input((5, 8))
        m = keras.Model(i, layers.Dense(3)(Causal()(i)))
        m.compile("sgd", "mse")
        return m

    traced(make, lambda: (rows(0, 5, 8), rows(1, 5, 3)))


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


# ---- losses and metrics of the caller's own --------------------------------------------------------


@case
def code_that_is_no_graph_is_refused():
    class Own(layers.Layer):
        def __init__(self, call):
            super().__init__()
            self.dense, self.drop, self.call_of = layers.Dense(4), layers.Dropout(0.5), call
            self.norm = layers.BatchNormalization()

        def build(self, shape):
            self.dense.build(shape)
            self.norm.build(shape)

        def call(self, x, training=False):
            return self.call_of(self, x, training)

    def uses(call):
        i = layers.Input((9,))
        m = keras.Model(i, Own(call)(i))
        m.compile("sgd", "mse")
        return m

    def weighs(use, **options):
        i = layers.Input((9,))
        m = keras.Model(i, Weighs({"w": (4, 4), "v": (4,)}, use, **options)(layers.Dense(4)(i)))
        m.compile("sgd", "mse")
        return m

    def assigns(layer, x):
        layer.v.assign(layer.v * 0.9)
        return x * layer.v + ops.sum(layer.w)

    def adds(loss):
        def call(layer, x, training):
            layer.add_loss(loss(x))
            return layer.dense(x)

        return call

    class Prepares(keras.Model):
        """As the tasks of keras-hub do."""

        preprocessor = layers.Rescaling(2.0)

        def preprocess_samples(self, x, y=None, sample_weight=None):
            return self.preprocessor(x), y, sample_weight

    i = layers.Input((9,))
    prepares = Prepares(i, layers.Dense(4)(i))
    prepares.compile("sgd", "mse")
    for model, *parts in [
        (weighs(lambda l, x: x + l.v), "weighs", "/w' is not reached"),
        (weighs(lambda l, x: x * l.v + l.w), "dim 4 would be that of rows"),
        (weighs(lambda l, x: ops.transpose(ops.matmul(l.w, ops.transpose(x))) + l.v), "mix rows"),
        (weighs(lambda l, x: x @ ops.linalg.inv(l.w) + l.v), "own weights are used in Inv"),
        (weighs(lambda l, x: x @ layers.Dropout(0.5)(l.w) + l.v), "a Dropout"),
        (weighs(assigns, trainable=False), "assign"),
        (uses(lambda layer, x, training: x[:, :4] + layer.dense(np.ones((1, 9), "float32"))), "not reached"),
        (uses(lambda l, x, training: x * keras.random.uniform((1, 9)) if training else x), "all rows share"),
        (uses(lambda l, x, training: x + keras.random.gamma((-1, 9), 2.0) if training else x), "gamma"),
        (uses(lambda l, x, training: l.norm(x) if training else x), "learns twice"),
        (uses(adds(lambda x: ops.sum(ops.square(x)))), "of a loss that it adds", "Sum is no mean"),
        (uses(adds(lambda x: ops.mean(x, axis=-1))), "a loss of several numbers"),
        (uses(adds(lambda x: ops.mean(x) * ops.mean(x))), "a product with it"),
        (uses(lambda layer, x, training: layer.drop(layer.dense(x), training=True)), "training=True"),
        (uses(lambda layer, x, training: layer.dense(x) @ layer.norm.gamma[:4, None]), "reads", "gamma'"),
        (prepares, "preprocess_samples"),
    ]:
        shape = [d or 5 for d in model.input.shape[1:]]
        fails(keel.Unsupported, lambda: keel.fit(model, rows(0, *shape), rows(1, 4), verbose=0), *parts)


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


sys.exit(run_cases(__file__))
