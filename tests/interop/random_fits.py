#!/usr/bin/env python3
"""Whole fits drawn by chance, by the command keel and by the real Keras: `keel fit` beside `model.fit`.

    random_fits.py path/to/keel [--seed 1] [--fits 20] [--policy mixed_bfloat16] [--only SEED] [--show] [--keep FOLDER]

A fit is a model (fit_models.py), an optimizer, losses and metrics with arguments; rows in a file or a
folder, perhaps with weights of rows or of classes (fit_data.py); callbacks; a validation; one device
or several. Some models were trained by Keras before they were saved; some files have no optimizer,
losses and metrics, which keel's options say. Compared are:

    history  each value of each epoch, and how many epochs there were
    weights  and state of the optimizer in the file that keel saves, after Keras has loaded it
    files    those of ModelCheckpoint: whether there are any, and their weights; names in those of CSVLogger
    predict  and evaluate: keel of that file, and Keras of it
    further  weights and state after one more epoch of that file, by keel and by Keras
    package  history, weights, state and files of keel.fit of the package for Python, with Keras's callbacks

How they are compared is said in fit_compare.py. A failing fit is printed; --only runs the one of a
seed, and --keep leaves its files. The last line is 'N passed, N failed'.
"""
import argparse
import functools
import os
import shlex
import subprocess
import sys
import tempfile
import traceback
import warnings

import random_graphs as graphs  # sets up Keras; draws nothing when imported
import random_trainings as trainings
import fit_compare
import fit_data
import fit_models
import keras
import numpy as np
from keras import callbacks, optimizers
from keras.optimizers import schedules

CANNOT = {  # what the error of Keras has in it: why
    "unsupported operand type(s) for /: 'IndexedSlices'": "its loss_scale_factor does not divide the sparse gradient of an Embedding",
    "`target` and `output` must have the same rank": "its crossentropy takes no targets [B] of outputs [B, 1] in a step of one row",
    "'NoneType' object is not iterable": "its Sequential model that it made itself knows no names of outputs for a dict of losses",
    **graphs.CANNOT,
    "parameter 'weights' has DataType": "its Discretization counts in the type of a mixed policy",
    "compile_loss/sparse_categorical_crossentropy/mul": "its sparse crossentropy of steps takes no weights of rows",
    "isn't able to automatically determine": "its callbacks know no direction of a metric of one of several outputs",
    "compile_loss/dice/mul": "its Dice along the rows takes no weights of rows",
    "for '{{node compile_loss/": "its losses of places in two dims take no weights of rows",
    "'InTopKV2' Op has type": "its metrics of the largest k take no outputs in the type of a mixed policy",
}

REFUSES = {  # what the error of keel has in it: what it refuses
    "has a list; the weight of a row is one number": "weights of places in lines of JSON",
    "called twice in training: Keras would divide": "a SpectralNormalization that is called twice in a step",
}


def package_for_python():
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
    import keel

    return keel


def inner_of(optimizer):
    return getattr(optimizer, "inner_optimizer", optimizer)


def said(value):
    """A loss, metric or optimizer as keel's options take it."""
    if isinstance(value, str):
        return value
    unsaid = ["dtype", "fn"] + (["name"] if isinstance(value, optimizers.Optimizer) else [])
    a = {k: v for k, v in value.get_config().items() if v is not None and k not in unsaid}
    return f"{type(value).__name__}({', '.join(f'{k}={v}' for k, v in a.items())})"


class Callbacks:
    """Drawn callbacks. texts: those for keel; make(program): Keras's, whose files have the program's name"""

    def __init__(self, d, folder, optimizer, watched):
        self.d, self.folder, self.watched = d, folder, watched
        self.texts, self.made = [], []
        if d.flip(0.3):
            self.early_stopping()
        if not isinstance(inner_of(optimizer)._learning_rate, schedules.LearningRateSchedule):
            self.learning_rate()
        if d.flip(0.3):
            self.checkpoint()
        if d.flip(0.3):
            self.add("CSVLogger", dict(filename=self.file("keel", "log.csv")), lambda program: callbacks.CSVLogger(self.file(program, "log.csv")))
        if optimizer.use_ema and optimizer is inner_of(optimizer) and d.flip(0.5):
            self.averages()

    def make(self, program):
        return [f(program) for f in self.made]

    def file(self, program, name):
        return os.path.join(self.folder, f"{program}_{name}")

    def add(self, name, a, make=None):
        self.texts.append(f"{name}({', '.join(f'{k}={v}' for k, v in a.items() if v is not None)})")
        self.made.append(make or (lambda program: getattr(callbacks, name)(**a)))

    def monitored(self):
        """A name in the logs, and a mode. Keras knows no direction of what has the name of an output before its own."""
        name = self.d.one(self.watched)
        return name, self.d.one(["auto", "min", "max"])

    def early_stopping(self):
        d = self.d
        monitor, mode = self.monitored()
        a = dict(monitor=monitor, min_delta=d.one([0, d.real(0, 0.05)]), patience=d.int(0, 2), mode=mode,
                 restore_best_weights=d.flip(0.7), start_from_epoch=d.int(0, 1), baseline=d.one([None, None, d.real(0.2, 2)]))  # fmt: skip
        self.add("EarlyStopping", a)

    def learning_rate(self):
        d = self.d
        if d.flip(0.3):
            monitor, mode = self.monitored()
            a = dict(monitor=monitor, factor=d.real(0.1, 0.9), patience=d.int(0, 2), mode=mode,
                     min_delta=d.real(0, 0.05), cooldown=d.int(0, 1))  # fmt: skip
            self.add("ReduceLROnPlateau", a)
        elif d.flip(0.3):
            rate = d.real(0.001, 0.05)
            s = schedules.ExponentialDecay(rate, 2, 0.5)
            self.add("LearningRateScheduler", dict(schedule=f"ExponentialDecay({rate}, 2, 0.5)"),
                     lambda program: callbacks.LearningRateScheduler(lambda epoch: float(s(epoch))))  # fmt: skip

    def checkpoint(self):
        d = self.d
        monitor, mode = self.monitored()
        a = dict(save_best_only=d.flip(), monitor=monitor, mode=mode, save_weights_only=d.flip(0.4),
                 save_freq=d.one(["epoch", "epoch", 3]))  # fmt: skip
        if a["save_freq"] != "epoch":
            a["save_best_only"] = False
        elif d.flip(0.3):
            a["initial_value_threshold"] = d.real(0.2, 2)
        name = d.one(["checkpoint", "checkpoint_{epoch:02d}"]) + (".weights.h5" if a["save_weights_only"] else ".keras")
        self.add("ModelCheckpoint", dict(filepath=self.file("keel", name), **a),
                 lambda program: callbacks.ModelCheckpoint(self.file(program, name), **a))  # fmt: skip

    def averages(self):
        # a fit stopped by EarlyStopping has the averages in the end, in Keras the weights (README, differences)
        swap = self.d.flip() and not any("EarlyStopping" in t for t in self.texts)
        self.add("SwapEMAWeights", dict(swap_on_epoch=swap))


class Fit:
    """train, test   the Rows of the training, and of the validation or None
    data, named      what keel reads, and the options that name its fields
    options          further ones of keel
    """

    def __init__(self, keel, folder, seed):
        d = self.d = fit_models.Draw(seed)
        self.keel, self.folder, self.seed = keel, folder, seed
        optimizer = trainings.draw_optimizer(d, d.one([*trainings.OPTIMIZERS, "SGD", "SGD", "Adam", "Adam", "RMSprop"]))
        self.drawn = fit_models.Model(d, fit_models.sparse_is_alike(optimizer), d.flip(0.12))
        if d.flip(0.15):
            optimizer = optimizers.LossScaleOptimizer(optimizer, d.one([2.0**10, 8.0]), d.int(1, 6))
        self.optimizer = optimizer
        self.compiled = fit_models.compile_model(d, self.drawn, optimizer)
        self.batch, n = d.one([1, 2, 40] + [d.int(3, 8)] * 12), d.int(9, 30)
        if d.flip(0.3):
            n = self.batch * d.int(2, 4)
        self.draw_rows(n)
        self.epochs = d.one([1, 2, 2, 3, 4])
        self.first = d.int(0, self.epochs - 1) if d.flip(0.15) else 0
        self.options = ["--devices", d.one(["cpu:0", "cpu:0-3", "cpu:0-2"])]
        self.draw_validation(n)
        self.draw_class_weight()
        self.draw_steps()
        self.passed = d.one(["arrays", "arrays", "dataset", "PyDataset", "generator"])
        if self.rows.has_texts():
            self.passed = "arrays"  # Keel takes texts from arrays only
        if d.flip(0.25):
            self.options.append("--reproducible")
        if d.flip(0.15):
            self.options.append("--recompute")
        if d.flip(0.3):
            self.options += ["--micro-batch", str(d.int(1, 4))]
        if d.flip(0.1):
            self.options += ["--share", d.one(["3,1,2,2", "1,5,1,1"])] if self.options[1] == "cpu:0-3" else []
        self.path = os.path.join(folder, "set.keras")
        # Keras leaves Nadam's product of factors in a LossScaleOptimizer out of the file (README, differences);
        # in mixed_float16 compile has put one around it
        m = self.drawn.model
        self.goes_on = not (inner_of(m.optimizer) is not m.optimizer and isinstance(inner_of(optimizer), optimizers.Nadam))
        self.trained_before = d.flip(0.35) and self.goes_on
        if self.trained_before:
            m.fit(self.rows.keras_x(m), self.rows.keras_y(m), self.batch, 1, shuffle=False, verbose=0)
        m.save(self.path)
        self.draw_said()
        known = self.logged()
        known += [f"val_{k}" for k in known if self.test and self.frequency == 1]
        self.calls = Callbacks(d, folder, optimizer, known)
        self.write(d.flip())

    def draw_rows(self, n):
        d = self.d
        self.photos = None
        if self.drawn.photos:
            self.photos = fit_data.Photos(d, self.drawn, self.folder, n)
            self.rows = self.photos.rows
        else:
            self.rows = fit_data.Rows(*fit_data.rows_of(d, self.drawn, n), fit_data.weights_of(d, self.drawn, n))
        self.kind = d.one(["npz", "npz", "npz" if self.rows.has_texts() else "h5", "jsonl"])
        if self.rows.is_flat() and d.flip(0.7):
            self.kind = "csv"
        self.kind = "folder" if self.photos else self.kind

    def draw_validation(self, n):
        d = self.d
        self.train, self.test, self.split, self.frequency = self.rows, None, 0.0, 1
        if self.photos:
            self.split = self.photos.split
            self.options += ["--seed", str(self.photos.seed)]
        elif d.flip(0.25):
            self.split = d.one([0.2, 0.3, 0.25])
        elif d.flip(0.6):
            tests = d.int(4, 12)
            self.test = fit_data.Rows(*fit_data.rows_of(d, self.drawn, tests), fit_data.weights_of(d, self.drawn, tests))
        if self.split:
            at = self.photos.n_train if self.photos else int(np.floor(n * (1 - self.split)))
            self.train, self.test = self.rows.part(slice(0, at)), self.rows.part(slice(at, None))
        if self.test and d.flip(0.3):
            self.frequency = 2
        self.test_steps = d.int(1, -(-self.test.n() // self.batch)) if self.test and d.flip(0.2) else None

    def draw_class_weight(self):
        d, (_, _, shape) = self.d, self.drawn.outputs[0]
        self.class_weight = None
        if len(self.drawn.outputs) == 1 and self.rows.w is None and len(shape) == 1 and d.flip(0.3):
            classes = range(max(shape[0], 2))
            self.class_weight = {k: d.real(0.2, 2) for k in classes if d.flip(0.8) or k == classes[-1]}

    def draw_steps(self):
        """Steps of an epoch. Where the data ends within an epoch, Keras ends it, too (README, differences).
        With a later first epoch keel goes on with the rows of that epoch, and Keras begins with the first."""
        steps = -(-self.train.n() // self.batch)
        fit = [k for k in range(1, steps) if steps % k == 0 or k * (self.epochs - self.first) <= steps]
        self.steps = self.d.one(fit) if fit and not self.first and self.d.flip(0.15) else None

    def logged(self):
        """Names in the logs that callbacks can watch."""
        if self.d.flip():
            return ["loss"]
        m = keras.models.load_model(self.path)
        logs = m.evaluate(self.rows.keras_x(m), self.rows.keras_y(m), self.batch, verbose=0, sample_weight=self.rows.keras_w(m), return_dict=True)
        several = len(self.drawn.outputs) > 1
        return [k for k, v in logs.items() if np.ndim(v) == 0 and not (several and k.endswith("_loss"))]

    def draw_said(self):
        """Now and then keel's file has no optimizer, losses and metrics, but the command says them."""
        d, o = self.d, self.optimizer
        self.keel_path, self.said = self.path, []
        plain = not isinstance(inner_of(o)._learning_rate, schedules.LearningRateSchedule) and o is inner_of(o)
        alone = len(self.drawn.outputs) == 1 and set(self.compiled) == {"loss", "metrics"} and keras.tree.flatten(self.compiled["metrics"])
        if not (plain and alone and not self.trained_before and d.flip(0.5)):
            return
        self.keel_path = os.path.join(self.folder, "plain.keras")
        keras.models.load_model(self.path, compile=False).save(self.keel_path)
        of = {k: [said(v) for v in keras.tree.flatten(self.compiled.get(k)) if v is not None] for k in ("loss", "metrics")}
        self.said = ["--optimizer", said(o), "--loss", of["loss"][0], "--metrics", ",".join(of["metrics"])]

    def write(self, by_name):
        if self.photos:
            self.data, self.named = self.photos.path, self.photos.options
        else:
            self.data, self.named = fit_data.write_file(self.folder, "d", self.kind, self.rows, by_name)
        if self.test and not self.split:
            if self.rows.w is None or self.test.w is None and "--sample-weight" in self.named:
                self.test.w = fit_data.all_ones(self.rows.w, self.test.n())  # keel reads both files alike
            self.test_data, _ = fit_data.write_file(self.folder, "v", self.kind, self.test, by_name)

    def text(self):
        layers = " ".join(type(layer).__name__ for layer in self.drawn.model.layers)
        weights = "no" if self.rows.w is None else "a weight for each output" if isinstance(self.rows.w, dict) else "weights"
        return "\n       ".join([
            trainings.text_of(self.optimizer), layers, f"in {self.drawn.inputs} out {self.drawn.outputs}", fit_compare.short(self.compiled),
            f"{self.kind}, {self.passed}, {self.rows.n()} rows of {self.batch}, {weights}, classes {self.class_weight}, {self.epochs} epochs of {self.steps or 'all'} steps from {self.first}",
            f"{self.options}, split {self.split}, validation {self.test.n() if self.test else 0} every {self.frequency} of {self.test_steps or 'all'}"
            f" steps, trained before {self.trained_before}, {self.calls.texts} {self.said}"])  # fmt: skip

    def ignores_a_step(self):
        """Whether in a step no target of an output counts: each is of the class that its loss ignores, or has a weight of 0."""
        of = self.compiled["loss"]
        for k, (name, _, _) in enumerate(self.drawn.outputs):
            y = self.train.y[name]
            loss = of[name] if isinstance(of, dict) else of[k] if isinstance(of, list) else of
            ignored = loss.get_config().get("ignore_class") if isinstance(loss, keras.losses.Loss) else None
            counts = np.ones(len(y), bool) if ignored is None else (y.reshape(len(y), -1) != ignored).any(-1)
            w = self.train.w[name] if isinstance(self.train.w, dict) else self.train.w
            if w is not None:
                counts &= w.reshape(len(w), -1).any(-1)
            if not all(counts[i : i + self.batch].any() for i in range(0, len(y), self.batch)):
                return True
        return False

    def weighs_other_places(self):
        """Whether Keras, if it does not fail, takes weights of rows for those of the last dim of places, where the loss has such."""
        w = self.rows.w if isinstance(self.rows.w, dict) else {name: self.rows.w for name, _, _ in self.drawn.outputs}
        of_rows = [shape for name, _, shape in self.drawn.outputs if w[name] is not None and w[name].ndim == 1]
        return self.batch > 1 and any(len(shape) > 2 or len(shape) == 2 and shape[0] > 1 for shape in of_rows)

    # ---- both programs ----------------------------------------------------------------------------

    def run_keras(self, path, chance=None, further=False, package=False):
        """The model of that file after its fit, and the history. chance: moves its weights and inputs. further: one plain epoch.
        package: by keel.fit"""
        m = keras.models.load_model(path)
        if chance is not None:
            m.set_weights(trainings.moved([v.numpy() for v in m.weights], chance))
        a = dict(sample_weight=self.train.keras_w(m), class_weight=self.class_weight)
        if not further:
            a["callbacks"] = self.calls.make("keras" if path == self.path and chance is None else "again" if chance is None else "moved")
        if self.test and not further:
            test = [self.test.keras_x(m, chance), self.test.keras_y(m), *([] if self.test.w is None else [self.test.keras_w(m)])]
            a.update(validation_data=tuple(test), validation_freq=self.frequency, validation_batch_size=self.batch, validation_steps=self.test_steps)
        a.update(dict(epochs=1) if further else dict(epochs=self.epochs, initial_epoch=self.first, steps_per_epoch=self.steps))
        fit = m.fit
        rows = [self.train.keras_x(m, chance), self.train.keras_y(m), self.batch]
        if package:
            o = self.options
            a.update(devices=o[o.index("--devices") + 1], reproducible="--reproducible" in o, recompute="--recompute" in o)
            fit = functools.partial(package_for_python().fit, m)
            if self.passed != "arrays":
                rows = [fit_data.batches(self.passed, *rows, a.pop("sample_weight"))]
        h = fit(*rows, shuffle=False, verbose=0, **a)
        return m, h

    def run_keel(self, path, out, history, further=False):
        args = ["fit", path, "--data", self.data, *self.named, "--batch-size", str(self.batch), "--epochs", str(1 if further else self.epochs),
                "--no-shuffle", "--history", history, "-o", out, *self.options]  # fmt: skip
        if not further:
            args += self.said
        if self.split:
            args += ["--validation-split", str(self.split)]
        elif self.test and not further:
            args += ["--validation", self.test_data]
        if self.first and not further:
            args += ["--initial-epoch", str(self.first)]
        if self.test and not further and self.frequency > 1:
            args += ["--validation-freq", str(self.frequency)]
        if self.test_steps and not further:
            args += ["--validation-steps", str(self.test_steps)]
        if self.class_weight:
            args += ["--class-weight", ",".join(str(self.class_weight.get(k, 1.0)) for k in range(max(self.class_weight) + 1))]
        if self.steps and not further:
            args += ["--steps-per-epoch", str(self.steps)]
        if self.calls.texts and not further:
            args += ["--callbacks", ", ".join(self.calls.texts)]
        return self.call(*args)

    def run_keel_or_whole(self, *args):
        """run_keel, of whole batches where it refuses micro-batches."""
        try:
            return self.run_keel(*args)
        except RuntimeError as e:
            if "--micro-batch" not in self.options or "cannot be trained in micro-batches" not in str(e):
                raise
        at = self.options.index("--micro-batch")
        del self.options[at : at + 2]
        return self.run_keel(*args)

    def call(self, *args):
        done = subprocess.run([self.keel, *args], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{' '.join(done.stderr.split())[-500:]}\n       {shlex.join(args)}")
        return done.stdout

    def file(self, name):
        return os.path.join(self.folder, name)

    # ---- compared ---------------------------------------------------------------------------------

    def compare(self):
        """(outcome, what differs): True, False, or None where there is nothing to compare."""
        if self.ignores_a_step():
            return None, "Keras moves its optimizer by a step without targets that count (README, differences)"
        trained = self.run_keras(self.path)
        want = fit_compare.numbers(*trained, self.frequency)
        finite = fit_compare.is_finite(*trained)
        try:
            self.run_keel_or_whole(self.keel_path, self.file("t.keras"), self.file("h.csv"))
        except RuntimeError as e:
            if finite:
                raise
            return None, f"Keras's numbers are not finite; {e}"
        if not finite:
            return None, "Keras's numbers are not finite"
        model = keras.models.load_model(self.file("t.keras"))
        got = dict(fit_compare.numbers(model), history=fit_compare.read_history(self.file("h.csv")))
        if self.skips_otherwise(got, want):
            return None, "Keras skips steps in which the gradient of a weight overflows float16 (README, differences)"
        why = self.skipped(*trained)
        if why:
            return None, f"Keras {why} in a skipped step (README, differences)"
        uneven = [self.train.n() % self.batch, self.test and self.test.n() % self.batch, self.rows.w is not None, self.class_weight]
        if any(uneven):
            got["history"], want["history"] = self.without_losses(got["history"]), self.without_losses(want["history"])
        bad = self.differences(got, want, self.path)
        if bad and self.weighs_other_places():
            return None, "Keras takes weights of rows for those of places (README, differences)"
        if not bad:
            bad = self.infers(model)
        if not bad and self.goes_on:
            bad = self.further()
        if not bad:
            bad = self.by_package(want)
        return not bad, "\n       ".join(bad[:8])

    def skips_otherwise(self, got, want):
        return fit_compare.scale_of(got) != fit_compare.scale_of(want) and graphs.POLICY == "mixed_float16"

    def skipped(self, model, h):
        """What Keras does otherwise in a step that its LossScaleOptimizer skipped; None: nothing, or no step was skipped."""
        o = inner_of(model.optimizer)
        begin = inner_of(keras.models.load_model(self.path).optimizer).iterations
        made, steps = int(o.iterations - begin), len(h.epoch) * (self.steps or -(-self.train.n() // self.batch))
        if o is model.optimizer or made == steps:
            return None
        if o.use_ema and not int(o.iterations):
            return "ends with averages of no step, which are 0,"
        return "moves statistics of batch normalisation" if any("/moving_" in v.path for v in model.weights) else None

    def by_package(self, want):
        try:
            trained = self.run_keras(self.path, package=True)
        except Exception as e:  # both Keras and the command have made this fit
            return [f"package: {type(e).__name__}: {' '.join(str(e).split())[:400]}"]
        got = fit_compare.numbers(*trained, self.frequency)
        got["history"] = {k: v for k, v in got["history"].items() if k in want["history"]} if "history" in want else {}
        bad = self.differences(got, want, self.path) or self.package_infers()
        return [f"package: {line}" for line in bad]

    def package_infers(self):
        """Differences of predict and evaluate of the package from those of Keras, of the model that keel saved."""
        m, rows, keel = keras.models.load_model(self.file("t.keras")), self.test or self.train, package_for_python()
        x, devices = rows.keras_x(m), self.options[1]
        e = keel.evaluate(m, x, rows.keras_y(m), self.batch, 0, rows.keras_w(m), return_dict=True, devices=devices)
        outputs = keras.tree.flatten(keel.predict(m, x, self.batch, 0, devices=devices))
        got = dict(predict=dict(zip((o[0] for o in self.drawn.outputs), outputs)), evaluate=fit_compare.flat_history({k: [v] for k, v in e.items()}))
        return self.unlike_inference(m, rows, got)

    def differences(self, got, want, path, further=False):
        def numbers(path, chance=None):
            return fit_compare.numbers(*self.run_keras(path, chance, further), self.frequency)

        again = fit_compare.Again(self.seed, lambda chance: numbers(path, chance), lambda: numbers(graphs.in_float32(path)))
        bad = fit_compare.differences(got, want, again, trainings.text_of(self.optimizer))
        return bad or ([] if further else fit_compare.files(self.calls, path, again))

    def without_losses(self, history):
        """Without the losses of single outputs, which are means over rows in Keel (README, differences)."""
        names = [f"{name}_loss" for name, _, _ in self.drawn.outputs] if len(self.drawn.outputs) > 1 else []
        return {k: v for k, v in history.items() if k.removeprefix("val_") not in names}

    def infers(self, model):
        """Differences of predict and evaluate, of the validation's rows if there are any."""
        rows, path, out = self.test or self.train, self.file("t.keras"), self.file("p.npy")
        data, named = fit_data.write_file(self.folder, "e", "npz" if self.photos else self.kind, rows, False)
        options = ["--data", data, *named, "--batch-size", str(self.batch), *self.options[:2]]
        self.call("predict", path, *options, "-o", out)
        names = [name for name, _, _ in self.drawn.outputs]
        files = [out] if len(names) == 1 else [out.replace(".npy", f"_{name}.npy") for name in names]
        lines = [line.split() for line in self.call("evaluate", path, *options).splitlines()]
        got = dict(predict={name: np.load(f) for name, f in zip(names, files)},
                   evaluate={line[0]: np.array([float(line[1])]) for line in lines if len(line) == 2})  # fmt: skip
        return self.unlike_inference(model, rows, got)

    def unlike_inference(self, model, rows, got):
        """Differences of predict and evaluate from those of Keras of these rows."""
        path, names = self.file("t.keras"), [name for name, _, _ in self.drawn.outputs]

        def numbers(m, chance=None):
            if chance is not None:
                m.set_weights(trainings.moved([v.numpy() for v in m.weights], chance))
            x = rows.keras_x(m, chance)
            e = m.evaluate(x, rows.keras_y(m), self.batch, verbose=0, sample_weight=rows.keras_w(m), return_dict=True)
            return dict(predict=dict(zip(names, keras.tree.flatten(m.predict(x, self.batch, verbose=0)))),
                        evaluate=fit_compare.flat_history({k: [v] for k, v in e.items()}))  # fmt: skip

        load = keras.models.load_model
        again = fit_compare.Again(self.seed, lambda chance: numbers(load(path), chance), lambda: numbers(load(graphs.in_float32(path))))
        want = numbers(model)
        if rows.n() % self.batch or rows.w is not None:
            got["evaluate"], want["evaluate"] = self.without_losses(got["evaluate"]), self.without_losses(want["evaluate"])
        return fit_compare.differences(got, want, again, "")

    def further(self):
        path, out = self.file("t.keras"), self.file("f.keras")
        model, h = self.run_keras(path, further=True)
        if not fit_compare.is_finite(model, h):
            return []
        self.run_keel(path, out, self.file("f.csv"), further=True)
        got, want = fit_compare.numbers(keras.models.load_model(out)), fit_compare.numbers(model)
        if self.skips_otherwise(got, want):
            return []
        return [f"further: {line}" for line in self.differences(got, want, path, True)]


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("keel")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--fits", type=int, default=20)
    a.add_argument("--only", type=int, help="the fit of this seed")
    a.add_argument("--policy", choices=graphs.POLICIES, default="float32")
    a.add_argument("--show", action="store_true", help="print each fit")
    a.add_argument("--keep", help="leave the files in this folder")
    a = a.parse_args()
    graphs.set_policy(a.policy)
    passed = failed = 0
    warnings.filterwarnings("ignore")
    for seed in [10000 * a.seed + k for k in range(a.fits)] if a.only is None else [a.only]:
        graphs.begin(a.policy)
        keras.utils.set_random_seed(seed)
        fit = None
        with tempfile.TemporaryDirectory() as folder:
            if a.keep:
                folder = a.keep
                os.makedirs(folder, exist_ok=True)
            try:
                fit = Fit(os.path.abspath(a.keel), folder, seed)
                ok, why = fit.compare()
            except (graphs.tf.errors.OpError, NotImplementedError) as e:
                ok, why = None, f"Keras cannot: {' '.join(str(e).split())[:160]}"
            except RuntimeError as e:
                why = next((why for text, why in REFUSES.items() if text in str(e)), None)
                ok, why = (None, f"Keel refuses {why}") if why else (False, str(e))
            except Exception as e:
                why = next((why for text, why in CANNOT.items() if text in str(e)), None)
                ok, why = (None, f"Keras cannot: {why}") if why else (False, traceback.format_exc().strip().replace("\n", "\n       ")[-900:])
        passed, failed = passed + (ok is True), failed + (ok is False)
        if ok is False or a.show:
            print(f"{'FAILED' if ok is False else '--' if ok is None else 'ok':6} {seed} {fit.text() if fit else ''}\n       {why}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
