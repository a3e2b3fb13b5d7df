#!/usr/bin/env python3
"""Does the answer depend on the number of devices? The same 72 trainings by Keras and by Keel.

    exactness.py --keel build/keel [--peers none|few|all] [--jobs N]      prints Markdown

Two models (mlp: 20-32-5; bn: Conv2D(8, 3) without bias, BatchNormalization(momentum 0.9), ReLU, global
average, Dense(5) on 12x12x3), nine numbers of rows and four of devices: the same initial weights, rows
and order, batch size 16, 2 epochs, SGD 0.05. A cell is the largest difference from the same program's
own run on one device over the largest weight of that tensor, the worst of all tensors; 'crash' is a
run that did not finish.

Keras trains with MirroredStrategy over logical CPU devices (on one: without a strategy), Keel with
`keel fit --devices cpu:0-(N-1)`. Every run is a process of its own with a time limit. Needs Keras 3
on TensorFlow, also for Keel's part: it makes the initial model and reads the results.
"""
import argparse
import concurrent.futures
import os
import subprocess
import sys
import tempfile
import zipfile

ROWS, DEVICES, MODELS = (96, 97, 98, 99, 103, 17, 16, 5, 1), (2, 3, 4, 8), ("mlp", "bn")
FEW = [("mlp", 96, 2), ("mlp", 97, 2), ("mlp", 96, 3), ("bn", 96, 2), ("bn", 97, 2), ("bn", 5, 4)]
EQUAL, LIMIT = 1e-5, 300

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["KERAS_BACKEND"] = "tensorflow"


def build(kind):
    import keras
    from keras import layers

    keras.utils.set_random_seed(1)
    if kind == "mlp":
        stack = [layers.Input((20,)), layers.Dense(32, "relu"), layers.Dense(5, "softmax")]
    else:
        stack = [
            layers.Input((12, 12, 3)),
            layers.Conv2D(8, 3, use_bias=False),
            layers.BatchNormalization(momentum=0.9),
            layers.ReLU(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5, "softmax"),
        ]
    m = keras.Sequential(stack)
    m.compile(keras.optimizers.SGD(0.05), "sparse_categorical_crossentropy")
    return m


def data(kind, rows):
    import numpy as np

    chance = np.random.default_rng(2)
    shape = (20,) if kind == "mlp" else (12, 12, 3)
    x = chance.normal(size=(103, *shape)).astype("float32")
    y = chance.integers(0, 5, 103).astype("int32")
    return x[:rows], y[:rows]


def by_keras(kind, rows, devices, out):
    """Runs in a process of its own."""
    import contextlib

    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration() for _ in range(devices)],
    )
    scope = contextlib.nullcontext()
    if devices > 1:
        scope = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(devices)]).scope()
    x, y = data(kind, rows)
    with scope:
        m = build(kind)
    m.fit(x, y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    m.save(out)


def weights(path):
    """Every array of the file but the optimizer's, by its path."""
    import io

    import h5py

    found = {}

    def see(name, item):
        if isinstance(item, h5py.Dataset) and not name.startswith("optimizer"):
            found[name] = item[()]

    with zipfile.ZipFile(path) as z:
        with h5py.File(io.BytesIO(z.read("model.weights.h5")), "r") as f:
            f.visititems(see)
    return found


def apart(path, one):
    import numpy as np

    worst = 0.0
    a, b = weights(path), weights(one)
    assert a.keys() == b.keys() and a
    for name in b:
        most = np.abs(b[name]).max()
        d = np.abs(a[name] - b[name]).max() / (most if most > 0 else 1)
        worst = max(worst, float(d) if np.isfinite(d) else float("inf"))
    return worst


class side:
    """One program's runs; a run leaves a file, or nothing and a line that says why."""

    def __init__(self, name, folder, command):
        self.name, self.folder, self.command = name, folder, command

    def path(self, *cell):
        return os.path.join(self.folder, f"{self.name}-{'-'.join(map(str, cell))}.keras")

    def run(self, cell):
        out = self.path(*cell)
        try:
            done = subprocess.run(
                self.command(*cell, out), capture_output=True, text=True, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            return f"no end within {LIMIT} s"
        if done.returncode == 0 and os.path.exists(out):
            return None
        lines = [i for i in done.stderr.splitlines() if "rror: " in i or i.startswith("keel")]
        shapes = [i for i in done.stderr.splitlines() if "ncompatible shapes" in i]
        return (shapes or lines or [f"exit status {done.returncode}"])[-1].strip()

    def cells(self, wanted, jobs):
        """{cell: difference, or None for a crash}, and the first line of each kind of crash."""
        ones = sorted({(kind, rows, 1) for kind, rows, _ in wanted})
        result, why = {}, {}
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for cell, error in zip([*ones, *wanted], pool.map(self.run, [*ones, *wanted])):
                if error and cell in ones:
                    raise RuntimeError(f"{self.name} on one device, {cell}: {error}")
                if error:  # one example of each kind, whatever its numbers
                    kind = "".join(i for i in error if not i.isdigit())
                    why.setdefault(kind, (error, cell))
                if cell not in ones:
                    one = self.path(cell[0], cell[1], 1)
                    result[cell] = None if error else apart(self.path(*cell), one)
                    print(f"{self.name} {cell}: {result[cell]} {error or ''}", file=sys.stderr)
        return result, why


def shown(d):
    if d is None:
        return "crash"
    return f"{d:.0e}" if d <= EQUAL else f"**{d:.2g}**"


def table(title, result, why):
    print(f"\n{title}\n")
    print("| rows | " + " | ".join(f"{m} {d}" for m in MODELS for d in DEVICES) + " |")
    print("|---|" + "---|" * (len(MODELS) * len(DEVICES)))
    for rows in ROWS:
        cells = [(m, rows, d) for m in MODELS for d in DEVICES]
        if any(c in result for c in cells):
            texts = [shown(result[c]) if c in result else "" for c in cells]
            print(f"| {rows} | " + " | ".join(texts) + " |")
    crash = sum(d is None for d in result.values())
    equal = sum(d is not None and d <= EQUAL for d in result.values())
    other = len(result) - crash - equal
    print(f"\n{len(result)} runs: {equal} equal one device, {other} silently other, {crash} crash.")
    for error, cell in why.values():
        print(f"- {cell[1]} rows, {cell[0]}, {cell[2]} devices: `{error[:400]}`")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--keel", default="build/keel", help="the command")
    p.add_argument("--peers", choices=("none", "few", "all"), default="all")
    p.add_argument("--jobs", type=int, default=1)
    p.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.one:
        kind, rows, devices, out = o.one
        return by_keras(kind, int(rows), int(devices), out)

    import numpy as np

    every = [(m, r, d) for m in MODELS for r in ROWS for d in DEVICES]
    with tempfile.TemporaryDirectory() as folder:
        for kind in MODELS:
            build(kind).save(os.path.join(folder, kind + ".keras"))
            for rows in ROWS:
                x, y = data(kind, rows)
                np.savez(os.path.join(folder, f"{kind}-{rows}.npz"), x=x, y=y)

        def keel(kind, rows, devices, out):
            options = "--batch-size 16 --epochs 2 --no-shuffle"
            return [o.keel, "fit", f"{folder}/{kind}.keras", "--data", f"{folder}/{kind}-{rows}.npz",
                    *options.split(), "--devices", f"cpu:0-{devices - 1}" if devices > 1 else "cpu:0",
                    "-o", out]  # fmt: skip

        def keras(kind, rows, devices, out):
            return [sys.executable, __file__, "--one", kind, str(rows), str(devices), out]

        ours, theirs = side("keel", folder, keel), side("keras", folder, keras)
        table("Keel", *ours.cells(every, o.jobs))
        if o.peers == "none":
            return 0
        wanted = every if o.peers == "all" else FEW
        table("Keras, MirroredStrategy", *theirs.cells(wanted, o.jobs))
        ones = {(m, r, 1) for m, r, _ in wanted}
        worst = max(apart(ours.path(*c), theirs.path(*c)) for c in ones)
        print(f"\nKeel and Keras, both on one device: at most {worst:.0e} apart.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
