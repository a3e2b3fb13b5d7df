"""How random_fits.py compares a fit of keel with that of Keras.

Numbers are |a - b| over the largest |b| of their weight, or of their column of the history; of a
weight over a hundredth of the largest of all weights, if that is more. They must stay below those of
random_trainings.py: 1e-5 (state 1e-4), in a mixed policy ten times what its type rounds. Where more
differs, Keras makes the fit again with weights and inputs that are moved by what rounding makes of
them, and ten times what that changes is allowed, so a value that counts rows on a side of a threshold
(an accuracy) may differ where rounding moves a row. What differs more in a mixed policy may still be
no farther than Keras is from the same fit in float32.
"""
import csv
import os
import re

import random_graphs as graphs
import random_trainings as trainings
import keras
import numpy as np

MOVES = 3  # how often Keras makes a fit again
ALLOWED = {"history": 1e-5, "weights": 1e-5, "state": 1e-4, "predict": 1e-5, "evaluate": 2e-5}


# ---- numbers of a fit: {what: {name: array}} ------------------------------------------------------


def numbers(model, history=None, frequency=1):
    out = dict(weights={v.path: v.numpy() for v in model.weights},
               state={f"{i} {v.path}": v.numpy() for i, v in enumerate(model.optimizer.variables)})  # fmt: skip
    if history is not None:
        out["history"] = flat_history(history.history, history.epoch, frequency)
    return out


def is_finite(model, history):
    return all(np.isfinite(v.numpy()).all() for v in model.weights) and np.isfinite(history.history["loss"]).all()


def scale_of(numbers):
    """Of a LossScaleOptimizer."""
    return [float(v) for k, v in numbers["state"].items() if "dynamic_scale" in k]


def flat_history(history, epochs=(0,), frequency=1):
    """Keras's history of these epochs with a column for each number of a list, and NaN where an epoch had no validation."""
    out = {}
    for k, values in history.items():
        every = np.array([np.asarray(v, "float64") for v in values])
        if every.shape[1:] == (1,):
            every = every[:, 0]
        if k.startswith("val_"):
            whole = np.full((len(epochs), *every.shape[1:]), np.nan)
            whole[[i for i, e in enumerate(epochs) if (e + 1) % frequency == 0]] = every
            every = whole
        if every.ndim == 1:
            out[k] = every
        else:
            out.update({f"{k}[{i}]": c for i, c in enumerate(every.reshape(len(epochs), -1).T)})
    return out


def read_history(path):
    with open(path) as f:
        head, *lines = csv.reader(f)
    columns = {k: [float(line[i]) for line in lines] for i, k in enumerate(head) if k != "epoch"}
    return {k: v for k, v in columns.items() if not (k.startswith("val_") and np.isnan(v).all())}


def head_of(path):
    """The columns of a log, of which Keel writes one for each number of a list, and Keras one for the list."""
    with open(path) as f:
        return sorted({k.split("[")[0] for k in next(csv.reader(f))})


# ---- differences: lines of text -------------------------------------------------------------------


def apart(a, b, least=0.0):
    """The largest |a - b| over the largest |b|, which counts as `least` at least."""
    a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return np.inf
    return np.nanmax(np.abs(a - b), initial=0) / max(np.nanmax(np.abs(b), initial=0), least, 1e-30)


def unlike(what, got, want, allowed, again=None, least=0.0):
    """allowed: of these numbers; again: an Again of the fits, or None"""
    if set(got) != set(want):
        return [f"{what}: {sorted(set(got) - set(want))} are not in Keras, {sorted(set(want) - set(got))} are not in Keel"]
    bad = []
    for k, b in want.items():
        by = apart(got[k], b, least)
        if by <= allowed:
            continue
        rounding = max((apart(m[what][k], b, least) if k in m[what] else np.inf for m in again.moved()), default=0) if again else 0
        if not by <= 10 * rounding and not (again and again.is_nearer(what, k, got[k], b)):
            few = [np.ravel(v)[:4].tolist() for v in (got[k], b)]
            bad.append(f"{what} {k} differs by {by:.1e}, rounding makes {rounding:.1e}: {few[0]}, in Keras {few[1]}")
    return bad


class Again:
    """What Keras makes of a fit once more.

    make(chance)  its numbers, from moved weights and inputs
    wide()        its numbers in float32
    """

    def __init__(self, seed, make, wide):
        self.seed, self.make, self.make_wide = seed, make, wide
        self.made, self.wide = [], None

    def moved(self):
        if not self.made:
            self.made = [self.make(np.random.default_rng(self.seed + k)) for k in range(MOVES)]
        return self.made

    def run_wide(self):
        self.wide = self.wide or self.make_wide()
        return self.wide

    def is_nearer(self, what, k, a, b):
        """Whether a is no farther than b of Keras from what float32 makes."""
        if graphs.POLICY == "float32":
            return False
        wide = self.run_wide()[what].get(k)
        return wide is not None and np.shape(wide) == np.shape(b) and not graphs.farther(np.asarray(a), np.asarray(b), np.asarray(wide))


class Moved:
    """Of fits made again, numbers that are there."""

    def __init__(self, made):
        self.made = made

    def moved(self):
        return self.made

    def is_nearer(self, *_):
        return False


def differences(got, want, again, optimizer):
    """Of {what: {name: array}}; optimizer: as text"""
    bad = []
    rounds = [v for k, v in trainings.ROUNDS.items() if k in optimizer]
    for what in want:
        a, b = got[what], want[what]
        if what in ("weights", "state") and len(a) == len(b):
            a = dict(zip(b, a.values()))  # paths of a loaded model may begin otherwise
        # a score near 0, as of R2, is the difference of numbers near 1
        allowed = max([trainings.least_allowed(ALLOWED[what]), *rounds])
        for slot in {slot_of(k) for k in b} if what == "state" and set(a) == set(b) else ():
            of = [{k: v for k, v in part.items() if slot_of(k) == slot} for part in (a, b)]
            bad += unlike(what, *of, allowed, again, 1e-4 * least_of(of[1]))  # of a gradient of 0 there is what rounding leaves
        if what != "state" or set(a) != set(b):
            bad += unlike(what, a, b, allowed, again, least_of(b) if what == "weights" else 0.01)
    return bad


def slot_of(path):
    """What a variable of an optimizer is, as `momentum`, of whichever weight."""
    return path.rsplit("_", 1)[-1]


def least_of(weights):
    return 0.01 * max((np.abs(v).max(initial=0) for v in weights.values()), default=0)


def files(calls, path, again):
    """Of what callbacks wrote for a fit of the model at path. again: an Again of the fits, which write other files"""
    bad = []
    logs = [calls.file(program, "log.csv") for program in ("keel", "keras")]
    if os.path.exists(logs[1]):
        got, want = (head_of(p) for p in logs)
        if got != want:
            bad.append(f"log: {got}, in Keras {want}")
    of = [{f.removeprefix(program) for f in os.listdir(calls.folder) if f.startswith(program + "_checkpoint")} for program in ("keel", "keras")]
    if of[0] != of[1] and graphs.POLICY != "float32":
        again.run_wide()  # what is better by little is decided by rounding
        of[1] = {f.removeprefix("again") for f in os.listdir(calls.folder) if f.startswith("again_checkpoint")}
        if of[0] == of[1]:
            return bad
    if of[0] != of[1]:
        return bad + [f"checkpoints: {sorted(of[0])}, in Keras {sorted(of[1])}"]
    for name in sorted(of[0]):
        a, b = (weights_in(os.path.join(calls.folder, program + name), path) for program in ("keel", "keras"))
        allowed, least = max(1e-2, 10 * trainings.least_allowed(0)), least_of(b)  # another epoch differs by more
        if unlike(name, a, b, allowed, least=least):
            again.moved()  # rounding moves a bias before BatchNormalization, whose gradient is 0, as far as a step does
            moved = os.path.join(calls.folder, "moved" + name)
            m = weights_in(moved, path) if os.path.exists(moved) else b
            bad += unlike(name, a, b, allowed, Moved([{name: m}]), least)
    return bad


def weights_in(checkpoint, path):
    m = keras.models.load_model(path)
    m.load_weights(checkpoint)
    return {v.path: v.numpy() for v in m.weights}


def short(compiled):
    """Arguments of compile, without addresses."""
    return re.sub(r"<LossFunctionWrapper\(<function (\w+) at \w+>, kwargs=({[^}]*})\)>", r"\1\2", str(compiled))
