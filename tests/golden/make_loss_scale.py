#!/usr/bin/env python3
"""Make loss_scale.json and loss_scale_*.keras: trainings by the real Keras with LossScaleOptimizer.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder, with names of cases to make
only these. loss_scale_CASE.keras is the
model, compiled, and trained for `before` epochs. loss_scale.json holds what each further epoch leaves:
the loss of its steps, the scale, the good steps since it last moved, and the steps that moved weights.
Where the policy is mixed_float16, `plain` has the losses of the same model in float32. Rows are those
of make_training.py.

Keras adds up the gradients of weights in float16, Keel in float32. So the case that is to overflow in
float16 does it in the gradients of values first: steps of one row, with inputs below 1.
"""
import json
import sys

import make_training as mt  # sets up Keras on one device; makes nothing when imported
import keras
from keras import layers, losses, optimizers

EPOCHS = 2
HALF = "mixed_float16"


def mlp(policy, times=0.25):
    return [
        layers.Input((20,)),
        layers.Rescaling(times, name="times", dtype=policy),
        layers.Dense(32, activation="relu", name="hidden", dtype=policy),
        layers.Dense(mt.CLASSES, name="out", dtype=policy),
    ]


def large(policy):
    return mlp(policy, 64.0)


def penalized(policy):
    """Regularizers of every kind, whose terms are part of the loss of a skipped step, too."""
    of = keras.regularizers
    return [
        layers.Input((20,)),
        layers.Rescaling(64.0, name="times", dtype=policy),
        layers.Dense(32, activation="relu", kernel_regularizer=of.L1L2(0.01, 0.02), name="hidden", dtype=policy),
        layers.Dense(mt.CLASSES, kernel_regularizer=of.OrthogonalRegularizer(0.5), name="out", dtype=policy),
    ]


def cnn(policy):
    return [
        layers.Input((12, 12, 3)),
        layers.Conv2D(8, 3, use_bias=False, name="conv", dtype=policy),
        layers.BatchNormalization(momentum=0.875, name="bn", dtype=policy),
        layers.ReLU(name="relu", dtype=policy),
        layers.MaxPooling2D(2, name="pool", dtype=policy),
        layers.Flatten(name="flat", dtype=policy),
        layers.Dense(mt.CLASSES, name="out", dtype=policy),
    ]


def scaled(inner, scale, growth):
    return lambda: optimizers.LossScaleOptimizer(
        inner(), initial_scale=scale, dynamic_growth_steps=growth)


def sgd(rate=0.05):
    return lambda: optimizers.SGD(rate, 0.9)


def several():
    return optimizers.MultiOptimizer(optimizers.OptimizerMap(
        optimizers.SGD(1e-4, 0.9), {".*hidden/.*": optimizers.Lamb(1e-3), ".*out/bias": optimizers.Adam(1e-3)}))


CASES = {  # name: layers, rows, policy, optimizer, batch, epochs before it is saved
    "grows": (mlp, "mlp", "float32", scaled(optimizers.Adam, 8.0, 3), 16, 0),
    "overflows": (large, "mlp", "float32", scaled(sgd(1e-4), 2.0**127, 4), 16, 0),
    "penalized": (penalized, "mlp", "float32", scaled(sgd(1e-4), 2.0**127, 4), 16, 0),
    "half": (mlp, "mlp", HALF, scaled(sgd(), 2.0**20, 20), 1, 0),
    "half_cnn": (cnn, "cnn", HALF, scaled(lambda: optimizers.SGD(2**-6), 2.0**7, 2000), 16, 0),
    "half_by_policy": (mlp, "mlp", HALF, sgd(), 16, 2),
    "half_functional": (mlp, "mlp", HALF, sgd(), 16, 0),  # its config has no policy
    "multi": (large, "mlp", "float32", scaled(several, 2.0**127, 4), 16, 1),
    # what these two keep besides slots is not in files of a LossScaleOptimizer
    "nadam": (mlp, "mlp", "float32", scaled(lambda: optimizers.Nadam(1e-3), 8.0, 3), 16, 1),
    "adafactor": (mlp, "mlp", "float32", scaled(lambda: optimizers.Adafactor(1e-3), 8.0, 3), 16, 1),
}


def compiled(name, layers_of, policy, optimizer):
    keras.config.set_dtype_policy(policy)  # if it is mixed_float16, compile wraps the optimizer
    m = keras.Sequential(layers_of(policy), name="loss_scale_" + name)
    if "functional" in name:
        m = keras.Model(m.inputs, m.outputs[0], name=m.name)
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    m.compile(optimizer(), loss, jit_compile=False)
    return m


def fit(m, kind, batch, epochs):
    x, y = mt.rows(kind, mt.ROWS, 7)
    h = m.fit(x, y, batch_size=batch, epochs=epochs, shuffle=False, verbose=0)
    return [float("%.7g" % v) for v in h.history["loss"]]


def main():
    keras.utils.set_random_seed(12)
    out, kept = {}, {}
    if sys.argv[1:]:
        with open("loss_scale.json") as f:
            kept = json.load(f)
    for name, (layers_of, kind, policy, optimizer, batch, before) in CASES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            out[name] = kept[name]
            continue
        m = compiled(name, layers_of, policy, optimizer)
        plain = compiled(name, layers_of, "float32", optimizer)
        plain.set_weights(m.get_weights())
        if before:
            fit(m, kind, batch, before)
            fit(plain, kind, batch, before)
        m.save("loss_scale_%s.keras" % name)
        epochs = []
        for _ in range(EPOCHS):
            loss = fit(m, kind, batch, 1)[0]
            o = m.optimizer
            epochs.append({"loss": loss, "scale": float(o.dynamic_scale.numpy()),
                           "good": int(o.step_counter.numpy()), "steps": int(o.iterations.numpy())})
        out[name] = {"batch": batch, "epochs": epochs}
        if policy != "float32":
            out[name]["plain"] = fit(plain, kind, batch, EPOCHS)
    with open("loss_scale.json", "w") as f:
        json.dump(out, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
