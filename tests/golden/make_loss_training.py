#!/usr/bin/env python3
"""Make loss_training.json: trainings by the losses that look at more than one number at a time.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.

A case is {model, loss, config, loss_weights, weighted, real, epochs, evaluated, weights}: the
mean loss of each epoch and of evaluate after them (null: Keras has none), and [name, every number] of the weights after EPOCHS epochs. Models, weights and rows
are made by integer arithmetic that test_loss_training.c repeats. The last step of an epoch is short.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers

EPOCHS, BATCH, ROWS = 3, 16, 26
SHAPES = dict(vector=(6,), low=(6,), renorm=(6,), clipped=(6,), twice=(6,), back=(6,), terms=(3, 2), window=(4, 3), ids=(3,), image=(4, 4, 3), soft=(4, 4, 3), hard=(4, 4, 3), classes=(4, 4, 3), labels=(6,), steps=(7, 3), two=(6,))


def model(kind):
    i = layers.Input(SHAPES[kind])
    if kind in ("image", "soft", "hard", "classes"):
        shape = dict(soft="linear", hard="hard_sigmoid").get(kind, "sigmoid")
        out = layers.Conv2D(2, 3, padding="same", activation=shape, name="out")(i)
        if kind == "soft":
            out = layers.Softmax(axis=1, name="shares")(out)
        if kind == "classes":  # Keras on TensorFlow takes class numbers for the last dim only
            out = layers.Permute((2, 3, 1))(out)
    elif kind == "ids":
        out = layers.Embedding(5, 4, lora_rank=2, name="out")(i)
        out = layers.GlobalAveragePooling1D(name="mean")(out)
    elif kind == "low":
        out = layers.Dense(4, lora_rank=2, kernel_regularizer="l2", name="out")(i)
    elif kind in ("renorm", "clipped", "twice"):
        x = layers.Dense(4, name="body")(i)
        clip = dict(rmax=3.0, rmin=0.5, dmax=2.0) if kind == "clipped" else None
        norm = layers.BatchNormalization(renorm=True, renorm_clipping=clip, momentum=0.75, renorm_momentum=0.5,
                                         scale=kind != "twice", name="norm")
        out = layers.Activation("sigmoid", name="shape")(norm(x))
        if kind == "twice":
            out = layers.Activation("tanh", name="again")(norm(out))
    elif kind == "window":
        out = layers.Conv1D(2, 2, strides=2, lora_rank=3, lora_alpha=2.0, kernel_regularizer="l2", name="out")(i)
        out = layers.Flatten(name="flat")(out)
    elif kind == "back":
        out = layers.ReversibleEmbedding(4, 6, lora_rank=2, logit_soft_cap=1.5, name="out")(i, reverse=True)
    elif kind == "terms":
        out = layers.EinsumDense("abc,bcde->ade", (2, 2), bias_axes="de", lora_rank=3, lora_alpha=2.0,
                                 kernel_regularizer="l2", name="out")(i)
        out = layers.Flatten(name="flat")(out)
    elif kind == "steps":
        out = layers.Dense(5, name="out")(i)
    else:
        x = layers.Dense(8, activation="tanh", name="body")(i)
        out = layers.Dense(4, activation="tanh" if kind == "labels" else "sigmoid", name="out")(x)
        if kind == "two":
            out = [out, layers.Dense(3, activation="tanh", name="other")(x)]
    m = keras.Model(i, out)
    for k, w in enumerate(m.weights):
        n = np.arange(np.prod(w.shape), dtype="int64")
        v = (((n * 7919 + 131 * k) % 1021 - 510) / 1024).reshape(w.shape)
        w.assign(1 + v if "stddev" in w.name else v)
    return m


def numbers(shape, step, modulus):
    n = int(np.prod(shape))
    i, k = np.arange(ROWS, dtype="int64")[:, None], np.arange(n, dtype="int64")[None, :]
    return ((i * 131 + k * 37 + i * k * step) % modulus).reshape((ROWS, *shape))


def targets(kind):
    if kind == "labels":
        return (numbers((1,), 0, 5)).astype("int32")
    if kind == "steps":  # 1 to 3 symbols of 1 to 4, then 0
        y = 1 + numbers((3,), 5, 4)
        return np.where(np.arange(3) <= np.arange(ROWS)[:, None] % 3, y, 0).astype("int32")
    if kind == "classes":
        return numbers((4, 2), 3, 4).astype("int32")
    overlap = numbers((4, 4, 2) if kind in ("image", "soft", "hard") else (4,), 3, 3) // 2
    if kind == "two":
        return [overlap.astype("float64"), numbers((1,), 0, 5).astype("int32")]
    return overlap.astype("float64")


def case(kind, name, config, weighted=False, real="float64", loss_weights=None):
    keras.config.set_floatx(real)
    keras.utils.clear_session()
    m, x, y = model(kind), (numbers(SHAPES[kind], 7, 256) - 128) / 128, targets(kind)
    x = numbers(SHAPES[kind], 7, 5) if kind == "ids" else x
    given = [{k: v for k, v in c.items() if k != "axis"} if kind == "classes" else c for c in config]
    losses = [getattr(keras.losses, n)(**c) for n, c in zip(name, given)]
    m.compile(keras.optimizers.SGD(0.0625, momentum=0.5), losses if kind == "two" else losses[0],
              loss_weights=loss_weights)
    w = (np.arange(ROWS) % 4) / 2 if weighted else None
    if "reduction" in config[0] and config[0]["reduction"] is None:
        epochs, evaluated = without_reduction(m, x.astype(real), y, w), None
    else:
        epochs, evaluated = trained(m, x.astype(real), y, w, kind)
    return dict(model=kind, loss=name, config=config, loss_weights=loss_weights, weighted=weighted, real=real,
                epochs=epochs, evaluated=evaluated,
                weights=[[v.path, [float(f"{e:.12g}") for e in np.asarray(v).ravel()]] for v in m.weights])


def trained(m, x, y, w, kind):
    weights = [w, w] if w is not None and kind == "two" else w
    h = m.fit(x, y, batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0, sample_weight=weights)
    after = m.evaluate(x, y, batch_size=BATCH, sample_weight=weights, verbose=0, return_dict=True)
    return h.history["loss"], after["loss"]


def without_reduction(m, x, y, w):
    """The mean over rows: Keras's own log counts a row as often as its step has rows."""
    epochs = []
    for _ in range(EPOCHS):
        total = 0
        for at in range(0, ROWS, BATCH):
            part = slice(at, min(at + BATCH, ROWS))
            m.reset_metrics()
            loss = m.train_on_batch(x[part], y[part], w if w is None else w[part], return_dict=True)["loss"]
            total += float(loss) * (part.stop - part.start)
        epochs.append(total / ROWS)
    return epochs


cases = []
for name, config in (("Dice", {}), ("Tversky", dict(alpha=0.25, beta=0.75))):
    for weighted in (False, True):
        for reduction in ("sum_over_batch_size", "sum", "mean_with_sample_weight"):
            cases.append(case("vector", [name], [dict(config, reduction=reduction)], weighted))
    cases.append(case("image", [name], [config]))
    cases.append(case("image", [name], [dict(config, axis=[1, 2, 3])], True))
    cases.append(case("image", [name], [dict(config, axis=[1, -2])]))
    cases.append(case("image", [name], [dict(config, axis=[0, 1, 2])]))
    cases.append(case("image", [name], [dict(config, axis=[0, 1, 2], reduction="sum")]))
    cases.append(case("image", [name], [config], True, "float32"))
for weighted in (False, True):
    cases.append(case("labels", ["Circle"], [dict(gamma=8.0)], weighted))
    cases.append(case("labels", ["Circle"], [{}], weighted))
    cases.append(case("labels", ["Circle"], [dict(gamma=4.0, margin=0.25, remove_diagonal=False)], weighted))
    cases.append(case("labels", ["Circle"], [dict(gamma=4.0, reduction="sum")], weighted))
    for reduction in ("sum_over_batch_size", "sum", "mean_with_sample_weight"):
        cases.append(case("steps", ["CTC"], [dict(reduction=reduction)], weighted, "float32"))
    cases.append(case("two", ["Dice", "Circle"], [{}, dict(gamma=4.0)], weighted, loss_weights=[2.0, 0.5]))
    cases.append(case("two", ["Tversky", "Circle"],
                      [dict(reduction="mean_with_sample_weight"), dict(gamma=4.0, reduction="mean_with_sample_weight")],
                      weighted))
for name, config in (("BinaryCrossentropy", dict(axis=1)), ("BinaryFocalCrossentropy", dict(axis=-2)),
                     ("CategoricalFocalCrossentropy", dict(axis=1)), ("CosineSimilarity", dict(axis=1)),
                     ("CosineSimilarity", dict(axis=3))):
    cases.append(case("image", [name], [config]))
# Keras takes what a sigmoid was made of for the logits of a softmax, so these have another shape
cases.append(case("hard", ["CategoricalCrossentropy"], [dict(axis=1)]))
cases.append(case("hard", ["CategoricalCrossentropy"], [dict(axis=1, reduction=None)]))
cases.append(case("hard", ["CategoricalCrossentropy"], [dict(axis=2, from_logits=True, reduction="sum")]))
cases.append(case("soft", ["CategoricalCrossentropy"], [dict(axis=1)]))
cases.append(case("soft", ["CategoricalCrossentropy"], [dict(axis=1)], real="float32"))
cases.append(case("classes", ["SparseCategoricalCrossentropy"], [dict(axis=1, from_logits=True)]))
cases.append(case("classes", ["SparseCategoricalCrossentropy"], [dict(axis=1)]))
for weighted in (False, True):
    cases.append(case("vector", ["MeanSquaredError"], [dict(reduction=None)], weighted))
    cases.append(case("vector", ["Tversky"], [dict(reduction=None)], weighted))
    cases.append(case("labels", ["Circle"], [dict(gamma=4.0, reduction=None)], weighted))
cases.append(case("low", ["MeanSquaredError"], [{}], real="float32"))
cases.append(case("ids", ["MeanSquaredError"], [{}], real="float32"))
cases.append(case("back", ["MeanSquaredError"], [{}], real="float32"))
cases.append(case("terms", ["MeanSquaredError"], [{}], real="float32"))
for kind in ("renorm", "clipped", "twice"):
    cases.append(case(kind, ["MeanSquaredError"], [{}]))
cases.append(case("clipped", ["MeanSquaredError"], [{}], real="float32"))
cases.append(case("window", ["MeanSquaredError"], [{}], real="float32"))
with open("loss_training.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
