#!/usr/bin/env python3
"""Make models.json: configurations of whole models, with Keras's order of their layers and weights.

Each case: the config.json of the model, model.layers by name, the weights by name of layer and path
in model.weights.h5 (read off a saved file), and the number of optimizer variables.
Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import io
import json
import os
import tempfile
import zipfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import h5py
import keras
from keras import layers as L


def shared():
    a = keras.Input((4,), name="a")
    b = keras.Input((5,), name="b")
    twice = L.Dense(4, name="twice")
    narrow = L.Dense(4)(b)
    u = twice(a)
    v = twice(narrow)
    both = L.Concatenate()([v, u])
    t = twice(u)
    return keras.Model([b, a], [L.Dense(2, name="one")(both), L.Add(name="two")([t, v]), u])


def named():
    z = keras.Input((4,), name="zz")
    b = keras.Input((5,), name="b")
    out = {"p": L.Dense(2, name="p")(L.Concatenate()([z, b])), "c": L.Dense(1, name="c")(z)}
    return keras.Model({"zz": z, "b": b}, out)


def branches():
    i = keras.Input((8, 8, 3))
    x = L.Conv2D(4, 3, padding="same")(i)
    y = L.Conv2D(4, 1)(i)
    x = L.BatchNormalization()(L.Add()([y, x]))
    w = L.ReLU()(x)
    q = L.Concatenate()([w, L.Conv2D(2, 3, padding="same")(w), i])
    q = L.Dropout(0.2)(q)
    return keras.Model(i, L.Dense(3, activation="softmax")(L.GlobalAveragePooling2D()(q)))


def ladder():
    xs = [keras.Input((6,), name="i0")]
    for k, (p, q) in enumerate([(0, 0), (1, 0), (0, 2), (3, 1), (2, 2), (4, 0), (5, 3), (1, 6)]):
        x = L.Dense(6, name=f"d{k}")(xs[p])
        xs.append(L.Add()([x, xs[q]]) if k % 3 else L.Activation("tanh")(x))
    return keras.Model(xs[0], L.Concatenate()(xs[-4:]))


def frozen():
    m = keras.Sequential([keras.Input((6, 6, 2)), L.Conv2D(3, 3), L.BatchNormalization(),
                          L.Flatten(), L.Dense(2)])
    m.layers[0].trainable = False
    m.layers[1].trainable = False
    return m


def built_late():
    m = keras.Sequential([L.Dense(3), L.Dense(2)])
    m.build((None, 4))
    return m


def paths(model):
    with tempfile.TemporaryDirectory() as d:
        model.save(d + "/m.keras")
        with zipfile.ZipFile(d + "/m.keras") as z:
            config = json.loads(z.read("config.json"))
            found = {}
            with h5py.File(io.BytesIO(z.read("model.weights.h5")), "r") as f:
                f.visititems(lambda n, o: found.update({n: list(o.shape)}
                                                       if isinstance(o, h5py.Dataset) else {}))
    return config, found


def strip(v):
    """Without the ids of shared objects: they are addresses and change with every run."""
    if isinstance(v, dict):
        return {k: strip(x) for k, x in v.items() if k != "shared_object_id"}
    return [strip(x) for x in v] if isinstance(v, list) else v


cases = []
for make in [shared, named, branches, ladder, frozen, built_late]:
    keras.backend.clear_session()
    model = make()
    model.compile(keras.optimizers.Adam(1e-3, amsgrad=True), "mse")
    model.optimizer.build(model.trainable_variables)
    config, found = paths(model)
    cases.append({
        "name": make.__name__,
        "config": strip(config),
        "layers": [l.name for l in model._layers if isinstance(l, L.Layer)],
        "weights": [[l.name + "/" + w.name, list(w.shape)] for l in model.layers for w in l.weights],
        "trainable": [w.path for w in model.trainable_variables],
        "paths": found,
    })
with open("models.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
