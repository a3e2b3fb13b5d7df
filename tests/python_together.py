#!/usr/bin/env python3
"""One of several processes that use the package for Python together: test_python_processes.sh starts it.

python_together.py WORK FOLDER      needs NumPy, a model FOLDER/m.keras, and libkeel (KEEL_LIBRARY)

Without a launcher the same program runs alone. What it prints or raises is what the test looks at."""

import hashlib
import os
import sys

import numpy as np

import keel

work, folder = sys.argv[1:]
model = keel.Model(os.path.join(folder, "m.keras"))
draws = np.random.RandomState(3)
x, y = draws.rand(103, 6).astype(np.float32), draws.randint(0, 3, 103)
seed = 7


class Rows:
    """A stream, which process 0 reads for all."""

    read = 0

    def __iter__(self):
        for i in range(0, 103, 16):
            Rows.read += 1
            yield x[i : i + 16], y[i : i + 16]


class At:
    """A callback: it does something at the end of the first epoch, in process 1 alone."""

    def __init__(self, what):
        self.what = what

    def on_epoch_end(self, epoch, logs):
        if epoch == 0 and keel.rank() == 1:
            self.what()


def say(line):
    """In one piece, since launchers mix what processes write."""
    os.write(1, f"{line}\n".encode())


def fail():
    raise RuntimeError("no luck")


def set_rate():
    model.learning_rate = 0.5


def leave():
    os._exit(3)


callbacks = {"fails": [At(fail)], "sets": [At(set_rate)], "leaves": [At(leave)]}.get(work, [])
if work == "early" and keel.rank() == 1:
    raise ValueError("too early")
if work == "short" and keel.rank() == 1:
    y = y[:50]
if work == "other" and keel.rank() == 1:
    x = x + 1
if work == "seeds":
    seed, _ = None, np.random.seed(keel.rank())
if work == "one_seed" and keel.rank() == 0:
    seed = None
given = (Rows(),) if work == "stream" else (x, y)
alone = {"processes": 1} if work == "alone" else {}
try:
    h = model.fit(*given, batch_size=16, epochs=3, verbose=0, callbacks=callbacks, seed=seed, reproducible=True,
                  devices="cpu:0", **alone)  # fmt: skip
except keel.Error as error:
    if work != "short" or keel.rank() == 1:
        raise
    say(f"told: {error}")
    sys.exit(1)
values = model.predict(x, verbose=0, reproducible=True)
scores = model.evaluate(x, y, verbose=0, reproducible=True)
bits = hashlib.md5(np.float64([*h.history["loss"], *scores]).tobytes() + values.tobytes()).hexdigest()
read = Rows.read if keel.rank() and work == "stream" else ""
say(f"{keel.rank()} of {keel.processes()}: {bits} {read}".rstrip())
