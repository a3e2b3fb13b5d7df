#!/usr/bin/env python3
"""Make the golden .keras files: small models as the real Keras saves them, one training step old.

Each NAME.keras comes with NAME.npz, which holds what Keras computed with it:
  x, y                 the rows of the step
  predict              model.predict(x) of the model in NAME.keras
  loss                 the loss of one further train_on_batch(x, y), before its update
  after/PATH           every array of model.weights.h5 after that further step, by its path
  saved/PATH           every array of model.weights.h5 in NAME.keras, by its path
A model with Dropout has no loss and no after/: Keras draws other numbers.
Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder; arguments: only these.
"""
import io
import os
import sys
import tempfile
import zipfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import h5py
import keras
import numpy as np
from keras import layers, ops


def sequential():
    return keras.Sequential(
        [
            layers.Input((8, 8, 3)),
            layers.Conv2D(4, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(8, activation="relu"),
            layers.Dense(8, activation="tanh"),
            layers.Dense(5),
        ],
        name="small",
    )


def dropout():
    return keras.Sequential(
        [
            layers.Input((6,)),
            layers.Dense(8, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(3, activation="softmax"),
        ],
        name="dropping",
    )


def functional():
    x = i = layers.Input((8, 8, 2), name="image")
    x = layers.Conv2D(4, 3, padding="same", use_bias=False, name="stem")(x)
    x = layers.BatchNormalization(name="stem_bn")(x)
    x = s = layers.ReLU()(x)
    x = layers.Conv2D(4, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization(epsilon=1e-4, momentum=0.9)(x)
    x = layers.Add()([x, s])
    x = layers.Activation("relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(i, layers.Dense(3, activation="softmax", name="scores")(x), name="residual")


def nested():
    """Two models in the model, one of them twice; the lower is frozen."""
    base = keras.Sequential(
        [
            layers.Input((8, 8, 2)),
            layers.Conv2D(3, 3, use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(),
        ],
        name="base",
    )
    base.trainable = False
    i = layers.Input((8, 8, 2))
    pooled = layers.GlobalAveragePooling2D()(base(i, training=False))
    features = keras.Model(i, layers.Dense(4, activation="tanh")(pooled), name="features")
    i = layers.Input((8, 8, 2), name="image")
    both = layers.Concatenate()([features(i), features(layers.Rescaling(0.5, 0.1)(i))])
    return keras.Model(i, layers.Dense(3, activation="softmax", name="scores")(both), name="twice")


def operations():
    """Arithmetic, reductions, slices and the like between layers, and a mask that Keras writes out."""
    i = layers.Input((6, 4), name="steps")
    x = layers.Dense(4, activation="tanh")(i)
    y = (2 - x * 3) ** 2 / 4 + ops.abs(-i) - ops.where(x > 0.1, x, 0.5)
    z = ops.matmul(ops.reshape(y, (-1, 6, 4)), ops.transpose(x, (0, 2, 1)))
    seen = layers.Add()([layers.Dense(4)(layers.Masking(0.25)(i)), layers.Masking(0.5)(y)])
    parts = [
        ops.mean(y, axis=1),
        ops.max(z, axis=(1, 2), keepdims=True)[:, 0],
        ops.sum(y[:, 1:5:2, ::-1], axis=-1),
        ops.squeeze(ops.expand_dims(y[..., 0], 1), 1),
        ops.minimum(ops.exp(ops.sqrt(ops.square(x) + 1.0))[:, -1], ops.sigmoid(x[:, 2])),
        layers.GlobalAveragePooling1D()(seen),
    ]
    h = ops.concatenate(parts, axis=-1)
    return keras.Model(i, layers.Dense(3, activation="softmax", name="scores")(h), name="operations")


def masked():
    return keras.Sequential(
        [
            layers.Input((6,)),
            layers.Embedding(5, 4, mask_zero=True, embeddings_regularizer="l2"),
            layers.Dense(3, activation="tanh"),
            layers.GlobalAveragePooling1D(),
            layers.Dense(3, activation="softmax"),
        ],
        name="words",
    )


def attention():
    """Layers that make layers of their own, one of them twice."""
    i = layers.Input((6, 4), name="steps")
    near = layers.MultiHeadAttention(2, 3, activity_regularizer=keras.regularizers.L1L2(0.01, 0.02))
    x = layers.Add()([i, near(i, i)])
    x = layers.EinsumDense("...x,xy->...y", output_shape=5, bias_axes="y", activation="tanh")(x)
    y = layers.MultiHeadAttention(3, 2, value_dim=4, use_gate=True, output_shape=(4,),
                                  kernel_regularizer="l2", use_bias=False)(i, x)
    z = layers.GlobalAveragePooling1D()(near(y, i))
    return keras.Model(i, layers.Dense(3, activation="softmax", name="scores")(z), name="attention")


def recurrent():
    """Layers over time with all that they can be told: masks, states, both ways, other functions."""
    i = layers.Input((6,), name="words")
    x = layers.Embedding(5, 4, mask_zero=True)(i)
    y, h, c = layers.LSTM(3, return_sequences=True, return_state=True, kernel_regularizer="l2")(x)
    y = layers.LSTM(3, return_sequences=True, go_backwards=True)(y, initial_state=[h, c])
    z = layers.GRU(5, return_sequences=True, activation="silu", recurrent_activation="hard_sigmoid")(x)
    z = layers.Bidirectional(layers.GRU(3, reset_after=False, use_bias=False, return_sequences=True),
                             merge_mode="mul")(z)
    both = layers.Bidirectional(layers.LSTM(2, return_state=True), merge_mode="concat")(z)
    steps = layers.RNN(layers.GRUCell(3), return_sequences=True, zero_output_for_mask=True)(y)
    last = layers.SimpleRNN(4, activation="relu", unroll=True)(steps)
    plain = layers.RNN(layers.SimpleRNNCell(3), go_backwards=True)(z)
    h = layers.Concatenate()([last, plain, *both, layers.Bidirectional(layers.SimpleRNN(3), merge_mode="ave")(y)])
    return keras.Model(i, layers.Dense(3, activation="softmax", name="scores")(h), name="over_time")


def words():
    """A block of a transformer on words, of which 0 is padding; the second call looks back only."""
    i = layers.Input((6,))
    x = e = layers.Embedding(5, 4, mask_zero=True)(i)
    heads = layers.MultiHeadAttention(2, 3, value_dim=2)
    x = layers.LayerNormalization()(layers.Add()([x, heads(x, x)]))
    y = layers.Dense(4)(layers.Dense(7, activation="gelu")(x))
    x = layers.LayerNormalization(epsilon=1e-5, center=False)(layers.Add()([x, y]))
    x = heads(query=x, value=e, key=x, use_causal_mask=True)
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(i, layers.Dense(3, activation="softmax", name="scores")(x), name="words")


def blocks():
    """A model inside whose attention removes the mask of a value of the model around it: the mask of
    k, which the mean of k - n would have. That model is inside of one that has the masks."""
    i = layers.Input((6,))
    a = layers.Embedding(5, 4, mask_zero=True)(i)
    b = layers.Embedding(5, 4, mask_zero=True)(i)
    j, k, n = (layers.Input((6, 4)) for _ in range(3))
    inner = keras.Model(j, layers.Add()([j, layers.MultiHeadAttention(2, 3)(j, j)]))
    outer = keras.Model([k, n], [layers.Multiply()([inner(k), n]), layers.Subtract()([k, n])])
    h = layers.Concatenate()([layers.GlobalAveragePooling1D()(v) for v in outer([a, b])])
    return keras.Model(i, layers.Dense(3, activation="softmax", name="scores")(h), name="blocks")


def reversible():
    """Tables that are looked up and multiplied with, one of them by another matrix."""
    i = layers.Input((6,), name="words")
    tied = layers.ReversibleEmbedding(5, 4, mask_zero=True, embeddings_regularizer="l2", logit_soft_cap=2.0)
    own = layers.ReversibleEmbedding(5, 3, tie_weights=False, reverse_dtype="float32")
    x = tied(layers.Dense(4, activation="tanh")(tied(i)), reverse=True)
    y = own(own(i), reverse=True)
    both = layers.Concatenate()([layers.GlobalAveragePooling1D()(x), layers.GlobalAveragePooling1D()(y)])
    return keras.Model(i, layers.Dense(3, activation="softmax", name="scores")(both), name="reversible")


def merged():
    """Masked values that are merged, and a model inside of whose inputs one is masked."""
    i = layers.Input((6,), dtype="int32", name="tokens")
    a = layers.Embedding(5, 3, mask_zero=True)(i)
    b = layers.Embedding(5, 3, mask_zero=True)(ops.flip(i, axis=1))
    c, free = layers.Dense(3, activation="tanh")(a), layers.Embedding(5, 3)(i)
    steps, row = layers.Input((6, 3)), layers.Input((3,))
    inner = keras.Model([steps, row], layers.Concatenate()([layers.GRU(2)(steps), layers.Dense(2)(row)]))
    parts = [
        layers.LSTM(2)(layers.Multiply()([a, b])),
        layers.LSTM(2)(layers.Maximum()([a, b, c])),
        layers.GRU(2)(layers.Minimum()([c, b])),
        layers.Flatten()(layers.Multiply()([a, free])),
        layers.Flatten()(layers.Maximum()([free, b])),
        inner([layers.Minimum()([b, a]), layers.GlobalAveragePooling1D()(free)]),
    ]
    both = layers.Concatenate()(parts)
    return keras.Model(i, layers.Dense(3, activation="softmax", name="scores")(both), name="merged")


def arrays(path):
    found = {}
    with zipfile.ZipFile(path) as z, h5py.File(io.BytesIO(z.read("model.weights.h5")), "r") as f:
        f.visititems(lambda n, o: found.update({n: o[()]} if isinstance(o, h5py.Dataset) else {}))
    return found


def make(name, model, shape, classes, compile_args):
    chance = np.random.default_rng(7)
    x = chance.normal(size=(6, *shape)).astype("float32")
    if any(isinstance(i, layers.Embedding) for i in model.layers):
        x = chance.integers(0, 5, (6, *shape)).astype("float32")
    y = chance.integers(0, classes, 6).astype("int64")
    out = {"x": x, "y": y}
    if compile_args:
        model.compile(**compile_args)
        model.train_on_batch(x, y)
    model.save(name + ".keras")
    out["predict"] = model.predict(x, verbose=0)
    out.update({"saved/" + k: v for k, v in arrays(name + ".keras").items()})
    if compile_args and not any(isinstance(i, layers.Dropout) for i in model.layers):
        with tempfile.TemporaryDirectory() as d:
            out["loss"] = np.ravel(model.train_on_batch(x, y))[0].astype("float32")
            model.save(d + "/after.keras")
            out.update({"after/" + k: v for k, v in arrays(d + "/after.keras").items()})
    np.savez_compressed(name + ".npz", **out)
    print(name, os.path.getsize(name + ".keras"), os.path.getsize(name + ".npz"))


def main():
    sparse = keras.losses.SparseCategoricalCrossentropy
    for name, build, shape, classes, compile_args in [
        ("sequential_adam", sequential, (8, 8, 3), 5,
         dict(optimizer=keras.optimizers.Adam(1e-3), loss=sparse(from_logits=True), metrics=["accuracy"])),
        ("sequential_plain", sequential, (8, 8, 3), 5, None),
        ("sequential_dropout", dropout, (6,), 3,
         dict(optimizer=keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
              loss="sparse_categorical_crossentropy", metrics=["accuracy"])),
        ("functional_sgd", functional, (8, 8, 2), 3,
         dict(optimizer=keras.optimizers.SGD(0.05, momentum=0.9),
              loss="sparse_categorical_crossentropy", metrics=["accuracy"])),
        ("functional_adamw", functional, (8, 8, 2), 3,
         dict(optimizer=keras.optimizers.AdamW(2e-3, weight_decay=0.01, clipnorm=1.0),
              loss="sparse_categorical_crossentropy", metrics=["accuracy"])),
        ("functional_nested", nested, (8, 8, 2), 3,
         dict(optimizer=keras.optimizers.Adam(1e-3), loss="sparse_categorical_crossentropy")),
        ("functional_operations", operations, (6, 4), 3,
         dict(optimizer=keras.optimizers.SGD(0.05), loss="sparse_categorical_crossentropy")),
        ("functional_attention", attention, (6, 4), 3,
         dict(optimizer=keras.optimizers.Adam(1e-3), loss="sparse_categorical_crossentropy")),
        ("functional_recurrent", recurrent, (6,), 3,
         dict(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="sparse_categorical_crossentropy")),
        ("functional_words", words, (6,), 3,
         dict(optimizer=keras.optimizers.Adam(1e-2), loss="sparse_categorical_crossentropy")),
        ("functional_blocks", blocks, (6,), 3,
         dict(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="sparse_categorical_crossentropy")),
        ("functional_reversible", reversible, (6,), 3,
         dict(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="sparse_categorical_crossentropy")),
        ("functional_merged", merged, (6,), 3,
         dict(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="sparse_categorical_crossentropy")),
        ("sequential_masked", masked, (6,), 3,
         dict(optimizer=keras.optimizers.SGD(0.1, momentum=0.9),
              loss="sparse_categorical_crossentropy")),
    ]:
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        keras.backend.clear_session()
        keras.utils.set_random_seed(11)
        make(name, build(), shape, classes, compile_args)


main()
