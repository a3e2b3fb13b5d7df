"""Masks at the calls of the caller's own layers: Keras fills them in before a call, and gives them on behind it.

A symbolic tensor has its mask as an attribute. In a graph only layers give masks on, so the result of a class
that is not there goes through a model of an Identity, which is called with the mask."""

import inspect
import sys


def mask_of(t):
    return getattr(t, "_keras_mask", None)


def set_mask(t, mask):
    """On a tensor with numbers, as layers do: not on each backend has it attributes."""
    backend = sys.modules["keras.src.backend"]
    put = getattr(backend, "set_keras_mask", None) or (lambda t, mask: setattr(t, "_keras_mask", mask))
    put(t, mask)


def is_tensor(keras, t):
    return isinstance(t, keras.KerasTensor) or keras.ops.is_tensor(t)


def given(keras, layer, args, kwargs):
    """The arguments with the masks that `call` asks for, the first of them, and its mask or masks."""
    bound = inspect.signature(layer.call).bind_partial(*args, **kwargs)
    bound.apply_defaults()
    values, tree = dict(bound.arguments), keras.tree
    tensors = {k: v for k, v in values.items() if all(is_tensor(keras, t) for t in tree.flatten(v) or [None])}
    named = {k: "mask" if len(tensors) == 1 else f"{k}_mask" for k in tensors}
    for k, name in named.items():
        if name in values and values[name] is None:
            kwargs = {**kwargs, name: tree.map_structure(mask_of, tensors[k])}
    first = next(iter(values.values()), None)
    masks = kwargs.get("mask", values.get("mask"))
    return kwargs, first, tree.map_structure(mask_of, first) if masks is None else masks


def behind(keras, layer, first, masks, outputs):
    """The outputs, to which layers and losses see the masks that the class gives on."""
    flat = keras.tree.flatten(outputs)
    if getattr(layer, "supports_masking", False) and any(mask_of(t) is None for t in flat):
        for i, mask in enumerate(keras.tree.flatten(layer.compute_mask(first, masks))[: len(flat)]):
            if mask_of(flat[i]) is None:  # no layer within has given one on
                flat[i] = marked(keras, flat[i], mask)
    return keras.tree.pack_sequence_as(outputs, flat)


def marked(keras, t, mask):
    if mask is None:
        return t
    rows = keras.Input(batch_shape=t.shape, dtype=t.dtype, name="rows")
    model = keras.Sequential([rows, keras.layers.Identity(dtype=t.dtype, name="as_they_are")])
    model.supports_masking = True
    return model(t, mask=mask)


def unmarked(keras, t):
    """t as an operation gives it, without a mask. Not every operation makes another tensor of it."""
    return t if mask_of(t) is None else keras.ops.squeeze(keras.ops.expand_dims(t, -1), -1)


def as_libkeel_reads(keras, layer, args, kwargs):
    """The arguments with the mask of a Softmax by its name, and without a query_mask that Keras 3.15 overwrites by
    that of the query, which has none. Should another Keras read it, the graph will give other values than the
    class."""
    if isinstance(layer, keras.layers.Softmax) and len(args) == 2:
        return args[:1], {**kwargs, "mask": args[1]}
    if isinstance(layer, keras.layers.MultiHeadAttention) and kwargs.get("query_mask") is not None:
        query = kwargs.get("query", args[0] if args else None)
        if mask_of(query) is None:
            return args, {**kwargs, "query_mask": None}
    return args, kwargs
