#!/usr/bin/env python3
"""Make constants.json: operations with a number as an operand, on values that are that number.

A number has the type of the values beside it, or float32: an operation that jumps there shows which.
For each policy there is one model, Input -> Activation "linear" of the policy -> each operation ->
Activation "linear" of float32: its config, a row, and what each operation makes of it. And one of
whole numbers, which no policy changes, and the layers that move them.
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

NUMBERS = (0.1, 0.7)
OPERATIONS = {
    "equal": lambda x, c: O.equal(x, c),
    "not_equal": lambda x, c: O.not_equal(c, x),
    "greater": lambda x, c: O.greater(x, c),
    "greater_equal": lambda x, c: O.greater_equal(x, c),
    "less": lambda x, c: O.less(x, c),
    "less_equal": lambda x, c: O.less_equal(x, c),
    "sign of a difference": lambda x, c: O.sign(x - c),
    "floor_divide": lambda x, c: O.floor_divide(x, c),
    "mod": lambda x, c: O.mod(x, c),
    "digitize": lambda x, c: O.digitize(x, np.array([c, 2 * c])),
    "threshold": lambda x, c: O.threshold(x, c, 9.0),
    "hard_shrink": lambda x, c: O.hard_shrink(x, c),
    "soft_shrink": lambda x, c: O.soft_shrink(x, c),
    "clip": lambda x, c: O.clip(x, -c, c),
    "ReLU": lambda x, c: L.ReLU(threshold=c)(x),
}
# with the first of the numbers only
TYPES = {
    "equal, a whole number": lambda x, c: O.equal(x * (257 / c), 257),
    "logical_and": lambda x, c: O.logical_and(x, c),
    "logical_or": lambda x, c: O.logical_or(x - c, x - 3 * c),
    "logical_not": lambda x, c: O.logical_not(x - c),
    "any": lambda x, c: O.any(O.stack([x - c, x - x], -1), -1),
    "all": lambda x, c: O.all(O.stack([x - c, x], -1), -1),
    "where, and a sum": lambda x, c: O.where(O.greater(x, c), x, c) + 0.3,
    "a bool as a factor": lambda x, c: O.multiply(x, O.logical_and(x > 0, x <= c)) + 0.3,
    "a bool as float32": lambda x, c: O.multiply(x, O.cast(x > c, "float32")) + 0.3,
    "places beside values": lambda x, c: O.argsort(x * c, -1) * c + x,
    "the largest, and a sum": lambda x, c: O.top_k(x, x.shape[-1])[0] + c,
    "values at places": lambda x, c: O.take_along_axis(x, O.argsort(x, -1), 1) + c,
    "how many are": lambda x, c: O.sum(
        O.cast(O.not_equal(O.repeat(x, 41, -1), c), "int32"), -1, keepdims=True) * O.ones_like(x > c),
    "an array of float32": lambda x, c: O.add(x, np.full(x.shape[-1], c, "float32")),
    "an array of whole numbers": lambda x, c: O.add(x, np.full(x.shape[-1], 3, "int32")),
    "isin": lambda x, c: O.isin(x, np.array([c, 9], "float32")),
    "true_divide": lambda x, c: O.true_divide(x, c),
    "nan_to_num": lambda x, c: O.nan_to_num(x / (x - x) * c),
    "saturate_cast": lambda x, c: O.saturate_cast(x * 60000.0 / c, "float16"),
    "GroupNormalization of float32": lambda x, c: L.GroupNormalization(2)(O.cast(x, "float32") / 3),
    "LayerNormalization of float32": lambda x, c: L.LayerNormalization()(O.cast(x, "float32") / 3),
    "LayerNormalization in float32": lambda x, c: L.LayerNormalization(dtype="float32")(x),
    "GroupNormalization in float32": lambda x, c: L.GroupNormalization(2, dtype="float32")(x),
    "cumsum in float32": lambda x, c: O.cumsum(x, axis=-1, dtype="float32"),
    "cumsum in int32": lambda x, c: O.cumsum(x * (257 / c), axis=-1, dtype="int32"),
    "isclose, a whole number": lambda x, c: O.isclose(x * (257 / c), 257),
    "mod of a large number": lambda x, c: O.mod(O.cast(x, "float32") * 1e12, c),
    "fmod by an infinity": lambda x, c: O.fmod(x, x / (x - x)),
    "logaddexp of infinities": lambda x, c: O.isinf(O.logaddexp(x / (x - x), x / (x - x))),
    "logsumexp of infinities": lambda x, c: O.isinf(O.logsumexp(O.stack([x / (x - x), x / (x - x)], -1), -1)),
    "hypot": lambda x, c: O.hypot(x * 1000, x * 300),
    "the number at place 179.4": lambda x, c: O.nanquantile(O.repeat(x, 30, -1), 0.6, axis=-1, keepdims=True) > 0.4,
    # a model has at most 64 outputs
    "zeros, ones and numbers like others": lambda x, c: O.concatenate([O.cast(y, "float32") for y in (
        O.zeros_like(O.cast(x, "int32")) * x + 0.3, O.ones_like(x > c) * x + 0.3,
        O.zeros_like(x, dtype="float32") * x + 0.3, O.full_like(x, c, dtype="float32"),
        O.full_like(O.cast(x, "int32"), 3.7) * x + 0.3)], -1),
}
# whole numbers that bfloat16 has not, by layers that move or join them
IDS = (3, 255, 257, 300, 511, 1001, 2049, 4097)
MOVES = {
    "Reshape": lambda x: L.Reshape((8,))(x),
    "Flatten": lambda x: L.Flatten()(L.Reshape((4, 2))(x)),
    "Permute": lambda x: L.Flatten()(L.Permute((2, 1))(L.Reshape((8, 1))(x))),
    "RepeatVector": lambda x: L.Flatten()(L.RepeatVector(1)(x)),
    "ZeroPadding1D": lambda x: L.Flatten()(L.Cropping1D(1)(L.ZeroPadding1D(1)(L.Reshape((8, 1))(x)))),
    "UpSampling1D": lambda x: L.Flatten()(L.UpSampling1D(2)(L.Reshape((8, 1))(x)))[:, ::2],
    "Concatenate": lambda x: L.Concatenate()([x[:, :5], x[:, 5:]]),
    "Add": lambda x: L.Add()([x, x]),
    "Maximum": lambda x: L.Maximum()([x, x]),
    "Identity": lambda x: L.Identity()(x),
    "ReLU": lambda x: L.ReLU(max_value=4000)(x),
    "LeakyReLU": lambda x: L.LeakyReLU()(x - 300),
    "Activation relu": lambda x: L.Activation("relu")(x),
    "Activation tanh": lambda x: L.Activation("tanh")(x - 300),
    "Dropout": lambda x: L.Dropout(0.5)(x),
    "SpatialDropout1D": lambda x: L.Flatten()(L.SpatialDropout1D(0.5)(L.Reshape((4, 2))(x))),
    "GaussianNoise": lambda x: L.GaussianNoise(0.5)(x),
    "GaussianDropout": lambda x: L.GaussianDropout(0.5)(x),
    "AlphaDropout": lambda x: L.AlphaDropout(0.5)(x),
    "ActivityRegularization": lambda x: L.ActivityRegularization(0.5)(x),
    "Masking": lambda x: L.Flatten()(L.Masking(3)(L.Reshape((8, 1))(x))),
    "MaxPooling1D": lambda x: L.MaxPooling1D(2)(L.Reshape((8, 1))(x)),
    "MaxPooling2D": lambda x: L.MaxPooling2D(2)(L.Reshape((4, 2, 1))(x)),
    "AdaptiveMaxPooling1D": lambda x: L.AdaptiveMaxPooling1D(4)(L.Reshape((8, 1))(x)),
    "GlobalMaxPooling1D": lambda x: L.GlobalMaxPooling1D()(L.Reshape((4, 2))(x)),
    "GlobalAveragePooling1D": lambda x: L.GlobalAveragePooling1D()(L.Reshape((4, 2))(x)),
    "Average": lambda x: L.Average()([x, x + 1]),
    "Dot": lambda x: L.Dot(1)([x[:, :2], x[:, 2:4]]),
    "BatchNormalization": lambda x: L.BatchNormalization()(x),
    "TimeDistributed": lambda x: L.Flatten()(L.TimeDistributed(L.MaxPooling1D(2))(L.Reshape((2, 2, 2))(x))),
    "TimeDistributed Embedding": lambda x: L.Flatten()(L.TimeDistributed(
        L.Embedding(4100, 1, embeddings_initializer="ones"))(L.Reshape((4, 2))(x))),
    "Sequential": lambda x: keras.Sequential([keras.Input((8,), dtype="int32"), L.Reshape((8,))])(x),
    "places of the largest": lambda x: L.Reshape((8,))(O.argmax(O.one_hot(x, 4100), -1)),
    "a quotient": lambda x: L.Reshape((8,))(x) / 2,
}
# operations that give whole numbers of whole numbers; and some that give real ones
KEPT = {
    "absolute": lambda x: O.absolute(x), "array": lambda x: O.array(x), "copy": lambda x: O.copy(x),
    "array_split": lambda x: O.concatenate(O.array_split(x, 3, -1), -1),
    "split": lambda x: L.Identity()(O.split(x, 2, -1)[1]), "unstack": lambda x: L.Identity()(O.unstack(x, axis=-1)[5]),
    "hsplit": lambda x: O.hsplit(x, 2)[1], "bitwise_not": lambda x: O.bitwise_not(x),
    "bitwise_or": lambda x: O.bitwise_or(x, x - 1), "left_shift": lambda x: O.left_shift(x, O.ones_like(x)),
    "broadcast_to": lambda x: O.broadcast_to(x[:, None], (1, 2, 8)), "real": lambda x: O.real(x),
    "conjugate": lambda x: O.conjugate(x), "cross": lambda x: O.cross(x[:, :3], x[:, 3:6]),
    "cumsum": lambda x: O.cumsum(x, -1), "cumprod": lambda x: O.cumprod(x[:, :3], -1),
    "nancumsum": lambda x: O.nancumsum(x, -1), "nancumprod": lambda x: O.nancumprod(x[:, :3], -1),
    "cumsum in float32": lambda x: O.cumsum(x, -1, dtype="float32"),
    "prod": lambda x: O.prod(x[:, :3], -1, keepdims=True), "ptp": lambda x: O.ptp(x[:, :4], -1, keepdims=True),
    "depth_to_space": lambda x: O.depth_to_space(O.reshape(x, (-1, 1, 2, 4)), 2),
    "space_to_depth": lambda x: O.space_to_depth(O.reshape(x, (-1, 2, 2, 2)), 2),
    "diagonal": lambda x: O.diagonal(O.reshape(x, (-1, 2, 4)), axis1=1, axis2=2),
    "trace": lambda x: L.Reshape((1,))(O.trace(O.reshape(x, (-1, 2, 4)), axis1=1, axis2=2)),
    "tril": lambda x: O.tril(O.reshape(x, (-1, 2, 4))), "triu": lambda x: O.triu(O.reshape(x, (-1, 2, 4))),
    "diff": lambda x: O.diff(x), "flip": lambda x: O.flip(x, -1), "fliplr": lambda x: O.fliplr(x),
    "rot90": lambda x: O.rot90(O.reshape(x, (-1, 2, 4)), axes=(1, 2)),
    "roll": lambda x: O.roll(x, 1, -1), "repeat": lambda x: O.repeat(x, 2, -1), "tile": lambda x: O.tile(x, (1, 2)),
    "moveaxis": lambda x: O.moveaxis(O.reshape(x, (-1, 2, 4)), 1, 2),
    "swapaxes": lambda x: O.swapaxes(O.reshape(x, (-1, 2, 4)), 1, 2),
    "transpose": lambda x: O.transpose(O.reshape(x, (-1, 2, 4)), (0, 2, 1)),
    "floor_divide": lambda x: O.floor_divide(x, 2), "mod": lambda x: O.mod(x, 1000), "fmod": lambda x: O.fmod(x, 1000),
    "fmax": lambda x: O.fmax(x, 300), "fmin": lambda x: O.fmin(x, 1001), "clip": lambda x: O.clip(x, 257, 2049),
    "matmul": lambda x: O.matmul(O.reshape(x, (-1, 2, 4)), np.ones((4, 2), "int32")),
    "matmul by reals": lambda x: O.matmul(O.reshape(x, (-1, 2, 4)), np.ones((4, 2), "float32")),
    "einsum": lambda x: O.einsum("bi,bi->bi", x, x // 256), "max_pool": lambda x: O.max_pool(x[:, :, None], 2),
    "nan_to_num": lambda x: O.nan_to_num(x), "negative": lambda x: -x, "square": lambda x: O.square(x[:, :5]),
    "pad": lambda x: O.pad(x, ((0, 0), (1, 1))), "relu": lambda x: O.relu(x), "relu6": lambda x: O.relu6(x) * 257,
    "sign": lambda x: O.sign(x) * 257, "round": lambda x: O.round(x), "trunc": lambda x: O.trunc(x),
    "sort": lambda x: O.sort(-x, -1), "take": lambda x: O.take(x, np.array([3, 6]), -1),
    "top_k": lambda x: O.top_k(x, 3)[0], "take_along_axis": lambda x: O.take_along_axis(x, O.argsort(-x, -1), -1),
    "select": lambda x: O.select([x > 1000, x > 300], [x, x + 2], 513),
    "power": lambda x: O.power(x[:, :5], 2), "slice": lambda x: O.slice(x, (0, 2), (1, 4)),
}
# a model has at most 64 outputs
KEPT_TOO = {
    "signbit": lambda x: O.signbit(x - 300) * 257,
    "matrix_rank": lambda x: O.matrix_rank(O.cast(O.reshape(x, (-1, 2, 4)), "float32"))[:, None] * 257,
    "stop_gradient": lambda x: O.stop_gradient(x), "dot": lambda x: O.dot(x, np.ones((8, 2), "int32")),
    "tensordot": lambda x: O.tensordot(x, np.ones((8, 2), "int32"), 1), "inner": lambda x: O.inner(x, np.ones((2, 8), "int32")),
    "kron": lambda x: O.kron(O.reshape(x, (-1, 2, 4)), np.ones((1, 1, 2), "int32")),
    "extract_sequences": lambda x: O.extract_sequences(x, 4, 2),
    "pad_images": lambda x: O.image.pad_images(O.reshape(x, (-1, 2, 4, 1)), 1, 1, 1, 1),
    "crop_images": lambda x: O.image.crop_images(O.reshape(x, (-1, 2, 4, 1)), 0, 1, target_height=2, target_width=2),
    "extract_patches": lambda x: O.image.extract_patches(O.reshape(x, (-1, 2, 4, 1)), (2, 2)),
    "rgb_to_grayscale": lambda x: O.image.rgb_to_grayscale(O.reshape(x[:, :6], (-1, 1, 2, 3))),
    "places of narrow numbers": lambda x: O.multiply(O.one_hot(L.Identity(dtype="mixed_bfloat16")(O.cast(x, "float32")) - 2, 8)[:, 0], 0.7) > 0.6999,
}


# numbers on the edge of a range, and zeros of either sign
EDGES = {
    "to int32, far below": lambda x: O.cast(-O.absolute(x) * 1e12, "int32"),
    "to int32, where it fits": lambda x: O.cast(x * 1e4, "int32"),
    "argmin of zeros": lambda x: O.argmin(O.stack([O.absolute(x) * 0, -(O.absolute(x) * 0), x * 0], -1), -1),
    "argmax of zeros": lambda x: O.argmax(O.stack([-(O.absolute(x) * 0), O.absolute(x) * 0, x * 0], -1), -1),
    "negative of zeros": lambda x: O.signbit(-(x * 0)),
    "negative of zeros, the operation": lambda x: O.signbit(O.negative(x * 0)),
    "deg2rad of zeros": lambda x: O.signbit(O.deg2rad(x * 0)),
    "rad2deg of zeros": lambda x: O.signbit(O.rad2deg(x * 0)),
    # whole numbers have one zero
    "argmax of whole zeros": lambda x: O.argmax(O.stack([few(-x), few(x), few(-x) * few(x)], -1), -1),
    "argmin of whole zeros": lambda x: O.argmin(O.stack([few(x), few(-x), -few(x)], -1), -1),
    "argmax of whole products": lambda x: O.argmax(O.stack([few(x) * -3, few(x) * 3], -1), -1),
    "a quotient by a whole zero": lambda x: O.cast(O.divide(1.0, few(-x)) > 0, "float32"),
    "a quotient by the negative of a whole zero": lambda x: O.cast(O.divide(1.0, -few(x)) > 0, "float32"),
    "a quotient by a zero of int64": lambda x: O.cast(
        O.divide(1.0, O.cast(O.absolute(x) * -0.01, "int64")) > 0, "float32"),
    # computed in float32, and given in the type of the values, whatever is beside them
    "affine_transform": lambda x: O.image.affine_transform(
        image(x), np.array([1.1, 0.2, 0.3, -0.1, 0.9, 0.4, 0, 0], "float32")),
    "perspective_transform": lambda x: O.image.perspective_transform(
        image(x), np.array([[[0, 0], [4, 0], [0, 1], [4, 1]]], "float32"),
        np.array([[[0.3, 0], [4, 0.2], [0, 1], [3.6, 1]]], "float32")),
    "scale_and_translate by whole pixels, and a product": lambda x: O.image.scale_and_translate(
        image(x), (1, 2, 5, 1), np.ones(2, "float32"), np.array([0, 1], "float32"), (1, 2), "linear") * 0.7,
    "layer_normalization": lambda x: O.layer_normalization(
        x, np.linspace(0.3, 1.7, 10, dtype="float32"), np.linspace(-0.4, 0.9, 10, dtype="float32")),
    "rms_normalization": lambda x: O.rms_normalization(x, np.linspace(0.3, 1.7, 10, dtype="float32")),
}


def few(x):
    return O.cast(x * 0.01, "int32")


def image(x):
    return O.reshape(x, (-1, 2, 5, 1))


def row():
    v = []
    for c in NUMBERS:
        one = np.float32(c)
        v += [one, -one, one * 3, np.nextafter(one, np.float32(9)), np.nextafter(one, np.float32(0))]
    return np.array([v], "float32")


def case_of(policy, x, inputs, names, outs):
    outs = [L.Activation("linear", dtype="float32")(O.cast(y, "float32")) for y in outs]
    m = keras.Model(inputs, outs)
    m.compile(run_eagerly=True)  # graphs divide by a number as they multiply with another
    got = m.predict(x, verbose=0)
    flat = [[float("%.9g" % v) for v in o.ravel()] for o in got]
    return {"policy": policy, "config": json.loads(m.to_json()), "row": [float("%.9g" % v) for v in x[0]],
            "outputs": dict(zip(names, flat))}


def begin(policy, dims, dtype):
    keras.backend.clear_session()
    keras.config.set_dtype_policy(policy)
    return keras.Input(dims, dtype=dtype)


def case(policy):
    x = row()
    inputs = begin(policy, x.shape[1:], "float32")
    held = L.Activation("linear")(inputs)
    calls = [(n, f, c) for n, f in OPERATIONS.items() for c in NUMBERS]
    calls += [(n, f, NUMBERS[0]) for n, f in TYPES.items()]
    names = ["%s, %s" % (n, c) for n, _, c in calls]
    return case_of(policy, x, inputs, names, [f(held, c) for _, f, c in calls])


def case_of_edges(policy):
    x = row()
    inputs = begin(policy, x.shape[1:], "float32")
    held = L.Activation("linear")(inputs)
    return case_of(policy, x, inputs, EDGES, [f(held) for f in EDGES.values()])


def case_of_ids(policy):
    inputs = begin(policy, (len(IDS),), "int32")
    return case_of(policy, np.array([IDS], "int32"), inputs, MOVES, [f(inputs) for f in MOVES.values()])


def case_of_kept(policy, operations):
    """A layer behind each operation casts real numbers to the policy's type, and whole ones not."""
    inputs = begin(policy, (len(IDS),), "int32")
    outs = [L.Identity()(f(inputs)) for f in operations.values()]
    return case_of(policy, np.array([IDS], "int32"), inputs, operations, outs)


with open("constants.json", "w") as f:
    cases = [json.dumps(made(p), separators=(",", ":"))
             for made in (case, case_of_edges, case_of_ids, lambda p: case_of_kept(p, KEPT), lambda p: case_of_kept(p, KEPT_TOO)) for p in ("float32", "mixed_bfloat16", "mixed_float16")]
    f.write("[\n" + ",\n".join(cases) + "\n]\n")
