#!/usr/bin/env python3
"""Make masks.json: models whose attention removes a mask that later layers were called with, what
each predicts, and its loss; and masks_inside.keras, a model that calls models on inputs of which only
some have masks, with the same numbers. Weights, rows and targets are made by the arithmetic of
test_masks.c. Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L

IDS = np.array([[1, 6, 3, 8], [5, 0, 0, 0], [2, 3, 0, 0], [5, 4, 1, 0]], "int32")


def number(shape, k):
    return ((np.arange(np.prod(shape)) * 37 + 29 * k + 11) % 101 - 50) / 100


def attend(x):
    return L.MultiHeadAttention(2, 3)(x, x)


def second(x):
    x = L.LayerNormalization()(x)
    return L.Add()([x, attend(x)])


CASES = {
    "a loss behind a sum with an attention": lambda e, x: x,
    "a GRU behind the sum": lambda e, x: L.GRU(3, return_sequences=True)(x),
    "an LSTM behind the sum": lambda e, x: L.LSTM(3, return_sequences=True)(x),
    "a mean over the sum": lambda e, x: L.GlobalAveragePooling1D()(x),
    "a second attention": lambda e, x: second(x),
    "a GRU behind a second attention": lambda e, x: L.GRU(3, return_sequences=True)(second(x)),
    "a mean over a second attention": lambda e, x: L.GlobalAveragePooling1D()(second(x)),
    "a product with what attention was called on": lambda e, x: L.Multiply()([x, e]),
    "an attention of the sum to its input": lambda e, x: L.Attention()([x, e]),
}


def set_weights(m):
    for k, w in enumerate(m.weights):
        w.assign(number(w.shape, k).reshape(w.shape))


def numbers(m, rows):
    y = m.predict(rows, verbose=0)
    return {"loss": m.evaluate(rows, number(y.shape, 99).reshape(y.shape), verbose=0),
            "out": y.ravel().tolist()}


def case(make):
    keras.utils.clear_session()
    ids = keras.Input((4,), dtype="int32")
    e = L.Embedding(9, 8, mask_zero=True)(ids)
    m = keras.Model(ids, L.Dense(1)(make(e, L.Add()([attend(e), e]))))
    set_weights(m)
    m.compile(loss="mse")
    return numbers(m, IDS)


def each(inputs, layer):
    """A model of several inputs, with a layer of its own for each."""
    return keras.Model(inputs, L.Concatenate()([layer()(x) for x in keras.tree.flatten(inputs)]))


def inside():
    """Calls of models on [no mask, mask], {no mask, mask}, [no mask, mask, no mask], and [a mask that
    comes out of a model, mask], of which Keras knows the second alone before it runs."""
    def time(name=None):
        return keras.Input((4, 3), name=name)

    keras.utils.clear_session()
    rows, ids = keras.Input((4, 3), name="rows"), keras.Input((4,), dtype="int32", name="ids")
    e = L.Embedding(9, 3, mask_zero=True)(ids)
    i = keras.Input((4,), dtype="int32")
    words = keras.Model(i, L.Embedding(9, 3, mask_zero=True)(i))
    parts = [
        each([time(), time()], lambda: L.LSTM(2))([rows, e]),
        each({"p": time("p"), "q": time("q")}, lambda: L.GRU(2))({"p": rows, "q": e}),
        each([time(), time(), time()], lambda: L.SimpleRNN(2))([rows, e, rows]),
        each([time(), time()], L.GlobalAveragePooling1D)([words(ids), e]),
    ]
    m = keras.Model([rows, ids], L.Dense(1)(L.Concatenate()(parts)))
    set_weights(m)
    m.compile("sgd", loss="mse")
    m.save("masks_inside.keras")
    return numbers(m, [number((4, 4, 3), 98).reshape(4, 4, 3), IDS])


golden = {"cases": {k: case(v) for k, v in CASES.items()}, "inside": inside()}
with open("masks.json", "w") as f:
    json.dump(golden, f, allow_nan=False, separators=(",", ":"))
    f.write("\n")
