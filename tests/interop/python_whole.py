#!/usr/bin/env python3
"""keel.fit of models whose losses compare rows with each other, beside Keras's own fit.

python_whole.py [NAME...]      needs Keras 3 on TensorFlow, and libkeel (KEEL_LIBRARY)

The last batch of an epoch is shorter than the others, so each loss is of two numbers of rows."""

import sys

from beside_keras import ROWS, beside, case, close, fails, labels, rows, run_cases
import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, ops
from own_steps import Heads, Tracked, both, net

import keel


def normal(x):
    return ops.normalize(x, axis=1)


def same(a):
    """[rows, rows], of labels."""
    return ops.cast(ops.equal(ops.expand_dims(a, 1), ops.expand_dims(a, 0)), "float32")


class Contrastive(Tracked):
    """Two views of each row, which are to find each other among all rows; as in SimCLR, with a linear probe."""

    def __init__(self):
        super().__init__("c_loss", "p_loss")
        self.encoder = keras.Sequential(
            [layers.Input((9,)), layers.Dense(8, use_bias=False), layers.BatchNormalization()]
        )
        self.head, self.probe = net(8, 6), net(8, 4)
        self.found = keras.metrics.SparseCategoricalAccuracy(name="found")

    def compile(self):
        super().compile()
        self.optimizer, self.p_optimizer = keras.optimizers.Adam(0.01), keras.optimizers.SGD(0.1)
        self.probe_loss = losses.SparseCategoricalCrossentropy(from_logits=True)

    @property
    def metrics(self):
        return [*self.means, self.found]

    def views(self, x):
        noise = lambda: 0.1 * keras.random.normal(ops.shape(x), seed=self.seeds)
        return x + noise(), x * 0.9 + noise()

    def contrast(self, a, b):
        a, b = normal(a), normal(b)
        similar = ops.matmul(a, ops.transpose(b)) / 0.2
        n = ops.shape(a)[0]
        self.found.update_state(ops.arange(n), similar)
        self.found.update_state(ops.arange(n), ops.transpose(similar))
        both_ways = [
            losses.sparse_categorical_crossentropy(ops.arange(n), s, from_logits=True)
            for s in (similar, ops.transpose(similar))
        ]
        return ops.mean(both_ways[0] + both_ways[1]) / 2

    def train_step(self, data):
        x, y = data
        a, b = self.views(x)
        with tf.GradientTape() as tape:
            a, b = (self.head(self.encoder(v, training=True), training=True) for v in (a, b))
            loss = self.contrast(a, b)
        weights = self.encoder.trainable_weights + self.head.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        with tf.GradientTape() as tape:
            says = self.probe(self.encoder(x, training=False))
            p_loss = self.probe_loss(y, says)
        grads = tape.gradient(p_loss, self.probe.trainable_weights)
        self.p_optimizer.apply_gradients(zip(grads, self.probe.trainable_weights))
        return {**self.tracked(loss, p_loss), "found": self.found.result()}


def made(kind, *args, **compile):
    def make():
        m = kind(*args)
        m.compile(**compile)
        return m

    return make


@case
def two_views_and_a_probe():
    both(made(Contrastive), lambda: (rows(), labels()))


class Towers(Tracked):
    """Texts and images, as in CLIP, with a temperature that is learnt."""

    def __init__(self):
        super().__init__("loss", "scale")
        self.image, self.text = net(9, 8, 6), net(5, 8, 6)
        self.scale = self.add_weight(shape=(), initializer=keras.initializers.Constant(1.5), name="scale")

    def similar(self, data):
        image, text = normal(self.image(data["image"])), normal(self.text(data["text"]))
        return ops.exp(self.scale) * ops.matmul(text, ops.transpose(image))

    def train_step(self, data):
        loss_fn = losses.CategoricalCrossentropy(from_logits=True)
        with tf.GradientTape() as tape:
            similar = self.similar(data)
            truth = ops.eye(ops.shape(similar)[0])
            loss = (loss_fn(truth, similar) + loss_fn(truth, ops.transpose(similar))) / 2
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return self.tracked(loss, ops.exp(self.scale))


def pairs():
    return ({"image": rows(), "text": rows(1, 5)},)


@case
def two_towers_and_a_learnt_temperature():
    both(made(Towers, optimizer="adam"), pairs)


class Dual(Towers):
    """Targets are of similarities within each tower, and pass gradients."""

    def train_step(self, data):
        with tf.GradientTape() as tape:
            image, text = self.image(data["image"], training=True), self.text(data["text"], training=True)
            between = ops.matmul(text, ops.transpose(image)) / 0.5
            within = ops.matmul(image, ops.transpose(image)) + ops.matmul(text, ops.transpose(text))
            targets = ops.softmax(within / 1.0)
            of_text = losses.categorical_crossentropy(targets, between, from_logits=True)
            of_image = losses.categorical_crossentropy(
                ops.transpose(targets), ops.transpose(between), from_logits=True
            )
            loss = ops.mean((of_text + of_image) / 2)
        grads = tape.gradient(loss, self.trainable_variables[1:])
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables[1:]))
        return self.tracked(loss, loss)


@case
def targets_that_pass_gradients():
    both(made(Dual, optimizer="sgd"), pairs)


class Joined(Tracked):
    """Both views in one batch; loss(z, labels) of twice the rows."""

    def __init__(self, loss):
        super().__init__("loss")
        self.encoder, self.loss_of = net(9, 8, 6), loss

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            z = self.encoder(ops.concatenate([x, x * 0.9 + 0.1], axis=0))
            loss = self.loss_of(z, ops.concatenate([y, y], axis=0))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return self.tracked(loss)


def nt_xent(z, y):
    n = ops.shape(z)[0] // 2
    z = normal(z)
    similar = ops.matmul(z, ops.transpose(z)) / 0.5 - 1e9 * ops.eye(2 * n)
    others = ops.concatenate([ops.arange(n) + n, ops.arange(n)], axis=0)
    return ops.mean(losses.sparse_categorical_crossentropy(others, similar, from_logits=True))


def supervised(z, y):
    z = normal(z)
    positive = same(y)
    positive = positive / ops.sum(positive, axis=1, keepdims=True)
    return ops.mean(losses.categorical_crossentropy(positive, z @ ops.transpose(z) / 0.3, from_logits=True))


def hardest(z, y):
    far = ops.sum(ops.square(ops.expand_dims(z, 1) - ops.expand_dims(z, 0)), axis=-1)
    positive = same(y)
    worst = ops.max(far * positive, axis=1) - ops.min(far + 1e3 * positive, axis=1)
    return ops.mean(ops.maximum(worst + 1.0, 0.0))


def twins(z, y):
    a, b = ops.split(z, 2, axis=0)
    n = lambda t: (t - ops.mean(t, axis=0)) / ops.std(t, axis=0)
    c = ops.matmul(ops.transpose(n(a)), n(b)) / ops.cast(ops.shape(a)[0], "float32")
    on = ops.sum(ops.square(ops.diagonal(c) - 1.0))
    return on + 0.005 * ops.sum(ops.square(c * (1.0 - ops.eye(6))))


def variance(z, y):
    n = ops.shape(z)[0] // 2
    a, b = z[:n], z[n:]

    def apart(t):
        t = t - ops.mean(t, axis=0, keepdims=True)
        cov = ops.matmul(ops.transpose(t), t) / ops.cast(n - 1, "float32")
        spread = ops.mean(ops.relu(1 - ops.sqrt(ops.var(t, axis=0) + 1e-4)))
        return spread + ops.sum(ops.square(cov * (1 - ops.eye(6)))) / 6

    return ops.mean(ops.square(a - b)) + apart(a) + apart(b)


@case
def rows_that_are_joined():
    for loss in nt_xent, supervised, hardest, twins, variance:
        both(made(Joined, loss, optimizer=keras.optimizers.SGD(0.05)), lambda: (rows(), labels(3)), epochs=1)


class Sampled(Tracked):
    """An autoencoder whose codes are compared with a sample: a mean discrepancy of all pairs."""

    def __init__(self):
        super().__init__("loss", "apart")
        self.encoder, self.decoder = net(9, 8, 3), net(3, 8, 9)

    def kernel(self, a, b):
        far = ops.sum(ops.square(ops.expand_dims(a, 1) - ops.expand_dims(b, 0)), axis=-1)
        return ops.mean(ops.exp(-far))

    def train_step(self, data):
        n = ops.shape(data)[0]
        with tf.GradientTape() as tape:
            z = self.encoder(data)
            sample = keras.random.normal((n, 3), seed=self.seeds)
            apart = self.kernel(z, z) + self.kernel(sample, sample) - 2 * self.kernel(z, sample)
            out = self.decoder(z + 0.01 * sample)
            loss = ops.mean(ops.square(out - data)) + 2.0 * apart
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return self.tracked(loss, apart)


@case
def codes_beside_a_sample():
    both(made(Sampled, optimizer="adam"), lambda: (rows(),))


class Retrieval(keras.Model):
    """Candidates of all rows, each with its number; the same candidate is no negative."""

    def __init__(self):
        super().__init__()
        self.query, self.candidate = net(9, 6), net(5, 6)

    def call(self, x, training=False):
        queries = self.query(x["query"])
        return (queries, self.candidate(x["candidate"])) if training else (queries,)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        scores = ops.matmul(y_pred[0], ops.transpose(y_pred[1]))
        number = x["number"]
        twin = ops.logical_and(
            ops.equal(ops.expand_dims(number, 1), ops.expand_dims(number, 0)),
            ops.logical_not(ops.eye(ops.shape(scores)[0], dtype="bool")),
        )
        scores = ops.where(twin, -1e9, scores)
        return losses.CategoricalCrossentropy(from_logits=True, reduction="sum")(
            ops.eye(ops.shape(scores)[0]), scores
        )


def asked():
    numbers = (1 << 40) + np.random.default_rng(3).integers(0, 9, ROWS)  # alike as float32
    return ({"query": rows(), "candidate": rows(1, 5), "number": numbers.astype("int64")}, np.zeros(ROWS))


@case
def candidates_of_all_rows():
    both(made(Retrieval, optimizer=keras.optimizers.SGD(0.01)), asked)


class View(layers.Layer):
    """Something else in training, by numbers that are made for each row."""

    def call(self, x, training=True):
        if training:
            x = x * ops.tile(ops.full((1, 1, 1, 1), 0.9), (ops.shape(x)[0], 1, 1, 1)) + 0.1
        return x


class Augmented(Tracked):
    """Rows of two kinds, joined; a loss for each row, of which a tape takes the sum; functions of TensorFlow."""

    def __init__(self):
        super().__init__("loss")
        self.view, self.encoder = keras.Sequential([layers.RandomFlip(), View()]), net(9, 8, 6)

    def train_step(self, data):
        x = tf.concat([data[0], data[1]], axis=0)
        flat = lambda t: tf.reshape(t, (tf.shape(x)[0], 9))
        with tf.GradientTape() as tape:
            a = tf.math.l2_normalize(self.encoder(flat(self.view(x, training=True))), axis=1)
            b = tf.math.l2_normalize(self.encoder(flat(x)), axis=1)
            similar = tf.matmul(a, b, transpose_b=True) / 0.3
            found = tf.linalg.diag_part(tf.nn.log_softmax(similar, axis=1))
            spread = tf.reduce_sum(tf.math.reduce_std(a, axis=0))
            loss = 0.05 * (spread - found - tf.linalg.diag_part(tf.nn.log_softmax(similar, axis=0)))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return self.tracked(loss)


@case
def views_in_training_and_functions_of_tensorflow():
    ones = lambda seed: np.tile(rows(seed, 1, 1, 1), (1, 3, 3, 1)) + np.zeros((ROWS, 3, 3, 1), "float32")
    both(made(Augmented, optimizer="sgd"), lambda: (ones(0), ones(1)), epochs=1)


class Mixed(Tracked):
    """Rows of the data are mixed before layers get them; some places of a row are chosen by the data."""

    def __init__(self):
        super().__init__("loss")
        self.net = net(9, 8, 9)

    def train_step(self, data):
        x, y = data
        mixed = 0.7 * x + 0.3 * tf.reverse(x, axis=[0])
        order = tf.argsort(y, axis=-1)[:, :4]
        with tf.GradientTape() as tape:
            p = self.net(tf.concat([mixed, x - tf.reduce_mean(x, axis=0)], axis=0), training=True)[
                : tf.shape(x)[0]
            ]
            wanted, got = tf.gather(y, order, axis=1, batch_dims=1), tf.gather(p, order, batch_dims=1)
            loss = tf.reduce_mean(tf.square(wanted - got))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return self.tracked(loss)


class Parted(Heads):
    """Rows in another order, and rows that were joined and are taken apart."""

    def train_step(self, x):
        n = ops.shape(x)[0]
        with tf.GradientTape() as tape:
            z = self.encoder(ops.concatenate([x, x[::-1]], axis=0))
            a, b = self.first(z[:n]), self.second(ops.split(z, 2, axis=0)[1])
            loss = ops.mean(ops.logsumexp(ops.matmul(a, ops.transpose(b)), axis=1))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return self.tracked(loss)


@case
def rows_that_are_mixed_before_layers_get_them():
    both(made(Mixed, optimizer="sgd"), lambda: (rows(), rows(1)), epochs=1)
    both(made(Parted, "loss", optimizer="sgd"), lambda: (rows(),), epochs=1)


class Attacked(Tracked):
    """Rows that are moved along the gradient of a loss."""

    def __init__(self):
        super().__init__("loss")
        self.net, self.loss_of = net(9, 8, 4), losses.SparseCategoricalCrossentropy(from_logits=True)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = self.loss_of(y, self.net(x))
        slope = tape.gradient(loss, x)
        against = x + 0.1 * tf.sign(slope) + 2.0 * slope
        with tf.GradientTape() as tape:
            loss = 0.5 * (self.loss_of(y, self.net(x)) + self.loss_of(y, self.net(against)))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return self.tracked(loss)


class Residual(Tracked):
    """A differential equation and a value at one place, both in the loss."""

    def __init__(self):
        super().__init__("loss")
        self.net = net(9, 16, 1)

    def train_step(self, x):
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(x)
                u = self.net(x)
            rest = inner.gradient(u, x)[:, :1] + u
            at = tf.reduce_mean(self.net(tf.zeros_like(x)))
            loss = tf.reduce_mean(tf.square(rest)) + tf.square(at - 1.0)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return self.tracked(loss)


@case
def gradients_with_respect_to_rows():
    both(made(Attacked, optimizer="sgd"), lambda: (rows(), labels()), epochs=1)
    both(made(Residual, optimizer="sgd"), lambda: (rows(),), epochs=1)


class Weighed(Tracked):
    """Two tasks that are weighed by how uncertain they are, which is learnt; and one that the batch has."""

    def __init__(self):
        super().__init__("loss", "first")
        self.first, self.second = net(9, 4), net(9, 8, 1)
        self.unsure = self.add_weight(shape=(2,), initializer="zeros", name="unsure")

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            a = losses.SparseCategoricalCrossentropy(from_logits=True)(y, self.first(x))
            b = ops.mean(ops.square(self.second(x)[:, 0] - ops.sum(x, axis=1)))
            loss = ops.sum(ops.exp(-self.unsure) * ops.stack([a, b]) + self.unsure)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return self.tracked(loss, a)


@case
def weights_that_the_step_reads():
    both(made(Weighed, optimizer="adam"), lambda: (rows(), labels()))


class Odd(Tracked):
    def __init__(self, loss):
        super().__init__("loss")
        self.net, self.loss_of = net(9, 4), loss

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self.loss_of(self.net(data))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return self.tracked(loss)


@case
def numbers_of_the_batch():
    for loss in [
        lambda p: 0.01 * ops.sum(ops.square(p)),
        lambda p: ops.sum(ops.square(p)) / ops.cast(ops.shape(p)[0], "float32"),
        lambda p: ops.mean(ops.matmul(p, ops.transpose(p))),
        lambda p: ops.mean(ops.square(p)) / ops.cast(ops.shape(p)[0], "float32"),
    ]:
        both(made(Odd, loss, optimizer=keras.optimizers.SGD(0.02)), lambda: (rows(),), epochs=1)

    class Counted(Odd):
        def train_step(self, data):
            return super().train_step(data / ops.cast(ops.shape(data)[0], "float32"))

    m = made(Counted, lambda p: ops.sum(ops.square(p)), optimizer="sgd")()
    fails(keel.Unsupported, lambda: keel.fit(m, rows(), batch_size=8, verbose=0), "another number of rows")
    keel.fit(m, rows(), batch_size=8, verbose=0, end="drop")


def compiled(loss, **compile):
    def make():
        m = keras.Sequential([layers.Input((9,)), layers.Dense(6, "tanh"), layers.Dense(2)])
        m.compile(keras.optimizers.SGD(0.02), loss, **compile)
        return m

    return make


class Supervised(losses.Loss):
    """As in Keras's example of supervised contrastive learning."""

    def call(self, y_true, y_pred):
        z, y = normal(y_pred), ops.reshape(y_true, (-1, 1))
        positive = ops.cast(ops.equal(y, ops.transpose(y)), "float32")
        positive = positive / ops.sum(positive, axis=1, keepdims=True)
        return losses.categorical_crossentropy(positive, z @ ops.transpose(z) / 0.3, from_logits=True)


def middle(y_true, y_pred):
    return ops.mean(y_pred, axis=-1)


@case
def losses_of_compile_may_compare_rows():
    options = dict(batch_size=8, epochs=2, shuffle=False, verbose=0)
    data = lambda: (rows(), rows(1, 2))
    for loss in [
        lambda y, p: ops.mean(y * p) * ops.square(y - p),
        lambda y, p: ops.tanh(ops.mean(ops.square(y - p))),
        lambda y, p: ops.mean(ops.square(y - ops.mean(y))) + 0.01 * ops.sum(p),
        lambda y, p: ops.max(ops.mean(p, axis=0)),
        lambda y, p: ops.max(p) * ops.mean(y),
        lambda y, p: ops.square(p - ops.mean(p, axis=0)),
        lambda y, p: 0.01 * ops.sum(ops.flip(p, axis=0) * y),
        lambda y, p: ops.square(p - ops.flip(p, axis=0)),
        lambda y, p: p[:2],
        lambda y, p: ops.transpose(ops.square(y - p)),
    ]:
        beside(compiled(loss), data, **options, validation_data=data())
    m, theirs, *_ = beside(
        compiled(Supervised(), metrics=[middle]), lambda: (rows(), labels()), **options, validation_split=0.3
    )
    x, y = rows(), labels()
    close(keel.predict(m, x, verbose=0), theirs.predict(x, verbose=0), "predictions")
    logs = keel.evaluate(m, x, y, batch_size=8, verbose=0, return_dict=True)
    for name, value in theirs.evaluate(x, y, batch_size=8, verbose=0, return_dict=True).items():
        close(logs[name], value, name)
    beside(compiled(Supervised()), lambda: (x, y), **{**options, "epochs": 1}, class_weight={0: 2.0})
    fails(
        keel.Unsupported,
        lambda: keel.fit(m, x, y, verbose=0, micro_batch=4),
        "depends on other rows",
        "a loss of all rows together takes no micro_batch",
    )


@case
def any_number_of_devices_gives_the_same_bits():
    weights = []
    for devices in "cpu:0", "cpu:0-1", "cpu:0-3":
        keras.utils.set_random_seed(5)
        m = made(Joined, nt_xent, optimizer="adam")()
        keel.fit(
            m,
            rows(),
            labels(),
            batch_size=16,
            epochs=1,
            verbose=0,
            seed=1,
            devices=devices,
            reproducible=True,
        )
        weights.append([np.array(w) for w in m.get_weights()])
    for other in weights[1:]:
        assert all(map(np.array_equal, other, weights[0]))


if __name__ == "__main__":
    sys.exit(run_cases(__file__))
