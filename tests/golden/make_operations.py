#!/usr/bin/env python3
"""Make operations.json: small models with operations of keras.ops, and with the
layers of keras.applications and FeatureSpace: what they give, and what one
training step makes of them.

Each case is a Functional model, Input -> Dense "first" (linear, on the last dim) -> the operation. Its
rows, weights and targets are number(k, count, scale) below. The case has the model's config, its
outputs (each flat) and the kernel of "first" after a step of SGD(0.5) on the mean squared error of
the first output; null where no gradient reaches the kernel.
Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder; with names of cases to make
only these. Those that have "(JAX)" in their names have a gradient on JAX only: they are made with
KERAS_BACKEND=jax, which makes no others.
"""
import json
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L
from keras import ops as O
from keras.src.applications.convnext import LayerScale
from keras.src.applications.inception_resnet_v2 import CustomScaleLayer
from keras.src.layers.preprocessing.feature_space import TFDConcat, TFDIdentity

ROWS, RATE = 3, 0.5


def number(k, count, scale):
    return (((np.arange(count) * 37 + 29 * k + 11) % 101 - 50) / 32 * scale).astype("float32")


def real(x):
    return O.cast(x, "float32")


V, M, T, P = (6,), (4, 6), (2, 3, 4), (4, 5, 3)  # shapes of a row; None is an open dim
OPEN = 4  # what rows have of it
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
    ("roll along two", P, lambda x: O.roll(x, (-1, 2), axis=(1, -2)), ONE),
    ("tile", M, lambda x: O.tile(x, (1, 2, 3)), ONE),
    ("tile of fewer dims", T, lambda x: O.tile(x, (2, 3)), ONE),
    ("expand_dims of two", M, lambda x: O.expand_dims(x, (-1, 1)), ONE),
    ("repeat of each place", M, lambda x: O.repeat(x, [1, 2, 0, 3], axis=1), ONE),
    ("repeat of each of many places", (2, 12), lambda x: O.repeat(x, [1, 2, 0, 3, 1, 1, 0, 0, 2, 1, 1, 4], axis=-1), ONE),
    ("a cap without an end", V, lambda x: L.ReLU(max_value=np.inf)(x), ONE),
    ("one_hot in the middle", M, lambda x: O.one_hot(O.argmax(x, axis=-1), 6, axis=1) * O.transpose(x, (0, 2, 1)), ONE),  # fmt: skip
    ("softmax of two (JAX)", T, lambda x: O.softmax(x, axis=(1, -1)), TWO),
    ("log_softmax of two (JAX)", T, lambda x: O.log_softmax(x, axis=(1, -1)), TWO),
    ("average by a list", M, lambda x: O.average(x, axis=1, weights=np.array([1, 2, 0, 4], "float32")), ONE),  # fmt: skip
    ("average by weights", M, lambda x: O.average(x, axis=-1, weights=O.exp(x)), ONE),
    ("where without an end", (6, 6), lambda x: O.softmax(O.where(np.tril(np.ones((6, 6), bool)), x, -np.inf)), ONE),  # fmt: skip
    ("mask without an end", (6, 6), lambda x: O.softmax(x + np.where(np.tri(6) > 0, 0, -np.inf).astype("float32")), ONE),  # fmt: skip
    ("norm of the largest", T, lambda x: O.norm(x, ord=np.inf, axis=-1) - O.norm(x, ord=-np.inf, axis=-1), ONE),  # fmt: skip
    ("norm of the largest row", T, lambda x: O.norm(x, ord=np.inf, axis=(2, 3)) - O.norm(x, ord=-np.inf, axis=(3, 2)), ONE),  # fmt: skip
    ("clip without an end", M, lambda x: O.clip(x, 0.25, np.inf), ONE),
    ("depth_to_space of channels first", (8, 2, 3), lambda x: O.depth_to_space(x, 2, data_format="channels_first"), ONE),  # fmt: skip
    ("space_to_depth of channels first", (2, 4, 6), lambda x: O.space_to_depth(x, 2, data_format="channels_first"), ONE),  # fmt: skip
    ("transpose by the last", T, lambda x: O.transpose(x, (0, -1, 1, -2)), ONE),
    ("attention by an array", (5, 4), lambda x: L.MultiHeadAttention(2, 3, use_bias=False, kernel_initializer="ones")(x, x, attention_mask=np.tril(np.ones((1, 5, 5), bool))), ONE),  # fmt: skip
    ("take_along_axis by an array", M, lambda x: O.take_along_axis(x, np.array([[[5], [0], [2], [0]]]), axis=2), ONE),  # fmt: skip
    ("take_along_axis of one place", M, lambda x: O.take_along_axis(x, O.argmax(x[:, :, :1], axis=1, keepdims=True), axis=1), ONE),  # fmt: skip
    ("where of a list", (6, 6), lambda x: O.where(np.tril(np.ones((6, 6), bool)), x, -2.0), ONE),
    ("where of lists", T, lambda x: O.where(np.tri(3, 4) > 0, x, number(4, 24, ONE).reshape(2, 3, 4)), ONE),  # fmt: skip
    ("matmul of a list", M, lambda x: O.matmul(number(4, 12, ONE).reshape(3, 4), x), ONE),
    ("matmul of lists", T, lambda x: O.matmul(number(4, 30, ONE).reshape(1, 2, 5, 3), x), ONE),
    ("matmul by lists", T, lambda x: O.matmul(x, number(4, 40, ONE).reshape(2, 4, 5)), ONE),
    ("matmul of a vector", T, lambda x: O.matmul(number(4, 3, ONE), x), ONE),
    ("matmul by a vector", T, lambda x: O.matmul(x, number(4, 4, ONE)), ONE),
    ("matmul by one", T, lambda x: O.matmul(x, O.swapaxes(x[:, :1], 2, 3)), ONE),
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
    ("pad in a mirror", M, lambda x: O.pad(x, ((0, 0), (1, 2), (0, 3)), mode="reflect"), ONE),
    ("pad with the edge, too", M, lambda x: O.pad(x, ((0, 0), (3, 0), (2, 1)), mode="symmetric"), ONE),
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
    # those of a FeatureSpace
    ("tfd_concat", M, lambda x: TFDConcat(axis=-1)([x, O.sin(x)]), ONE),
    ("tfd_identity", M, lambda x: O.sin(TFDIdentity()(x)), ONE),
    ("diff", M, lambda x: O.diff(x, axis=-1), ONE),
    ("max and a number", M, lambda x: O.max(x, axis=-1, initial=0.25), ONE),
    ("min and a number", M, lambda x: O.min(x, axis=1, keepdims=True, initial=-0.5) + x, ONE),
    ("round to a digit", M, lambda x: x + O.round(x, decimals=1), ONE),
    ("round to tens", M, lambda x: x + O.round(100 * x, decimals=-1), ONE),
    ("diff of diff", M, lambda x: O.diff(x, n=2, axis=-1), ONE),
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
    ("isclose of a number and it", V, lambda x: real(O.isclose(0.5, x, rtol=0.3, atol=0.2)), ONE),
    ("isclose of a list", M, lambda x: real(O.isclose(x, number(4, 6, ONE), 0.5, 0.3)) * x, ONE),
    ("isclose of a list and it", M, lambda x: real(O.isclose(number(4, 24, ONE).reshape(4, 6), x, 0.5, 0.3)) * x, ONE),
    ("isclose of NaN and a list", V, lambda x: x * real(O.isclose(np.array([np.nan, 0, 1, np.nan, -1, 0], "float32"), O.log(x), 0.5, 0.5, equal_nan=True)), ONE),
    ("isclose of a number and NaN", V, lambda x: x * real(O.isclose(0.25, O.log(x), 0.5, 0.5, equal_nan=True)), ONE),
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
    # numbers of other types; whole numbers
    ("cast to whole numbers", V, lambda x: real(O.cast(x * 3, "int32")) * x, ONE),
    # gradients are not compared through these: Keel divides by the rows once they are rounded
    ("cast to bfloat16", V, lambda x: O.stop_gradient(real(O.cast(x * 3, "bfloat16"))) * x, ONE),
    ("cast to float16", V, lambda x: O.stop_gradient(real(O.cast(x * 3, "float16"))) * x, ONE),
    ("saturate_cast", V, lambda x: real(O.saturate_cast(x * 200, "int8")) * x, ONE),
    ("array", V, lambda x: O.array(x) * x, ONE),
    ("copy", V, lambda x: O.copy(x) * x, ONE),
    ("conj", V, lambda x: O.conj(x) * O.conjugate(x), ONE),
    ("real and imag", V, lambda x: O.real(x) * x + O.imag(x), ONE),
    ("isreal", V, lambda x: real(O.isreal(x)) * x, ONE),
    ("angle", V, lambda x: O.angle(x) * x, ONE),
    ("empty_like", V, lambda x: O.empty_like(x) * x + x, ONE),
    ("fabs", V, lambda x: O.fabs(x), ONE),
    ("isposinf", V, lambda x: real(O.isposinf(1 / O.relu(x))), ONE),
    ("isneginf", V, lambda x: real(O.isneginf(-1 / O.relu(x))), ONE),
    ("signbit", V, lambda x: real(O.signbit(x)) + real(O.signbit(O.relu(x) * -1.0)), ONE),
    ("heaviside", V, lambda x: O.heaviside(O.relu(x) - O.relu(-x - 0.5), W[:6, 0]) * x, ONE),
    ("fmax", V, lambda x: O.fmax(O.log(x), x * 0.5), ONE),
    ("fmin", V, lambda x: O.fmin(x, O.log(x)), ONE),
    ("fmin with an array", V, lambda x: O.fmin(x, W[:6, 0]), ONE),
    ("fmod", V, lambda x: O.fmod(x, 0.7), ONE),
    ("fmod of two", V, lambda x: O.fmod(x, O.exp(x)), ONE),
    ("ldexp", V, lambda x: O.ldexp(x, O.cast(x * 2, "int32")), ONE),
    ("logaddexp2", V, lambda x: O.logaddexp2(x, 0.5 * x), ONE),
    ("sinc", V, lambda x: O.sinc(x), ONE),
    ("bitwise_and", V, lambda x: real(O.bitwise_and(O.cast(x * 9, "int32"), np.array([6, 5, 3, 7, 1, 2]))) * x, ONE),
    ("bitwise_or", V, lambda x: real(O.bitwise_or(O.cast(x * 9, "int32"), O.cast(x * 5, "int32"))), ONE),
    ("bitwise_xor", V, lambda x: real(O.bitwise_xor(O.cast(x * 9, "int32"), O.cast(x * 5, "int32"))), ONE),
    ("bitwise_not", V, lambda x: real(O.bitwise_not(O.cast(x * 9, "int32"))) * x, ONE),
    ("bitwise_invert", V, lambda x: real(O.bitwise_invert(O.cast(x * 9, "int32"))), ONE),
    ("left_shift", V, lambda x: real(O.left_shift(O.cast(x * 9, "int32"), O.cast(abs(x), "int32"))), ONE),
    ("right_shift", V, lambda x: real(O.right_shift(O.cast(x * 9, "int32"), 1)), ONE),
    ("bitwise shifts", V, lambda x: real(O.bitwise_right_shift(O.bitwise_left_shift(O.cast(x * 9, "int32"), 3), 2)), ONE),
    ("gcd", V, lambda x: real(O.gcd(O.cast(x * 30, "int32"), 12)), ONE),
    ("lcm", V, lambda x: real(O.lcm(O.cast(x * 9, "int32"), O.cast(x * 5, "int32"))), ONE),
    # what is no number is left out
    ("nan_to_num", V, lambda x: O.nan_to_num(O.log(x), nan=0.5) * x, ONE),
    ("nan_to_num of infinities", V, lambda x: O.stop_gradient(O.nan_to_num(x / O.relu(x), nan=1, posinf=2, neginf=-3)) * x, ONE),
    ("nansum", M, lambda x: O.nansum(O.log(x), axis=-1), ONE),
    ("nanprod", M, lambda x: O.nanprod(O.log(x), axis=1, keepdims=True), ONE),
    ("nanmax", M, lambda x: O.nanmax(O.log(x), axis=-1), ONE),
    ("nanmin", M, lambda x: O.nan_to_num(O.nanmin(O.log(x), axis=1), nan=2.0), ONE),
    ("nanmean", M, lambda x: O.nanmean(O.log(x), axis=-1, keepdims=True), ONE),
    ("nanvar", M, lambda x: O.nanvar(O.log(x), axis=-1), ONE),
    ("nanstd", T, lambda x: O.nanstd(O.log(x), axis=(1, 3)), ONE),
    ("nancumsum", M, lambda x: O.nancumsum(O.log(x), axis=1), ONE),
    ("nancumprod", M, lambda x: O.nancumprod(O.log(x), axis=-1), ONE),
    ("nanargmax", M, lambda x: real(O.nanargmax(O.log(x), axis=-1)), ONE),
    ("nanargmin", M, lambda x: real(O.nanargmin(O.log(x), axis=1, keepdims=True)) * x, ONE),
    # quantiles
    ("median", M, lambda x: O.median(x, axis=1), ONE),
    ("median of two", T, lambda x: O.median(x, axis=(1, 3), keepdims=True), ONE),
    ("quantile", M, lambda x: O.quantile(x, 0.3, axis=-1), ONE),
    ("percentile at a place", M, lambda x: O.percentile(x, 55, axis=-1, method="nearest"), ONE),
    ("percentile below", M, lambda x: O.percentile(x, 55, axis=1, method="lower", keepdims=True), ONE),
    ("percentile above", M, lambda x: O.percentile(O.log(O.exp(x)), 55, axis=1, method="higher"), ONE),
    ("percentile", M, lambda x: O.percentile(x, 80, axis=-1, method="midpoint"), ONE),
    ("quantile with no number", M, lambda x: O.nan_to_num(O.quantile(O.log(x + 0.9), 0.3, axis=1), nan=2.0), ONE),
    ("nanmedian", M, lambda x: O.nanmedian(O.log(x), axis=-1), ONE),
    ("nanquantile", M, lambda x: O.nanquantile(O.log(x), 0.3, axis=-1), ONE),
    ("nanquantile below", M, lambda x: O.nanquantile(O.log(x), 0.3, axis=-1, method="lower"), ONE),
    ("nanquantile between", M, lambda x: O.nanquantile(O.log(x), 0.3, axis=-1, method="midpoint"), ONE),
    ("nanpercentile", M, lambda x: O.nan_to_num(O.nanpercentile(O.log(x), 80, axis=1), nan=2.0), ONE),
    # dims
    ("tril", M, lambda x: O.tril(x, 1), ONE),
    ("triu", T, lambda x: O.triu(x, -1), ONE),
    ("diagonal", M, lambda x: O.diagonal(x, 1, 1, 2), ONE),
    ("diagonal of other dims", T, lambda x: O.diagonal(x, -1, 3, 1), ONE),
    ("trace", T, lambda x: O.trace(x, 0, 2, 3), ONE),
    ("fliplr", M, lambda x: O.fliplr(x), ONE),
    ("rot90", T, lambda x: O.rot90(x, axes=(1, 2)), ONE),
    ("rot90 back", T, lambda x: O.rot90(x, -1, axes=(3, 1)), ONE),
    ("rot90 twice", (4, 4), lambda x: O.rot90(x, 2, axes=(1, 2)), ONE),
    ("append", M, lambda x: O.append(x, x * x, axis=1), ONE),
    ("hstack", M, lambda x: O.hstack([x, x * x]), ONE),
    ("dstack", V, lambda x: O.dstack([x, x * x]), ONE),
    ("dstack of matrices", M, lambda x: O.dstack([x, x * x]), ONE),
    ("kron", V, lambda x: O.kron(x, W[:1, :2]), ONE),
    ("kron of matrices", M, lambda x: O.kron(W[None, :2, :2], x), ONE),
    ("cross", (2, 3), lambda x: O.cross(x, O.sin(x)), ONE),
    ("cross with an array", (4, 3), lambda x: O.cross(W[:3, 0], x), ONE),
    ("cross in a plane", (3, 2), lambda x: O.cross(x, O.sin(x)), ONE),
    ("cross along places", (3, 3), lambda x: O.cross(x, O.sin(x), axis=1), ONE),
    ("trapezoid", M, lambda x: O.trapezoid(x, dx=0.5), ONE),
    ("trapezoid at places", M, lambda x: O.trapezoid(x, x=[0.0, 0.5, 2.0, 2.25, 3.0, 5.0]), ONE),
    ("linspace", V, lambda x: O.linspace(x, 2.0, num=4, axis=-1), ONE),
    ("linspace of float32", V, lambda x: O.linspace(x, 2.0, num=3, axis=1, dtype="float32"), ONE),
    ("prod of float32", M, lambda x: O.prod(x, axis=1, dtype="float32"), 0.4),
    ("linspace without its end", V, lambda x: O.linspace(0.5, x, num=3, endpoint=False, axis=1), ONE),
    ("logspace", V, lambda x: O.logspace(x, x * x, num=3, axis=1, base=2), 0.5),
    ("geomspace", V, lambda x: O.geomspace(1.5, O.exp(x), num=4, axis=-1), 0.5),
    ("geomspace below 0", V, lambda x: O.geomspace(-2.0, -O.exp(x), num=4, endpoint=False, axis=1), 0.5),
    ("vander", V, lambda x: O.vander(x[:, 0], 4), ONE),
    ("vander from the 0th", V, lambda x: O.vander(x[:, 0], 3, increasing=True), ONE),
    ("unravel_index", V, lambda x: [real(i) for i in O.unravel_index(O.argmax(x, axis=1), (2, 3))], ONE),
    ("slice", M, lambda x: O.slice(x, (0, 1, 2), (ROWS, 2, 3)), ONE),
    ("slice_update", M, lambda x: O.stop_gradient(O.slice_update(x, (0, 1, 2), O.exp(x[:, :2, :3]))), ONE),
    ("full", (1, 6), lambda x: O.full((ROWS, 4, 6), x), ONE),
    # lists of numbers
    ("isin", M, lambda x: real(O.isin(O.argmax(x, axis=1), [1, 3])), ONE),
    ("isin not", V, lambda x: real(O.isin(O.relu(x), [0.0], invert=True)) * x, ONE),
    ("digitize", M, lambda x: real(O.digitize(x, np.array([-1.0, 0.0, 0.5]))) * x, ONE),
    ("searchsorted", V, lambda x: real(O.searchsorted(np.array([-1.0, 0.0, 0.5], "float32"), O.relu(x)[:, 0])), ONE),
    ("searchsorted behind", V, lambda x: real(O.searchsorted(np.array([-1.0, 0.0, 0.5], "float32"), O.relu(x)[:, 1], side="right")), ONE),
    ("select", V, lambda x: O.select([x > 0.5, x > -0.5], [x * x, x * 3.0], x), ONE),
    ("select with numbers", V, lambda x: O.select([x > 0.5, x < -0.5], [x * x, O.sin(x)], 0.25), ONE),
    ("in_top_k, targets beyond the last", M,
     lambda x: real(O.in_top_k(O.argmin(x[:, :, 0], axis=1) + 3, x[:, 0, :4], 3)), ONE),
    ("in_top_k", M, lambda x: real(O.in_top_k(O.argmin(x[:, :, 0], axis=1), x[:, 0, :4], 3)), ONE),
    ("multi_hot", M, lambda x: O.multi_hot(O.argmax(x, axis=1), 5), ONE),
    ("cdist", M, lambda x: O.cdist(x, x[:, :2] + 0.5), ONE),
    ("cdist to an array", M, lambda x: O.cdist(x, np.tile(W[:3], 3)[None]), ONE),
    ("take from a table", M, lambda x: O.take(W, O.argmax(x, axis=1), axis=0) * x[:, 0, :1, None], ONE),
    ("many numbers are added", (20, 15), lambda x: x + np.cos(np.arange(300.0)).reshape(1, 20, 15).astype("float32"), ONE),
    ("take from a long table", M, lambda x: O.take(np.sin(np.arange(330.0)).reshape(66, 5).astype("float32"),
                                                   O.argmax(x, axis=1) + 60, axis=0) * x[:, 0, :1, None], ONE),
    ("take from a list", M, lambda x: O.take(W[:, 0], O.argmax(x, axis=1)) * x[:, 0], ONE),
    ("einsum with dots", T, lambda x: O.einsum("...ij,...kj->...ik", x, O.sin(x)), ONE),
    ("einsum of three", M, lambda x: O.einsum("bij,bkj,bkl->bil", x, O.sin(x), x), ONE),
    ("einsum of three with arrays", M, lambda x: O.einsum("ji,bkj,kl->bil", W, x, number(4, 12, ONE).reshape(4, 3)), ONE),
    ("einsum of four", M, lambda x: O.einsum("bij,bj,ik,bk->bj", x, x[:, 0], number(4, 16, ONE).reshape(4, 4), x[:, :, 1]), ONE),
    ("einsum of three with dots", T, lambda x: O.einsum("...ij,...kj,kl->...il", x, O.sin(x), number(4, 9, ONE).reshape(3, 3)), ONE),
    ("einsum of three outer", V, lambda x: O.einsum("bi,bj,bk->bijk", x, x[:, :2], x[:, 1:4]), ONE),
    ("einsum of three over one's own letter", M, lambda x: O.einsum("bij,bkl,bkm->bim", x, x, x), ONE),
    ("einsum of a diagonal", (3, 3), lambda x: O.einsum("bii->bi", x), ONE),
    ("einsum of a diagonal in the middle", (2, 3, 2), lambda x: O.einsum("biji,bj->bij", x, x[:, 0, :, 1]), ONE),
    ("einsum of a trace", (3, 3), lambda x: O.einsum("bii,bij->bj", x, x), ONE),
    ("einsum of a letter three times", (2, 2, 2), lambda x: O.einsum("biii->bi", x), ONE),
    ("einsum of an array's diagonal", M, lambda x: O.einsum("bij,jj->bij", x, number(4, 36, ONE).reshape(6, 6)), ONE),
    ("einsum without a result", M, lambda x: O.einsum("bij,jk", x, W), ONE),
    ("einsum without a result, sorted (JAX)", T, lambda x: O.einsum("azcb,bd", x, W[:4]), ONE),
    ("einsum without a result, of one", (2, 3, 2), lambda x: O.einsum("acbc", x), ONE),
    ("einsum without a result, with dots", T, lambda x: O.einsum("...d,da", x, W[:4]), ONE),
    ("einsum with dots and an array", T, lambda x: O.einsum("...i,ij->...j", x, W[:4]), ONE),
    # normalisation, entropy, attention
    ("layer_normalization", M, lambda x: O.layer_normalization(x), ONE),
    ("layer_normalization with factors", M, lambda x: O.layer_normalization(x, W[:4, 0], W[:4, 1], axis=1, epsilon=0.1), ONE),
    ("layer_normalization of values", M, lambda x: O.layer_normalization(x, x * x, O.sin(x), axis=[1, 2]), ONE),
    ("rms_normalization", M, lambda x: O.rms_normalization(x, scale=W[:6, 0], epsilon=0.1), ONE),
    ("rms_normalization of places", M, lambda x: O.rms_normalization(x, axis=1), ONE),
    ("batch_normalization", M, lambda x: O.batch_normalization(x, W[:6, 0], W[:6, 1] ** 2 + 0.5, -1, W[:6, 1], W[:6, 0]), ONE),
    ("batch_normalization of places", M, lambda x: O.batch_normalization(x, W[:4, 0], W[:4, 1] ** 2 + 0.5, 1), ONE),
    ("binary_crossentropy", V, lambda x: O.binary_crossentropy(O.cast(x > 0.2, "float32"), O.sigmoid(x) * 1.0), ONE),
    ("binary_crossentropy of logits", V, lambda x: O.binary_crossentropy(O.tanh(x), x * x, from_logits=True), ONE),
    ("categorical_crossentropy", M, lambda x: O.categorical_crossentropy(O.softmax(x), O.exp(x)), ONE),
    ("categorical_crossentropy of logits", M, lambda x: O.categorical_crossentropy(O.softmax(x, axis=1), x, from_logits=True, axis=1), ONE),
    ("sparse_categorical_crossentropy", M, lambda x: O.sparse_categorical_crossentropy(O.argmax(x, axis=-1), O.softmax(x * 0.5) * 1.0), ONE),
    ("sparse_categorical_crossentropy of logits", M, lambda x: O.sparse_categorical_crossentropy(O.argmin(x, axis=-1, keepdims=True), x, from_logits=True), ONE),
    ("dot_product_attention", T, lambda x: O.dot_product_attention(x, O.sin(x), O.cos(x)), ONE),
    ("dot_product_attention causal", (4, 2, 3), lambda x: O.dot_product_attention(x, O.sin(x), O.cos(x), scale=0.3, is_causal=True), ONE),
    ("dot_product_attention with a bias", (3, 4, 2), lambda x: O.dot_product_attention(x, O.sin(x[:, :, :2]), O.cos(x[:, :, :2]), bias=x[:, None, :, :1, 0] * x[:, None, None, :, 1, 0], is_causal=True), ONE),
    ("dot_product_attention with a mask", (4, 2, 3), lambda x: O.dot_product_attention(x, O.sin(x), O.cos(x), mask=(x[:, None, :, 0, :1] + 0.5 > x[:, None, None, :, 0, 0])), ONE),
    ("adaptive_average_pool", (5, 4, 2), lambda x: O.adaptive_average_pool(x, (3, 2)), ONE),
    ("adaptive_max_pool", (7, 2), lambda x: O.adaptive_max_pool(x, (3,)), ONE),
    ("depth_to_space", (2, 3, 8), lambda x: O.depth_to_space(x, 2), ONE),
    ("space_to_depth", (4, 6, 2), lambda x: O.space_to_depth(x, 2), ONE),
    ("unfold", (2, 5, 6), lambda x: O.unfold(x, 2), ONE),
    ("unfold with everything", (2, 5, 6), lambda x: O.unfold(x, (2, 3), dilation=(2, 1), padding=(1, 2), stride=(2, 3)), ONE),
    ("fold", (8, 12), lambda x: O.fold(x, (4, 5), 2), ONE),
    ("fold with everything", (12, 12), lambda x: O.fold(x, (6, 8), (2, 3), dilation=(2, 1), padding=(1, 2), stride=(2, 3)), ONE),
    ("erfinv", V, lambda x: O.erfinv(O.tanh(x)), 0.5),
    ("i0", V, lambda x: O.i0(x), ONE),
    # matrices
    ("det", (3, 3), lambda x: O.det(O.sin(x * 3))[:, None], ONE),
    ("inv", (3, 3), lambda x: O.inv(O.einsum("bij,bkj->bik", x, x) + np.eye(3, dtype="float32") * 2), ONE),
    ("slogdet", (3, 3), lambda x: O.slogdet(O.sin(x * 3)), ONE),
    ("logarithm of slogdet", (3, 3), lambda x: O.slogdet(O.sin(x * 3))[1][:, None], ONE),
    ("logdet", (3, 3), lambda x: O.logdet(O.einsum("bij,bkj->bik", x, x) + np.eye(3, dtype="float32"))[:, None], ONE),
    ("solve", (3, 3), lambda x: O.solve(O.einsum("bij,bkj->bik", x, x) + np.eye(3, dtype="float32"), O.sin(x[:, :, :2])), ONE),
    ("solve for a vector", (3, 3), lambda x: O.solve(O.einsum("bij,bkj->bik", x, x) + np.eye(3, dtype="float32"), x[:, 0]), ONE),
    ("solve_triangular", (3, 3), lambda x: O.solve_triangular(O.einsum("bij,bkj->bik", x, x) + np.eye(3, dtype="float32") * 2, x, lower=True), ONE),
    ("solve_triangular above", (3, 3), lambda x: O.solve_triangular(O.einsum("bij,bkj->bik", x, x) + np.eye(3, dtype="float32") * 2, x[:, 0]), ONE),
    ("cholesky", (3, 3), lambda x: O.cholesky(O.einsum("bij,bkj->bik", x, x) + np.eye(3, dtype="float32")), ONE),
    ("cholesky above", (3, 3), lambda x: O.cholesky(O.einsum("bij,bkj->bik", x, x) + np.eye(3, dtype="float32"), upper=True), ONE),
    ("cholesky_inverse", (3, 3), lambda x: O.cholesky_inverse(O.cholesky(O.einsum("bij,bkj->bik", x, x) + np.eye(3, dtype="float32"))), ONE),
    ("cholesky_inverse above", (3, 3), lambda x: O.cholesky_inverse(x + np.eye(3, dtype="float32") * 4, upper=True), ONE),
    ("norm 3", M, lambda x: O.norm(x, ord=3, axis=-1), ONE),
    ("norm 0", M, lambda x: O.norm(O.relu(x), ord=0, axis=1), ONE),
    ("norm of matrices", M, lambda x: O.norm(x, ord="fro", axis=(1, 2))[:, None], ONE),
    ("norm 1 of matrices", T, lambda x: O.norm(x, ord=1, axis=(1, 3), keepdims=True), ONE),
    ("norm -1 of matrices", T, lambda x: O.norm(x, ord=-1, axis=(-1, 1)), ONE),
    ("qr", (4, 3), lambda x: O.qr(O.sin(x * 3)), ONE),
    ("triangle of qr", (3, 3), lambda x: O.qr(O.sin(x * 3))[1], ONE),
    ("svd", (3, 4), lambda x: O.svd(O.sin(x * 3), compute_uv=False), ONE),
    ("pinv", (4, 3), lambda x: O.pinv(O.sin(x * 3)), ONE),
    ("matrix_rank", (3, 3), lambda x: real(O.matrix_rank(O.concatenate([x[:, :1], x[:, :1] * 2.0, O.sin(x[:, 1:] * 3)], axis=1))), ONE),
    ("norm 2 of matrices", (3, 4), lambda x: O.norm(O.sin(x * 3), ord=2, axis=(1, 2), keepdims=True), ONE),
    ("nuclear norm", T, lambda x: O.norm(O.sin(x * 3), ord="nuc", axis=(3, 1)), ONE),
    ("hypot with an array", V, lambda x: O.hypot(x, W[:6, 0]), ONE),
    ("logaddexp with an array", V, lambda x: O.logaddexp(W[:6, 0], x), ONE),
    ("divide_no_nan by an array", V, lambda x: O.divide_no_nan(x, np.maximum(W[:6, 0], 0)), ONE),
    ("logical_xor with a number", V, lambda x: real(O.logical_xor(x > 0.2, True)) * x, ONE),
    # open dims
    ("median of an open dim", (None, 6), lambda x: O.median(x, axis=1), ONE),
    ("nanquantile of an open dim", (None, 6), lambda x: O.nanquantile(O.log(x), 0.3, axis=-1), ONE),
    ("nanmean of an open dim", (None, 6), lambda x: O.nan_to_num(O.nanmean(O.log(x), axis=1)), ONE),
    ("tril of an open dim", (None, 6), lambda x: O.tril(x), ONE),
    ("trapezoid of an open dim", (None, 6), lambda x: O.trapezoid(O.swapaxes(x, 1, 2)), ONE),
    ("cdist of an open dim", (None, 6), lambda x: O.cdist(x, x[:, :2] + 0.5), ONE),
    ("dot_product_attention of an open dim", (None, 2, 3), lambda x: O.dot_product_attention(x, O.sin(x), O.cos(x), is_causal=True), ONE),
    ("layer_normalization of an open dim", (None, 6), lambda x: O.layer_normalization(x, W[:6, 0]), ONE),
    ("rfft of an open dim", (None, 6), lambda x: O.rfft(x, fft_length=8), ONE),
    ("isin with an open dim", (None, 6), lambda x: real(O.isin(O.argmax(x, axis=-1), [1, 3])), ONE),
    # complex numbers
    ("fft", M, lambda x: O.fft((x, O.sin(x))), ONE),
    ("imaginary part of fft", V, lambda x: O.fft((x, O.sin(x)))[1], ONE),
    ("fft2", M, lambda x: O.fft2((x, O.sin(x)))[0], ONE),
    ("ifft2", M, lambda x: O.ifft2((x, O.sin(x))), ONE),
    ("imaginary part of ifft2", M, lambda x: O.ifft2((x, O.sin(x)))[1], ONE),
    ("rfft", M, lambda x: O.rfft(x), ONE),
    ("rfft of another length", V, lambda x: O.rfft(x, fft_length=9)[1], ONE),
    ("irfft", M, lambda x: O.irfft((x, O.sin(x))), ONE),
    ("irfft of another length", V, lambda x: O.stop_gradient(O.irfft((x, O.sin(x)), fft_length=7)), ONE),
    ("extract_sequences", (11,), lambda x: O.extract_sequences(x, 4, 3), ONE),
    ("stft", (2, 11), lambda x: O.stft(x, 6, 3, 8), ONE),
    ("stft after its samples", (13,), lambda x: O.stft(x, 5, 2, 6, window="hamming", center=False)[1], ONE),
    ("stft without a window", (11,), lambda x: O.stft(x, 4, 2, 4, window=None)[0], ONE),
    ("stft with a window of numbers", (11,), lambda x: O.stft(x, 4, 2, 6, window=[0.5, 2.0, -1.0, 0.25])[0], ONE),
    ("istft with a window of numbers", (5, 4), lambda x: O.istft((x, O.sin(x)), 5, 2, 6, window=(1.0, 2.0, 3.0, 2.0, 1.0)), ONE),
    ("istft", (5, 5), lambda x: O.istft((x, O.sin(x)), 6, 3, 8), ONE),
    ("istft of a length", (5, 5), lambda x: O.istft((x, O.sin(x)), 8, 2, 8, length=9, window="hamming"), ONE),
    ("istft without a window", (5, 4), lambda x: O.istft((x, O.sin(x)), 6, 3, 6, window=None, center=False), ONE),
    ("image.rgb_to_grayscale", P, lambda x: O.image.rgb_to_grayscale(x), ONE),
    ("image.rgb_to_grayscale of one channel", (4, 5, 1), lambda x: O.image.rgb_to_grayscale(x), ONE),
    ("image.rgb_to_hsv", P, lambda x: O.image.rgb_to_hsv(O.sigmoid(x)), ONE),
    # of hsv_to_rgb and affine_transform TensorFlow has no gradient, or not that of what they give
    ("image.hsv_to_rgb", P, lambda x: O.image.hsv_to_rgb(O.stop_gradient(O.sigmoid(x))), ONE),
    ("image.resize", P, lambda x: O.image.resize(x, (7, 3)), ONE),
    ("image.resize of both sides", P, lambda x: O.image.resize(
        x, (3, 8), interpolation="bicubic", antialias=True, crop_to_aspect_ratio=True), ONE),
    ("image.resize with borders", P, lambda x: O.image.resize(
        x, (6, 4), interpolation="nearest", pad_to_aspect_ratio=True, fill_value=0.5,
        data_format="channels_last"), ONE),
    ("image.pad_images", P, lambda x: O.image.pad_images(x, 1, 2, 3, 0), ONE),
    ("image.pad_images to a size", P, lambda x: O.image.pad_images(
        x, bottom_padding=1, left_padding=2, target_height=7, target_width=9), ONE),
    ("image.crop_images", P, lambda x: O.image.crop_images(x, 1, 2, 1, 0), ONE),
    ("image.crop_images to a size", P, lambda x: O.image.crop_images(
        x, bottom_cropping=1, left_cropping=2, target_height=2, target_width=3), ONE),
    ("image.gaussian_blur", P, lambda x: O.image.gaussian_blur(x), ONE),
    ("image.gaussian_blur of two deviations", P, lambda x: O.image.gaussian_blur(x, (3, 5), (0.75, 2.0)), ONE),
    ("image.affine_transform", P, lambda x: O.image.affine_transform(
        O.stop_gradient(x), np.array([0.75, 0.25, 0.5, -0.25, 1.25, 0.25, 0, 0])), ONE),
    ("image.affine_transform of one batch", P, lambda x: O.image.affine_transform(
        O.stop_gradient(x), np.array([[0.75, 0.25, 0.5, -0.25, 1.25, 0.25, 0.125, 0]]), interpolation="nearest",
        fill_mode="reflect", fill_value=0.5), ONE),
    ("image.sobel_edges", P, lambda x: O.image.sobel_edges(x), ONE),
    ("image.perspective_transform", P, lambda x: O.image.perspective_transform(
        O.stop_gradient(x), np.array([[0, 0], [4, 0.5], [0.25, 3], [4, 3]]),
        np.array([[0.5, 0.25], [4, 0], [0, 3], [3.5, 2.5]]), fill_value=0.5), ONE),
    ("image.extract_patches", (4, 6, 2), lambda x: O.image.extract_patches(x, 2), ONE),
    ("image.extract_patches with a rest", P, lambda x: O.image.extract_patches(x, (2, 3), padding="valid"), ONE),
    ("image.extract_patches that overlap", P, lambda x: O.image.extract_patches(
        x, (2, 3), strides=(1, 2), padding="same"), ONE),
    ("image.extract_patches with holes", P, lambda x: O.image.extract_patches(
        x, 2, strides=1, dilation_rate=2), ONE),
    ("image.extract_patches_3d", (4, 5, 6, 2), lambda x: O.image.extract_patches_3d(x, 2), ONE),
    ("image.extract_patches_3d that overlap", (4, 5, 6, 2), lambda x: O.image.extract_patches_3d(
        x, (1, 2, 3), strides=(2, 1, 2), padding="same"), ONE),
    ("image.extract_patches_3d with holes", (4, 5, 6, 1), lambda x: O.image.extract_patches_3d(
        x, 2, strides=1, dilation_rate=2), ONE),
    ("image.scale_and_translate", P, lambda x: O.image.scale_and_translate(
        x, (None, 6, 7, 3), [1.5, 0.75], [0.25, 1.5], (1, 2), "linear"), ONE),
    ("image.scale_and_translate of one dim", P, lambda x: O.image.scale_and_translate(
        x, (None, 4, 8, 3), np.array([-0.5], "float32"), np.array([5.0], "float32"), (2,), "cubic"), ONE),
    ("image.scale_and_translate without antialias", P, lambda x: O.image.scale_and_translate(
        x, (None, 3, 5, 3), [0.4, 1.0], [0.0, -0.5], (1, 2), "bicubic", antialias=False), ONE),
    ("image.scale_and_translate by lanczos", (9, 8, 2), lambda x: O.image.scale_and_translate(
        x, (None, 5, 12, 2), [0.5, 1.4], [0.1, 0.2], (1, -2), "lanczos3"), ONE),
    ("image.ssim", (12, 13, 2), lambda x: O.expand_dims(
        O.image.ssim(x, O.tanh(x)), -1), ONE),
    ("image.ssim with a small window", (6, 7, 3), lambda x: O.expand_dims(O.image.ssim(
        O.square(x), x, max_val=2.0, filter_size=4, filter_sigma=0.75, k1=0.02, k2=0.05), -1), ONE),
    ("layer_normalization by the deviation", M, lambda x: O.layer_normalization(
        x, np.array([0.5, 2.0, 1.0, -1.0, 0.25, 1.5], "float32"), O.tanh(x), rms_scaling=True, epsilon=0.125), ONE),
    ("layer_normalization by the deviation over two", T, lambda x: O.layer_normalization(
        x, axis=(1, 3), rms_scaling=True), ONE),
    ("isclose of NaN", V, lambda x: x * real(O.isclose(O.log(x), O.log(x + 1e-6), equal_nan=True)), ONE),
    ("isclose of NaN and a number", V, lambda x: x * real(O.isclose(O.log(x), 0.25, 0.5, 0.5, equal_nan=True)), ONE),
    ("cumsum of whole numbers", M, lambda x: x * real(O.cumsum(3 * x, axis=1, dtype="int32")), ONE),
    ("cumprod of whole numbers", M, lambda x: x * real(O.cumprod(3 * x, axis=-1, dtype="int32")), ONE),
    ("nancumsum of whole numbers", M, lambda x: x * real(O.nancumsum(O.sqrt(x), axis=1, dtype="int32")), ONE),
    ("nancumprod of float32", M, lambda x: O.nancumprod(x, axis=1, dtype="float32"), ONE),
    ("full of whole numbers", V, lambda x: x * real(O.full((ROWS, 6), 2 * x[:, :1], dtype="int32")), ONE),
    ("moments of all devices", M, lambda x: O.moments(x, axes=[1], synchronized=True), ONE),
    ("qr complete", (3, 3), lambda x: O.qr(x, mode="complete"), ONE),
    ("qr of wide matrices", (3, 5), lambda x: O.qr(O.sin(x * 3)), ONE),
    ("triangle of qr of wide matrices", (2, 2, 4), lambda x: O.qr(O.sin(x * 3), mode="complete")[1], ONE),
    ("both of qr of wide matrices", (2, 4), lambda x: O.sum(O.matmul(*O.qr(O.sin(x * 3))) ** 3, axis=-1), ONE),
    ("qr complete of tall matrices (JAX)", (5, 3), lambda x: O.sum(
        O.sin(2 * O.qr(O.sin(x * 3), mode="complete")[0]) * number(6, 25, ONE).reshape(5, 5), axis=-1), ONE),
    ("both of qr complete of tall matrices (JAX)", (2, 4, 2), lambda x: O.qr(O.sin(x * 3), mode="complete"), ONE),
    ("convert_to_tensor of whole numbers", V, lambda x: x * real(O.convert_to_tensor(
        2 * x, dtype="int32", sparse=False)), ONE),
    ("one_hot sparse", V, lambda x: O.reshape(O.convert_to_tensor(
        O.one_hot(O.cast(O.clip(O.abs(x), 0, 2), "int32"), 3, sparse=True), sparse=False), (-1, 6, 3)), TWO),
    ("multi_hot sparse", V, lambda x: O.matmul(
        O.multi_hot(O.cast(O.clip(O.abs(x), 0, 3), "int32"), 4, sparse=True), np.ones((4, 2), "float32")), TWO),
]


def digits(a):
    return [None if not np.isfinite(v) else float(f"{v:.8g}") for v in np.ravel(a).astype("float64")]


JAX = keras.backend.backend() == "jax"


def by_jax(model, x, target):
    """The gradient of the kernel of "first"."""
    import jax

    def loss(variables):
        out = model.stateless_call(variables, [], x)[0]
        out = out[0] if isinstance(out, (list, tuple)) else out
        return O.mean(O.square(out - target))
    return np.asarray(jax.grad(loss)([v.value for v in model.trainable_variables])[0])


def case(name, shape, operation, scale):
    i = keras.Input(shape)
    first = L.Dense(shape[-1], name="first")
    y = operation(first(i))
    model = keras.Model(i, y)
    weights = [w.numpy() for w in first.weights]
    first.set_weights([number(1, weights[0].size, scale).reshape(weights[0].shape),
                       number(2, weights[1].size, 0.3)])
    shape = tuple(OPEN if d is None else d for d in shape)
    x = number(0, ROWS * int(np.prod(shape)), ONE).reshape((ROWS,) + shape)
    outs = model(x)
    outs = list(outs) if isinstance(outs, (list, tuple)) else [outs]
    got = [digits(o) for o in outs]
    target = number(3, int(np.prod(outs[0].shape)), ONE).reshape(outs[0].shape)
    mse = keras.losses.MeanSquaredError()
    if JAX:
        kernel = digits(first.weights[0].numpy() - RATE * by_jax(model, x, target))
        return {"name": name, "config": json.loads(model.to_json()), "scale": scale,
                "outputs": got, "kernel": kernel}
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
    """With names as arguments only their cases are made; the lines of the others stay."""
    with open("operations.json") as f:
        kept = {c["name"]: c for c in json.load(f)
                if ("(JAX)" in c["name"]) != JAX or (sys.argv[1:] and c["name"] not in sys.argv[1:])}
    cases = []
    for name, shape, operation, scale in PLAIN:
        if name in kept:
            cases.append(kept[name])
            continue
        if ("(JAX)" in name) != JAX:
            continue
        keras.backend.clear_session()
        cases.append(case(name, shape, operation, scale))
    with open("operations.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


main()
