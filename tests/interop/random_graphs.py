#!/usr/bin/env python3
"""Models drawn by chance, by Keel and by the real Keras: outputs, and one training step.

    random_graphs.py path/to/keel path/to/random_graphs [--seed 1] [--count 20] [--policy mixed_bfloat16]

random_graphs (tests/interop/random_graphs.c) writes them: those of tests/random_graph.h, without
layers that draw numbers while they train. Each has weights, one to three losses with weights of
their own, and SGD with a rate of 1, so that the update of a weight is its gradient. Keras loads the
file, and both predict and train a step on the same rows, of which one graph in four has weights of
rows. Two differences are printed, each the largest |a - b| over the largest |b|:

    predict  of an output
    step     of the update of a weight, over the largest of its weight, or over a hundredth of the
             largest of all, if that is more; and of moving statistics

They must stay below 1e-5 and 1e-4, or below ten times what rounding makes of the graph: what Keras
itself changes if weights and inputs move by 1e-7 of themselves; in a mixed policy, by what its type
rounds them. There only gross mistakes are seen: in mixed_bfloat16 outputs off by some 10 %. What
differs more there is compared with the model in float32, too: Keras on TensorFlow adds the gradient of
a bias up in bfloat16. It may differ where Keel is no farther from float32 than Keras. Where Keras cannot
compute a graph on this machine, its words are printed; at most a quarter may be such. A failing graph is printed as
a user of Keras would write it. The last line is 'N passed, N failed'.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import zipfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf

ROWS, DEVICES, PREDICT, STEP, ROUNDING = 5, "cpu:0-2", 1e-5, 1e-4, 1e-7
MOVES = 3  # how often weights and inputs are moved
POLICY = "float32"
POLICIES = {"float32": 1e-7, "mixed_bfloat16": 2.0**-9, "mixed_float16": 2.0**-12}  # how they round
CANNOT = {  # what a graph or the error of Keras has in it: why
    "activation='glu'": "its Activation has the shape of its input, which is not that of glu",
    "Negative dimension size": "its adaptive pools do not give more places than they get",
    "must be fully-defined": "its EinsumDense takes an open dim of the output for its kernel",
    "Cannot convert a list containing a tensor": "it does not add terms of the loss that differ in type",
    "Expected `float16`, `float32` or `float64`": "its STFTSpectrogram takes no bfloat16",
    "MelSpectrogram(": "it says of its MelSpectrogram another number of frames than it computes",
}
DIFFERS = {  # what a graph has in it: why Keel is not compared; see the README's differences
    "'sparsemax'": "its sparsemax is not that of the paper",
    ":= Equalization(": "its Equalization counts the values of a whole batch",
}


def set_policy(name):
    global POLICY, ROUNDING, PREDICT, STEP
    POLICY = name
    keras.config.set_dtype_policy(name)
    if name != "float32":
        ROUNDING = POLICIES[name]
        PREDICT = STEP = 10 * ROUNDING


def begin(policy):
    """Clears Keras's session, which forgets the policy, too."""
    keras.backend.clear_session()
    keras.config.set_dtype_policy(policy)


def tokens_of(model):
    """For each input: how many tokens the tables have that read it; 0: it holds any number."""
    least = {t.name: 0 for t in model.inputs}
    for layer in model.layers:
        if isinstance(layer, keras.layers.Embedding):
            for node in layer._inbound_nodes:
                name = node.input_tensors[0].name
                least[name] = min(least[name] or layer.input_dim, layer.input_dim)
    return [least[t.name] for t in model.inputs]


def losses_of(model):
    loss = model.get_compile_config()["loss"]
    loss = list(loss.values()) if isinstance(loss, dict) else loss
    loss = loss if isinstance(loss, list) else [loss]
    return [l if isinstance(l, str) else l["class_name"] for l in loss]


def rows_of(model, seed):
    """Inputs, targets, weights of rows or None."""
    chance = np.random.default_rng(seed)

    def real(shape):
        return chance.uniform(-1, 1, (ROWS, *shape)).astype("float32")

    x = [
        chance.integers(0, n, (ROWS, *t.shape[1:])).astype("float32") if n else real(t.shape[1:])
        for t, n in zip(model.inputs, tokens_of(model))
    ]
    y = []
    for t, loss in zip(model.outputs, losses_of(model)):
        if "parse" in loss:
            y.append(chance.integers(0, t.shape[-1], (ROWS, *t.shape[1:-1])).astype("int32"))
        elif "inary" in loss:
            y.append(chance.integers(0, 2, (ROWS, *t.shape[1:])).astype("float32"))
        else:
            y.append(real(t.shape[1:]))
    return x, y, chance.uniform(0.5, 2, ROWS).astype("float32") if seed % 4 == 0 else None


def one(values):
    return values[0] if len(values) == 1 else values


class Keras:
    """What the model of a file predicts and makes of a step, from its weights or moved ones."""

    def __init__(self, path, seed):
        self.model = keras.models.load_model(path)
        for layer in self.model._flatten_layers():
            if not layer.trainable:  # Keras loads what a frozen attention layer holds as not frozen
                for held in layer._flatten_layers():
                    held.trainable = False
        over_time = (keras.layers.RNN, keras.layers.Bidirectional, keras.layers.TimeDistributed)
        self.model.run_eagerly = not any(isinstance(l, over_time) for l in self.model.layers)
        self.begin = [w.numpy() for w in self.model.weights]
        self.rows = rows_of(self.model, seed)
        self.chance = np.random.default_rng(seed + 1)

    def move(self, values):
        return [
            v * (1 + ROUNDING * self.chance.choice([-1.0, 1.0], v.shape)).astype("float32")
            if v.dtype == "float32" else v
            for v in values
        ]  # fmt: skip

    def run(self, moved):
        x, y, weights = self.rows
        begin = self.move(self.begin) if moved else self.begin
        for w, b in zip(self.model.weights, begin):
            w.assign(b)
        if moved:
            x = [a if (a == np.round(a)).all() else self.move([a])[0] for a in x]
        outputs = tf.nest.flatten(self.model.predict_on_batch(one(x)))
        all_weights = None if weights is None else one([weights] * len(y))
        self.model.train_on_batch(one(x), one(y), sample_weight=all_weights)
        return outputs, [w.numpy().astype("float64") - b for w, b in zip(self.model.weights, begin)]


def run_keel(keel, folder, path, theirs, trains=True):
    """Outputs and updates as in Keras.run, without updates where it does not train."""
    x, y, weights = theirs.rows
    arrays = {f"{k}_{i}" if len(v) > 1 else k: a for k, v in (("x", x), ("y", y)) for i, a in enumerate(v)}
    if weights is not None:
        arrays["sample_weight"] = weights
    data, out, trained = (os.path.join(folder, n) for n in ("d.npz", "p.npy", "t.keras"))
    np.savez(data, **arrays)
    how = ["--data", data, "--devices", DEVICES, "--batch-size", str(ROWS)]
    for command in (["predict", path, *how, "-o", out],
                    ["fit", path, *how, "--no-shuffle", "--epochs", "1", "-o", trained])[: 1 + trains]:
        done = subprocess.run([keel, *command], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"keel {command[0]}: {' '.join(done.stderr.split())[-400:]}")
    names = theirs.model.output_names
    files = [out] if len(y) == 1 else [out.replace(".npy", f"_{n}.npy") for n in names]
    if not trains:
        return [np.load(f) for f in files], []
    theirs.model.load_weights(trained)
    after = [w.numpy().astype("float64") for w in theirs.model.weights]
    return [np.load(f) for f in files], [a - b for a, b in zip(after, theirs.begin)]


def apart(got, want, least):
    """The largest |a - b| over the largest |b| of each, which counts as `least` at least."""
    real = [[a.astype("float64") for a in v] for v in (got, want)]
    return [
        np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), least, 1e-30)
        if a.shape == b.shape else np.inf
        for a, b in zip(*real)
    ]  # fmt: skip


def in_float32(path):
    """The file of the same model, all of whose layers have the policy float32."""
    wide = path.replace(".keras", "_float32.keras")
    with zipfile.ZipFile(path) as a, zipfile.ZipFile(wide, "w") as b:
        for name in a.namelist():
            data = a.read(name)
            b.writestr(name, data.replace(POLICY.encode(), b"float32") if name == "config.json" else data)
    return wide


def farther(got, want, wide):
    """Whether `got` is farther from what float32 makes than Keras is, by their norms."""
    got, want, wide = (a.astype("float64") for a in (got, want, wide))
    return got.shape != want.shape or not np.linalg.norm(got - wide) <= np.linalg.norm(want - wide)


def compare(keel, folder, seed, graph):
    """(outcome, text): True, False or None, where Keras does not compute it."""
    path = os.path.join(folder, f"{seed}.keras")
    for text, why in DIFFERS.items():
        if text in graph:
            return None, f"Keras differs: {why}"
    return compare_with(keel, folder, path, lambda p: Keras(p, seed), graph)


def compare_with(keel, folder, path, make, graph, trains=True):
    """The same for the Keras that make(path) gives; without `trains` only outputs are compared."""
    try:
        theirs = make(path)
        want = theirs.run(False)
        moved = [theirs.run(True) for _ in range(MOVES)]
    except (tf.errors.OpError, NotImplementedError) as e:
        return None, f"Keras cannot: {' '.join(str(e).split())[:160]}"
    except (ValueError, TypeError) as e:
        why = next((why for text, why in CANNOT.items() if text in graph + str(e)), None)
        if not why:
            raise
        return None, f"Keras cannot: {why}"
    if not all(np.isfinite(a).all() for part in want for a in part):
        return None, "Keras computes no finite numbers"
    got = run_keel(keel, folder, path, theirs, trains)
    text, bad, wide = [], [], None
    for k, (what, allowed) in enumerate((("predict", PREDICT), ("step", STEP))):
        least = 0.01 * max((np.abs(b).max(initial=0) for b in want[k]), default=0)
        rounding = np.max([apart(m[k], want[k], least) for m in moved], axis=0, initial=0)
        apart_by = apart(got[k], want[k], least)
        text.append(f"{what} {max(apart_by, default=0):.0e} (rounding {max(rounding, default=0):.0e})")
        for i, (d, r) in enumerate(zip(apart_by, rounding)):
            if not d <= max(allowed, 10 * r):
                if POLICY != "float32":
                    wide = wide or make(in_float32(path)).run(False)
                    if not farther(got[k][i], want[k][i], wide[k][i]):
                        continue
                name = theirs.model.weights[i].path if k else theirs.model.output_names[i]
                bad.append(f"{what} of {name} differs by {d:.1e}, rounding makes {r:.1e}")
    return not bad, ", ".join(text) + "".join(f"\n       {b}" for b in bad[:6])


def graphs_of(program, folder, seed, count, policy):
    """The graphs as text, by seed."""
    done = subprocess.run([program, folder, str(seed), str(count), policy], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip() or f"{program} ended with {done.returncode}")
    return {int(t.split("\n", 1)[0]): t.split("\n", 1)[1] for t in done.stdout.split("seed ")[1:]}


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("keel")
    a.add_argument("program")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=20)
    a.add_argument("--policy", choices=POLICIES, default="float32")
    args = a.parse_args()
    set_policy(args.policy)
    passed = failed = without = 0
    with tempfile.TemporaryDirectory() as folder:
        graphs = graphs_of(os.path.abspath(args.program), folder, args.seed, args.count, args.policy)
        for seed, graph in graphs.items():
            begin(args.policy)
            try:
                ok, text = compare(os.path.abspath(args.keel), folder, seed, graph)
            except Exception as e:
                ok, text = False, f"{type(e).__name__}: {' '.join(str(e).split())[:600]}"
            passed, failed, without = passed + (ok is True), failed + (ok is False), without + (ok is None)
            print(f"{ {True: 'ok', False: 'FAILED', None: '-'}[ok]:6} {'seed ' + str(seed):14} {text}", flush=True)
            if ok is False:
                print("       " + graph.strip().replace("\n", "\n       "), flush=True)
    if 4 * without > len(graphs):
        print(f"FAILED {without} of {len(graphs)} graphs were not compared")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
