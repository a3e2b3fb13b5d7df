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
    (L.RandomErasing(0.5, fill_value=(0.25, 0.5, 2), **ONE), [[0.02, 0.33], [0, 1], [0, 0.5], [0, 1]],
     lambda x: erased(x, (2, 4), (2, 5), (0.25, 0.5, 1)), [0.25, 0.5, 0.5, 0.25]),
    (L.RandomErasing(fill_value=0.5, **ONE), [[0.02, 0.33], [0, 1], [0, 1], [0, 1]], lambda x: x, [0.25, 0.5, 0.5, 0.75]),
    (L.RandomColorJitter((0, 1), brightness_factor=0.25), [[-0.25, 0.25]],
     always(L.RandomBrightness, 0.2, **ONE), [0.2]),
    (L.RandomColorJitter((0, 1), contrast_factor=(0.5, 0.25)), [[0.75, 1.5]], contrast(0.8), [0.8]),
    (L.RandomColorJitter((0, 1), saturation_factor=0.75), [[-0.75, 0.75]], saturated(0.7), [0.7]),
    (L.RandomColorJitter((0, 1), hue_factor=0.5), [[0, 0.5], [0, 1]], hue(0.15), [0.3, 0.2]),
]

with open("augment.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(case(*c)) for c in CASES) + "\n]\n")
