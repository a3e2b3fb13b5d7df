#!/usr/bin/env python3
"""Make gan.json: a loop of Keras over two models and two optimizers.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.

A round is two steps of the discriminator, on real rows and rows of the generator, and one of the
generator through the discriminator, which stays as it is. {d_loss [rounds][2], g_loss [rounds],
weights [[numbers]]: of the generator, then of the discriminator}; initial weights and rows are made
by the arithmetic that test_gan.c repeats.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf
from keras import layers

NOISE, HIDDEN, SIZE, ROWS, ROUNDS = 3, 8, 5, 6, 12
keras.config.set_floatx("float64")


def net(inputs, hidden, outputs):
    i = layers.Input((inputs,))
    x = layers.Dense(hidden, activation="tanh")(i)
    return keras.Model(i, layers.Dense(outputs)(x))


g, d = net(NOISE, HIDDEN, SIZE), net(SIZE, HIDDEN, 1)
for k, w in enumerate(g.weights + d.weights):
    n = np.arange(np.prod(w.shape), dtype="int64")
    w.assign((((n * 7919 + 131 * k) % 1021 - 510) / 1024).reshape(w.shape))


def rows(n, size, seed):
    i, k = np.arange(n, dtype="int64")[:, None], np.arange(size, dtype="int64")[None, :]
    return tf.constant(((i * 131 + k * 37 + i * k * 7 + seed * 59) % 256 - 128) / 128, "float64")


betas = dict(beta_1=0.875, beta_2=0.9990234375)
d_optimizer = keras.optimizers.Adam(learning_rate=0.03125, **betas)
g_optimizer = keras.optimizers.Lamb(learning_rate=0.0625, **betas)


def loss_of(logits, target):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(target, logits))


def step(model_of_loss, model, optimizer):
    with tf.GradientTape() as tape:
        loss = model_of_loss()
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return float(loss)


d_loss, g_loss = [], []
for r in range(ROUNDS):
    if r == ROUNDS // 2:
        d_optimizer.learning_rate = 0.0078125
    for k in range(2):
        x = tf.concat([rows(ROWS, SIZE, 10 * r + k), g(rows(ROWS, NOISE, 10 * r + 5 + k))], 0)
        y = tf.concat([tf.ones((ROWS, 1), "float64"), tf.zeros((ROWS, 1), "float64")], 0)
        d_loss.append(step(lambda: loss_of(d(x), y), d, d_optimizer))
    z, y = rows(ROWS, NOISE, 10 * r + 9), tf.ones((ROWS, 1), "float64")
    g_loss.append(step(lambda: loss_of(d(g(z)), y), g, g_optimizer))
out = dict(d_loss=d_loss, g_loss=g_loss,
           weights=[w.numpy().reshape(-1).tolist() for w in g.weights + d.weights],
           iterations=[int(g_optimizer.iterations.numpy()), int(d_optimizer.iterations.numpy())])
with open("gan.json", "w") as f:
    f.write(json.dumps(out) + "\n")
