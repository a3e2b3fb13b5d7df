#!/usr/bin/env python3
"""Make names.json: every name by which the real Keras finds its things, and the class it means.

For each kind an object {name: class}; where Keras has a function for a class (relu,
mean_squared_error), the class it wraps, and of activations the function. Layers also have the module
they are in. Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import inspect
import json
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
from keras.src.applications import convnext, inception_resnet_v2
from keras.src.layers.preprocessing import feature_space
from keras.src import activations, constraints, initializers, losses, metrics, optimizers, regularizers
from keras.src.utils.naming import to_snake_case


def classes_by_function(objects):
    return {to_snake_case(o.__name__): o.__name__ for o in objects if inspect.isclass(o)}


def names(module, functions=False):
    """What `get` accepts."""
    found = {}
    by_function = classes_by_function(module.ALL_OBJECTS_DICT.values())
    for name, o in sorted(module.ALL_OBJECTS_DICT.items()):
        if not functions and not inspect.isclass(o):
            found[name] = by_function[o.__name__]
        else:
            found[name] = o.__name__
    return found


def layers():
    found = {}
    for name in dir(keras.layers):
        o = getattr(keras.layers, name)
        if inspect.isclass(o) and issubclass(o, keras.layers.Layer):
            found[name] = [o.__name__, o.__module__]
    for o in (convnext.LayerScale, inception_resnet_v2.CustomScaleLayer,  # of keras.applications
              feature_space.TFDConcat, feature_space.TFDIdentity):
        found[o.__name__] = [o.__name__, o.__module__]
    return found


ALL = {
    "layers": layers(),
    "losses": names(losses),
    "metrics": names(metrics),
    "optimizers": names(optimizers),
    "activations": names(activations, functions=True),
    "initializers": names(initializers),
    "regularizers": names(regularizers),
    "constraints": names(constraints),
}
# the lists of `get` lack some; a file names them all
for kind, module, base in (("optimizers", keras.optimizers, keras.optimizers.Optimizer),
                           ("losses", keras.losses, keras.losses.Loss)):
    for name in dir(module):
        o = getattr(module, name)
        if inspect.isclass(o) and issubclass(o, base) and o is not base:
            ALL[kind][name] = o.__name__
for name in ("ADAM", "aDaM", "RMSProp"):
    ALL["optimizers"][name] = type(optimizers.get(name)).__name__

with open("names.json", "w") as f:  # a name a line
    kinds = []
    for kind, entries in ALL.items():
        lines = [f"{json.dumps(name)}: {json.dumps(entries[name])}" for name in sorted(entries)]
        kinds.append(f'"{kind}": {{\n' + ",\n".join(lines) + "\n}")
    f.write("{\n" + ",\n".join(kinds) + "\n}\n")
