#!/usr/bin/env python3
"""Make operations.json: small models with operations of keras.ops, and with the
layers of keras.applications' own: what they give, and what one
training step makes of them.

Each case is a Functional model, Input -> Dense "first" (linear, on the last dim) -> the operation. Its
rows, weights and targets are number(k, count, scale) below. The case has the model's config, its
outputs (each flat) and the kernel of "first" after a step of SGD(0.5) on the mean squared error of
the first output; null where no gradient reaches the kernel.
Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L
from keras import ops as O
from keras.src.applications.convnext import LayerScale
from keras.src.applications.inception_resnet_v2 import CustomScaleLayer

ROWS, RATE = 3, 0.5


def number(k, count, scale):
    return (((np.arange(count) * 37 + 29 * k + 11) % 101 - 50) / 32 * scale).astype("float32")


def real(x):
    return O.cast(x, "float32")


V, M, T = (6,), (4, 6), (2, 3, 4)  # shapes of a row
ONE, TWO = 1.0, 2.0
W = number(5, 12, 0.5).reshape(6, 2)
PLAIN = [  # name, shape of a row, the operation, scale of the kernel
    ("hard_silu", V, lambda x: O.hard_silu(x), TWO),
    ("hard_tanh", V, lambda x: O.hard_tanh(x), ONE),
    ("hard_shrink", V, lambda x: O.hard_shrink(x, 0.3), ONE),
    ("soft_shrink", V, lambda x: O.soft_shrink(x, 0.3), ONE),
    ("sparse_plus", V, lambda x: O.sparse_plus(x), ONE),
    ("sparse_sigmoid", V, lambda x: O.sparse_sigmoid(x), ONE),
    ("tanh_shrink", V, lambda x: O.tanh_shrink(x), ONE),
    ("celu", V, lambda x: O.celu(x, 0.7), ONE),
    ("glu", M, lambda x: O.glu(x, axis=-1), ONE),
    ("glu on places", M, lambda x: O.glu(x, axis=1), ONE),
    ("squareplus", V, lambda x: O.squareplus(x, b=3), ONE),
    ("threshold", V, lambda x: O.threshold(x, 0.25, -0.5), ONE),
    ("abs", V, lambda x: O.abs(x), ONE),
    ("builtin abs", V, lambda x: abs(x), ONE),
    ("deg2rad", V, lambda x: O.deg2rad(x), ONE),
    ("rad2deg", V, lambda x: O.rad2deg(x) / 50, ONE),
    ("exp2", V, lambda x: O.exp2(x), ONE),
    ("log2", V, lambda x: O.log2(O.exp(x)), ONE),
    ("log10", V, lambda x: O.log10(O.exp(x)), ONE),
    ("tan", V, lambda x: O.tan(x), 0.3),
    ("amax", M, lambda x: O.amax(x, axis=1), ONE),
    ("amin", M, lambda x: O.amin(x, axis=-1, keepdims=True), ONE),
    ("isnan", V, lambda x: real(O.isnan(O.log(x))), ONE),
    ("isinf", V, lambda x: real(O.isinf(1 / O.relu(x))), ONE),
    ("isfinite", V, lambda x: real(O.isfinite(O.log(x))), ONE),
    ("logical_xor", V, lambda x: real(O.logical_xor(x > 0.2, x > -0.3)), ONE),
    ("count_nonzero", M, lambda x: real(O.count_nonzero(O.relu(x), axis=1)), ONE),
    ("ptp", M, lambda x: O.ptp(x, axis=-1), ONE),
    ("var", M, lambda x: O.var(x, axis=1), ONE),
    ("var of two", T, lambda x: O.var(x, axis=(1, 3), keepdims=True), ONE),
    ("std", M, lambda x: O.std(x, axis=-1), ONE),
    ("logsumexp", M, lambda x: O.logsumexp(x, axis=-1), ONE),
    ("logsumexp kept", T, lambda x: O.logsumexp(x, axis=(1, 2), keepdims=True), ONE),
    ("full_like", V, lambda x: x * O.full_like(x, 1.5), ONE),
    ("divide_no_nan", V, lambda x: O.divide_no_nan(x, O.relu(x)), ONE),
    ("flip", M, lambda x: O.flip(x, axis=1), ONE),
    ("flip of two", T, lambda x: O.flip(x, axis=(1, 3)), ONE),
    ("repeat", M, lambda x: O.repeat(x, 3, axis=1), ONE),
    ("roll", M, lambda x: O.roll(x, 2, axis=-1), ONE),
    ("roll back", M, lambda x: O.roll(x, -1, axis=1), ONE),
    ("tile", M, lambda x: O.tile(x, (1, 2, 3)), ONE),
    ("swapaxes", T, lambda x: O.swapaxes(x, 1, -1), ONE),
    ("moveaxis", T, lambda x: O.moveaxis(x, 1, -1), ONE),
    ("moveaxis of two", T, lambda x: O.moveaxis(x, (3, 1), (1, 2)), ONE),
    ("unstack", T, lambda x: O.unstack(x, axis=2), ONE),
    ("floor", V, lambda x: O.floor(x * 3) * x, ONE),
    ("ceil", V, lambda x: O.ceil(x * 3) * x, ONE),
    ("round", V, lambda x: O.round(x * 3) * x, ONE),
    ("trunc", V, lambda x: O.trunc(x * 3) * x, ONE),
    ("sign", V, lambda x: O.sign(x) * x, ONE),
    ("floor_divide", V, lambda x: (x // 0.3) * x, ONE),
    ("mod", V, lambda x: x % 0.7, ONE),
    ("mod of two", V, lambda x: O.mod(x, O.exp(x)), ONE),
    ("expm1", V, lambda x: O.expm1(x), ONE),
    ("log1p", V, lambda x: O.log1p(O.exp(x)), ONE),
    ("arcsin", V, lambda x: O.arcsin(O.tanh(x)), 0.5),
    ("arccos", V, lambda x: O.arccos(O.tanh(x)), 0.5),
    ("arctan", V, lambda x: O.arctan(x), ONE),
    ("arctan2", V, lambda x: O.arctan2(x, O.exp(x)), ONE),
    ("sinh", V, lambda x: O.sinh(x), ONE),
    ("cosh", V, lambda x: O.cosh(x), ONE),
    ("arcsinh", V, lambda x: O.arcsinh(x), ONE),
    ("arccosh", V, lambda x: O.arccosh(O.exp(x) + 1.5), ONE),
    ("arctanh", V, lambda x: O.arctanh(O.tanh(x)), 0.5),
    ("erf", V, lambda x: O.erf(x), ONE),
    ("prod", M, lambda x: O.prod(x, axis=-1), 0.4),
    ("prod of two", T, lambda x: O.prod(x, axis=(1, 3)), 0.4),
    ("cumsum", M, lambda x: O.cumsum(x, axis=1), ONE),
    ("argmax", M, lambda x: real(O.argmax(x, axis=-1)), ONE),
    ("argmin", M, lambda x: real(O.argmin(x, axis=1)), ONE),
    ("argmax kept", M, lambda x: real(O.argmax(x, axis=-1, keepdims=True)) * x, ONE),
    ("one_hot", M, lambda x: O.one_hot(O.argmax(x, axis=-1), 6) * x, ONE),
    ("sort", M, lambda x: O.sort(x, axis=-1), ONE),
    ("pad", M, lambda x: O.pad(x, ((0, 0), (1, 2), (0, 3))), ONE),
    ("pad with a number", M, lambda x: O.pad(x, ((0, 0), (1, 0), (2, 0)), constant_values=0.5), ONE),
    ("take", M, lambda x: O.take(x, 2, axis=1), ONE),
    ("take several", M, lambda x: O.take(x, [3, 0, -1], axis=2), ONE),
    ("average", M, lambda x: O.average(x, axis=1), ONE),
    ("norm", M, lambda x: O.norm(x, axis=-1), ONE),
    ("norm 1", M, lambda x: O.norm(x, ord=1, axis=1, keepdims=True), ONE),
    ("normalize", M, lambda x: O.normalize(x, axis=-1), ONE),
    ("normalize 1", M, lambda x: O.normalize(x, axis=1, order=1), ONE),
    ("max_pool", (4, 5, 2), lambda x: O.max_pool(x, 2, strides=1), ONE),
    ("average_pool", (4, 5, 2), lambda x: O.average_pool(x, (2, 3), padding="same"), ONE),
    ("average_pool 1D", (6, 2), lambda x: O.average_pool(x, 2), ONE),
    ("logaddexp", V, lambda x: O.logaddexp(x, 0.5 * x), ONE),
    ("hypot", V, lambda x: O.hypot(x, 0.5 + x), ONE),
    # layers that models of keras.applications bring along
    ("layer_scale", M, lambda x: LayerScale(0.7, 6)(x), ONE),
    ("custom_scale_layer", M, lambda x: CustomScaleLayer(0.3)([x, O.sin(x)]), ONE),
    ("diff", M, lambda x: O.diff(x, axis=-1), ONE),
    ("split", M, lambda x: O.split(x, 2, axis=1), ONE),
    ("split at places", M, lambda x: O.split(x, [1, 4], axis=-1), ONE),
    ("split at one place", M, lambda x: O.split(x, [2], axis=-1)[1], ONE),
    ("array_split", M, lambda x: O.array_split(x, 4, axis=-1), ONE),
    ("hsplit", M, lambda x: O.hsplit(x, 2), ONE),
    ("dsplit", M, lambda x: O.dsplit(x, [2, 3]), ONE),
    ("stop_gradient", V, lambda x: x * O.stop_gradient(x), ONE),
    ("broadcast_to", (1, 6), lambda x: O.broadcast_to(x, (ROWS, 4, 6)), ONE),
    ("einsum", M, lambda x: O.einsum("bij,bkj->bik", x, O.sin(x)), ONE),
    ("einsum over places", T, lambda x: O.einsum("bqhd,bkhd->bhqk", x, O.sin(x)), ONE),
    ("einsum of dims in any order", T, lambda x: O.einsum("nabc,nbd->ndca", x, x[:, 0]), ONE),
    ("einsum with sums of one operand", T, lambda x: O.einsum("zabc,zcd->zb", x, O.swapaxes(x[:, 0], 1, 2)), ONE),
    ("einsum of one", T, lambda x: O.einsum("bacd->bda", x), ONE),
    ("moments", M, lambda x: O.moments(x, axes=(1,)), ONE),
    ("moments kept", T, lambda x: O.moments(x, axes=[1, 3], keepdims=True)[1], ONE),
    ("isclose", V, lambda x: real(O.isclose(x, 0.5, rtol=0.3, atol=0.2)), ONE),
    ("isclose of two", V, lambda x: real(O.isclose(x, O.sin(x), 0.1)) * x, ONE),
    ("einsum with an array", M, lambda x: O.einsum("bij,jk->bik", x, W), ONE),
    ("einsum with an array first", M, lambda x: O.einsum("ij,bji->bi", W, x[:, :2]), ONE),
    ("minus an array", M, lambda x: x - W[:, 0], ONE),
    ("an array of rows over values", M, lambda x: (x * x + 1) / (W[None, :4, :1] + 3), ONE),
    ("dot", M, lambda x: O.dot(x, W), ONE),
    ("inner", T, lambda x: O.inner(x, W[:4, 0]), ONE),
    ("tensordot", T, lambda x: O.tensordot(x, W[:3], axes=[[2], [0]]), ONE),
    ("tensordot of two dims", M, lambda x: O.tensordot(x[:, :, :2], W[:4].reshape(4, 2, 1), axes=2), ONE),
    ("matmul with an array", T, lambda x: x @ W[:4], ONE),
    ("take places of a matrix", M, lambda x: O.take(x, np.array([[1, 2], [0, -1]]), axis=1), ONE),
    ("argsort", M, lambda x: real(O.argsort(x, axis=1)) * x, ONE),
    ("take_along_axis", M, lambda x: O.take_along_axis(x, O.argsort(x, axis=-1)[:, :, :2], axis=-1), ONE),
    ("top_k", M, lambda x: O.top_k(x, 2), ONE),
    ("top_k values", M, lambda x: O.top_k(x, 3)[0], ONE),
    ("cbrt", V, lambda x: O.cbrt(O.exp(x)), ONE),
    ("cumprod", M, lambda x: O.cumprod(x, axis=1), ONE),
    ("erfc", V, lambda x: O.erfc(x), ONE),
]


def digits(a):
    return [None if not np.isfinite(v) else float(f"{v:.8g}") for v in np.ravel(a).astype("float64")]


def case(name, shape, operation, scale):
    i = keras.Input(shape)
    first = L.Dense(shape[-1], name="first")
    y = operation(first(i))
    model = keras.Model(i, y)
    weights = [w.numpy() for w in first.weights]
    first.set_weights([number(1, weights[0].size, scale).reshape(weights[0].shape),
                       number(2, weights[1].size, 0.3)])
    x = number(0, ROWS * int(np.prod(shape)), ONE).reshape((ROWS,) + shape)
    outs = model(x)
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    got = [digits(o) for o in outs]
    target = number(3, outs[0].numpy().size, ONE).reshape(outs[0].shape)
    mse = keras.losses.MeanSquaredError()
    model.compile(keras.optimizers.SGD(RATE), loss=[mse] + [None] * (len(outs) - 1))
    import tensorflow as tf
    with tf.GradientTape() as tape:
        out = model(x)
        out = out[0] if isinstance(out, (list, tuple)) else out
        loss = mse(target, out)
    grad = tape.gradient(loss, first.weights)
    kernel = None
    if grad[0] is not None:
        kernel = digits(first.weights[0].numpy() - RATE * tf.convert_to_tensor(grad[0]).numpy())
    return {"name": name, "config": json.loads(model.to_json()), "scale": scale,
            "outputs": got, "kernel": kernel}


def main():
    cases = []
    for name, shape, operation, scale in PLAIN:
        keras.backend.clear_session()
        cases.append(case(name, shape, operation, scale))
    with open("operations.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


main()
