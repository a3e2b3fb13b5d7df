#!/usr/bin/env python3
"""Make outputs.json and outputs_*.keras: models of several inputs and outputs, trained by the real
Keras on one device.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.

outputs_CASE.keras is the model before its first step, compiled. outputs.json holds for each case the
rows (fields by name, row-major), the logs of two epochs, those of evaluate, and every weight after
training. test_outputs.c trains the same and compares.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers

ROWS, BATCH, EPOCHS, CLASSES, TIME, VOCABULARY = 22, 8, 2, 4, 5, 11  # the last step has 6 rows
rng = np.random.default_rng(3)


def eighths(*shape):
    return (rng.integers(-16, 17, shape) / 8).astype("float32")


def weights(n):
    return (rng.integers(0, 5, n) / 2).astype("float32")


def two():
    """Two inputs, two outputs, a loss with its weight each."""
    a, b = layers.Input((6,), name="a"), layers.Input((3,), name="b")
    h = layers.Concatenate()([layers.Dense(5, activation="tanh")(a), b])
    return keras.Model(
        [a, b],
        [layers.Dense(CLASSES, activation="softmax", name="kind")(h), layers.Dense(2, name="size")(h)],
    )


def fields(*names):
    all = {
        "a": eighths(ROWS, 6),
        "b": eighths(ROWS, 3),
        "kind": rng.integers(0, CLASSES, ROWS).astype("int32"),
        "size": eighths(ROWS, 2),
    }
    return {n: all[n] for n in names}


def keyed():
    """Inputs and outputs in dicts whose keys are not the names of the layers."""
    m = two()
    a, b = m.inputs
    h = layers.Concatenate()([a, b])
    kind = layers.Dense(CLASSES, activation="softmax", name="dense_kind")(h)
    return keras.Model({"b": b, "a": a}, {"size": layers.Dense(2, name="dense_size")(h), "kind": kind})


def nested():
    """Inputs and outputs in structures of several levels."""
    m = keyed()
    kind, size = m.output["kind"], m.output["size"]
    a, b = m.input["a"], m.input["b"]
    return keras.Model({"a": a, "rest": [{"b": b}]}, {"all": {"kind": kind}, "rest": {"size": size}})


def masked():
    """Tokens, 0 is padding: the loss of each place counts where the mask says so."""
    t = layers.Input((TIME,), dtype="int32", name="tokens")
    x = layers.Embedding(VOCABULARY, 4, mask_zero=True)(t)
    return keras.Model(t, layers.Dense(CLASSES, activation="softmax", name="tag")(x))


def masked_two():
    """Two losses, of which a mask decides on the divisor of one."""
    t = layers.Input((TIME,), dtype="int32", name="tokens")
    x = layers.Embedding(VOCABULARY, 4, mask_zero=True)(t)
    mean = layers.GlobalAveragePooling1D()(x)
    return keras.Model(
        t, [layers.Dense(CLASSES, activation="softmax", name="tag")(x), layers.Dense(2, name="size")(mean)]
    )


def tokens():
    t = rng.integers(1, VOCABULARY, (ROWS, TIME)).astype("int32")
    for i in range(ROWS):
        t[i, 1 + i % TIME :] = 0
    return t


def tags():
    return {
        "tokens": tokens(),
        "tag": rng.integers(0, CLASSES, (ROWS, TIME)).astype("int32"),
        "size": eighths(ROWS, 2),
    }


ATTRIBUTES = [f"is_{k}" for k in range(40)]


def attributes():
    """An output for each attribute, as for CelebA."""
    a = layers.Input((6,), name="a")
    h = layers.Dense(5, activation="tanh", name="seen")(a)
    return keras.Model(a, [layers.Dense(1, "sigmoid", name=n)(h) for n in ATTRIBUTES])


def faces():
    return {"a": eighths(ROWS, 6), **{n: rng.integers(0, 2, (ROWS, 1)).astype("int32") for n in ATTRIBUTES}}


SCCE = "sparse_categorical_crossentropy"
CASES = {  # model, rows, compile, sample weights by output
    "lists": (two, lambda: fields("a", "b", "kind", "size"), dict(loss=[SCCE, "mse"], metrics=[["accuracy"], ["mae"]]), {}),
    "dicts": (
        two,
        lambda: fields("a", "b", "kind", "size"),
        dict(
            loss={"kind": SCCE, "size": "mse"},
            loss_weights={"kind": 0.5, "size": 2.0},
            metrics={"size": ["mae", "mse"]},
            weighted_metrics={"kind": ["accuracy"]},
        ),
        {"kind": weights, "size": weights},
    ),
    "mean_weights": (
        two,
        lambda: fields("a", "b", "kind", "size"),
        dict(
            loss=[
                keras.losses.SparseCategoricalCrossentropy(reduction="mean_with_sample_weight"),
                keras.losses.MeanSquaredError(reduction="sum"),
            ],
            loss_weights=[1.5, 0.25],
        ),
        {"kind": weights, "size": weights},
    ),
    "masked": (masked, lambda: {k: v for k, v in tags().items() if k != "size"}, dict(loss=SCCE, metrics=["accuracy"], weighted_metrics=[SCCE]), {}),
    "masked_weights": (masked, lambda: {k: v for k, v in tags().items() if k != "size"}, dict(loss=SCCE, weighted_metrics=["accuracy"]), {"tag": lambda n: weights((n, TIME))}),
    "masked_two": (masked_two, tags, dict(loss=[SCCE, "mse"], loss_weights=[1.0, 0.5]), {}),
    "keyed": (
        keyed,
        lambda: fields("a", "b", "kind", "size"),
        dict(
            loss={"kind": SCCE, "size": "mse"},
            loss_weights={"kind": 0.5, "size": 2.0},
            metrics={"size": ["mae"], "kind": ["accuracy"]},
            weighted_metrics={"kind": ["accuracy"]},
        ),
        {"kind": weights, "size": weights},
    ),
    "nested": (
        nested,
        lambda: fields("a", "b", "kind", "size"),
        dict(
            loss={"all": {"kind": SCCE}, "rest": {"size": "mse"}},
            loss_weights={"all": {"kind": 0.5}, "rest": {"size": 2.0}},
        ),
        {},
    ),
    "one_weighted": (
        two,
        lambda: fields("a", "b", "kind", "size"),
        dict(loss=[SCCE, "mse"], weighted_metrics=[["accuracy"], ["mae"]]),
        {"size": weights},
    ),
    "attributes": (
        attributes,
        faces,
        dict(
            loss={n: "binary_crossentropy" for n in ATTRIBUTES},
            loss_weights={n: 0.25 for n in ATTRIBUTES},
            metrics={n: ["binary_accuracy"] for n in ATTRIBUTES},
        ),
        {},
    ),
}
STRUCTURES = {  # of inputs and outputs by the names of fields, where these are no lists
    "keyed": ({"a": "a", "b": "b"}, {"kind": "kind", "size": "size"}),
    "nested": ({"a": "a", "rest": [{"b": "b"}]}, {"all": {"kind": "kind"}, "rest": {"size": "size"}}),
}
PATHS = {"nested": {"a": "a", "b": "rest/0/b", "kind": "all/kind", "size": "rest/size"}}


class ByRows(keras.callbacks.Callback):
    """Keras weighs the loss of each output by batches, where the sum of all losses, and Keel, weigh by
    rows. Running means of batches tell what each batch gave."""

    def begin(self):
        self.last, self.sums, self.steps, self.rows = {}, {}, 0, 0

    def step(self, logs):
        self.steps += 1
        rows = min(BATCH, ROWS - self.rows)
        self.rows += rows
        for k, v in logs.items():
            if k.endswith("_loss"):
                batch = self.steps * v - (self.steps - 1) * self.last.get(k, 0)
                self.last[k] = v
                self.sums[k] = self.sums.get(k, 0) + rows * batch

    def means(self):
        return {k: float(v / ROWS) for k, v in self.sums.items()}

    def on_epoch_begin(self, epoch, logs=None):
        self.begin()

    def on_train_batch_end(self, batch, logs=None):
        self.step(logs)

    def on_epoch_end(self, epoch, logs=None):
        logs.update(self.means())

    def on_test_begin(self, logs=None):
        self.begin()

    def on_test_batch_end(self, batch, logs=None):
        self.step(logs)


def run(name):
    make, rows, compiled, weighted = CASES[name]
    keras.utils.set_random_seed(5)
    m = make()
    m.compile(keras.optimizers.SGD(2**-4, momentum=0.875), jit_compile=False, **compiled)
    m.save(f"outputs_{name}.keras")
    data = rows()
    x, y = STRUCTURES.get(name, ([i.name for i in m.inputs], list(m.output_names)))
    outputs = keras.tree.flatten(y)
    w = keras.tree.map_structure(lambda n: weighted.get(n, np.ones)(ROWS), y) if weighted else None
    x, y = (keras.tree.map_structure(lambda n: data[n], v) for v in (x, y))
    x, y, w = (v[0] if isinstance(v, list) and len(v) == 1 else v for v in (x, y, w))
    by_rows = ByRows()
    history = []
    keep = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: history.append(dict(logs)))
    m.fit(x, y, BATCH, EPOCHS, shuffle=False, verbose=0, sample_weight=w, callbacks=[by_rows, keep])
    e = m.evaluate(x, y, BATCH, verbose=0, sample_weight=w, return_dict=True, callbacks=[by_rows])
    e.update(by_rows.means())
    out = {
        "name": name,
        "fields": {PATHS.get(name, {}).get(k, k): {"shape": list(v.shape), "int": v.dtype == np.int32, "values": v.ravel().tolist()} for k, v in data.items()},
        "outputs": [PATHS.get(name, {}).get(n, n) for n in outputs],
        "history": {k: [h[k] for h in history] for k in history[0]},
        "evaluate": e,
        "weights": {v.path: v.numpy().ravel().tolist() for v in m.weights},
    }
    if w is not None:
        own = zip(keras.tree.flatten(w), outputs)
        out["sample_weight"] = [v.tolist() if n in weighted else None for v, n in own]
    print(name, history, e)
    return out


def main():
    with open("outputs.json", "w") as f:
        json.dump([run(name) for name in CASES], f, default=float)
        f.write("\n")


main()
