#!/usr/bin/env python3
"""Make loops.json: training loops of one's own in Keras, as classes with a train_step.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.

distillation, gan and siamese follow Keras's guides of these names; penalty is a WGAN-GP critic,
penalty_2 and penalty_3 are such critics of other layers.
Each is {losses [steps][...], weights [[numbers]]} in float64 after 20 steps, of which the last has
fewer rows. Initial weights and rows are made by the arithmetic that loops.c repeats.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.config.set_floatx("float64")
ROWS, BATCH = 230, 12
# exact in float32, to which Keras rounds what an optimizer is given
BETAS = dict(beta_1=0.875, beta_2=0.9990234375, epsilon=2**-20)


def start(*models):
    k = 0
    for m in models:
        for w in m.weights:
            n = np.arange(np.prod(w.shape), dtype="int64")
            w.assign((((n * 7919 + 131 * k) % 1021 - 510) / 1024).reshape(w.shape))
            k += 1


def rows(size, seed):
    i, k = np.arange(ROWS, dtype="int64")[:, None], np.arange(size, dtype="int64")[None, :]
    return (((i * 131 + k * 37 + i * k * 7 + seed * 59) % 256 - 128) / 128)


def train(model, data):
    losses = []

    class Keep(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs):
            losses.append([float(v) for v in model.now])

    model.compile(run_eagerly=True)
    d = tf.data.Dataset.from_tensor_slices(data).batch(BATCH)
    model.fit(d, epochs=1, verbose=0, callbacks=[Keep()])
    return losses


def result(losses, *models):
    return {"losses": losses,
            "weights": [w.numpy().ravel().tolist() for m in models for w in m.weights]}


# ---- distillation ------------------------------------------------------------------------------

class Distiller(keras.Model):
    def __init__(self, student, teacher):
        super().__init__()
        self.student, self.teacher = student, teacher
        self.move = keras.optimizers.Adam(0.0078125, **BETAS)
        self.student_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.distillation_loss = keras.losses.KLDivergence()

    def train_step(self, data):
        x, y = data
        alpha, temperature = 0.25, 3.0
        taught = self.teacher(x, training=False)
        with tf.GradientTape() as tape:
            p = self.student(x, training=True)
            own = self.student_loss(y, p)
            distilled = self.distillation_loss(
                ops.softmax(taught / temperature, axis=1),
                ops.softmax(p / temperature, axis=1)) * temperature**2
            loss = alpha * own + (1 - alpha) * distilled
        g = tape.gradient(loss, self.student.trainable_weights)
        self.move.apply(g, self.student.trainable_weights)
        self.now = own, distilled / temperature**2
        return {"loss": loss}


def distillation():
    teacher = keras.Sequential([layers.Input((8, 8, 1)), layers.Conv2D(6, 3, strides=2),
                                layers.LeakyReLU(0.25), layers.Flatten(), layers.Dense(5)])
    student = keras.Sequential([layers.Input((8, 8, 1)), layers.Conv2D(3, 3, strides=2),
                                layers.LeakyReLU(0.25), layers.BatchNormalization(),
                                layers.Flatten(), layers.Dense(5)])
    start(teacher)
    start(student)
    m = Distiller(student, teacher)
    x = rows(64, 1).reshape(-1, 8, 8, 1)
    return result(train(m, (x, np.arange(ROWS) * 7 % 5)), student)


# ---- a GAN -------------------------------------------------------------------------------------

class GAN(keras.Model):
    def __init__(self, generator, discriminator):
        super().__init__()
        self.g, self.d = generator, discriminator
        self.move_d = keras.optimizers.Adam(0.00390625, **BETAS)
        self.move_g = keras.optimizers.RMSprop(0.001953125, rho=0.875, epsilon=2**-20)
        self.loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)

    def train_step(self, data):
        real, z1, z2 = data
        n = ops.shape(real)[0]
        images = ops.concatenate([self.g(z1), real], axis=0)
        labels = ops.concatenate([ops.ones((n, 1)), ops.zeros((n, 1))], axis=0)
        with tf.GradientTape() as tape:
            d_loss = self.loss_fn(labels, self.d(images))
        g = tape.gradient(d_loss, self.d.trainable_weights)
        self.move_d.apply(g, self.d.trainable_weights)
        with tf.GradientTape() as tape:
            g_loss = self.loss_fn(ops.zeros((n, 1)), self.d(self.g(z2)))
        g = tape.gradient(g_loss, self.g.trainable_weights)
        self.move_g.apply(g, self.g.trainable_weights)
        self.now = d_loss, g_loss
        return {"d_loss": d_loss, "g_loss": g_loss}


def gan():
    g = keras.Sequential([layers.Input((3,)), layers.Dense(64), layers.LeakyReLU(0.25),
                          layers.Reshape((4, 4, 4)),
                          layers.Conv2DTranspose(4, 4, strides=2, padding="same"),
                          layers.LeakyReLU(0.25),
                          layers.Conv2D(1, 3, padding="same", activation="sigmoid")])
    d = keras.Sequential([layers.Input((8, 8, 1)), layers.Conv2D(6, 3, strides=2, padding="same"),
                          layers.LeakyReLU(0.25), layers.GlobalMaxPooling2D(), layers.Dense(1)])
    start(g)
    start(d)
    data = rows(64, 2).reshape(-1, 8, 8, 1), rows(3, 3), rows(3, 4)
    return result(train(GAN(g, d), data), g, d)


# ---- a Siamese network -------------------------------------------------------------------------

class Siamese(keras.Model):
    def __init__(self, tower):
        super().__init__()
        self.tower = tower
        self.move = keras.optimizers.SGD(0.0625, momentum=0.875, clipnorm=0.25)

    def train_step(self, data):
        a, b, y = data
        with tf.GradientTape() as tape:
            d = self.tower(a) - self.tower(b)
            d = ops.sqrt(ops.maximum(ops.sum(ops.square(d), axis=1, keepdims=True), 1e-7))
            apart = ops.square(ops.maximum(1 - d, 0))
            loss = ops.mean((1 - y) * ops.square(d) + y * apart)
        g = tape.gradient(loss, self.tower.trainable_weights)
        self.move.apply(g, self.tower.trainable_weights)
        self.now = (loss,)
        return {"loss": loss}


def siamese():
    tower = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="tanh"),
                              layers.Dense(4)])
    start(tower)
    y = (np.arange(ROWS) % 3 == 0).astype("float64")[:, None]
    return result(train(Siamese(tower), (rows(6, 5), rows(6, 6), y)), tower)


# ---- a gradient penalty ------------------------------------------------------------------------

class Penalty(keras.Model):
    def __init__(self, critic):
        super().__init__()
        self.critic = critic
        self.move = keras.optimizers.Adam(0.00390625, **BETAS)

    def train_step(self, data):
        real, fake, mix = data
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                between = real * mix[:, :, None, None] + fake * (1 - mix[:, :, None, None])
                inner.watch(between)
                judged = self.critic(between)
            g = inner.gradient(judged, between)
            norm = ops.sqrt(ops.sum(ops.square(g), axis=[1, 2, 3]) + 1e-12)
            penalty = ops.mean(ops.square(norm - 1))
            loss = ops.mean(self.critic(fake)) - ops.mean(self.critic(real)) + 10 * penalty
        g = tape.gradient(loss, self.critic.trainable_weights)
        self.move.apply([x if x is not None else ops.zeros_like(w)
                         for x, w in zip(g, self.critic.trainable_weights)],
                        self.critic.trainable_weights)
        self.now = (penalty,)
        return {"loss": loss}


def penalty():
    critic = keras.Sequential([layers.Input((8, 8, 1)), layers.ZeroPadding2D(((1, 0), (2, 1))),
                               layers.Conv2D(4, 3, strides=2, padding="same"),
                               layers.LeakyReLU(0.25), layers.Conv2D(5, 3),
                               layers.Activation("silu"), layers.Flatten(), layers.Dense(3),
                               layers.ReLU(), layers.Dense(4), layers.Activation("elu"),
                               layers.Dropout(0.0), layers.Dense(1)])
    start(critic)
    data = (rows(64, 7).reshape(-1, 8, 8, 1), rows(64, 8).reshape(-1, 8, 8, 1),
            (rows(1, 9) + 1) / 2)
    return result(train(Penalty(critic), data), critic)


class Exact(layers.LayerNormalization):
    """tf.nn.moments takes the mean for a constant in the variance: right for the gradient, and wrong
    for that of the gradient."""

    def call(self, x):
        x = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(x), axis=-1, keepdims=True)
        return x * ops.rsqrt(variance + self.epsilon) * self.gamma + self.beta


def exact_gelu(x):
    """tf.nn.gelu has the root of 2 in float32."""
    return 0.5 * x * (1 + ops.erf(x / np.sqrt(2)))


def penalty_2():
    norm = layers.BatchNormalization(trainable=False)
    critic = keras.Sequential([layers.Input((8, 8, 1)), layers.Conv2D(4, 3),
                               layers.Activation(exact_gelu),
                               layers.AveragePooling2D(3, strides=2, padding="same"),
                               layers.Conv2DTranspose(3, 3, strides=2, padding="same"), norm,
                               layers.PReLU(shared_axes=[1, 2]), layers.Flatten(), layers.Dense(32),
                               layers.Reshape((4, 4, 2)),  # where no pixels of a constant image are equal
                               layers.MaxPooling2D(3, strides=2, padding="same"), layers.UpSampling2D(2),
                               Exact(), layers.Activation("selu"),
                               layers.Flatten(), layers.Dense(4, activation="softmax"), layers.Dense(1)])
    start(critic)
    norm.moving_variance.assign(np.abs(norm.moving_variance.numpy()) + 0.5)
    data = (rows(64, 7).reshape(-1, 8, 8, 1), rows(64, 8).reshape(-1, 8, 8, 1),
            (rows(1, 9) + 1) / 2)
    return result(train(Penalty(critic), data), critic)


def softsign(x):
    """TensorFlow's has no second derivative."""
    return x / (1 + ops.abs(x))


def penalty_3():
    critic = keras.Sequential([layers.Input((8, 8, 1)), layers.Reshape((4, 4, 4, 1)),
                               layers.Conv3D(2, 3, padding="same"),
                               layers.Activation(softsign), layers.Flatten(), layers.Dense(6),
                               layers.Activation("relu6"), layers.Dense(6),
                               layers.RMSNormalization(epsilon=2**-10),
                               layers.Rescaling(0.5, 0.25), layers.Activation("hard_sigmoid"),
                               layers.Dense(5), layers.Activation("log_sigmoid"),
                               layers.UnitNormalization(), layers.Dense(4),
                               layers.Activation("log_softmax"), layers.Dense(1)])
    start(critic)
    data = (rows(64, 7).reshape(-1, 8, 8, 1), rows(64, 8).reshape(-1, 8, 8, 1),
            (rows(1, 9) + 1) / 2)
    return result(train(Penalty(critic), data), critic)


out = {"distillation": distillation(), "gan": gan(), "siamese": siamese(), "penalty": penalty(),
       "penalty_2": penalty_2(), "penalty_3": penalty_3()}
with open("loops.json", "w") as f:
    json.dump(out, f, allow_nan=False, separators=(",", ":"))
    f.write("\n")
