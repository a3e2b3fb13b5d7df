#!/usr/bin/env python3
"""Make augment.json: what layers that change images by chance make of them, where chance says what
is known.

A case holds the class and its config, the ranges that its draws are taken from, then draws of such
ranges, and what Keras makes of an image with them: element i is (i * 37 + 11) % 101 / 101.
Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L

ONE = {"value_range": (0, 1)}


def number(shape):
    return ((np.arange(np.prod(shape)) * 37 + 11) % 101 / 101).reshape(shape).astype("float32")


def always(kind, *values, **more):
    """The layer that always draws those."""
    return kind(*[(v, v) for v in values], **more)


def case(layer, ranges, known, draws, shape=(5, 6, 3)):
    """known: a layer that always draws the same, or a function of the images."""
    x = number((1, *shape))
    y = known(x, training=True) if isinstance(known, L.Layer) else known(x)
    return {
        "class": type(layer).__name__,
        "config": keras.saving.serialize_keras_object(layer)["config"],
        "ranges": ranges,
        "draws": draws,
        "in": shape,
        "out": list(y.shape[1:]),
        "y": [float("%.7g" % v) for v in np.ravel(y)],
    }


def contrast(factor):
    layer = L.RandomContrast(0.5, **ONE)
    return lambda x: layer.transform_images(x, {"contrast_factor": factor})


def saturated(factor):
    layer = L.RandomSaturation(0.5, **ONE)
    return lambda x: layer.transform_images(x, {"factor": np.array([factor / (1 - factor + 1e-7)], "float32")})


def hue(factor):
    layer = L.RandomHue(0.5, **ONE)
    return lambda x: layer.transform_images(x, {"factor": np.array([factor], "float32")})


def posterized(bits):
    layer = L.RandomPosterization(4, **ONE)
    return lambda x: layer.transform_images(x, {"shift_factor": np.array([8 - bits], "uint8")})


def solarized(add, threshold):
    layer = L.Solarization(**ONE)
    return lambda x: layer.transform_images(
        x, {"additions": np.float32(add), "thresholds": np.float32(threshold)})


def sheared(x_by, y_by, **more):
    layer = L.RandomShear(0.5, 0.5, **more)
    return lambda x: layer.transform_images(x, {"shear_factor": np.array([[x_by, y_by]], "float32")})


def leaning(shares, **more):
    """By how much each of four corners moves, x and y, as parts of where it is."""
    layer = L.RandomPerspective(**more)

    def known(x):
        h, w = x.shape[1] - 1.0, x.shape[2] - 1.0
        corners = np.array([[[0, 0], [w, 0], [0, h], [w, h]]], "float32")
        return layer.transform_images(x, {
            "apply_perspective": np.array([True]), "start_points": corners,
            "end_points": corners + corners * np.array(shares, "float32").reshape(1, 4, 2)})

    return known


def blurred(size, deviation, **more):
    layer = L.RandomGaussianBlur(kernel_size=size, **more)
    return lambda x: layer.transform_images(x, {
        "blur_factor": np.float32([deviation, deviation]), "should_apply_blur": np.array([True])})


def erased(x, rows, columns, colour):
    y = x.copy()
    y[:, slice(*rows), slice(*columns)] = colour
    return y


def philox(counter, key):
    """Philox4x32-10, of which Keel's draws are made."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def normals(count):
    """Normal draws of the test: seed 7, epoch 3, stream 5, row 1010, from block 1 on."""
    z = []
    for block in range(1, 1 + -(-count // 4)):
        w = philox((block, 1010, 5 << 16, 3), (7, 0))
        for u, v in (w[:2], w[2:]):
            r = np.sqrt(-2 * np.log((u + 1) / 2.0**32))
            z += [r * np.cos(v * np.pi / 2**31), r * np.sin(v * np.pi / 2**31)]
    return np.array(z[:count], "float32")


def bent(strength, **more):
    layer = L.RandomElasticTransform(value_range=(0, 1), **more)

    def known(x):
        import tensorflow as tf
        drawn, field = tf.random.stateless_normal, normals(x.shape[1] * x.shape[2])
        tf.random.stateless_normal = lambda shape, **_: tf.constant(field.reshape(shape))
        try:
            return layer.transform_images(x, {"apply_transform": np.array([True]), "seed": 1,
                                              "distortion_factor": np.float32(strength)})
        finally:
            tf.random.stateless_normal = drawn

    return known


def one(name, **drawn):
    """What the layer of that name in RandAugment makes of what is drawn."""
    layer = L.RandAugment(num_ops=1, factor=(0.25, 0.75), **ONE)
    return lambda x: layer.transform_images(x, {"layer_idxes": [0], "transforms": {name: {
        k: np.array(v, "uint8" if k == "shift_factor" else "float32") for k, v in drawn.items()}}})


GRAY = L.RandomGrayscale()
CASES = [
    (L.RandomFlip(), [[0, 1]], lambda x: x[:, ::-1, ::-1], [0.5]),
    (L.RandomFlip("horizontal"), [[0, 1]], lambda x: x[:, :, ::-1], [0.25]),
    (L.RandomFlip("vertical"), [[0, 1]], lambda x: x[:, ::-1], [0.25]),
    (L.RandomFlip("vertical"), [[0, 1]], lambda x: x, [0.75]),
    (L.RandomCrop(3, 4, seed=1), [[0, 1], [0, 1]], lambda x: x[:, 1:4, 2:6], [0.5, 0.99]),
    (L.RandomRotation(0.25), [[-90, 90]], always(L.RandomRotation, 30 / 360), [30]),
    (L.RandomRotation((0.5, 0.125), fill_mode="constant", fill_value=0.25), [[45, 180]],
     always(L.RandomRotation, 100 / 360, fill_mode="constant", fill_value=0.25), [100]),
    (L.RandomRotation(0.5, fill_mode="wrap"), [[-180, 180]],
     always(L.RandomRotation, -77 / 360, fill_mode="wrap"), [-77], (4, 9, 1)),
    (L.RandomZoom(0.25), [[0.75, 1.25]], lambda x: L.RandomZoom((0.2, 0.2))(x, training=True), [1.2]),
    (L.RandomZoom((-0.5, 0.75), (0.125, 0.25), fill_mode="nearest"), [[0.5, 1.75], [1.125, 1.25]],
     always(L.RandomZoom, -0.3, 0.2, fill_mode="nearest"), [0.7, 1.2]),
    (L.RandomTranslation(0.25, (-0.5, 0.125)), [[-0.25, 0.25], [-0.5, 0.125]],
     always(L.RandomTranslation, 0.17, -0.43), [0.17, -0.43]),
    (L.RandomTranslation(0.5, 0.5, fill_mode="constant", interpolation="nearest"), [[-0.5, 0.5]] * 2,
     always(L.RandomTranslation, -0.43, 0.2, fill_mode="constant", interpolation="nearest"), [-0.43, 0.2]),
    (L.RandomBrightness(0.25, **ONE), [[-0.25, 0.25]], always(L.RandomBrightness, 0.2, **ONE), [0.2]),
    (L.RandomBrightness((-0.5, 0.25), **ONE), [[-0.5, 0.25]], always(L.RandomBrightness, -0.3, **ONE), [-0.3]),
    (L.RandomContrast(0.25, **ONE), [[1, 1.25]], contrast(1.2), [1.2]),
    (L.RandomContrast((0.5, 0.25), **ONE), [[0.75, 1.5]], contrast(0.8), [0.8]),
    (L.RandomColorDegeneration(0.25, **ONE), [[-0.25, 0.25]], always(L.RandomColorDegeneration, 0.2, **ONE), [0.2]),
    (L.RandomSaturation(0.75, **ONE), [[-0.75, 0.75]], saturated(0.7), [0.7]),
    (L.RandomSaturation((0.25, 0.75), **ONE), [[0.25, 0.75]], saturated(0.3), [0.3]),
    (L.RandomInvert(0.25, **ONE), [[0, 0.25], [0, 1]], lambda x: 1 - x, [0.25, 0.2]),
    (L.RandomInvert(**ONE), [[0, 1], [0, 1]], lambda x: x, [0.25, 0.3]),
    (L.RandomHue(0.5, **ONE), [[0, 0.5], [0, 1]], hue(0.15), [0.3, 0.2]),
    (L.RandomHue((0.25, 0.75), **ONE), [[0.25, 0.75], [0, 1]], hue(-0.35), [0.7, 0.6]),
    (L.RandomGrayscale(0.25), [[0.25, 0.25], [0, 1]],
     lambda x: GRAY.transform_images(x, np.full((1, 1, 1, 1), True)), [0.25, 0.2]),
    (L.RandomPosterization(4, **ONE), [[1, 4]], posterized(2), [2.75]),
    (L.RandomPosterization((5, 5), **ONE), [[5, 5]], posterized(5), [5]),
    (L.Solarization(0.25, (0.5, 0.75), **ONE), [[0, 63.75], [0.5, 191.25]], solarized(20, 100), [20, 100]),
    (L.RandomShear((0.25, 0.5), 0.25), [[-0.25, 0.25], [0.25, 0.5], [0, 1]], sheared(0.3, 0.2), [0.2, 0.3, 0.5]),
    (L.RandomShear((0, 0.5), (0, 0.25), fill_mode="constant", fill_value=0.5),
     [[0, 0.25], [0, 0.5], [0, 1]], sheared(-0.4, -0.1, fill_mode="constant", fill_value=0.5), [0.1, 0.4, 0.6]),
    (L.RandomPerspective(0.5, 0.5, fill_value=0.25), [[0, 0.5], [0, 1], [-0.25, 0.25]],
     leaning([0.2] * 8, fill_value=0.25), [0.5, 0.4, 0.2]),
    (L.RandomPerspective(interpolation="nearest"), [[0, 1], [0, 1], [-0.5, 0.5]], lambda x: x, [0.5, 0.6, 0.2]),
    (L.RandomSharpness(0.75, **ONE), [[0, 0.75]], always(L.RandomSharpness, 0.7, **ONE), [0.7]),
    (L.RandomGaussianBlur(0.5, (3, 5), (0.25, 0.75), **ONE), [[0, 0.5], [0, 1], [0.25, 0.75]],
     blurred((3, 5), 0.6, **ONE), [0.4, 0.3, 0.6]),
    (L.Equalization(**ONE), [], lambda x: L.Equalization(**ONE)(x, training=True), []),
    (L.Equalization(bins=7, value_range=(-1, 2)), [], lambda x: L.Equalization(
        bins=7, value_range=(-1, 2))(x, training=True), [], (4, 7, 2)),
    (L.RandomElasticTransform(**ONE), [[0, 1], [0, 1], [0, 1]], bent(0.75), [0.5, 0.4, 0.75]),
    (L.RandomElasticTransform((0.25, 0.5), (0.5, 1), fill_mode="wrap", **ONE), [[0.25, 0.5], [0, 1], [0.5, 1]],
     bent(1, fill_mode="wrap"), [0.5, 0.4, 1], (6, 9, 2)),
    (L.RandomElasticTransform(fill_mode="constant", fill_value=0.25, **ONE), [[0, 1], [0, 1], [0, 1]],
     bent(1, fill_mode="constant", fill_value=0.25), [0.5, 0.4, 1], (21, 20, 1)),
    (L.RandomElasticTransform(fill_mode="nearest", interpolation="nearest", **ONE), [[0, 1], [0, 1], [0, 1]],
     bent(1, fill_mode="nearest", interpolation="nearest"), [0.5, 0.4, 1], (7, 12, 2)),
    (L.RandomElasticTransform(**ONE), [[0, 1], [0, 1], [0, 1]], lambda x: x, [0.5, 0.6, 0.75]),
    (L.RandomErasing(0.5, fill_value=(0.25, 0.5, 2), **ONE), [[0.02, 0.33], [0, 1], [0, 0.5], [0, 1]],
     lambda x: erased(x, (2, 4), (2, 5), (0.25, 0.5, 1)), [0.25, 0.5, 0.5, 0.25]),
    (L.RandomErasing(fill_value=0.5, **ONE), [[0.02, 0.33], [0, 1], [0, 1], [0, 1]], lambda x: x, [0.25, 0.5, 0.5, 0.75]),
    (L.RandomColorJitter((0, 1), brightness_factor=0.25), [[-0.25, 0.25]],
     always(L.RandomBrightness, 0.2, **ONE), [0.2]),
    (L.RandomColorJitter((0, 1), contrast_factor=(0.5, 0.25)), [[0.75, 1.5]], contrast(0.8), [0.8]),
    (L.RandomColorJitter((0, 1), saturation_factor=0.75), [[-0.75, 0.75]], saturated(0.7), [0.7]),
    (L.RandomColorJitter((0, 1), hue_factor=0.5), [[0, 0.5], [0, 1]], hue(0.15), [0.3, 0.2]),
]

ALL = L.RandAugment(num_ops=1, factor=(0.25, 0.75), **ONE)
F = [0.25, 0.75]
CHOICES = [  # of RandAugment: ranges, what Keras makes, draws
    ([F, F, [0, 1]], one("random_shear", shear_factor=[[-0.5, -0.3]]), [0.3, 0.5, 0.75]),
    ([F, F], one("random_translation", translations=[[0.5 * 6, 0.3 * 5]]), [0.3, 0.5]),
    ([[90, 270]], lambda x: L.RandomRotation((0.3, 0.3))(x, training=True), [108]),
    ([[1, 6]], one("random_posterization", shift_factor=[5]), [3.5]),
    ([[0.25, 191.25]] * 2, one("solarization", additions=20, thresholds=100), [20, 100]),
    ([], lambda x: L.AutoContrast(**ONE)(x), []),
    ([], lambda x: L.Equalization(**ONE)(x, training=True), []),
    ([F], one("random_brightness", rgb_delta=[[[[0.3]]]]), [0.3]),
    ([F], one("random_color_degeneration", factor=[[[[0.6]]]]), [0.6]),
    ([[0.75, 1.75]], one("random_contrast", contrast_factor=[[[[1.3]]]]), [1.3]),
    ([F], one("random_sharpness", factor=[0.3]), [0.3]),
]
rows = [case(*c) for c in CASES]
rows += [dict(case(ALL, *c), choice=k) for k, c in enumerate(CHOICES)]
with open("augment.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")
