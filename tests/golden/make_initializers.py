#!/usr/bin/env python3
"""Make initializers.json: [class, config, shape, values] of initializers without chance. Run with
Keras 3, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import initializers as I

WINDOWS = ("barthann", "bartlett", "bohman", "cosine", "exponential", "lanczos", "parzen", "taylor", "triang",
           "tukey", "hann_periodic", "blackman_symmetric", "rect", "sinc", "flt", "tri_periodic", "tuk",
           "taylorwin_periodic", "par", "poisson_symmetric", "halfcosine", "bman")
CASES = [
    (I.STFT(), (5, 1, 5)),
    (I.STFT("imag"), (40, 1, 3)),
    (I.STFT("imag", "hamming", "spectrum", True), (4, 1, 3)),
    (I.STFT("real", "blackman", None), (6, 1, 3)),
    (I.STFT("real", "boxcar", "spectrum"), (3, 1, 3)),
    (I.STFT("real", "nuttall", "density", True), (5, 1, 3)),
    (I.STFT("real", "blackmanharris"), (5, 1, 3)),
    (I.STFT("real", "flattop", "spectrum"), (5, 1, 3)),
    (I.STFT("imag", [1.0, -2.0, 0.5]), (3, 1, 3)),
    (I.STFT("real", None), (3, 1, 4)),
    (I.STFT(), (1, 1, 2)),
    *[(I.STFT("real", w, None, n % 2 > 0), (n, 1, 2)) for n, w in enumerate(WINDOWS, 2)],
    *[(I.STFT("imag", w, "spectrum", n % 2 == 0), (n, 1, 3)) for n, w in enumerate(WINDOWS, 5)],
    (I.Constant(0.5), (2, 2)),
    (I.Constant([1.0, 2.0, 3.0]), (3,)),
    (I.Constant([1, 2, 3]), (2, 3)),
    (I.Constant([[1.0], [2.0]]), (2, 3)),
    (I.Constant([[[1.0, 2.0]], [[3.0, 4.0]]]), (2, 3, 2)),
    (I.Constant([7.0]), (2, 2)),
]
with open("initializers.json", "w") as f:
    rows = []
    for k, shape in CASES:
        values = [float("%.8g" % v) for v in np.ravel(k(shape))]
        rows.append(json.dumps([type(k).__name__, k.get_config(), shape, values]))
    f.write("[\n" + ",\n".join(rows) + "\n]\n")
