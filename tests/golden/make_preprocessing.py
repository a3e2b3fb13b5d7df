#!/usr/bin/env python3
"""Make preprocessing.keras and preprocessing.json: a model that begins with layers that make numbers
of what rows hold, adapted and given, before its first step; its rows, what it predicts, the losses
of two epochs, and what it predicts then. texts.keras is a whole classifier of texts, whose rows are
in texts.csv. Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import csv
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

WORDS = "the cat sat on a mat and saw that all dogs like fish".split()
N = 22


def adapted(layer, data):
    layer.adapt(data)
    return layer


def texts(rng, n):
    marks = ["", "!", ",", " ", "  "]
    return [
        " ".join(w.title() if rng.random() < 0.3 else w for w in rng.choice(WORDS, rng.integers(0, 9)))
        + marks[rng.integers(0, 5)]
        for _ in range(n)
    ]


def rows(rng):
    return {
        "text": np.array(texts(rng, N), dtype=object),
        "city": rng.choice(["a", "b", "", "zz"], (N, 1)).astype(object),
        "code": rng.integers(-2, 9, (N, 1)),
        "size": (rng.integers(-64, 65, (N, 3)) / 16).astype("float32"),
    }


def model(x):
    text = keras.Input((), dtype="string", name="text")
    city = keras.Input((1,), dtype="string", name="city")
    code = keras.Input((1,), dtype="int64", name="code")
    size = keras.Input((3,), name="size")
    cut = adapted(L.TextVectorization(max_tokens=9, output_sequence_length=6), x["text"].ravel())
    pairs = L.TextVectorization(vocabulary=["the cat", "cat sat", "on"], ngrams=2, output_mode="count")
    found = L.StringLookup(vocabulary=["a", "b"])(city)
    ranges = adapted(L.Discretization(num_bins=4), x["size"])
    h = L.Concatenate()(
        [
            L.GlobalAveragePooling1D()(L.Embedding(9, 4)(cut(text))),
            pairs(text),
            L.CategoryEncoding(num_tokens=3, output_mode="one_hot")(found),
            L.Flatten()(L.Embedding(5, 2)(L.Hashing(num_bins=5, mask_value=0)(code))),
            L.HashedCrossing(num_bins=6, output_mode="one_hot")([city, code]),
            L.HashedCrossing(num_bins=4, output_mode="one_hot")([found, code]),
            adapted(L.Normalization(), x["size"])(size),
            L.Flatten()(L.Embedding(4, 2)(ranges(size))),
            L.Normalization(mean=0.5, variance=4.0, invert=True)(size),
        ]
    )
    m = keras.Model([text, city, code, size], L.Dense(1, name="y")(L.Dense(5, activation="tanh")(h)))
    m.compile(keras.optimizers.SGD(0.05, momentum=0.9), "mse")
    return m


def classifier():
    rng = np.random.default_rng(5)
    keras.utils.set_random_seed(6)
    x = texts(rng, 40)
    y = np.array([len(t.split()) % 2 for t in x])
    m = keras.Sequential(
        [
            keras.Input((1,), dtype="string"),
            adapted(L.TextVectorization(max_tokens=12, output_sequence_length=8), x),
            L.Embedding(12, 6),
            L.GlobalAveragePooling1D(),
            L.Dense(1, activation="sigmoid"),
        ]
    )
    # Not Adam: on TensorFlow, Keras squares the gradients of a word's places one by one.
    m.compile(keras.optimizers.SGD(0.5, momentum=0.9), "binary_crossentropy", metrics=["accuracy"])
    m.save("texts.keras")
    with open("texts.csv", "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(["text", "y"])
        out.writerows(zip(x, y))
    xs = tf.constant(x)[:, None]
    h = m.fit(xs, y, batch_size=16, epochs=3, shuffle=False, verbose=0)
    return {
        "loss": h.history["loss"],
        "accuracy": h.history["accuracy"],
        "after": [float(v) for v in m.predict(xs, verbose=0).ravel()],
    }


def training():
    rng = np.random.default_rng(3)
    keras.utils.set_random_seed(4)
    x = rows(rng)
    m = model(x)
    m.save("preprocessing.keras")
    y = (rng.integers(-16, 17, (N, 1)) / 8).astype("float32")
    tensors = {k: tf.constant(v.tolist(), dtype=tf.int64 if k == "code" else None) for k, v in x.items()}
    before = m.predict(tensors, verbose=0)
    h = m.fit(tensors, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return {
        "rows": N,
        **{k: v.ravel().tolist() for k, v in x.items()},
        "y": [float(v) for v in y.ravel()],
        "before": [float(v) for v in before.ravel()],
        "loss": h.history["loss"],
        "after": [float(v) for v in m.predict(tensors, verbose=0).ravel()],
    }


with open("preprocessing.json", "w") as f:
    json.dump({"training": training(), "texts": classifier()}, f, ensure_ascii=False, indent=0)
    f.write("\n")
