#!/usr/bin/env python3
"""Make optimizers.json: a weight under several steps of Keras's optimizers, and their slots after.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder. With KERAS_BACKEND=jax it
makes optimizers_jax.json: ScheduleFreeAdamW, which on TensorFlow reads a slot only after it has
changed it.

{start, gradients [steps][n], cases}; a case is {optimizer, config, real, weights [steps][n],
slots [[name, [n]]]}.
"""
import json
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ["JAX_ENABLE_X64"] = "1"
import keras
import numpy as np

rng = np.random.default_rng(5)
STEPS, N = 6, 7
start = np.round(rng.normal(size=N), 4)
gradients = np.round(rng.normal(size=(STEPS, N)), 4)
gradients[:, 2] = 0.0
gradients[:, 3] *= 1e-4
cases = []


def numbers(v, real):
    if np.ndim(v.numpy()) == 0:
        return float(v.numpy())
    return [float(f"{x:.9g}" if real == "float32" else x) for x in v.numpy()]


def case(name, config, real):
    keras.config.set_floatx(real)
    o = getattr(keras.optimizers, name)(**config)
    v = keras.Variable(start, dtype=real, name="w")
    o.build([v])
    after = []
    for g in gradients:
        o.apply([keras.ops.convert_to_tensor(g, real)], [v])
        after.append(numbers(v, real))
    slots = {s.name: numbers(s, real) for s in o.variables[2:]}
    assert [s.name for s in o.variables[:2]] == ["iteration", "learning_rate"]
    slots = {k.removeprefix("w_"): x for k, x in slots.items()}
    # Nadam's number, a scalar; it has no name
    slots = {"number" if isinstance(x, float) else k: x for k, x in slots.items()}
    cases.append(
        dict(optimizer=name, config=config, real=real, weights=after, slots=list(slots.items()))
    )


def of_jax(f, betas):
    yield "ScheduleFreeAdamW", dict(betas)
    yield "ScheduleFreeAdamW", dict(betas, weight_decay=f(0.1), clipnorm=0.5, learning_rate=f(0.05))
    yield "ScheduleFreeAdamW", dict(betas, clipvalue=f(0.3), warmup_steps=4)
    yield "ScheduleFreeAdamW", dict(betas, global_clipnorm=0.5, weight_decay=f(0.01))
    yield "ScheduleFreeAdamW", dict(betas, beta_1=f(0.5), beta_2=f(0.9), epsilon=f(0.01),
                                    learning_rate=f(0.1))
    yield "ScheduleFreeAdamW", dict(betas, warmup_steps=2, learning_rate=f(0.1))


JAX = keras.backend.backend() == "jax"
for real in ("float32", "float64"):
    # Keras passes some arguments through float32 even in float64: there, take what both can hold
    f = (lambda x: x) if real == "float32" else (lambda x: round(x * 1024) / 1024)
    if JAX:
        betas = dict() if real == "float32" else dict(
            beta_1=f(0.9), beta_2=f(0.999), learning_rate=f(0.0025), epsilon=f(1e-3))
        for name, config in of_jax(f, betas):
            case(name, config, real)
        continue
    betas = dict() if real == "float32" else dict(beta_1=f(0.9), beta_2=f(0.999))
    for common in (dict(), dict(weight_decay=f(0.01)), dict(clipvalue=f(0.3)), dict(clipnorm=0.5),
                   dict(weight_decay=f(0.1), clipnorm=0.5, learning_rate=f(0.05)),
                   dict(clipnorm=0.0), dict(clipvalue=0.0), dict(global_clipnorm=0.0)):
        case("SGD", common, real)
        case("SGD", dict(common, momentum=f(0.9)), real)
        case("SGD", dict(common, momentum=f(0.8), nesterov=True), real)
        case("Adam", dict(common, **betas), real)
        more = dict(amsgrad=True, beta_1=f(0.8), beta_2=f(0.99), epsilon=1e-4)
        case("Adam", dict(common, **more), real)
        w = dict(betas, weight_decay=f(0.004)) if real == "float64" else dict()
        case("AdamW", {**w, **common}, real)
        case("AdamW", {**w, **common, "amsgrad": True}, real)
    for common in (dict(), dict(weight_decay=f(0.1), clipnorm=0.5, learning_rate=f(0.05)),
                   dict(clipvalue=f(0.3))):
        rho = dict() if real == "float32" else dict(rho=f(0.9))
        case("RMSprop", {**common, **rho}, real)
        case("RMSprop", {**common, **rho, "momentum": f(0.8)}, real)
        case("RMSprop", {**common, **rho, "centered": True, "epsilon": f(0.01)}, real)
        case("RMSprop", {**common, **rho, "centered": True, "momentum": f(0.8)}, real)
        case("Adagrad", common if real == "float32" else
             dict(common, initial_accumulator_value=f(0.1)), real)
        case("Adadelta", {**common, **rho, "learning_rate": f(0.5)}, real)
        case("Adamax", {**common, **betas}, real)
        case("Nadam", {**common, **betas}, real)
        case("Lion", {**common, **betas}, real)
        case("Ftrl", {**common, "learning_rate": f(0.1), "initial_accumulator_value": f(0.1)}, real)
        case("Ftrl", {**common, "learning_rate": f(0.1), "initial_accumulator_value": f(0.2),
                      "learning_rate_power": -0.75, "l1_regularization_strength": f(0.1),
                      "l2_regularization_strength": f(0.2), "beta": f(0.3),
                      "l2_shrinkage_regularization_strength": f(0.05)}, real)
with open("optimizers_jax.json" if JAX else "optimizers.json", "w") as f:
    head = f'{{"start": {start.tolist()}, "gradients": {gradients.round(8).tolist()}, "cases": [\n'
    f.write(head + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")
