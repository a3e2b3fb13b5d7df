"""Layers that only this package writes (src/layers/package.h), for what Keras has no layer for."""

import functools

ADDED_LOSS, DRAWN = "KeelAddedLoss", "KeelDrawn"


@functools.cache
def class_of(keras, name):
    described = lambda self, x: keras.KerasTensor(first(x).shape, first(x).dtype)
    config = lambda self: {"name": self.name, "dtype": "float32"}
    functions = {"call": CALLS[name], "compute_output_spec": described, "get_config": config}
    return type(name, (keras.layers.Layer,), {**functions, "__module__": "keras.layers", "keras": keras})


def first(x):
    return x[0] if isinstance(x, (list, tuple)) else x


def pass_on(self, inputs):
    self.add_loss(self.keras.ops.mean(inputs[1]))
    return inputs[0]


CALLS = {ADDED_LOSS: pass_on, DRAWN: lambda self, x: x}


def added_loss(keras):
    """A layer that passes its first input on, and adds the mean of its second to the loss."""
    layer = class_of(keras, ADDED_LOSS)(dtype="float32", autocast=False)
    layer.supports_masking = True
    return layer


def drawn(keras):
    """A layer that adds normal draws of libkeel; in Keras it adds none."""
    return class_of(keras, DRAWN)(dtype="float32")


def draws(form):
    """Whether a model has such a layer."""
    return any(type(layer).__name__ == DRAWN for layer in form._flatten_layers())
