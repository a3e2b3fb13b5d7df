#!/usr/bin/env python3
"""Every layer and every operation of the golden numbers, as Keel saves it: does Keras read it?

    cases.py path/to/keel path/to/cases [--every N] [NUMBER...]

cases (tests/interop/cases.c) writes the models, each with the configuration that Keel writes. Keras
loads each and both predict the same rows: the largest |a - b| must stay below 1e-5 of the largest
|b|. Layers that draw numbers do not draw in predict. Where Keras cannot read or compute what it
wrote itself, CANNOT says why. Failures are printed, then 'N passed, N failed'.
"""
import argparse
import os
import subprocess
import sys
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf
from keras.src.applications import convnext, inception_resnet_v2  # their layers are registered

ROWS, OPEN, ALLOWED = 3, 4, 1e-5
WHOLE = ("Embedding", "CategoryEncoding", "IntegerLookup", "Hashing", "HashedCrossing")
CUSTOM = {"LayerScale": convnext.LayerScale, "CustomScaleLayer": inception_resnet_v2.CustomScaleLayer}
CANNOT = {  # the name of a case: why
    "Equalization": "Keras does not read the graph that it saved itself",
    "AdaptiveAveragePooling3D": "Keras computes no more places than it gets",
    "RandomCrop": "Keras leaves the image whole (README, differences)",
    "MelSpectrogram": "Keras takes the loudest number of the batch (README, differences)",
    "adaptive_average_pool": "Keras does not read the list that it wrote for a tuple",
    "softmax of two (JAX)": "Keras compares the list of axes that it wrote for a tuple with a number",
    "log_softmax of two (JAX)": "Keras compares the list of axes that it wrote for a tuple with a number",
    "adaptive_max_pool": "Keras does not read the list that it wrote for a tuple",
}


def is_miscomputed(model):
    """TensorFlow computes one-dimensional convolutions in groups with channels first wrongly, and in
    each run otherwise; the golden numbers are those of channels last."""
    return any(getattr(layer, "data_format", "") == "channels_first"
               and (isinstance(layer, keras.layers.DepthwiseConv1D)
                    or isinstance(layer, keras.layers.Conv1D) and layer.groups > 1)
               for layer in model._flatten_layers())  # fmt: skip


def rows_of(model):
    """An array for each input: the numbers of test_operations.c, or whole numbers."""
    whole = any(type(layer).__name__.endswith(WHOLE) for layer in model._flatten_layers())
    rows = []
    for i, t in enumerate(model.inputs):
        shape = (ROWS, *(OPEN if d is None else d for d in t.shape[1:]))
        n = np.arange(np.prod(shape)) * 37 + 29 * i + 11
        rows.append((n % 3 if whole else (n % 101 - 50) / 32).reshape(shape).astype("float32"))
    return rows


def predict_by_keel(keel, folder, path, model, x):
    data, out = os.path.join(folder, "d.npz"), os.path.join(folder, "p.npy")
    np.savez(data, **{f"x_{i}" if len(x) > 1 else "x": a for i, a in enumerate(x)})
    done = subprocess.run([keel, "predict", path, "--data", data, "--devices", "cpu:0", "-o", out],
                          capture_output=True, text=True)  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"keel predict: {' '.join(done.stderr.split())[-400:]}")
    names = []  # Keras gives the outputs of one operation one name
    for n in model.output_names:
        names.append(n if n not in names else f"{n}_{model.output_names[: len(names)].count(n)}")
    return [np.load(f) for f in
            ([out] if len(names) == 1 else [out.replace(".npy", f"_{n}.npy") for n in names])]  # fmt: skip


def compare(keel, folder, path):
    """What is wrong, or ''."""
    model = keras.models.load_model(path, custom_objects=CUSTOM)
    if is_miscomputed(model):
        return ""
    x = rows_of(model)
    outputs = tf.nest.flatten(model(x if len(x) > 1 else x[0], training=False))
    want = [np.asarray(tf.sparse.to_dense(a) if isinstance(a, tf.SparseTensor) else a) for a in outputs]
    for a, b in zip(predict_by_keel(keel, folder, path, model, x), want):
        if a.shape != b.shape:
            return f"output {a.shape}, in Keras {b.shape}"
        a, b = a.astype("float64"), b.astype("float64")
        if not np.array_equal(np.isfinite(a), np.isfinite(b)):
            return "not finite in other places than in Keras"
        there = np.isfinite(b)
        apart = np.abs(a - b)[there].max(initial=0) / max(np.abs(b[there]).max(initial=0), 1e-30)
        if apart > ALLOWED:
            return f"output differs by {apart:.1e}"
    return ""


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("keel")
    a.add_argument("program")
    a.add_argument("numbers", nargs="*")
    a.add_argument("--every", type=int, default=1, help="take only the cases whose number is a multiple")
    args = a.parse_args()
    keel, program, only = os.path.abspath(args.keel), args.program, set(args.numbers)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, folder], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr.strip() or f"{program} ended with {done.returncode}")
        for line in done.stdout.splitlines():
            number, name = line.split(" ", 1)
            if name in CANNOT or (only and number not in only) or int(number) % args.every:
                continue
            keras.backend.clear_session()
            try:
                wrong = compare(keel, folder, os.path.join(folder, f"{number}.keras"))
            except Exception as e:
                wrong = f"{type(e).__name__}: {' '.join(str(e).split())[:300]}"
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print(f"FAILED {number:4} {name}: {wrong}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
