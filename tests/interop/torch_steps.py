#!/usr/bin/env python3
"""keel.fit of models with a train_step for PyTorch, beside Keras's own fit. By hand: it needs Keras on PyTorch.

KERAS_BACKEND=torch torch_steps.py [NAME...]
"""

import sys

from beside_keras import OwnLoss, case, close, fails, functional, labels, rows, run_cases
import keras
import torch
from keras import layers, ops

import keel

OPTIONS = {"batch_size": 8, "epochs": 2, "shuffle": False, "verbose": 0}


def both(make, *data):
    keras.utils.set_random_seed(3)
    theirs, mine = make(), make()
    mine.set_weights(theirs.get_weights())
    h, g = theirs.fit(*data, **OPTIONS), keel.fit(mine, *data, devices="cpu:0-2", **OPTIONS)
    for name in h.history:
        close(g.history[name], h.history[name], name)
    for a, b in zip(mine.weights, theirs.weights):
        close(a, b, a.path)


def learn(model, loss, weights, optimizer):
    model.zero_grad()
    loss.backward()
    gradients = [v.value.grad for v in weights]
    with torch.no_grad():
        optimizer.apply(gradients, weights)


class Own(keras.Model):
    """A step as in Keras's guide."""

    def train_step(self, data):
        x, y = data
        y_pred = self(x, training=True)
        loss = self.compute_loss(y=y, y_pred=y_pred)
        learn(self, loss, list(self.trainable_weights), self.optimizer)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


@case
def the_step_of_keras_s_guide():
    for kind in Own, OwnLoss:

        def make():
            m = functional(kind)
            m.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
            return m

        both(make, rows(), labels())


class Gan(keras.Model):
    """With two steps, of which the second sees what the first has learnt."""

    def __init__(self):
        super().__init__()
        net = lambda *sizes: keras.Sequential(
            [layers.Input((sizes[0],)), layers.Dense(sizes[1], "tanh"), layers.Dense(sizes[2])]
        )
        self.generator, self.discriminator = net(3, 8, 9), net(9, 8, 1)
        self.seeds, self.built = keras.random.SeedGenerator(5), True
        self.d_loss, self.g_loss = keras.metrics.Mean(name="d_loss"), keras.metrics.Mean(name="g_loss")
        self.loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)

    def compile(self):
        super().compile()
        self.d_optimizer, self.g_optimizer = keras.optimizers.Adam(0.01), keras.optimizers.Adam(0.02)

    @property
    def metrics(self):
        return [self.d_loss, self.g_loss]

    def train_step(self, data):
        n = ops.shape(data)[0]
        fake = self.generator(keras.random.normal((n, 3), seed=self.seeds))
        both = self.discriminator(ops.concatenate([fake, data], axis=0))
        d_loss = self.loss_fn(ops.concatenate([ops.ones((n, 1)), ops.zeros((n, 1))], axis=0), both)
        learn(self, d_loss, self.discriminator.trainable_weights, self.d_optimizer)
        fake = self.generator(keras.random.normal((n, 3), seed=self.seeds))
        g_loss = self.loss_fn(ops.zeros((n, 1)), self.discriminator(fake))
        learn(self, g_loss, self.generator.trainable_weights, self.g_optimizer)
        self.d_loss.update_state(d_loss)
        self.g_loss.update_state(g_loss)
        return {m.name: m.result() for m in self.metrics}


@case
def two_steps_of_a_gan():
    def make():
        m = Gan()
        m.compile()
        return m

    both(make, rows())


class Taught(keras.Model):
    """What is computed without gradients teaches, and stays as it is."""

    def __init__(self):
        super().__init__()
        self.teacher, self.student = (keras.Sequential([layers.Input((9,)), layers.Dense(4)]) for _ in range(2))
        self.shown, self.built = keras.metrics.Mean(name="apart"), True

    @property
    def metrics(self):
        return [self.shown]

    def train_step(self, data):
        with torch.no_grad():
            target = self.teacher(data)
        loss = ops.mean(ops.square(self.student(data) - target))
        learn(self, loss, self.student.trainable_weights, self.optimizer)
        self.shown.update_state(loss)
        return {"apart": self.shown.result()}


class Contrastive(keras.Model):
    """Rows that are compared with each other, by a temperature that is learnt."""

    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential([layers.Input((9,)), layers.Dense(8, "tanh"), layers.Dense(6)])
        self.scale = self.add_weight(shape=(), initializer=keras.initializers.Constant(1.0), name="scale")
        self.shown, self.built = keras.metrics.Mean(name="apart"), True

    @property
    def metrics(self):
        return [self.shown]

    def train_step(self, data):
        a, b = (ops.normalize(self.encoder(x), axis=1) for x in (data, 0.9 * data + 0.1))
        similar = ops.exp(self.scale) * ops.matmul(a, ops.transpose(b))
        own = ops.arange(ops.shape(data)[0])
        loss = ops.mean(keras.losses.sparse_categorical_crossentropy(own, similar, from_logits=True))
        learn(self, loss, list(self.trainable_weights), self.optimizer)
        self.shown.update_state(loss)
        return {"apart": self.shown.result()}


@case
def rows_that_are_compared():
    def make():
        m = Contrastive()
        m.compile("adam")
        return m

    both(make, rows())


@case
def a_teacher_has_no_gradient():
    def make():
        m = Taught()
        m.compile("adam")
        return m

    both(make, rows())


@case
def functions_of_pytorch_are_refused():
    class Odd(Own):
        def train_step(self, data):
            x, y = data
            loss = torch.mean(self(x, training=True))
            learn(self, loss, list(self.trainable_weights), self.optimizer)
            return {}

    m = functional(Odd)
    m.compile("sgd", "sparse_categorical_crossentropy")
    fails(keel.Unsupported, lambda: keel.fit(m, rows(), labels(), **OPTIONS), "has a step of its own")


if __name__ == "__main__":
    sys.exit(run_cases(__file__))
