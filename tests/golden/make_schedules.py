#!/usr/bin/env python3
"""Make schedules.json: the learning rates of Keras's schedules at STEPS.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder. A case is {class_name,
config, real, rates}; steps is a list of steps.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
from keras.optimizers import schedules

STEPS = [*range(26), 30, 49, 50, 51, 70, 99, 100, 149, 150, 151, 1000]
CASES = [
    ("ExponentialDecay", dict(decay_steps=10, decay_rate=0.75)),
    ("ExponentialDecay", dict(decay_steps=10, decay_rate=0.75, staircase=True)),
    ("InverseTimeDecay", dict(decay_steps=7, decay_rate=0.5)),
    ("InverseTimeDecay", dict(decay_steps=7, decay_rate=0.5, staircase=True)),
    ("PolynomialDecay", dict(decay_steps=50)),
    ("PolynomialDecay", dict(decay_steps=50, end_learning_rate=0.0625, power=2.0)),
    ("PolynomialDecay", dict(decay_steps=20, end_learning_rate=0.03125, power=0.5, cycle=True)),
    ("CosineDecay", dict(decay_steps=50)),
    ("CosineDecay", dict(decay_steps=50, alpha=0.125)),
    ("CosineDecay", dict(decay_steps=50, alpha=0.125, warmup_target=0.5, warmup_steps=12)),
    ("CosineDecayRestarts", dict(first_decay_steps=10)),
    ("CosineDecayRestarts", dict(first_decay_steps=10, t_mul=1.5, m_mul=0.5, alpha=0.25)),
    ("CosineDecayRestarts", dict(first_decay_steps=10, t_mul=1.0, m_mul=0.75)),
    ("CosineDecayRestarts", dict(first_decay_steps=7, t_mul=3.0, m_mul=0.875)),
    ("PiecewiseConstantDecay", dict(boundaries=[5, 20, 99], values=[1.0, 0.5, 0.25, 0.125])),
    ("PiecewiseConstantDecay", dict(boundaries=[3], values=[0.5, 0.25])),
]
cases = []
for real in ("float32", "float64"):
    keras.config.set_floatx(real)
    for name, config in CASES:
        if name != "PiecewiseConstantDecay":
            config = dict(config, initial_learning_rate=0.25)
        s = getattr(schedules, name)(**config)
        rates = [float(s(keras.ops.convert_to_tensor(k, "int64"))) for k in STEPS]
        cases.append(dict(class_name=name, config=s.get_config(), real=real, rates=rates))
with open("schedules.json", "w") as f:
    head = f'{{"steps": {STEPS}, "cases": [\n'
    f.write(head + ",\n".join(json.dumps(c) for c in cases) + "\n]}\n")
