#!/usr/bin/env python3
"""Make surface.json: the public names of Keras that a saved model can hold, with their arguments.

{group: {name: {"class": the class that a file names, "args": {argument: its default as text, or null
where it must be given}}}}. Aliases have the class of what they stand for; a function of keras.ops
has the class of its node in a Functional model, "" where it makes none.
Run with Keras 3, KERAS_BACKEND=tensorflow, in this folder.
"""
import inspect
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
from keras.src import ops as all_ops

CLASSES = ["layers", "losses", "metrics", "optimizers", "optimizers.schedules", "initializers",
           "regularizers", "constraints", "callbacks", "models", "dtype_policies", "quantizers", "random"]
NODES = {"layer_normalization": "LayerNorm", "rms_normalization": "RMSNorm",
         "batch_normalization": "BatchNorm", "swish": "Silu", "hard_swish": "HardSilu",
         "extract_patches_3d": "ExtractPatches"}  # with three dims
EVERYWHERE = ("self", "name", "dtype", "trainable", "kwargs", "args", "x", "x1", "x2", "inputs", "images", "volumes")


def arguments(f):
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return {}
    found = {}
    for p in signature.parameters.values():
        if p.name in EVERYWHERE or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        found[p.name] = None if p.default is p.empty else str(p.default)
    return found


def nodes():
    """The classes of operations, by their name in lower case without underscores."""
    found = {}
    for module in ("numpy", "nn", "core", "math", "linalg", "image"):
        for name, c in vars(getattr(all_ops, module)).items():
            if inspect.isclass(c) and issubclass(c, keras.Operation):
                found.setdefault(name.lower(), name)
    return found


def main():
    surface = {}
    for group in CLASSES:
        module = keras
        for part in group.split("."):
            module = getattr(module, part)
        surface[group] = {
            n: {"class": c.__name__, "args": arguments(c.__init__)}
            for n, c in sorted(vars(module).items())
            if inspect.isclass(c) and not n.startswith("_")
        }
    surface["activations"] = {
        n: {"class": n, "args": arguments(f)}
        for n, f in sorted(vars(keras.activations).items())
        if inspect.isfunction(f) and n not in ("get", "serialize", "deserialize")
    }
    made = nodes()
    for group, module in ("ops", keras.ops), ("ops.image", keras.ops.image):
        surface[group] = {
            n: {"class": NODES.get(n, made.get(n.replace("_", ""), "")), "args": arguments(f)}
            for n, f in sorted(vars(module).items())
            if inspect.isfunction(f) and not n.startswith("_")
        }
    surface["applications"] = {
        n: {"class": n, "args": {}}
        for n in sorted(dir(keras.applications)) if n[0].isupper()
    }
    with open("surface.json", "w") as f:
        f.write("{\n")
        for k, (group, names) in enumerate(surface.items()):
            rows = ",\n".join(f"{json.dumps(n)}:{json.dumps(v, separators=(',', ':'))}"
                              for n, v in names.items())
            f.write(f'"{group}":{{\n{rows}\n}}{"," if k + 1 < len(surface) else ""}\n')
        f.write("}\n")


main()
