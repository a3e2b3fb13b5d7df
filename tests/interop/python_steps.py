#!/usr/bin/env python3
"""keel.fit of models with a train_step of their own, beside Keras's own fit.

python_steps.py [NAME...]      needs Keras 3 on TensorFlow, and libkeel (KEEL_LIBRARY)
"""

import sys

from beside_keras import ALLOWED, case, close, labels, rows, run_cases
import keras
import tensorflow as tf
from keras import layers, ops

import keel


def both(make, data, epochs=2, allowed=ALLOWED, **options):
    """Trains two models of make() from the same weights, by Keras and by Keel, and compares."""
    options = {"batch_size": 8, "epochs": epochs, "shuffle": False, "verbose": 0, **options}
    keras.utils.set_random_seed(3)
    theirs, mine = make(), make()
    for m in theirs, mine:
        m.built or m.build((None, 9))
    mine.set_weights(theirs.get_weights())
    h = theirs.fit(*data(), **options)
    for devices in "cpu:0", "cpu:0-2":
        again = make()
        again.built or again.build((None, 9))
        again.set_weights(mine.get_weights())
        g = keel.fit(again, *data(), devices=devices, **options)
        assert set(g.history) == set(h.history), f"{set(g.history)} and {set(h.history)}"
        for name in h.history:
            close(g.history[name], h.history[name], name, allowed)
        for a, b in zip(again.weights, theirs.weights):
            close(a, b, f"{devices}: {a.path}", allowed)
    return again, theirs


def net(*sizes, name=None, last=None, **first):
    parts = [layers.Dense(n, "tanh") for n in sizes[1:-1]] + [layers.Dense(sizes[-1], last)]
    return keras.Sequential([layers.Input((sizes[0],), **first), *parts], name=name)


class Tracked(keras.Model):
    """With a Mean for each of its names."""

    def __init__(self, *names):
        super().__init__()
        self.means = [keras.metrics.Mean(name=n) for n in names]
        self.seeds = keras.random.SeedGenerator(5)

    @property
    def metrics(self):
        return self.means

    def tracked(self, *values):
        for mean, value in zip(self.means, values):
            mean.update_state(value)
        return {m.name: m.result() for m in self.means}


class Autoencoder(Tracked):
    def __init__(self):
        super().__init__("loss", "kl")
        self.encoder, self.decoder = net(9, 8, 4), net(2, 8, 9)

    def build(self, shape):
        self.built = True

    def train_step(self, data):
        with tf.GradientTape() as tape:
            h = self.encoder(data)
            mean, log_var = h[:, :2], h[:, 2:]
            z = mean + ops.exp(0.5 * log_var) * keras.random.normal(ops.shape(mean), seed=self.seeds)
            out = self.decoder(z)
            error = ops.mean(ops.sum(ops.square(data - out), axis=-1))
            kl = ops.mean(-0.5 * ops.sum(1 + log_var - ops.square(mean) - ops.exp(log_var), axis=-1))
            loss = error + kl
        grads = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        return self.tracked(loss, kl)


@case
def one_gradient_with_draws():
    def make():
        m = Autoencoder()
        m.compile("adam")
        return m

    both(make, lambda: (rows(),))


class Gan(Tracked):
    """With two steps, of which the second sees what the first has learnt."""

    def __init__(self, joined=False):
        super().__init__("d_loss", "g_loss")
        self.generator, self.discriminator, self.joined = net(3, 8, 9), net(9, 8, 1), joined

    def build(self, shape):
        self.built = True

    def compile(self):
        super().compile()
        self.d_optimizer = keras.optimizers.Adam(0.01, beta_1=0.5)
        self.g_optimizer = keras.optimizers.RMSprop(0.02, clipnorm=1.0)
        self.loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)

    def noise(self, data):
        return keras.random.normal((ops.shape(data)[0], 3), seed=self.seeds)

    def judge(self, data):
        n = ops.shape(data)[0]
        fake = self.generator(self.noise(data))
        if self.joined:
            says = self.discriminator(ops.concatenate([fake, data], axis=0))
            truth = ops.concatenate([ops.ones((n, 1)), ops.zeros((n, 1))], axis=0)
            truth += 0.05 * keras.random.uniform(ops.shape(truth), seed=self.seeds)
            return self.loss_fn(truth, says)
        of_fake = self.loss_fn(ops.ones((n, 1)), self.discriminator(fake))
        return of_fake + self.loss_fn(ops.zeros((n, 1)), self.discriminator(data))

    def train_step(self, data):
        with tf.GradientTape() as tape:
            d_loss = self.judge(data)
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))
        with tf.GradientTape() as tape:
            says = self.discriminator(self.generator(self.noise(data)))
            g_loss = self.loss_fn(ops.zeros((ops.shape(data)[0], 1)), says)
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
        return self.tracked(d_loss, g_loss)


class AtOnce(Gan):
    """Both gradients of the weights before the step, as in TensorFlow's tutorials."""

    def train_step(self, data):
        n = ops.shape(data)[0]
        with tf.GradientTape() as of_g, tf.GradientTape() as of_d:
            fake = self.generator(self.noise(data), training=True)
            real_says, fake_says = self.discriminator(data), self.discriminator(fake, training=True)
            g_loss = self.loss_fn(ops.ones_like(fake_says), fake_says)
            d_loss = self.loss_fn(ops.ones((n, 1)), real_says) + self.loss_fn(ops.zeros((n, 1)), fake_says)
        g_grads = of_g.gradient(g_loss, self.generator.trainable_variables)
        d_grads = of_d.gradient(d_loss, self.discriminator.trainable_variables)
        self.g_optimizer.apply_gradients(zip(g_grads, self.generator.trainable_variables))
        self.d_optimizer.apply_gradients(zip(d_grads, self.discriminator.trainable_variables))
        return self.tracked(d_loss, g_loss)


class Penalized(Gan):
    """A gradient in the loss: a WGAN's penalty."""

    def train_step(self, data):
        n = ops.shape(data)[0]
        fake = self.generator(self.noise(data))
        with tf.GradientTape() as tape:
            d_loss = ops.mean(self.discriminator(fake)) - ops.mean(self.discriminator(data))
            between = data + keras.random.uniform((n, 1), seed=self.seeds) * (fake - data)
            with tf.GradientTape() as inner:
                inner.watch(between)
                says = self.discriminator(between, training=True)
            slope = inner.gradient(says, [between])[0]
            size = ops.sqrt(ops.sum(ops.square(slope), axis=[1]))
            d_loss += 10.0 * ops.mean((size - 1.0) ** 2)
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))
        with tf.GradientTape() as tape:
            g_loss = -ops.mean(self.discriminator(self.generator(self.noise(data), training=True)))
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
        return self.tracked(d_loss, g_loss)


def compiled(kind, *args):
    def make():
        m = kind(*args)
        m.compile()
        return m

    return make


@case
def a_second_gradient_sees_what_the_first_has_moved():
    both(compiled(Gan), lambda: (rows(),))


@case
def two_gradients_of_the_same_weights():
    both(compiled(AtOnce), lambda: (rows(),))


@case
def rows_of_two_kinds_in_one_batch():
    both(compiled(Gan, True), lambda: (rows(),))


@case
def a_gradient_in_the_loss():
    both(compiled(Penalized), lambda: (rows(),))


class Own(keras.Model):
    """A step as in Keras's guide."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


def functional(kind):
    i = layers.Input((9,))
    h = layers.Dense(16, "relu")(i)
    h = layers.BatchNormalization()(h)
    return kind(i, layers.Dense(4, "softmax")(h))


@case
def the_step_of_keras_s_guide():
    def make():
        m = functional(Own)
        m.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return m

    both(make, lambda: (rows(), labels()))


class Wrapped(keras.Model):
    def train_step(self, data):
        logs = super().train_step(data)
        return {**logs, "twice": 2.0}


@case
def a_step_around_keras_s():
    def make():
        m = functional(Wrapped)
        m.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return m

    both(make, lambda: (rows(), labels()))


class OwnLoss(keras.Model):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        picked = ops.one_hot(ops.cast(y, "int32"), 4)
        return ops.mean(ops.sum(ops.square(picked - y_pred), axis=-1)) + 0.1 * ops.mean(ops.square(y_pred))


@case
def a_loss_of_its_own_in_keras_s_step():
    def make():
        m = functional(OwnLoss)
        m.compile(
            keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.01, 3, 0.5)),
            metrics=["accuracy"],
        )
        return m

    both(make, lambda: (rows(), labels()))


class Distiller(keras.Model):
    def __init__(self):
        super().__init__()
        self.teacher, self.student = net(9, 12, 4), net(9, 6, 4)

    def build(self, shape):
        self.built = True

    def call(self, x):
        return self.student(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, allow_empty=False):
        teacher = self.teacher(x, training=False)
        hard = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(y, y_pred)
        soft = keras.losses.KLDivergence()(
            ops.softmax(teacher / 3.0, axis=1), ops.softmax(y_pred / 3.0, axis=1)
        )
        return 0.1 * hard + 0.9 * soft * 9.0


@case
def a_student_learns_from_a_teacher():
    def make():
        m = Distiller()
        m.teacher.trainable = False
        m.compile("adam", metrics=[keras.metrics.SparseCategoricalAccuracy()])
        return m

    both(make, lambda: (rows(), labels()))


if __name__ == "__main__":
    sys.exit(run_cases(__file__))
