#!/usr/bin/env python3
"""Make stateful.json and stateful_*.keras: models of stateful layers, run by the real Keras.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.

stateful_CASE.keras is the model before its first step, compiled. stateful.json holds the rows and, for
each case, what follows one upon another: the losses of two epochs with validation, which share the
states with training; the loss of evaluate; predictions that go on from there; and, after the states
are set to 0, predictions again. test_stateful.c does the same and compares.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L

ROWS, BATCH, TIME, CHANNELS = 18, 6, 5, 3
rng = np.random.default_rng(8)
x = (rng.integers(-16, 17, (ROWS, TIME, CHANNELS)) / 8).astype("float32")
y = (rng.integers(-8, 9, (ROWS, 2)) / 8).astype("float32")
x[7, 3:] = x[2, :2] = x[16, 1:] = 0  # masked, where there is a Masking layer


def lstm(i):
    return L.LSTM(4, stateful=True)(i)


def each(i):
    h = L.Masking()(i)
    gru = L.GRU(3, stateful=True, return_sequences=True, go_backwards=True, bias_initializer="he_normal")(h)
    plain = L.SimpleRNN(3, stateful=True, activation="relu")(gru)
    before = L.GRU(3, stateful=True, reset_after=False)(i)
    return L.Concatenate()([plain, before])


def two_ways(i):
    h = L.Masking()(i)
    h = L.Bidirectional(L.LSTM(3, stateful=True, return_sequences=True), merge_mode="sum")(h)
    cells = [L.LSTMCell(3), L.GRUCell(2), L.SimpleRNNCell(2)]
    return L.RNN(cells, stateful=True)(h)


def images(i):
    h = L.Reshape((TIME, CHANNELS, 1))(i)
    h = L.ConvLSTM1D(2, 2, stateful=True, padding="same", return_sequences=True)(h)
    return L.Flatten()(L.ConvLSTM1D(2, 2, stateful=True)(h))


def layers_of(m):
    for l in m._flatten_layers():
        if getattr(l, "stateful", False) and getattr(l, "states", None) is not None:
            yield l


def reset(m):  # reset_state of Keras 3.15 fails for several cells
    for l in layers_of(m):
        for v in keras.tree.flatten(l.states):
            v.assign(np.zeros(v.shape))


out = {
    "batch": BATCH,
    "x": {"shape": list(x.shape), "values": x.ravel().tolist()},
    "y": {"shape": list(y.shape), "values": y.ravel().tolist()},
    "cases": [],
}
for k, make in enumerate((lstm, each, two_ways, images)):
    keras.utils.set_random_seed(40 + k)
    i = keras.Input(batch_shape=(BATCH, TIME, CHANNELS), name="x")
    m = keras.Model(i, L.Dense(2, name="y")(make(i)))
    m.compile(keras.optimizers.SGD(0.1), "mse")
    m.save(f"stateful_{make.__name__}.keras")
    h = m.fit(x, y, batch_size=BATCH, epochs=2, shuffle=False, verbose=0,
              validation_data=(x[:12], y[:12]), validation_batch_size=BATCH).history
    case = {"name": make.__name__, "loss": h["loss"], "val_loss": h["val_loss"]}
    case["evaluate"] = m.evaluate(x, y, batch_size=BATCH, verbose=0)
    case["goes_on"] = m.predict(x, batch_size=BATCH, verbose=0).ravel().tolist()
    reset(m)
    case["from_zero"] = m.predict(x, batch_size=BATCH, verbose=0).ravel().tolist()
    out["cases"].append(case)


def rounded(v):
    if isinstance(v, float):
        return float(f"{v:.8g}")
    if isinstance(v, list):
        return [rounded(w) for w in v]
    return {k: rounded(w) for k, w in v.items()} if isinstance(v, dict) else v


with open("stateful.json", "w") as f:
    json.dump(rounded(out), f)
    f.write("\n")
