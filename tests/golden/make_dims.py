#!/usr/bin/env python3
"""Make dims.npz, dims_words.npz and dims_*.keras: models with open dims (None), trained by the real Keras.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.

dims_CASE.keras is the model before its first step, compiled. dims.npz holds the rows and what comes
of them: rows of tokens differ in length and are padded with 0 per batch, to the longest of the batch
or to a bucket; words too, with empty texts, as archive dims_words.npz has them; images have one size in
the first training and another in the second. test_ragged.c and test_dims.c train the same and compare.
"""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf
from keras import layers

ROWS, BATCH, EPOCHS, VOCABULARY, CLASSES = 23, 4, 3, 13, 3
BUCKETS = [4, 8, 16]
rng = np.random.default_rng(11)
out = {}


def text():
    return keras.Sequential(
        [
            layers.Input((None,), dtype="int32", name="tokens"),
            layers.Embedding(VOCABULARY, 6, mask_zero=True),
            layers.GlobalAveragePooling1D(),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def over_time():
    """Steps that pad a row do not count."""
    return keras.Sequential(
        [
            layers.Input((None,), dtype="int32", name="tokens"),
            layers.Embedding(VOCABULARY, 6, mask_zero=True),
            layers.Bidirectional(layers.LSTM(5, return_sequences=True)),
            layers.GRU(4),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def tags():
    """A class for each token: targets differ in length, too."""
    return keras.Sequential(
        [
            layers.Input((None,), dtype="int32", name="tokens"),
            layers.Embedding(VOCABULARY, 6, mask_zero=True),
            layers.Dense(5, activation="tanh"),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def words():
    """Texts: what is behind a row is looked up as the mask, and some words are not known."""
    return keras.Sequential(
        [
            layers.Input((None,), dtype="string", name="tokens"),
            layers.StringLookup(vocabulary=[f"w{i}" for i in range(1, 10)], mask_token=""),
            layers.Embedding(VOCABULARY, 6, mask_zero=True),
            layers.GlobalAveragePooling1D(),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def places():
    """One token of each row: as many classes as tokens."""
    return keras.Sequential(
        [
            layers.Input((None,), dtype="int32", name="tokens"),
            layers.Embedding(VOCABULARY, 6),
            layers.Dense(1),
            layers.Flatten(),
            layers.Softmax(),
        ]
    )


def images():
    return keras.Sequential(
        [
            layers.Input((None, None, 2), name="image"),
            layers.Conv2D(4, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.BatchNormalization(),
            layers.Conv2D(3, 2, strides=2),
            layers.GlobalAveragePooling2D(),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )


def pad(rows, buckets):
    """tf.data's padded_batch, to the longest or to the bucket that this one fits in."""
    longest = max(len(r) for r in rows)
    if buckets:
        longest = min(b for b in buckets if b >= longest)
    return np.array([list(r) + [0] * (longest - len(r)) for r in rows], "int32")


def keep(case, model):
    for i, w in enumerate(model.get_weights()):
        out[f"{case}_weight_{i}"] = w


def pad_words(rows, buckets):
    return tf.constant([[f"w{i}" if i else "" for i in r] for r in pad(rows, buckets)])


def train(case, make, target, buckets=None, pad=pad):
    keras.utils.set_random_seed(5)
    model = make()
    # not Adam: of an Embedding TensorFlow has sparse gradients, and Keras squares their parts there
    # before it adds up those of one row
    model.compile(keras.optimizers.SGD(0.25, momentum=0.875), "sparse_categorical_crossentropy")
    if not buckets:
        model.save(f"dims_{case}.keras")
    for _ in range(EPOCHS):
        for i in range(0, ROWS, BATCH):
            model.train_on_batch(pad(tokens[i : i + BATCH], buckets), target(i, buckets))
    case += "_buckets" if buckets else ""
    keep(case, model)
    rows = [model.predict_on_batch(pad(tokens[i : i + BATCH], buckets)) for i in range(0, ROWS, BATCH)]
    if rows[0].ndim == 2:
        out[f"{case}_predicted"] = np.concatenate(rows)


lengths = rng.integers(1, 14, ROWS)
tokens = [rng.integers(1, VOCABULARY, n) for n in lengths]
labels = rng.integers(0, CLASSES, ROWS).astype("int32")
tag = [rng.integers(0, CLASSES, n) for n in lengths]
out["tokens"] = np.concatenate(tokens).astype("int32")
out["tokens_row_lengths"] = lengths.astype("int64")
out["labels"] = labels
out["tags"] = np.concatenate(tag).astype("int32")

for buckets in None, BUCKETS:
    train("text", text, lambda i, b: labels[i : i + BATCH], buckets)
    train("time", over_time, lambda i, b: labels[i : i + BATCH], buckets)
    train("tags", tags, lambda i, b: pad(tag[i : i + BATCH], b), buckets)
    train("words", words, lambda i, b: labels[i : i + BATCH], buckets, pad_words)

model = places()
model.compile(keras.optimizers.SGD(0.25, momentum=0.875), "sparse_categorical_crossentropy")
model.save("dims_places.keras")

keras.utils.set_random_seed(6)
model = images()
model.compile(keras.optimizers.SGD(0.0625, momentum=0.875), "sparse_categorical_crossentropy")
model.save("dims_images.keras")
for k, (h, w) in enumerate([(9, 12), (14, 7)]):
    out[f"images_{k}"] = x = (rng.integers(-64, 65, (10, h, w, 2)) / 64).astype("float32")
    out[f"images_{k}_labels"] = y = rng.integers(0, CLASSES, 10).astype("int32")
    model.fit(x, y, batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0)
keep("images", model)
out["images_predicted"] = model.predict(out["images_0"], verbose=0)

np.savez_compressed("dims.npz", **out)
np.savez_compressed(
    "dims_words.npz",
    x=np.array([f"w{i}" for i in out["tokens"]]),
    x_row_splits=np.concatenate([[0], np.cumsum(lengths)]).astype("int64"),
    y=labels,
)
