#!/usr/bin/env python3
"""Make optimizer_training.json and optimizer_*.keras: trainings by each of Keras's optimizers.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder. With the argument `keeps` it
makes optimizer_keeps.json instead: averages of weights and gradients of several steps. With
KERAS_BACKEND=jax it makes optimizer_training_jax.json: ScheduleFreeAdamW, see make_optimizers.py.

A case is {model, optimizer, config, real, file, weights, slots}; weights and slots are lists of
[name, count, sum, sum of squares, every stride-th element] after STEPS steps, in the order of
model.trainable_variables and of optimizer.variables. With a file the training begins in Keras:
optimizer_FILE.keras is the compiled model after its first BEGUN steps. Models, weights and rows are
made by integer arithmetic that test_optimizer_training.c repeats.
"""
import json
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ["JAX_ENABLE_X64"] = "1"
import keras
import numpy as np
from keras import layers, optimizers

JAX = keras.backend.backend() == "jax"
if JAX:
    import jax
else:
    import tensorflow as tf

STEPS, BEGUN, BATCH, ROWS, CLASSES, SAMPLES = 20, 3, 16, 32, 4, 12
SHAPES = dict(wide=(100,), conv=(8, 8, 3), tokens=(6,), small=(6,))
TOKENS = 50


def model(kind):
    i = layers.Input(SHAPES[kind])
    if kind == "wide":  # matrices of more than one tile, wide and tall
        x = layers.Dense(200, activation="tanh", name="d1")(i)
        x = layers.Dense(90, activation="tanh", name="d2")(x)
    elif kind == "conv":
        x = layers.Conv2D(20, 3, activation="tanh", name="conv")(i)
        x = layers.Flatten(name="flat")(x)
    elif kind == "small":  # Keras cannot train embeddings by all optimizers
        x = layers.Dense(16, activation="tanh", name="body")(i)
    else:
        x = layers.Embedding(TOKENS, 8, name="embedding")(i)
        x = layers.Flatten(name="flat")(x)
        x = layers.Dense(16, activation="tanh", name="body")(x)
    m = keras.Model(i, layers.Dense(CLASSES, activation="softmax", name="out")(x))
    for k, w in enumerate(m.weights):
        n = np.arange(np.prod(w.shape), dtype="int64")
        w.assign((((n * 7919 + 131 * k) % 1021 - 510) / 4096).reshape(w.shape))
    return m


def rows(kind):
    n = int(np.prod(SHAPES[kind]))
    i, k = np.arange(ROWS, dtype="int64")[:, None], np.arange(n, dtype="int64")[None, :]
    mixed = i * 131 + k * 37 + i * k * 7
    x = mixed % TOKENS if kind == "tokens" else (mixed % 256 - 128) / 128
    return x.reshape((ROWS, *SHAPES[kind])), (np.arange(ROWS) * 5 // 3 % CLASSES).astype("int32")


def digest(name, v):
    a = np.asarray(v, "float64").reshape(-1)
    some = a[:: max(1, a.size // SAMPLES)]
    return [name, a.size, float(a.sum()), float((a * a).sum()), [float(f"{e:.12g}") for e in some]]


def gradients(m, x, y):
    if JAX:
        of = lambda w: m.compute_loss(y=y, y_pred=m.stateless_call(w, [], x, training=True)[0])
        return jax.grad(of)([v.value for v in m.trainable_variables])
    with tf.GradientTape() as tape:
        loss = m.optimizer.scale_loss(m.compute_loss(y=y, y_pred=m(x, training=True)))
    # TensorFlow's gradient of an embedding is a list of rows, in which a token may come twice;
    # there, and with no other backend, Keras squares them one by one
    return [tf.convert_to_tensor(g) for g in tape.gradient(loss, m.trainable_variables)]


def steps(m, x, y, begin, end):
    for s in range(begin, end):
        at = s * BATCH % ROWS
        g = gradients(m, x[at : at + BATCH], y[at : at + BATCH])
        m.optimizer.apply(g, m.trainable_variables)


def case(kind, name, config, real="float32", file=None):
    keras.config.set_floatx(real)
    keras.utils.clear_session()
    m, (x, y) = model(kind), rows(kind)
    m.compile(getattr(optimizers, name)(**config), "sparse_categorical_crossentropy")
    if file:
        steps(m, x, y, 0, BEGUN)
        m.save(f"optimizer_{file}.keras")
    # averages become weights whenever a training ends: the test ends one before the last step
    for begin, end in ((BEGUN, STEPS - 1), (STEPS - 1, STEPS)) if file else ((0, STEPS),):
        steps(m, x, y, begin, end)
        m.optimizer.finalize_variable_values(m.trainable_variables)
    if hasattr(config.get("learning_rate"), "get_config"):
        config = dict(config, learning_rate=optimizers.schedules.serialize(config["learning_rate"]))
    skip = 1 if isinstance(config.get("learning_rate"), dict) else 2
    return dict(model=kind, optimizer=name, config=config, real=real, file=file,
                weights=[digest(v.path, v) for v in m.trainable_variables],
                slots=[digest(v.name, v) for v in m.optimizer.variables[skip:]])


def rounded(x):
    """Keras takes some arguments through float32 even in float64: what both can hold."""
    return round(x * 1024) / 1024


R = dict(learning_rate=0.0078125)


def all_optimizers():
    cases = []
    for real in ("float64", "float32"):
        adam = dict(beta_1=rounded(0.9), beta_2=rounded(0.999)) if real == "float64" else {}
        muon = dict(momentum=rounded(0.95), adam_beta_1=rounded(0.9), adam_beta_2=rounded(0.999),
                    weight_decay=0.125, adam_weight_decay=0.0625, rms_rate=0.25)
        for kind in ("wide", "conv"):
            cases.append(case(kind, "Lamb", dict(R, **adam), real))
            cases.append(case(kind, "Lamb", dict(R, **adam, weight_decay=0.125, clipnorm=0.25), real))
            cases.append(case(kind, "Adafactor", R, real))
            cases.append(case(kind, "Adafactor", dict(
                learning_rate=0.25, weight_decay=0.0625, clip_threshold=0.5, epsilon_2=0.0625,
                beta_2_decay=-0.5, relative_step=False, clipvalue=0.0078125), real))
            cases.append(case(kind, "Muon", dict(R, **muon), real))
        cases.append(case("wide", "Muon", dict(
            R, **dict(muon, rms_rate=None, adam_weight_decay=None), nesterov=False, ns_steps=4,
            exclude_layers=["d2"], global_clipnorm=0.5, adam_lr_ratio=0.5), real))
        cases.append(case("tokens", "Muon", dict(R, **muon, exclude_layers=["^o.t/k", "nothing"]), real))
        cases.append(case("tokens", "Muon", dict(R, **muon, exclude_embeddings=False, ns_steps=0), real))
        cases.append(case("tokens", "Adafactor", R, real))
    for name, config in dict(
        RMSprop=dict(momentum=0.5, centered=True), Adagrad={}, Adadelta=dict(learning_rate=0.5),
        Adamax={}, Nadam={}, Ftrl=dict(l1_regularization_strength=0.001), Lion={}, Lamb={},
        Adafactor={}, Muon=dict(exclude_layers=["out"]),
    ).items():
        cases.append(case("small", name, {**R, **config}, file=name.lower()))
    cases.append(case("small", "Adam", dict(learning_rate=optimizers.schedules.CosineDecay(
        0.03125, 12, alpha=0.125, warmup_target=0.0625, warmup_steps=5)), file="schedule"))
    return cases


def what_they_keep():
    clip = dict(weight_decay=0.0625, clipnorm=0.25)
    adam = dict(beta_1=rounded(0.9), beta_2=rounded(0.999))
    ema, every = dict(use_ema=True, ema_momentum=0.75), dict(gradient_accumulation_steps=3)
    slow = lambda: optimizers.schedules.CosineDecay(0.0625, 12)
    return [
        case("small", "SGD", dict(R, **ema), "float64"),
        case("small", "SGD", dict(R, momentum=0.5, **ema, ema_overwrite_frequency=4), "float64"),
        case("wide", "Adam", dict(R, **adam, **ema, **every, **clip, ema_overwrite_frequency=2), "float64"),
        case("wide", "Adam", dict(R, **ema, **every, loss_scale_factor=1024.0), "float32"),
        case("conv", "AdamW", dict(R, **adam, **every, global_clipnorm=0.5), "float64"),
        case("tokens", "RMSprop", dict(R, **every, clipvalue=0.0078125), "float64"),
        case("wide", "Lamb", dict(R, **adam, **ema, ema_overwrite_frequency=3, gradient_accumulation_steps=2), "float64"),
        case("small", "Nadam", dict(R, **every), "float32"),
        case("small", "SGD", dict(learning_rate=slow(), **every), "float32"),
        case("small", "Adam", dict(R, **ema, gradient_accumulation_steps=2), file="keeps"),
        case("small", "SGD", dict(learning_rate=slow(), **ema), file="averages"),
    ]


def of_jax():
    # in float32: the losses of JAX are not float64
    keeps = dict(use_ema=True, ema_momentum=0.75, gradient_accumulation_steps=2)
    slow = optimizers.schedules.CosineDecay(0.0625, 12)
    return [
        case("wide", "ScheduleFreeAdamW", dict(R, clipnorm=0.25, weight_decay=0.0625)),
        case("small", "ScheduleFreeAdamW", dict(R, global_clipnorm=0.5, warmup_steps=5)),
        case("small", "ScheduleFreeAdamW", dict(R, **keeps, clipvalue=0.0078125)),
        case("small", "ScheduleFreeAdamW", dict(learning_rate=slow, use_ema=True, ema_momentum=0.75,
                                                ema_overwrite_frequency=4)),
        case("small", "ScheduleFreeAdamW", R, file="schedule_free"),
    ]


if JAX:
    name, cases = "optimizer_training_jax", of_jax()
elif "keeps" in sys.argv[1:]:
    name, cases = "optimizer_keeps", what_they_keep()
else:
    name, cases = "optimizer_training", all_optimizers()
with open(f"{name}.json", "w") as f:
    f.write('{"cases": [\n' + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")
