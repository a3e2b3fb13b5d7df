#!/usr/bin/env python3
"""Make whole models in the older HDF5 format, trained for an epoch: legacy_NAME.h5, and in
legacy.json their rows, what Keras predicts, and what it predicts after another epoch from there.
Run in this folder, once with Keras 3.15.1 on TensorFlow and KERAS_BACKEND=tensorflow, and once with
the package tf_keras (Keras 2.21) and the argument 2; names of models may follow.
"""
import json
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if sys.argv[1:2] == ["2"]:
    import tf_keras as keras
else:
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    import keras
import numpy as np

L, optimizers = keras.layers, keras.optimizers
ROWS, BATCH = 12, 4


def image():
    """Layers inside and shared ones, with statistics that move; one layer is frozen. The fused kernel
    of Keras 2 moved the variance by n / (n - 1), which Keras 3 does no more."""
    plain = {"fused": False} if keras.__version__ < "3" else {}
    i = keras.Input((6, 6, 2))
    x = L.Conv2D(3, 3, padding="same", use_bias=False, name="stem")(i)
    x = s = L.BatchNormalization(momentum=0.9, **plain)(x)
    again = L.DepthwiseConv2D(3, padding="same", name="again")
    x = L.Add()([again(x), again(s), s])
    x = L.Dense(3, kernel_initializer="he_normal", trainable=False, name="still")(x)
    x = L.GlobalAveragePooling2D()(L.LeakyReLU(0.25)(x))
    inner = keras.Sequential([keras.Input((3,)), L.BatchNormalization(momentum=0.9), L.Dense(4)],
                             name="inner")
    return keras.Model(i, L.Dense(3, "softmax")(L.Add()([inner(x), inner(x)])))


WORDS = 3 if keras.__version__ < "3" else 9


def words():
    """Without an input layer of the user's. Keras 2 moves only those words that a batch has; here it
    has all of them."""
    first = {"input_length": 5} if keras.__version__ < "3" else {}
    m = keras.Sequential([L.Embedding(WORDS, 3, mask_zero=True, **first),
                          L.Bidirectional(L.GRU(2, return_sequences=True)), L.LSTM(3), L.Dense(2)])
    m.build((None, 5))
    return m


def numbers():
    return keras.Sequential([keras.Input((4,)), L.Dense(3, "tanh", kernel_regularizer="l2"),
                             L.Dense(2)])


def functions():
    """Functions of TensorFlow between layers, which Keras 2 keeps as layers."""
    import tensorflow as tf

    i = keras.Input((4, 3))
    a, b = L.Dense(3, "tanh")(i), L.Dense(3)(i)
    x = tf.nn.leaky_relu(tf.math.add(a, b) * 2.0, alpha=0.125) + tf.nn.gelu(1.0 - a)
    y = tf.reshape(tf.concat([x, tf.abs(a), tf.nn.relu(b)], axis=-1), (-1, 4, 3, 3))
    y = tf.reduce_mean(y, axis=2)[:, 1:, :2]
    y = tf.nn.softmax(tf.transpose(tf.squeeze(tf.expand_dims(y, -1), -1), perm=[0, 2, 1]))
    z = tf.cast(a > 0.25, "float32") * tf.clip_by_value(b, -0.5, 0.5) / 3.0 - x[..., ::-1]
    z = tf.math.reduce_max(tf.stack([z, b**2], axis=1), axis=[1, -1], keepdims=True)
    z = tf.math.sqrt(tf.math.exp(z[:, 0, :, 0]))
    return keras.Model(i, L.Dense(2)(L.Concatenate()([L.Flatten()(y), z])))


def states():
    """A layer that begins with the states of another."""
    i = keras.Input((5, 3))
    y, h, c = L.LSTM(3, return_state=True, return_sequences=True)(i)
    y, s = L.GRU(3, return_state=True, return_sequences=True)(y, initial_state=[h])
    return keras.Model(i, L.Dense(2)(L.LSTM(3)(y, initial_state=[s, c])))


def paths():
    """Names, initializers and a layer as applications of Keras 2 have them."""
    import tensorflow as tf
    from tf_keras.src.applications.inception_resnet_v2 import CustomScaleLayer

    keras.utils.register_keras_serializable()(CustomScaleLayer)
    i = keras.Input((4,))
    x = L.Dense(3, "tanh", name="block/first/dense", kernel_regularizer="l2",
                bias_initializer=tf.constant_initializer(0.25))(i)
    y = L.Dense(3, name="block/second", use_bias=False)(x)
    x = CustomScaleLayer(0.5)([x, y * tf.nn.relu6(y + 3.0)])
    return keras.Model(i, L.Dense(2)(L.BatchNormalization(momentum=0.9, name="block/norm")(x)))


SPARSE = keras.losses.SparseCategoricalCrossentropy()
KERAS_3 = {
    "new_image": (image, lambda: optimizers.Adam(0.01), SPARSE, ["accuracy"]),
    "new_words": (words, lambda: optimizers.SGD(0.1, 0.875), "mse", ["mae"]),
}
KERAS_2 = {
    "image": (image, lambda: optimizers.Adam(0.01), SPARSE, ["accuracy"]),
    "words": (words, lambda: optimizers.legacy.SGD(0.1, 0.875, decay=0.125), "mse", ["mae"]),
    "numbers": (numbers, lambda: optimizers.legacy.Adam(0.01), "mse", None),
    "functions": (functions, lambda: optimizers.SGD(0.1), "mse", None),
    "states": (states, lambda: optimizers.SGD(0.1), "mse", None),
    "paths": (paths, lambda: optimizers.Adam(0.01), "mse", None),
    "numbers_rms": (numbers, lambda: optimizers.RMSprop(0.01, momentum=0.5), "mse", None),
}

cases = json.load(open("legacy.json")) if os.path.exists("legacy.json") else []
models = KERAS_2 if keras.__version__ < "3" else KERAS_3
for name in [n for n in sys.argv[1:] if n in models] or models:
    build, optimizer, loss, metrics = models[name]
    keras.backend.clear_session()
    keras.utils.set_random_seed(4)
    m = build()
    chance = np.random.default_rng(6)
    shape = (ROWS, *m.input_shape[1:])
    x = chance.integers(0, WORDS, shape) if "words" in name else chance.integers(-16, 17, shape) / 16
    x = x.astype("int32" if "words" in name else "float32")
    y = chance.integers(0, 3, ROWS) if loss is SPARSE else chance.integers(-4, 5, (ROWS, 2)) / 4
    y = y.astype("int32" if loss is SPARSE else "float32")
    m.compile(optimizer(), loss, metrics=metrics)
    m.fit(x, y, BATCH, 1, shuffle=False, verbose=0)
    m.save(f"legacy_{name}.h5")
    case = {"name": name, "shape": x.shape, "x": x.ravel().tolist(), "y_shape": y.shape,
            "y": y.ravel().tolist(), "predict": m.predict(x, verbose=0).ravel().tolist()}
    m.fit(x, y, BATCH, 1, shuffle=False, verbose=0)
    case["after"] = m.predict(x, verbose=0).ravel().tolist()
    cases = [c for c in cases if c["name"] != name] + [case]
with open("legacy.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in sorted(cases, key=lambda c: c["name"])) + "\n]\n")
