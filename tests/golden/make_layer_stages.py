#!/usr/bin/env python3
"""Make layer_stages.json: what the layers of preprocessing that draw nothing make of rows in a tf.data
pipeline, ds.map(layer).

A case has the class, its arguments, the type and the shape of a row, the number of a batch's rows (0: rows
are mapped before they are batched) and what comes out, with its type. Number k of the input is
(37 k + 11) % 101, for float32 divided by 101; texts are the words of the case in turn. Run with Keras 3 on
TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import numpy as np
import tensorflow as tf
from keras import layers as L

ROWS = 3
WORDS = ["a", "b", "zz", "", "b a", "A. c"]
CASES = [  # class, arguments, type, shape of a row, batch
    (L.Rescaling, dict(scale=1 / 255), "uint8", (4, 5, 3), 0),
    (L.Rescaling, dict(scale=1 / 127.5, offset=-1), "uint8", (4, 5, 3), 2),
    (L.Rescaling, dict(scale=3, offset=0.25), "float32", (7,), 0),
    (L.Normalization, dict(mean=[1, 2, 3], variance=[4, 1, 0.25]), "uint8", (4, 5, 3), 2),
    (L.Normalization, dict(mean=5.0, variance=4.0, axis=None), "float32", (6,), 2),
    (L.Resizing, dict(height=6, width=3), "uint8", (4, 5, 3), 2),
    (L.Resizing, dict(height=6, width=3, interpolation="nearest"), "uint8", (4, 5, 3), 0),
    (L.Resizing, dict(height=3, width=3, crop_to_aspect_ratio=True), "float32", (4, 6, 1), 0),
    (L.CenterCrop, dict(height=2, width=3), "uint8", (4, 5, 3), 0),
    (L.CenterCrop, dict(height=2, width=3), "float32", (4, 5, 3), 2),
    (L.Discretization, dict(bin_boundaries=[0.2, 0.5, 0.9]), "float32", (5,), 2),
    (L.CategoryEncoding, dict(num_tokens=101), "int64", (4,), 2),
    (L.CategoryEncoding, dict(num_tokens=101, output_mode="one_hot"), "int64", (), 2),
    (L.IntegerLookup, dict(vocabulary=[11, 48, 85]), "int64", (3,), 2),
    (L.StringLookup, dict(vocabulary=["a", "b"]), "string", (2,), 2),
    (L.StringLookup, dict(vocabulary=["a", "b"], output_mode="multi_hot"), "string", (2,), 2),
    (L.TextVectorization, dict(vocabulary=["a", "b", "c"], output_sequence_length=3), "string", (1,), 2),
    (L.Hashing, dict(num_bins=5), "string", (2,), 2),
    (L.Hashing, dict(num_bins=7), "int64", (2,), 2),
    (L.MelSpectrogram, dict(num_mel_bins=4, sampling_rate=100, sequence_stride=8, fft_length=16), "float32", (64,), 2),
    (L.STFTSpectrogram, dict(mode="magnitude", frame_length=16, frame_step=8, fft_length=16), "float32", (64, 1), 2),
    (L.AutoContrast, dict(), "uint8", (4, 5, 3), 2),
    (L.Equalization, dict(), "uint8", (4, 5, 3), 0),  # of a batch Keras makes one histogram
]  # fmt: skip


def rows_of(dtype, shape):
    n = ROWS * int(np.prod(shape, dtype=int))
    if dtype == "string":
        return np.array([WORDS[k % len(WORDS)] for k in range(n)], object).reshape((ROWS, *shape))
    x = (np.arange(n) * 37 + 11) % 101
    x = x.astype("float32") / np.float32(101) if dtype == "float32" else x.astype(dtype)
    return x.reshape((ROWS, *shape))


def main():
    out = []
    for layer_class, config, dtype, shape, batch in CASES:
        layer = layer_class(**config)
        data = tf.data.Dataset.from_tensor_slices(tf.constant(rows_of(dtype, shape)))
        if batch:
            data = data.batch(batch).map(layer).unbatch()
        else:
            data = data.map(layer)
        y = np.stack([v.numpy() for v in data])
        numbers = [float(f"{v:.9g}") for v in y.astype("float64").ravel()]
        out.append(dict(
            name=layer_class.__name__, config=config, dtype=dtype, row=shape, batch=batch,
            out=y.shape[1:], out_dtype=y.dtype.name, y=[int(v) if v == int(v) else v for v in numbers],
        ))  # fmt: skip
    with open("layer_stages.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in out) + "\n]\n")


main()
