#!/usr/bin/env python3
"""Every model of keras.applications in Keel and in real Keras, as a table.

    applications.py [--keel build/keel] [--only VGG16,ResNet50] [--forward] [--markdown TABLE.md]

Each model is made by Keras with random weights and ten classes, on the smallest images that it takes
(at least 64x64). Its moving statistics are those of the images and no weight is left at zero or
one, so that every weight matters; dropout is 0, because Keel draws other numbers. Both take the
same images and weights, once in float32 and once in float64. A difference of numbers is the length
of the vector of all differences, relative to that of all numbers. Then:

    predict  largest difference of an output of keel predict, relative to the largest output
    files    the same with weights that --weights reads: of one model of each family with and without
             its top, each from a .weights.h5 and from a .h5 of the format of Keras 2
    step64   the updates of all weights in one step of SGD, both in float64: one mistake in a
             gradient shows, and rounding is far below
    weight64 the update of the weight where both differ most, relative to this weight's updates
    state64  moving statistics after it, the weight where both differ most
    step     the updates of Keel in float32, from those of Keras in float64
    Keras's  the updates of Keras in float32, from those of Keras in float64: what rounding makes of
             the step. Deep networks with batch normalization and rectifiers amplify it; these have
             both numbers for one model of each family

A model passes if predict and files are at most 1e-4, step64, weight64 and state64 at most 1e-9, and
step at most 1e-4, or, where that is more, three times as far as Keras's float32 is. Whether a
rectifier at its kink takes the other side is chance: where step alone fails, it is tried with other
images and weights, twice at most. --forward leaves out files and steps. --markdown puts the rows into the table of that file. The last line is
'N passed, N failed'. Run with Keras 3, KERAS_BACKEND=tensorflow.
"""
import argparse
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import h5py
import keras
import numpy as np
import tensorflow as tf
from keras.src.legacy.saving import legacy_h5_format

FAMILIES = ("ConvNeXtTiny", "DenseNet121", "EfficientNetB0", "EfficientNetV2B0", "InceptionResNetV2",
            "InceptionV3", "MobileNet", "MobileNetV2", "MobileNetV3Small", "NASNetMobile", "ResNet50",
            "ResNet50V2", "VGG16", "Xception")
SMOOTH = ("EfficientNet", "ConvNeXt", "VGG") # rounding changes little: no rectifier after a statistic
SMALLEST = {"ConvNeXtLarge": 32, "ConvNeXtXLarge": 32, "Xception": 71, "InceptionV3": 75, "InceptionResNetV2": 75}
BYTES = ("EfficientNet", "ConvNeXt", "MobileNetV3") # they take pixels of 0 to 255
BATCH = 4
COLUMNS = ("predict", "files", "step64", "weight64", "state64", "step", "Keras's")
STEP = COLUMNS.index("step")
EXACT = 1e-9
SMALL = 1e-6 # a weight whose updates are less than this part of all updates counts as this part


def names():
    """The classes of keras.applications: what can be called with weights=None."""
    return sorted(n for n in dir(keras.applications) if n[0].isupper())


def side_of(name):
    return SMALLEST.get(name, 64)


def make(name, dtype="float32", **more):
    """The model in that type, without dropout."""
    keras.config.set_floatx(dtype)
    keras.config.set_dtype_policy(dtype)
    side = side_of(name)
    model = getattr(keras.applications, name)(weights=None, input_shape=(side, side, 3), **more)
    for layer in model.layers:
        if isinstance(layer, keras.layers.Dropout):
            layer.rate = 0.0
    # the updates of a step are the gradients
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss="sparse_categorical_crossentropy",
                  run_eagerly=True)
    return model


def settle(model):
    for l in model.layers:
        if isinstance(l, keras.layers.Normalization):  # it computes with copies of its weights
            l.finalize_state()


def exact_gelu(x):
    return 0.5 * x * (1 + keras.ops.erf(x / np.sqrt(2.0)))


def unround(model):
    """Keras on TensorFlow rounds these numbers to float32 in float64, too."""
    for l in model.layers:
        exact = lambda v: np.asarray(v, l.compute_dtype)
        if isinstance(l, keras.layers.Rescaling):
            l.scale, l.offset = exact(l.scale), exact(l.offset)
        elif isinstance(l, keras.layers.Normalization) and l.input_mean is not None:
            l.mean = keras.ops.reshape(exact(l.input_mean), l.mean.shape)
            l.variance = keras.ops.reshape(exact(l.input_variance), l.variance.shape)
        elif getattr(l, "activation", None) is keras.activations.gelu:
            l.activation = exact_gelu


def fill(model, x, random):
    for w in model.weights:
        if len(w.shape) == 1 and "float" in w.dtype:
            noise = 0.1 * random.standard_normal(w.shape).astype(w.dtype)
            w.assign(w.numpy() + (np.abs(noise) if "variance" in w.path else noise))
    settle(model)
    norms = [l for l in model.layers if isinstance(l, keras.layers.BatchNormalization)]
    momenta = [l.momentum for l in norms]
    for l in norms:
        l.momentum = 0.0
    model(x, training=True)
    for l, m in zip(norms, momenta):
        l.momentum = m
        l.moving_variance.assign_add([0.1] * l.moving_variance.shape[0]) # channels that are dead


def images(name, random):
    low, high = (0, 255) if name.startswith(BYTES) else (-1, 1)
    side = side_of(name)
    return random.uniform(low, high, (BATCH, side, side, 3)).astype("float32")


def clean():
    keras.backend.clear_session()
    gc.collect()


def conv(inputs, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
    """Keras's convolution. One with as many groups as channels, as in ConvNeXt, is one by depth, for
    which TensorFlow needs no compiler: Keras compiles each call anew, for seconds."""
    by_depth = kernel.shape[-2] == 1 and kernel.shape[-1] == inputs.shape[-1] > 1
    if not by_depth or data_format == "channels_first" or any(
            np.any(np.not_equal(n, 1)) for n in (strides, dilation_rate)):
        return keras_conv(inputs, kernel, strides, padding, data_format, dilation_rate)
    kernel = tf.transpose(kernel, (0, 1, 3, 2))
    return tf.nn.depthwise_conv2d(inputs, kernel, [1, 1, 1, 1], padding.upper())


keras_conv, keras.src.backend.nn.conv = keras.src.backend.nn.conv, conv


@tf.function(jit_compile=True)
def grouped(inputs, kernel, strides, padding):
    return tf.nn.convolution(inputs, kernel, strides, padding)


# ---- numbers on disk: some models have more than memory holds several times -----------------------


def keep(model, folder):
    os.makedirs(folder)
    for i, w in enumerate(model.weights):
        np.save(f"{folder}/{i}.npy", w.numpy())


def kept(folder, i):
    return np.load(f"{folder}/{i}.npy", mmap_mode="r").astype("float64")


def apart(model, got, want, before):
    """(of all updates, of the worst weight's, of the worst state) between two folders."""
    d, n, state = [], [], 0.0
    for i, w in enumerate(model):
        if not w["real"]:
            continue  # rows that adapt() has seen
        b, u, v = (kept(f, i) for f in (before, got, want))
        if w["trainable"]:
            d.append(np.square(u - v).sum())
            n.append(np.square(v - b).sum())
        else:
            state = max(state, float(np.abs(u - v).max() / max(np.abs(v).max(), 1e-30)))
    least = SMALL**2 * sum(n)
    worst = max(np.sqrt(a / max(b, least)) for a, b in zip(d, n))
    return float(np.sqrt(sum(d) / sum(n))), float(worst), state


def largest(got, want):
    return float(np.abs(got - want).max() / np.abs(want).max())


# ---- Keel -----------------------------------------------------------------------------------------


def same_path(path, known):
    """Keel's name of a weight: without scopes of names, and number of a weight without a name."""
    parts = re.sub("/variable_[0-9]+$", "/variable", path).split("/")
    ends = ["/".join(parts[i:]) for i in range(len(parts) - 1)]
    return next((e for e in ends if e in known), path)


class Missing(Exception):
    """What Keel does not have, in its own words."""


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode:
        raise Missing(" ".join((done.stderr or done.stdout).split()) or f"exit {done.returncode}")
    return done.stdout.split("\n")[:-1]


def predict(m, path, x, *more):
    data, out = m.at("x.npy"), m.at("p.npy")
    np.save(data, x)
    run(m.keel, "predict", path, "--data", data, "-o", out, *more)
    return np.load(out)


class Measure:
    """One model, and what was found out about it."""

    def __init__(self, keel, name, folder, seed, both):
        self.keel, self.name, self.folder, self.seed = keel, name, folder, seed
        self.row = {"model": name}
        self.once = name not in FAMILIES and not both

    def at(self, name):
        return os.path.join(self.folder, name)

    def all(self, forward):
        try:
            if self.once and not forward:
                self.only_float64()
            else:
                self.float32(forward)
                if forward:
                    return self.row
                clean()
                self.float64()
            self.steps()
            clean()
            if self.seed == 1 and self.name in FAMILIES:
                self.no_top()
        except Missing as e:
            self.row["missing"] = str(e)
        return self.row

    def float32(self, forward):
        """Outputs, weights from files, and both steps. The weights go into the folder `before`."""
        random = np.random.default_rng(self.seed)
        keras.utils.set_random_seed(self.seed)
        model = make(self.name, classes=10)
        x, y = self.begin(model, random)
        np.savez(self.at("d.npz"), x=x, y=y)
        path = self.at("m.keras")
        family = self.name in FAMILIES and not forward and self.seed == 1
        if family:
            model.save(self.at("new.keras"))
        fill(model, x, random)
        model.save(path)
        want = model(x, training=False).numpy()
        self.row["predict"] = largest(predict(self, path, x), want)
        if forward:
            return
        if family:
            model.save(self.at("whole.h5"))
            self.files(self.at("new.keras"), model, x, want, self.at("whole.h5"))
        keep(model, self.at("before"))
        model.train_on_batch(x, y)
        keep(model, self.at("keras"))
        trained = self.at("t.keras")
        run(self.keel, "fit", path, "--data", self.at("d.npz"), "-o", trained, "--batch-size",
            str(BATCH), "--no-shuffle", "--epochs", "1")
        model.load_weights(trained)
        os.remove(trained)
        keep(model, self.at("keel"))

    def files(self, fresh, model, x, want, old):
        new = self.at("new.weights.h5")
        model.save_weights(new)
        for path in new, old:
            apart = largest(predict(self, fresh, x, "--weights", path), want)
            self.row["files"] = max(self.row.get("files", 0), apart)
            os.remove(path)
        os.remove(fresh)

    def only_float64(self):
        """As both of them, for all models but one of each family: Keras computes in float64 only, and
        Keel in both. The file says float32 instead of float64."""
        random = np.random.default_rng(self.seed)
        keras.utils.set_random_seed(self.seed)
        model = make(self.name, "float64", classes=10)
        x, y = self.begin(model, random)
        unround(model)
        fill(model, x.astype("float64"), random)
        for w in model.weights:
            if "float" in w.dtype:
                w.assign(w.numpy().astype("float32"))
        settle(model)
        self.write(model)
        keep(model, self.at("before"))
        self.outputs = model(x.astype("float64"), training=False).numpy()
        model.train_on_batch(x.astype("float64"), y)
        keep(model, self.at("keras64"))
        del model
        clean()
        os.makedirs(self.at("keel"))
        paths = self.exact_step("keel", "float32")
        self.row["predict"] = largest(np.load(self.at("keel/outputs.npy")), self.outputs)
        self.sort("keel", paths)

    def write(self, model):
        """The model's file with what it would have in float32 in its configuration."""
        wide, layers = self.at("wide.keras"), [l for l in model.layers if hasattr(l, "scale")]
        as_they_were = [(l, l.scale, l.offset) for l in layers if hasattr(l, "offset")]
        for l, scale, offset in as_they_were:
            l.scale, l.offset = scale.tolist(), offset.tolist()
        gelu = [l for l in model.layers if getattr(l, "activation", None) is exact_gelu]
        for l in gelu:
            l.activation = keras.activations.gelu
        model.save(wide)
        for l, scale, offset in as_they_were:
            l.scale, l.offset = scale, offset
        for l in gelu:
            l.activation = exact_gelu
        with zipfile.ZipFile(wide) as old, zipfile.ZipFile(self.at("m.keras"), "w") as new:
            for name in old.namelist():
                with old.open(name) as a, new.open(name, "w", force_zip64=True) as b:
                    if name == "config.json":
                        b.write(a.read().replace(b'"float64"', b'"float32"'))
                    else:
                        shutil.copyfileobj(a, b, 1 << 24)
        os.remove(wide)

    def begin(self, model, random):
        x = images(self.name, random)
        y = random.integers(0, 10, BATCH).astype("int32")
        np.save(self.at("images.npy"), x)
        np.save(self.at("labels.npy"), y)
        self.row["weights"] = model.count_params()
        self.row["images"] = f"{BATCH} x {x.shape[1]}x{x.shape[2]}"
        self.weights = [{"path": w.path, "trainable": w.trainable, "real": "float" in w.dtype}
                        for w in model.weights]
        return x, y

    def float64(self):
        """Keras's outputs and step."""
        x, y = (np.load(self.at(f)) for f in ("images.npy", "labels.npy"))
        model = make(self.name, "float64", classes=10)
        assert [w.path for w in model.weights] == [w["path"] for w in self.weights]
        for i, w in enumerate(model.weights):
            w.assign(kept(self.at("before"), i))
        settle(model)
        unround(model)
        x = x.astype("float64")
        self.outputs = model(x, training=False).numpy()
        assert self.outputs.dtype == "float64"
        model.train_on_batch(x, y)
        keep(model, self.at("keras64"))

    def exact_step(self, folder, dtype):
        exact = os.path.join(os.path.dirname(self.keel), "tests", "exact_step")
        return run(exact, self.at("m.keras"), self.at("images.npy"), self.at("labels.npy"),
                   self.at(folder), dtype)

    def steps(self):
        os.makedirs(self.at("keel64"))
        paths = self.exact_step("keel64", "float64")
        os.remove(self.at("m.keras"))
        self.row["step64"] = largest(np.load(self.at("keel64/outputs.npy")), self.outputs)
        self.sort("keel64", paths)
        before, truth = self.at("before"), self.at("keras64")
        step, worst, state = apart(self.weights, self.at("keel64"), truth, before)
        self.row["step64"] = max(self.row["step64"], step)
        self.row["weight64"], self.row["state64"] = worst, state
        if not self.once:
            self.row["Keras's"] = apart(self.weights, self.at("keras"), truth, before)[0]
        if not self.once or self.name.startswith(SMOOTH):
            self.row["step"] = apart(self.weights, self.at("keel"), truth, before)[0]
        for f in "before", "keras", "keel", "keras64", "keel64":
            shutil.rmtree(self.at(f), ignore_errors=True)

    def sort(self, folder, paths):
        """Keel's weights get the numbers that Keras gives them."""
        theirs = [same_path(w["path"], set(paths)) for w in self.weights]
        real = [p for p, w in zip(theirs, self.weights) if w["real"]]
        if sorted(paths) != sorted(real):
            raise Missing(f"other weights: {sorted(set(paths) ^ set(real))[:4]}")
        for i, path in enumerate(paths):
            os.rename(self.at(f"{folder}/{i}.npy"), self.at(f"{folder}/{theirs.index(path)}.part"))
        for f in os.listdir(self.at(folder)):
            if f.endswith(".part"):
                os.rename(self.at(f"{folder}/{f}"), self.at(f"{folder}/{f[:-5]}.npy"))

    def no_top(self):
        """The model is saved as it begins; then its weights are others, and go into the files."""
        random = np.random.default_rng(2)
        model = make(self.name, include_top=False, pooling="avg")
        x = images(self.name, random)
        fresh, old = self.at("notop.keras"), self.at("notop.h5")
        model.save(fresh)
        for w in model.weights:
            if len(w.shape) > 1:
                w.assign(w.numpy()[..., ::-1])
        fill(model, x, random)
        with h5py.File(old, "w") as f:
            legacy_h5_format.save_weights_to_hdf5_group(f, model)
        self.files(fresh, model, x, model(x, training=False).numpy(), old)


def measure(keel, name, forward, both):
    row = {}
    for seed in 1, 2, 3:
        with tempfile.TemporaryDirectory() as folder:
            new = Measure(keel, name, folder, seed, both).all(forward)
        clean()
        for k in COLUMNS[:STEP]:
            if k in row or k in new:
                new[k] = max(row.get(k, 0), new.get(k, 0))
        row = new
        if steps_alike(row):
            break
    return row


# ---- the table ------------------------------------------------------------------------------------


def steps_alike(row):
    return row.get("step", 0) <= max(1e-4, 3 * row.get("Keras's", 0))


def passed(row):
    return ("missing" not in row and steps_alike(row) and
            max(row.get(k, 0) for k in ("predict", "files")) <= 1e-4 and
            max(row.get(k, 0) for k in ("step64", "weight64", "state64")) <= EXACT)


def line(row):
    cells = [row["model"], f"{row.get('weights', 0):,}", row.get("images", "")]
    cells += [f"{row[k]:.1e}" if k in row else "" for k in COLUMNS]
    if "missing" in row:
        cells[-1] = "no: " + row["missing"]
    return f"| {' | '.join(cells)} |"


HEAD = [f"| model | weights | images | {' | '.join(COLUMNS)} |", "|---" * (3 + len(COLUMNS)) + "|"]


def merge(path, rows):
    """Puts the rows into the table of the file, in the order of their names."""
    with open(path) as f:
        text = f.read()
    table = re.search(r"^\| model .*\n\|---.*\n(\|.*\n)*", text, re.M)
    if not table:
        sys.exit(f"{path}: there is no table that begins with '| model'")
    old = table.group(0).splitlines()
    lines = {l.split("|")[1].strip(): l for l in old[2:]} if old[0] == HEAD[0] else {}
    lines.update((r["model"], line(r)) for r in rows)
    new = "\n".join(HEAD + [lines[k] for k in sorted(lines)]) + "\n"
    with open(path, "w") as f:
        f.write(text[:table.start()] + new + text[table.end():])


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--keel", default="build/keel")
    args.add_argument("--only", help="models, separated by commas")
    args.add_argument("--forward", action="store_true", help="no training step, no file of weights")
    args.add_argument("--both", action="store_true", help="Keras's step in float32 for all models")
    args.add_argument("--markdown", help="put the rows into the table of this file, too")
    args = args.parse_args()
    rows = []
    print(*HEAD, sep="\n", flush=True)
    for name in args.only.split(",") if args.only else names():
        rows.append(measure(os.path.abspath(args.keel), name, args.forward, args.both))
        print(line(rows[-1]), flush=True)
        if args.markdown:
            merge(args.markdown, rows[-1:])
    failed = sum(not passed(r) for r in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
