#!/usr/bin/env python3
"""Optimizers, losses and callbacks whose arguments are drawn by chance, by Keel and by the real Keras.

    random_trainings.py path/to/keel [NAME...] [--seed 1] [--sets 5] [--policy mixed_bfloat16] [--show]

A set is a small model that both train, a few epochs of uneven steps without shuffling. Names are
those of Keras's optimizers and callbacks, `scaled` for a LossScaleOptimizer around any optimizer
(`scaled:Ftrl` around that one), whose first steps may overflow, and `losses` for losses with weights of rows. Compared are:

    weights  after training: the largest |a - b| over the largest |b| of a weight, or over a
             hundredth of the largest of all weights, if that is more
    state    of the optimizer: each of its variables alike
    history  losses of the epochs; and how many there were

They must stay below 1e-5 (state 1e-4), or below ten times what rounding makes of the set: what Keras
itself changes if weights and inputs move by 1e-7 of themselves; in a mixed policy, by what its type
rounds them, and 1e-5 and 1e-4 are ten times that. What differs more there may still be no farther
than Keras is from the same set in float32, as in random_graphs.py. Where Keras ends with numbers that
are not finite, Keel must end with an error. A failing set is printed. The last line is 'N passed, N
failed'.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import warnings

import random_graphs as graphs  # sets up Keras; draws nothing when imported
import random_arguments as arguments
import keras
import numpy as np
from keras import callbacks, losses, optimizers
from keras.optimizers import schedules

ROWS, BATCH, DEVICES, MOVES = 23, 5, "cpu:0-2", 3
ALLOWED, STATE_ALLOWED = 1e-5, 1e-4
ROUNDS = {"Ftrl": 1e-3}  # differences of powers have few digits in float32: see src/optimizers/ftrl.c


class Draw(arguments.Draw):
    def rate(self, low, high):
        r = round(float(np.exp(self.chance.uniform(np.log(low), np.log(high)))), 5)
        return self.one([r, r, r, lambda: schedules.ExponentialDecay(r, self.int(1, 9), self.real(0.3, 1), self.flip()),
                         lambda: schedules.CosineDecay(r, self.int(3, 20), self.real(0, 1)),
                         lambda: schedules.CosineDecay(r / 4, self.int(3, 20), self.real(0, 1), warmup_target=r, warmup_steps=self.int(1, 6)),
                         lambda: schedules.PolynomialDecay(r, self.int(3, 20), r / 10, self.real(0.5, 2), self.flip()),
                         lambda: schedules.PiecewiseConstantDecay([2, 5], [r, r / 2, r / 4]),
                         lambda: schedules.InverseTimeDecay(r, self.int(1, 9), self.real(0, 1), self.flip()),
                         # no step where one begins: there TensorFlow's graphs round otherwise than Keras's call
                         lambda: schedules.CosineDecayRestarts(r, self.int(2, 5) + 0.37, self.real(1, 2), self.real(0.3, 1))])  # fmt: skip

    def shared(self):
        """What every optimizer has."""
        a = dict(weight_decay=self.one([None, None, self.real(0, 0.1)]))
        if self.flip(0.4):
            a[self.one(["clipnorm", "clipvalue", "global_clipnorm"])] = self.real(0.01, 1)
        if self.flip(0.4):
            a.update(use_ema=True, ema_momentum=self.real(0.5, 1), ema_overwrite_frequency=self.one([None, 2, 3]))
        if self.flip(0.3):
            a.update(gradient_accumulation_steps=self.int(2, 4))
        if self.flip(0.15):
            a.update(loss_scale_factor=self.one([4.0, self.real(0.1, 9)]))
        return a


def beta(d):
    return d.real(0.3, 0.999)


OPTIMIZERS = {  # name: the range of learning rates, the other arguments
    "SGD": (0.001, 0.3, lambda d: (lambda m: dict(momentum=m, nesterov=m > 0 and d.flip()))(d.one([0.0, d.real(0.1, 0.95)]))),
    "RMSprop": (1e-4, 0.03, lambda d: dict(rho=beta(d), momentum=d.one([0.0, beta(d)]), epsilon=d.one([1e-7, 1e-3]), centered=d.flip())),
    "Adam": (1e-4, 0.1, lambda d: dict(beta_1=beta(d), beta_2=beta(d), epsilon=d.one([1e-7, 1e-3]), amsgrad=d.flip())),
    "AdamW": (1e-4, 0.1, lambda d: dict(beta_1=beta(d), beta_2=beta(d), epsilon=d.one([1e-7, 1e-3]), amsgrad=d.flip())),
    "Adadelta": (0.01, 1, lambda d: dict(rho=beta(d), epsilon=d.one([1e-7, 1e-3]))),
    "Adagrad": (0.001, 0.3, lambda d: dict(initial_accumulator_value=d.real(0, 1), epsilon=d.one([1e-7, 1e-3]))),
    "Adamax": (1e-4, 0.1, lambda d: dict(beta_1=beta(d), beta_2=beta(d), epsilon=d.one([1e-7, 1e-3]))),
    "Adafactor": (0.001, 0.1, lambda d: dict(beta_2_decay=-d.real(0.3, 0.9), epsilon_1=d.one([1e-30, 1e-8]), epsilon_2=d.one([1e-3, 1e-2]),
                                             clip_threshold=d.real(0.5, 2), relative_step=d.flip())),
    "Nadam": (1e-4, 0.1, lambda d: dict(beta_1=beta(d), beta_2=beta(d), epsilon=d.one([1e-7, 1e-3]))),
    "Ftrl": (0.001, 0.3, lambda d: dict(learning_rate_power=d.one([-0.5, -d.real(0, 1)]), initial_accumulator_value=d.real(0, 1),
                                        l1_regularization_strength=d.one([0.0, d.real(0, 0.05)]),
                                        l2_regularization_strength=d.one([0.0, d.real(0, 0.5)]),
                                        l2_shrinkage_regularization_strength=d.one([0.0, d.real(0, 0.5)]), beta=d.one([0.0, d.real(0, 1)]))),
    "Lion": (1e-4, 0.03, lambda d: dict(beta_1=beta(d), beta_2=beta(d))),
    "Lamb": (1e-4, 0.1, lambda d: dict(beta_1=beta(d), beta_2=beta(d), epsilon=d.one([1e-7, 1e-3]))),
    "Muon": (1e-4, 0.1, lambda d: dict(adam_beta_1=beta(d), adam_beta_2=beta(d), adam_weight_decay=d.one([None, d.real(0, 0.1)]),
                                       epsilon=d.one([1e-7, 1e-3]), exclude_layers=d.one([None, ["out"]]), muon_a=d.real(1.5, 4),
                                       muon_b=-d.real(0.5, 5), muon_c=d.real(0.2, 2.2), adam_lr_ratio=d.real(0.5, 2), momentum=beta(d),
                                       ns_steps=d.int(0, 7), nesterov=d.flip(), rms_rate=d.one([None, d.real(0.05, 0.5)]))),
}  # fmt: skip
LOSSES = {
    "BinaryCrossentropy": lambda d: dict(from_logits=True, label_smoothing=d.real(0, 0.5)),
    "BinaryFocalCrossentropy": lambda d: dict(apply_class_balancing=d.flip(), alpha=d.real(0, 1), gamma=d.real(0.5, 3), from_logits=True,
                                              label_smoothing=d.real(0, 0.5)),
    "CategoricalCrossentropy": lambda d: dict(from_logits=True, label_smoothing=d.real(0, 0.5)),
    "CategoricalFocalCrossentropy": lambda d: dict(alpha=d.real(0, 1), gamma=d.real(0.5, 3), from_logits=True, label_smoothing=d.real(0, 0.5)),
    "CosineSimilarity": lambda d: dict(axis=d.one([-1, 1])), "Huber": lambda d: dict(delta=d.real(0.1, 2)),
    "Dice": lambda d: dict(axis=d.one([None, 1])), "Tversky": lambda d: dict(alpha=d.real(0, 1), beta=d.real(0, 1), axis=d.one([None, 1])),
    **{n: lambda d: {} for n in ("MeanSquaredError", "MeanAbsoluteError", "LogCosh", "Hinge", "SquaredHinge", "CategoricalHinge")},
}  # fmt: skip
CALLBACKS = {
    "EarlyStopping": lambda d: dict(monitor=d.one(["loss", "val_loss", "mae", "val_mae"]), min_delta=d.one([0, d.real(0, 0.05)]),
                                    patience=d.int(0, 3), mode=d.one(["auto", "min", "max"]), baseline=d.one([None, d.real(0, 2)]),
                                    restore_best_weights=d.flip(), start_from_epoch=d.int(0, 3)),
    "ReduceLROnPlateau": lambda d: dict(monitor=d.one(["loss", "val_loss", "mae", "val_mae"]), factor=d.real(0.1, 0.9), patience=d.int(0, 3),
                                        mode=d.one(["auto", "min", "max"]), min_delta=d.real(0, 0.05), cooldown=d.int(0, 3),
                                        min_lr=d.one([0.0, d.real(0.001, 0.05)])),
    "SwapEMAWeights": lambda d: dict(swap_on_epoch=d.flip()),
}  # fmt: skip


def draw_optimizer(d, name):
    low, high, more = OPTIMIZERS[name]
    a = {**d.shared(), **more(d)}
    if name == "AdamW" and a["weight_decay"] is None:
        del a["weight_decay"]
    rate = d.rate(low, high)
    return getattr(optimizers, name)(rate() if callable(rate) else rate, **a)


def text_of(o):
    c = o.get_config()
    inner = c.pop("inner_optimizer", None)
    rate = c.get("learning_rate")
    if isinstance(rate, dict):
        c["learning_rate"] = f"{rate['class_name']}{ {k: v for k, v in rate['config'].items() if k != 'name'} }"
    text = ", ".join(f"{k}={v}" for k, v in c.items() if v is not None and k not in ("name",))
    return f"{type(o).__name__}({text}{', ' + text_of(o.inner_optimizer) if inner else ''})"


def network(d):
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(6, "tanh", name="hidden"), keras.layers.Reshape((3, 2)),
                             keras.layers.Conv1D(3, 2, activation="softplus", name="conv"), keras.layers.Flatten(),
                             keras.layers.Dense(3, name="out")])  # fmt: skip


def build(name, d):
    """(model, arguments of fit, callbacks, the set as text)"""
    m, more, calls, loss, how = network(d), dict(epochs=2), [], "mse", ""
    optimizer = optimizers.SGD(0.05)
    if name in OPTIMIZERS:
        optimizer = draw_optimizer(d, name)
    elif name.startswith("scaled"):
        inner = draw_optimizer(d, name[7:] or d.one(list(OPTIMIZERS)))
        optimizer = optimizers.LossScaleOptimizer(inner, d.one([2.0**15, 2.0**127, 8.0, 2.0**126]), d.int(1, 6))
    elif name == "losses":
        kind = d.one(list(LOSSES))
        loss = getattr(losses, kind)(**LOSSES[kind](d), reduction=d.one(["sum_over_batch_size", "sum", "mean", "mean_with_sample_weight"]))
        how = f" {kind}({ {k: v for k, v in loss.get_config().items() if k != 'name'} })"
    else:
        if name == "SwapEMAWeights":
            optimizer = optimizers.Adam(0.01, use_ema=True, ema_momentum=d.real(0.5, 0.99))
        else:
            optimizer = optimizers.SGD(d.real(0.05, 1)) if name == "EarlyStopping" else optimizers.SGD(d.real(0.05, 1), 0.5)
        a = CALLBACKS[name](d)
        calls = [f"{name}({', '.join(f'{k}={v}' for k, v in a.items() if v is not None)})"], lambda: [getattr(callbacks, name)(**a)]
        how = " " + calls[0][0]
        more["epochs"] = 8
    m.compile(optimizer, loss, metrics=["mae"] if calls else [], jit_compile=False)
    return m, more, calls, text_of(optimizer) + how


def rows_of(name, d, n=ROWS):
    x = d.chance.uniform(-2, 2, (n, 6)).astype("float32")
    y = d.chance.uniform(-1, 1, (n, 3)).astype("float32")
    if name == "losses":
        y = np.eye(3, dtype="float32")[d.chance.integers(0, 3, n)]
    return x, y, d.chance.uniform(0.5, 2, n).astype("float32") if name == "losses" and d.flip() else None


def least_allowed(plain):
    return plain if graphs.ROUNDING == graphs.POLICIES["float32"] else graphs.PREDICT


def moved(values, chance):
    return [v * (1 + graphs.ROUNDING * chance.choice([-1.0, 1.0], v.shape)).astype("float32") if v.dtype == "float32" else v for v in values]


def run_keras(path, rows, test, more, calls, chance):
    """[weights], [state], [losses]; chance: of moved weights and inputs, or None."""
    m = keras.models.load_model(path)
    x, y, w = rows
    if chance is not None:
        m.set_weights(moved([v.numpy() for v in m.weights], chance))
        x = moved([x], chance)[0]
    h = m.fit(x, y, BATCH, shuffle=False, verbose=0, sample_weight=w, callbacks=calls[1]() if calls else None,
              validation_data=test[:2] if calls else None, validation_batch_size=BATCH, **more)  # fmt: skip
    return [v.numpy() for v in m.weights], [v.numpy() for v in m.optimizer.variables], [np.array(h.history["loss"])], m


def run_keel(keel, folder, path, rows, test, more, calls):
    out, history = (os.path.join(folder, n) for n in ("t.keras", "h.csv"))
    for f, (x, y, w) in (("d.npz", rows), ("v.npz", test)):
        np.savez(os.path.join(folder, f), x=x, y=y, **({} if w is None else {"sample_weight": w}))
    for f in (out, history):
        if os.path.exists(f):
            os.remove(f)
    command = [keel, "fit", path, "--data", os.path.join(folder, "d.npz"), "--devices", DEVICES, "--batch-size", str(BATCH),
               "--no-shuffle", "--epochs", str(more["epochs"]), "--history", history, "-o", out]  # fmt: skip
    if calls:
        command += ["--validation", os.path.join(folder, "v.npz"), "--callbacks", calls[0][0]]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return None, " ".join(done.stderr.split())[-400:]
    m = keras.models.load_model(out)
    column = np.atleast_1d(np.genfromtxt(history, delimiter=",", names=True)["loss"])
    return ([v.numpy() for v in m.weights], [v.numpy() for v in m.optimizer.variables], [column]), ""


def one_set(keel, folder, name, seed, text):
    d = Draw(seed)
    path = os.path.join(folder, "set.keras")
    m, more, calls, text[0] = build(name, d)
    m.save(path)
    rows, test = rows_of(name, d), rows_of(name, d, 8)
    *want, model = run_keras(path, rows, test, more, calls, None)
    got, error = run_keel(keel, folder, path, rows, test, more, calls)
    scale = [i for i, v in enumerate(model.optimizer.variables) if "dynamic_scale" in v.path]
    if any(np.isinf(want[1][i]) for i in scale):
        return None, "Keras's scale is infinite, and it makes no step any more (README, differences)"
    if scale and graphs.POLICY == "mixed_float16" and got and not np.array_equal(got[1][scale[0]], want[1][scale[0]]):
        return None, "Keras skips steps in which the gradient of a weight overflows float16 (README, differences)"
    inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    if scale and inner.use_ema and not int(inner.iterations.numpy()):
        return None, "Keras skips all steps, and its averages, of no step, are 0 (README, differences)"
    finite = all(np.isfinite(a).all() for a in want[0])
    if not finite:
        return got is None, f"Keras's weights are not finite; keel: {error or 'ends without an error'}"
    if got is None:
        return False, error
    others = [run_keras(path, rows, test, more, calls, np.random.default_rng(seed + k))[:3] for k in range(MOVES)]
    line, bad, wide = [], [], []

    def is_nearer(k, i):
        """Whether Keel is no farther than Keras from what float32 makes."""
        if graphs.POLICY == "float32":
            return False
        if not wide:
            wide.extend(run_keras(graphs.in_float32(path), rows, test, more, calls, None)[:3])
        return len(wide[k]) == len(want[k]) and not graphs.farther(got[k][i], want[k][i], wide[k][i])

    names = [[v.path for v in model.weights], [v.path for v in model.optimizer.variables], ["loss"]]
    for k, (what, allowed) in enumerate((("weights", least_allowed(ALLOWED)), ("state", least_allowed(STATE_ALLOWED)), ("history", least_allowed(ALLOWED)))):
        if len(got[k]) != len(want[k]):
            return False, f"{len(got[k])} of {what}, in Keras {len(want[k])}"
        with np.errstate(all="ignore"):
            least = 0.01 * max((np.abs(b).max(initial=0) for b in want[k]), default=0) if k == 0 else 0
            apart_by = graphs.apart(*([a.astype("float64") for a in v] for v in (got[k], want[k])), least)
            moves = [graphs.apart(o[k], want[k], least) for o in others]
        rounding = np.max(moves, axis=0, initial=0)
        line.append(f"{what} {max(apart_by, default=0):.0e} (rounding {max(rounding, default=0):.0e})")
        allowed = max([allowed, *(v for k, v in ROUNDS.items() if k in text[0])])
        for i, (a, r) in enumerate(zip(apart_by, rounding)):
            if not a <= max(allowed, 10 * r) and not is_nearer(k, i):
                bad.append(f"{what} {names[k][i]} differs by {a:.1e}, rounding makes {r:.1e}")
    return not bad, ", ".join(line) + "".join(f"\n       {b}" for b in bad[:6])


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("keel")
    a.add_argument("names", nargs="*")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--sets", type=int, default=5)
    a.add_argument("--policy", choices=graphs.POLICIES, default="float32")
    a.add_argument("--show", action="store_true")
    a = a.parse_args()
    graphs.set_policy(a.policy)
    passed = failed = 0
    warnings.filterwarnings("ignore", "Skipping variable loading")  # of an optimizer that has no state yet
    with tempfile.TemporaryDirectory() as folder:
        for name in a.names or [*OPTIMIZERS, "scaled", "losses", *CALLBACKS]:
            for k in range(a.sets):
                seed, text = 1000 * a.seed + 37 * k + sum(map(ord, name)), [name]
                graphs.begin(a.policy)
                keras.utils.set_random_seed(seed)
                try:
                    ok, why = one_set(os.path.abspath(a.keel), folder, name, seed, text)
                except Exception as e:
                    ok, why = False, f"{type(e).__name__}: {' '.join(str(e).split())[-400:]}"
                passed, failed = passed + (ok is True), failed + (ok is False)
                if ok is False or a.show:
                    print(f"{'FAILED' if ok is False else '--' if ok is None else 'ok':6} {seed} {text[0]}\n       {why}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
