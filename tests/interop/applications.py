#!/usr/bin/env python3
"""Every model of keras.applications in Keel and in real Keras, as a table.

    applications.py --keel build/keel [--only VGG16,ResNet50] [--markdown OUT.md]

Each model is made by Keras with random weights and ten classes, on the smallest images that it takes
(at least 64x64). Its moving statistics are those of the images and no weight is left at zero or
one, so that every weight matters; dropout is 0, because Keel draws other numbers. Then:

    loads    keel inspect takes the file; else what is missing, by name
    predict  largest difference of keel predict, relative to the largest output
    step     one step of SGD: the difference of all updates of weights, relative to Keras's updates
             (both as the length of the vector of all trainable weights), read by Keras from the
             file that keel fit wrote
    state    largest difference of a moving statistic after it, relative to the largest of its weight

`round` is what Keras itself changes in `step` if the images are moved by 1e-7 of themselves:
what rounding alone makes of the model. A model passes if predict is at most 1e-4 and step at most
1e-3, or ten times `round` where that is more.
The last line is 'N passed, N failed'. Run with Keras 3, KERAS_BACKEND=tensorflow.
"""
import argparse
import gc
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np

SMALLEST = {"Xception": 71, "InceptionV3": 75, "InceptionResNetV2": 75}
BYTES = ("EfficientNet", "ConvNeXt", "MobileNetV3") # they take pixels of 0 to 255
BATCH = 6


def names():
    """The classes of keras.applications: what can be called with weights=None."""
    return sorted(n for n in dir(keras.applications) if n[0].isupper())


def make(name):
    side = SMALLEST.get(name, 64)
    model = getattr(keras.applications, name)(weights=None, classes=10,
                                              input_shape=(side, side, 3))
    config = model.get_config()
    for layer in config["layers"]:
        if layer["class_name"] == "Dropout":
            layer["config"]["rate"] = 0.0
    return keras.Model.from_config(config)


def fill(model, x, random):
    for w in model.weights:
        if len(w.shape) == 1 and w.dtype == "float32":
            noise = 0.1 * random.standard_normal(w.shape).astype("float32")
            w.assign(w.numpy() + (np.abs(noise) if "variance" in w.path else noise))
    for l in model.layers:  # it computes with copies of its weights
        if isinstance(l, keras.layers.Normalization):
            l.finalize_state()
    norms = [l for l in model.layers if isinstance(l, keras.layers.BatchNormalization)]
    momenta = [l.momentum for l in norms]
    for l in norms:
        l.momentum = 0.0
    model(x, training=True)
    for l, m in zip(norms, momenta):
        l.momentum = m
        l.moving_variance.assign_add([0.1] * l.moving_variance.shape[0]) # channels that are dead


def step(model, x, y, before):
    for w, b in zip(model.weights, before):
        w.assign(b)
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss="sparse_categorical_crossentropy",
                  run_eagerly=True)
    model.train_on_batch(x, y)
    return [w.numpy() for w in model.weights]


def apart(model, a, b, before):
    """The differences of two sets of weights: of updates, and of what is not trained."""
    d = n = state = 0.0
    for w, u, v, s in zip(model.weights, a, b, before):
        if w.trainable:
            d += np.square(u.astype("float64") - v).sum()
            n += np.square(v.astype("float64") - s).sum()
        elif u.size and u.dtype.kind == "f":
            state = max(state, np.abs(u - v).max() / max(np.abs(v).max(), 1e-30))
    return float(np.sqrt(d / n)), float(state)


def keel(*args):
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"


def measure(program, name, folder):
    random = np.random.default_rng(1)
    keras.utils.set_random_seed(1)
    model = make(name)
    side = model.input_shape[1]
    x = random.uniform(0, 255, (BATCH, side, side, 3)) if name.startswith(BYTES) else \
        random.uniform(-1, 1, (BATCH, side, side, 3))
    x = x.astype("float32")
    y = random.integers(0, 10, BATCH).astype("int32")
    path, data = os.path.join(folder, "m.keras"), os.path.join(folder, "d.npz")
    out, trained = os.path.join(folder, "p.npy"), os.path.join(folder, "t.keras")
    np.savez(data, x=x, y=y)
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss="sparse_categorical_crossentropy")
    model.save(path)
    row = {"model": name, "weights": model.count_params(), "missing": keel(program, "inspect", path)}
    if row["missing"]:
        return row
    fill(model, x, random)
    before = [w.numpy() for w in model.weights]
    model.save(path)
    row["missing"] = keel(program, "predict", path, "--data", data, "-o", out, "--batch-size", "4")
    if row["missing"]:
        return row
    want = model(x, training=False).numpy()
    row["predict"] = float(np.abs(np.load(out) - want).max() / np.abs(want).max())
    row["missing"] = keel(program, "fit", path, "--data", data, "-o", trained, "--batch-size",
                          str(BATCH), "--no-shuffle", "--epochs", "1")
    if row["missing"]:
        return row
    after = step(model, x, y, before)
    moved = step(model, x * np.float32(1 + 1e-7), y, before)
    row["round"], _ = apart(model, moved, after, before)
    model.load_weights(trained)
    got = [w.numpy() for w in model.weights]
    row["step"], row["state"] = apart(model, got, after, before)
    return row


def passed(row):
    return (not row["missing"] and row["predict"] <= 1e-4 and
            row["step"] <= max(1e-3, 10 * row["round"]))


def line(row):
    if row["missing"]:
        return f"| {row['model']} | {row['weights']:,} | no: {row['missing']} | | | | |"
    return (f"| {row['model']} | {row['weights']:,} | yes | {row['predict']:.1e} | "
            f"{row['step']:.1e} | {row['round']:.1e} | {row['state']:.1e} |")


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--keel", default="build/keel")
    args.add_argument("--only", help="models, separated by commas")
    args.add_argument("--markdown", help="write the table to this file, too")
    args = args.parse_args()
    rows = []
    head = ["| model | weights | loads | predict | step | round | state |",
            "|---|---|---|---|---|---|---|"]
    print(*head, sep="\n", flush=True)
    for name in args.only.split(",") if args.only else names():
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(os.path.abspath(args.keel), name, folder))
        print(line(rows[-1]), flush=True)
        keras.backend.clear_session()
        gc.collect()
    if args.markdown:
        with open(args.markdown, "w") as f:
            print(*head, *map(line, rows), sep="\n", file=f)
    failed = sum(not passed(r) for r in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
