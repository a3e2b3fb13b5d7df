"""Models drawn by chance for random_fits.py: their inputs, layers, outputs, losses and metrics.

A model reads one to three inputs of any kind (numbers, bytes, whole numbers, tokens, texts, images,
steps with masks), each of which becomes a vector. The vectors go through layers that are nested,
shared or frozen, and one to three outputs end the model, of vectors or of steps.
"""
import random_graphs as graphs  # sets up Keras; draws nothing when imported
import random_trainings as trainings
import keras
import numpy as np
from keras import layers as L
from keras import losses, ops, optimizers
from keras import metrics as M

WORDS = ["a", "b", "c", "zz", "ü", "日本語", "a longer text than thirty-two bytes are"]
TOKENS, STEPS, CLASSES = 6, 4, 3
JAX = keras.backend.backend() == "jax"


class Draw(trainings.Draw):
    def seed(self):
        return self.int(0, 999)

    def kernel(self):
        """Initializers, now and then regularizers and a constraint."""
        normal = keras.initializers.RandomNormal
        a = dict(kernel_initializer=normal(0.0, 0.5, seed=self.seed()), bias_initializer=normal(0.0, 0.3, seed=self.seed()))
        if self.flip(0.25):
            a["kernel_regularizer"] = self.regularizer()
        if self.flip(0.15):
            a["kernel_constraint"] = self.constraint()
        if self.flip(0.15):
            a["bias_regularizer"] = self.regularizer()
        if self.flip(0.1):
            a["activity_regularizer"] = self.activity_regularizer()
        return a

    def smooth(self):
        return self.one(["tanh", "sigmoid", "softplus", "gelu", "silu", "elu", "relu", None, "softsign", "mish"])


# ---- layers of vectors --------------------------------------------------------------------------


def batch_norm(d):
    return L.BatchNormalization(momentum=d.one([0.99, d.real(0.3, 1)]), epsilon=d.one([1e-3, 0.1]), center=d.flip(0.8), scale=d.flip(0.8),
                                gamma_regularizer=d.one([None, None, "l2"]), beta_constraint=d.one([None, None, None, "non_neg"]),
                                trainable=d.flip(0.85))  # fmt: skip


def of_activity(d):
    l1, l2 = d.real(0, 0.01), d.real(0, 0.01)
    return L.ActivityRegularization(l1, l2) if graphs.POLICY == "float32" else L.Identity()


def dense(d):
    return L.Dense(d.int(2, 6), d.smooth(), use_bias=d.flip(0.8), trainable=d.flip(0.9), **d.kernel())


def vector_layer(d, n):
    """A layer of vectors of n numbers."""
    return d.one([lambda: dense(d), lambda: dense(d), lambda: dense(d), lambda: batch_norm(d), lambda: batch_norm(d),
                  lambda: L.LayerNormalization(epsilon=0.01, center=d.flip(), scale=d.flip()), lambda: L.Dropout(0.0, seed=d.seed()),
                  lambda: L.PReLU(), lambda: of_activity(d), lambda: L.GaussianNoise(0.0),
                  lambda: L.Rescaling(d.real(0.5, 2), d.real(-1, 1)), lambda: L.LeakyReLU(0.2), lambda: L.RMSNormalization(epsilon=0.01),
                  lambda: L.UnitNormalization(), lambda: L.GroupNormalization(1, epsilon=0.01), lambda: L.AlphaDropout(0.0),
                  lambda: L.SpectralNormalization(L.Dense(n)), lambda: L.EinsumDense("ab,bc->ac", n, bias_axes="c", activation=d.smooth()),
                  lambda: keras.Sequential([L.Reshape((-1, 1)), L.Conv1D(2, 1, activation=d.smooth(), **d.kernel()), L.Flatten()]),
                  lambda: keras.Sequential([L.RepeatVector(3), d.one([L.GRU, L.LSTM])(n)]), lambda: L.Dense(n, dtype="float32"),
                  lambda: L.Activation(d.smooth() or "linear"), lambda: L.Softmax(), lambda: L.ReLU(d.one([None, 1.0]), d.real(0, 0.3), d.real(0, 0.2)),
                  lambda: L.ELU(0.7), lambda: L.Permute((1,)), lambda: L.Identity(), lambda: L.Activation(d.one(["selu", "hard_tanh", "log_softmax",
                  "squareplus", "celu", "exponential", "hard_silu", "relu6", "leaky_relu", "sparse_plus"])),
                  lambda: L.GaussianDropout(0.0),
                  lambda: keras.Sequential([L.Reshape((1, -1)), d.one([L.Bidirectional(L.LSTM(n), "ave"), L.GRU(n)])])])()  # fmt: skip


def two_of_two(d, n):
    """A model of two vectors of n numbers that gives two, whose paths cross."""
    a, b = L.Input((n,)), L.Input((n,))
    x = L.Dense(n, d.smooth(), **d.kernel())(L.Concatenate()([a, b]))
    y = d.one([lambda: L.Multiply()([x, b]), lambda: held(d, n, 2)(L.Subtract()([b, a])), lambda: b])()
    return keras.Model([a, b], [y, L.Add()([x, a])] if d.flip() else [x, y])


def held(d, n, deep=0):
    """A model of vectors of n numbers, which gives such vectors, perhaps with a model inside, perhaps frozen."""
    if d.flip():
        m = keras.Sequential([L.Input((n,)), *[vector_layer(d, n) for _ in range(d.int(0, 2))], L.Dense(n, d.smooth(), **d.kernel())])
    else:
        i = L.Input((n,))
        x = held(d, n, deep + 1)(i) if deep < 2 and d.flip(0.4) else i
        x = L.Dense(n, d.smooth(), **d.kernel())(x)
        m = keras.Model(i, d.one([lambda: x, lambda: L.Add()([x, i]), lambda: x * 0.5 + i,
                                  lambda: ops.concatenate([x, i], -1)[:, :n]])())  # fmt: skip
    if d.flip(0.15):
        m.trainable = False
    return m


def normalizes(m):
    """Whether it has a layer that Keras trains although its model is called with training=False (README, differences)."""
    kinds = (L.BatchNormalization, L.SpectralNormalization)
    return any(isinstance(layer, kinds) or isinstance(layer, keras.Model) and normalizes(layer) for layer in m.layers)


def bend(d, x):
    """A vector after some layers, models and operations."""
    for _ in range(d.int(0, 3)):
        n = x.shape[-1]
        kind = d.int(0, 14)
        if kind <= 4:
            x = vector_layer(d, n)(x)
        elif kind == 5:
            m = held(d, n)
            x = m(x, **({"training": False} if d.flip(0.2) and not normalizes(m) else {}))
        elif kind == 6:
            m = held(d, n)
            x = m(m(x))
        elif kind == 7:
            layer = L.Dense(n, d.smooth(), **d.kernel())
            x = L.Average()([layer(x), layer(layer(x))])
        elif kind == 8:
            x = d.one([lambda: ops.tanh(x) + x, lambda: x * 0.3 - 1.0, lambda: ops.concatenate([x, ops.square(x)], axis=-1),
                       lambda: ops.softmax(x), lambda: ops.where(x > 0.1, x, 0.5 * x),
                       lambda: ops.maximum(x, ops.mean(x, -1, keepdims=True))])()  # fmt: skip
        elif kind == 9:
            x = L.Dense(n, **d.kernel())(x)
            x = L.Multiply()([x, L.Dense(n, "sigmoid")(x)])
        elif kind == 11:
            m = two_of_two(d, n)
            a, b = m([x, L.Dense(n)(x)])
            if d.flip():
                b, a = m([b, a])
            x = d.one([lambda: a * b, lambda: L.Concatenate()([a, b]), lambda: L.Average()([a, b, x]), lambda: b])()
        elif kind == 12:
            x = d.one([lambda: ops.concatenate(ops.split(x, [1], -1)[::-1], -1) if n > 1 else -x, lambda: ops.sum(ops.stack([x, ops.sin(x), x], 1), 1),
                       lambda: ops.einsum("bi,bj->bij", x, ops.sigmoid(x)).reshape((-1, n * n)) if n < 5 else ops.flip(x, -1),
                       lambda: ops.cumsum(x, -1), lambda: ops.sort(x, -1), lambda: ops.clip(x, -0.7, 0.8), lambda: x - ops.logsumexp(x, -1, keepdims=True),
                       lambda: ops.matmul(ops.expand_dims(x, 1), ops.expand_dims(ops.tanh(x), 2))[:, 0], lambda: x / (1 + ops.abs(x)),
                       lambda: ops.log1p(ops.square(x)) + ops.roll(x, 1, -1), lambda: ops.where(ops.isfinite(x), x, 0.0),
                       lambda: ops.exp(-ops.square(x)) * ops.sqrt(ops.square(x) + 1.0)])()  # fmt: skip
        elif kind == 13:
            layer = vector_layer(d, n)
            y = layer(x)
            x = L.Add()([y, layer(L.Dense(n, **d.kernel())(x))]) if y.shape == x.shape and not isinstance(layer, L.SpectralNormalization) else y
        else:
            y = held(d, n)(x)
            x = d.one([L.Maximum(), L.Minimum(), L.Subtract(), L.Dot(-1, normalize=d.flip()), L.Concatenate()])([x, y])
    return x


# ---- from steps and images to vectors -----------------------------------------------------------


def recurrent(d, x):
    """(vector, steps or None)"""
    kind = d.one([L.LSTM, L.GRU, L.SimpleRNN])
    n = d.int(2, 4)
    way = d.int(0, 5)
    if way == 0:
        return L.Bidirectional(kind(n, seed=d.seed()), merge_mode=d.one(["concat", "sum", "ave", "mul"]))(x), None
    if way == 1:
        y, *states = kind(n, return_sequences=True, return_state=True)(x)
        y = kind(n, return_sequences=True, go_backwards=d.flip(0.3))(y, initial_state=states)
        return L.Concatenate()([states[0], kind(3)(y)]), None
    if way == 2:
        y = kind(n, return_sequences=True, unroll=d.flip(0.3), recurrent_initializer="glorot_uniform", recurrent_dropout=0.0)(x)
        return kind(n)(y), y
    if way == 3:
        cell = {L.LSTM: L.LSTMCell, L.GRU: L.GRUCell, L.SimpleRNN: L.SimpleRNNCell}[kind]
        y = L.RNN([cell(n), L.GRUCell(3)], return_sequences=True)(x)
        return L.GlobalAveragePooling1D()(y), y
    if way == 4:
        y = L.Bidirectional(kind(n, return_sequences=True), merge_mode=d.one(["concat", "sum"]))(x)
        return L.GlobalMaxPooling1D()(y), y
    a = {k: v for k, v in d.kernel().items() if k != "activity_regularizer"}
    more = {L.LSTM: dict(unit_forget_bias=d.flip()), L.GRU: dict(reset_after=d.flip()), L.SimpleRNN: {}}[kind]
    return kind(n, activation=d.one(["tanh", "tanh", "relu"]), go_backwards=d.flip(0.3), **more, **a)(x), None


def masked(d, x):
    """Steps again, through layers that pass a mask on, join masks or lose them."""
    n = x.shape[-1]
    y = d.one([lambda: L.Dense(n, d.smooth())(x), lambda: L.GRU(n, return_sequences=True)(x), lambda: L.TimeDistributed(L.Dense(n, **d.kernel()))(x),
               lambda: L.Bidirectional(L.SimpleRNN(n, return_sequences=True), merge_mode="sum")(x), lambda: L.Masking(0.3)(x), lambda: x])()  # fmt: skip
    kind = d.int(0, 9)
    if kind <= 2:
        return d.one([L.Add(), L.Multiply(), L.Average(), L.Maximum(), L.Concatenate(), L.Concatenate(axis=1), L.Subtract()])([x, y])
    if kind == 3:
        return L.MultiHeadAttention(2, 2, value_dim=d.int(1, 3))(y, x, use_causal_mask=d.flip(0.3))
    if kind == 4:
        i = L.Input(x.shape[1:])
        z = d.one([L.LSTM, L.GRU])(n, return_sequences=True)(L.Masking(d.one([0.0, 9.0]))(i) if d.flip() else i)
        return keras.Model(i, L.Add()([z, i]) if d.flip() else z)(y)
    if kind == 5:
        return L.Attention(use_scale=d.flip())([y, x])
    if kind == 6:
        return d.one([L.Dropout(0.0), L.SpatialDropout1D(0.0), L.LayerNormalization(epsilon=0.01), L.PReLU(shared_axes=[1]), L.UpSampling1D(2),
                      L.ZeroPadding1D(1), L.Permute((2, 1)), L.Cropping1D((0, 1)), L.Activation("tanh"), L.Rescaling(0.5, 0.1), L.UnitNormalization(),
                      L.BatchNormalization(epsilon=0.1), L.ActivityRegularization(0.01), L.RMSNormalization()])(y)  # fmt: skip
    if kind == 7:
        return d.one([lambda: ops.tanh(y) + x, lambda: y * 0.5, lambda: y[:, 1:], lambda: ops.flip(y, 1), lambda: ops.concatenate([x, y], -1)])()
    if kind == 8:
        return L.LSTM(n, return_sequences=True, zero_output_for_mask=d.flip(), go_backwards=d.flip(0.3))(y)
    return L.TimeDistributed(keras.Sequential([L.Input((n,)), L.Dense(n, "tanh"), batch_norm(d)]))(y)


def through_time(d, x):
    """The vector of [B, T, C] by layers of images that go through time, or of volumes."""
    t, c = x.shape[1:]
    n = d.int(1, 3)
    return d.one([lambda: L.Flatten()(L.ConvLSTM1D(n, 2, padding=d.one(["same", "valid"]) if c > 1 else "same", return_sequences=d.flip(), dropout=0.0,
                                                   **({} if d.flip() else {"go_backwards": True}))(L.Reshape((t, c, 1))(x))),
                  lambda: L.GlobalMaxPooling2D()(L.ConvLSTM2D(n, (1, 2), padding="same", activation=d.one(["tanh", "relu"]))(L.Reshape((t, c, 1, 1))(x))),
                  lambda: L.GlobalAveragePooling3D()(L.Conv3D(n, (2, 1, 1), padding=d.padding(), **d.kernel())(L.Reshape((t, 1, c, 1))(x))),
                  lambda: L.Flatten()(L.AdaptiveAveragePooling1D(d.int(2, 3))(x)),
                  lambda: L.Flatten()(L.Conv3DTranspose(n, 2, padding="same")(L.Reshape((t, 1, c, 1))(x))),
                  lambda: L.Flatten()(L.TimeDistributed(L.GRU(n))(L.Reshape((t, c, 1))(x))),
                  lambda: L.Flatten()(L.TimeDistributed(L.Conv1D(n, 2, padding="same"))(L.Reshape((t, c, 1))(x))),
                  lambda: L.Dot(1)([L.GRU(2, return_sequences=True)(x), ops.softmax(L.Dense(1)(x), 1)])[:, :, 0],
                  lambda: L.RNN(L.StackedRNNCells([L.GRUCell(n), L.LSTMCell(2)]))(x)])()  # fmt: skip


def of_steps(d, x):
    """(vector, steps or None) of [B, T, C]"""
    for _ in range(d.one([0, 0, 1, 1, 2])):
        x = masked(d, x)
    way = d.int(0, 11)
    if way >= 10:
        return through_time(d, x), None
    if way <= 2:
        return recurrent(d, x)
    if way == 3:
        y = L.Conv1D(d.int(2, 4), 2, padding=d.one(["same", "causal", "valid"]), activation=d.smooth(), **d.kernel())(x)
        return L.GlobalAveragePooling1D()(batch_norm(d)(y)), None
    if way == 4:
        y = L.MultiHeadAttention(d.int(1, 2), 2, use_bias=False, dropout=0.0)(x, x, use_causal_mask=d.flip(0.3))
        y = L.LayerNormalization(epsilon=0.01)(L.Add()([y, x]))
        return L.GlobalAveragePooling1D()(y), y
    if way == 5:
        y = L.TimeDistributed(L.Dense(3, d.smooth(), **d.kernel()))(x)
        return L.GlobalAveragePooling1D()(y), y
    if way == 6:
        y = L.Dense(3, d.smooth())(x)
        return L.GlobalAveragePooling1D()(L.Dropout(0.0)(y)), y
    if way == 7:
        y = batch_norm(d)(L.Dense(d.int(2, 3), **d.kernel())(x))
        y = d.one([lambda: y, lambda: L.TimeDistributed(held(d, y.shape[-1]))(y),
                   lambda: L.LayerNormalization(axis=d.one([-1, 1, [1, 2]]))(y)])()  # fmt: skip
        return d.one([L.GlobalAveragePooling1D, L.GlobalMaxPooling1D, L.Flatten])()(y), y
    if way == 8:
        y = L.Dense(4)(x)
        y = d.one([lambda: L.Attention(use_scale=d.flip(), score_mode=d.one(["dot", "concat"]))([y, y]),
                   lambda: L.AdditiveAttention(use_scale=d.flip())([y, y]), lambda: L.GroupQueryAttention(2, 2, d.int(1, 2))(y, y)])()  # fmt: skip
        return L.GlobalMaxPooling1D()(y), None
    y = d.one([lambda: L.SeparableConv1D(3, 2, padding="same"), lambda: L.Conv1DTranspose(2, 2, strides=d.int(1, 2)), lambda: L.MaxPooling1D(2),
               lambda: L.AveragePooling1D(2, padding="same"), lambda: L.UpSampling1D(2), lambda: L.ZeroPadding1D((1, d.int(0, 1))),
               lambda: L.Cropping1D((1, 0)), lambda: L.DepthwiseConv1D(2, depth_multiplier=2)])()(x)  # fmt: skip
    return L.Flatten()(y), y


def of_image(d, x):
    """(vector, places) of [B, H, W, C]"""
    channels = x.shape[-1]
    x = d.one([lambda: L.Rescaling(1 / 255)(x), lambda: L.Rescaling(1 / 127.5, -1)(x),
               lambda: L.Normalization(mean=[120.0] * channels, variance=[4000.0] * channels)(x)])()  # fmt: skip
    for _ in range(d.int(1, 2)):
        x = d.one([lambda: L.Conv2D(d.int(2, 4), d.one([1, 2, 3]), padding="same", strides=d.one([1, 1, 2]), use_bias=d.flip(), **d.kernel()),
                   lambda: L.DepthwiseConv2D(2, padding="same"), lambda: L.SeparableConv2D(3, 2, padding="same"),
                   lambda: L.Conv2DTranspose(2, 2, strides=d.int(1, 2), padding="same", **d.kernel()), lambda: L.UpSampling2D(2),
                   lambda: L.SpectralNormalization(L.Conv2D(2, 2)), lambda: L.Resizing(4, 5), lambda: L.ZeroPadding2D(1),
                   lambda: L.Conv2D(4, 2, padding="same", dilation_rate=2, **d.kernel()), lambda: L.Cropping2D(((1, 0), (0, 1))),
                   lambda: L.Permute((2, 1, 3)), lambda: L.Conv2D(2 * x.shape[-1], 2, groups=x.shape[-1], padding="same"),
                   lambda: keras.Sequential([L.Input(x.shape[1:]), L.Conv2D(x.shape[-1], 3, padding="same"), batch_norm(d), L.ReLU()]),
                   lambda: L.Conv2D(3, (1, 3), strides=(2, 1), padding="same", activation=d.smooth(), **d.kernel()),
                   lambda: L.Conv2D(2, 3, padding="same", activity_regularizer=d.activity_regularizer())])()(x)  # fmt: skip
        if d.flip(0.2):
            y = L.Conv2D(x.shape[-1], d.one([1, 3]), padding="same", use_bias=False)(x)
            x = d.one([L.Add(), L.Concatenate(), L.Multiply(), L.Average()])([x, d.one([lambda: y, lambda: batch_norm(d)(y), lambda: ops.relu(y)])()])
        if d.flip():
            x = d.one([batch_norm(d), batch_norm(d), L.LayerNormalization(axis=d.one([-1, [1, 2, 3]])), L.GroupNormalization(1),
                       L.SpatialDropout2D(0.0)])(x)  # fmt: skip
        x = L.Activation(d.smooth() or "linear")(x)
        if min(x.shape[1:3]) > 2 and d.flip():
            x = d.one([L.MaxPooling2D, L.AveragePooling2D])(d.one([2, 2, (1, 2)]), strides=d.one([None, 1]), padding=d.padding())(x)
    if d.flip(0.1):
        x = L.Multiply()([x, L.Dense(x.shape[-1], "sigmoid")(L.GlobalAveragePooling2D(keepdims=True)(x))])
    if d.flip(0.1):
        return of_steps(d, L.Reshape((-1, x.shape[-1]))(x))[0], x
    return d.one([L.GlobalAveragePooling2D(), L.Flatten(), L.GlobalMaxPooling2D()])(x), x


# ---- inputs: (input, vector, steps or places or None) ------------------------------------------------------


def read_steps(d, name):
    t = L.Input((STEPS, d.int(1, 3)), name=name)
    return t, *of_steps(d, L.Masking(0.0)(t) if d.flip() else t)


def read_image(d, name, dtype, channels):
    t = L.Input((d.int(5, 7), d.int(5, 7), channels or d.one([1, 3])), name=name, dtype=dtype)
    return t, *of_image(d, t)


def read_tokens(d, name):
    steps = d.one([STEPS, STEPS, 1])
    t = L.Input((steps,), name=name, dtype=d.one(["int32", "int64", "uint8", "float32"]))
    y = L.Embedding(TOKENS, d.int(2, 4), mask_zero=steps > 1 and d.flip(), embeddings_regularizer=d.one([None, None, "l2"]))(t)
    return (t, L.Flatten()(y), None) if steps == 1 else (t, *of_steps(d, y))


def read_hashed(d, name, kind, tables):
    """Texts or whole numbers without a vocabulary of their own, or texts of several words."""
    t = L.Input((1,), name=name, dtype="string" if kind == "text" else "int64")
    if kind == "text" and d.flip():
        how = dict(output_mode="int", output_sequence_length=3) if tables and d.flip() else dict(output_mode=d.one(["multi_hot", "count"]))
        look = L.TextVectorization(ngrams=d.one([None, 2]), **how)
        look.adapt(["a longer text than", "b a c", "zz thirty-two bytes"])
        v = look(t)
        if how["output_mode"] != "int":
            return t, L.Dense(3, d.smooth(), **d.kernel())(L.Flatten()(v)), None
        return t, *of_steps(d, L.Embedding(look.vocabulary_size() + 1, 3, mask_zero=d.flip())(v))
    look = L.Hashing(d.int(2, 6), output_mode=d.one(["int", "one_hot", "multi_hot"]), salt=d.one([None, 7]),
                     mask_value=d.one([None, "a"]) if kind == "text" else None)  # fmt: skip
    v = look(t)
    return t, L.Dense(3, d.smooth(), **d.kernel())(ops.cast(v, "float32") if look.output_mode == "int" else v), None


def read_categories(d, name, kind, tables):
    """Texts or whole numbers that are looked up."""
    if d.flip(0.25):
        return read_hashed(d, name, kind, tables)
    shape = (d.int(1, 2),)
    mode = d.one(["multi_hot", "count", "tf_idf", "int"])
    a = dict(output_mode=mode, num_oov_indices=d.int(1, 2))
    if kind == "text":
        t, look = L.Input(shape, name=name, dtype="string"), L.StringLookup(**a)
        look.adapt(np.array(WORDS[: d.int(2, 5)] + WORDS[:2]))
    else:
        t, look = L.Input(shape, name=name, dtype=d.one(["int64", "int32"])), L.IntegerLookup(**a)
        look.adapt(np.array([3, 1, 4, 1, 5]))
    v = look(t)
    if mode == "int" and tables and d.flip(0.7):
        y = L.Embedding(12, d.int(2, 3), mask_zero=d.flip())(v)
        return (t, *of_steps(d, y)) if shape[0] > 1 and d.flip() else (t, L.Flatten()(y), None)
    if mode == "int":
        v = d.one([lambda: L.CategoryEncoding(12, output_mode="count")(v), lambda: L.Rescaling(0.1)(v)])()
    if mode != "tf_idf":  # whole numbers, of which Keras's SpectralNormalization makes whole numbers
        v = L.Dense(3, d.smooth(), **d.kernel())(v)
    return t, v, None


def read_bins(d, name):
    t = L.Input((d.int(1, 3),), name=name)
    look = L.Discretization(num_bins=d.int(2, 5), output_mode=d.one(["multi_hot", "count"]))
    look.adapt(d.chance.normal(size=(50, 1)).astype("float32"))
    v = look(t)
    return t, L.Concatenate()([v, t]) if d.flip() else v, None


def read_whole(d, name, types):
    t = L.Input((d.int(1, 4),), name=name, dtype=d.one(types))
    v = d.one([lambda: L.Dense(3, d.smooth(), **d.kernel())(t), lambda: L.Rescaling(0.1)(t), lambda: ops.cast(t, "float32")])()
    return t, v, None


def read_real(d, name):
    shape = (d.int(1, 5),)
    t = L.Input(shape, name=name, dtype=d.one(["float32"] * 5 + ["float64"]))
    if not d.flip(0.3):
        return t, t, None
    scale = L.Normalization(axis=d.one([-1, None]))
    scale.adapt(d.chance.normal(1, 2, (40, *shape)).astype("float32"))
    return t, scale(t), None


def read(d, kind, name, channels, tables):
    if kind == "steps":
        return read_steps(d, name)
    if kind in ("image", "image8"):
        return read_image(d, name, "uint8" if kind == "image8" else "float32", channels)
    if kind == "table":
        return read_tokens(d, name)
    if kind in ("text", "lookup"):
        return read_categories(d, name, kind, tables)
    if kind == "bins":
        return read_bins(d, name)
    if kind in ("bytes", "whole"):
        return read_whole(d, name, ["uint8", "bool"] if kind == "bytes" else ["int32", "int64"])
    return read_real(d, name)


# ---- models -------------------------------------------------------------------------------------


def sparse_is_alike(optimizer):
    """Keras on TensorFlow moves tables by sparse rows (README, differences), which only SGD takes as others."""
    clips = optimizer.clipnorm or optimizer.clipvalue or optimizer.global_clipnorm
    return JAX or type(optimizer) is optimizers.SGD and not (clips or optimizer.gradient_accumulation_steps)


class Model:
    """A model, and what it reads and gives, in Keras's order of both.

    inputs   (name, kind, shape of a row, dtype)
    outputs  (name, kind of target, shape of a row)
    named    whether its outputs are a dict, whose keys may be other names than those of layers
    photos   whether it has one input of images, and one output of their classes
    flat     outputs whose labels are rows of one dim: Keras compares each of [B] with each of [B, 1] (README, differences)
    """

    def __init__(self, d, tables, photos):
        self.d, self.photos, self.tables = d, photos, tables
        self.flat = set()
        self.inputs, self.outputs, self.steps = [], [], None
        plain = d.flip(0.3)  # a CSV file can have its rows
        kinds = ["real", "real", "steps", "image", "bytes", "whole", "image8"] + ["table", "text", "lookup", "bins"] * (1 + tables)
        if plain:
            kinds = ["real", "real", "bytes", "whole", "text", "lookup", "bins"]
        if photos:
            plain, kinds = False, ["image", "image8"]
        if JAX:
            kinds = [k for k in kinds if k not in ("text", "lookup")]
        vectors, ins = [], []
        for k in range(1 if photos else d.one([1, 1, 1, 2, 2, 3])):
            kind = d.one(kinds)
            kind = "real" if kind == "table" and not tables else kind
            t, v = self.input(kind, f"in_{k}" if d.flip() else d.one(["b", "left", "x", "z_input"]) + str(k))
            ins.append(t)
            vectors.append(v)
        x = L.Concatenate()(vectors) if len(vectors) > 1 else vectors[0]
        x = bend(d, x if x.dtype == "float32" else L.Dense(4, "tanh")(x))
        outs = []
        for k in range(1 if photos else d.one([1, 1, 1, 2, 2, 3])):
            outs.append(self.output(x, f"out_{k}" if d.flip() else d.one(["z", "a", "score", "y"]) + str(k), plain))
            if len(outs[-1].shape) == 2 and d.flip(0.3):  # an output that is read on
                x = d.one([lambda: L.Concatenate()([x, outs[-1]]), lambda: L.Dense(3, "tanh", **d.kernel())(outs[-1]), lambda: ops.multiply(x, outs[-1][:, :1])])()
        if len(ins) == len(outs) == 1 and d.flip(0.2):
            return self.one_behind_the_other(ins[0], outs[0])
        by_name = len(ins) > 1 and d.flip(0.2)
        self.named = len(outs) > 1 and d.flip(0.2)
        if self.named:
            keys = [d.one([o[0], f"{c}_key"]) for o, c in zip(self.outputs, "bac")]
            self.outputs = [(k, *o[1:]) for k, o in zip(keys, self.outputs)]
        self.model = keras.Model({t.name: t for t in ins} if by_name else graphs.one(ins),
                                 {o[0]: t for o, t in zip(self.outputs, outs)} if self.named else graphs.one(outs))  # fmt: skip
        # Keras sorts dicts
        if by_name:
            self.inputs.sort()
        if self.named:
            self.outputs.sort()

    def one_behind_the_other(self, i, o):
        """A model without branches as a Sequential one, one with them inside it."""
        self.named = False
        name = self.outputs[0][0]
        whole = keras.Model(i, o)
        chain = all(len(layer._inbound_nodes) == 1 and len(layer._inbound_nodes[0].input_tensors) == 1 for layer in whole.layers[1:])
        self.model = keras.Sequential(whole.layers if chain else [i, keras.Model(i, o, name=name)])

    def input(self, kind, name):
        d = self.d
        t, v, steps = read(d, kind, name, 3 if self.photos else None, self.tables)
        self.steps = self.steps if steps is None else steps
        if kind in ("bytes", "whole") and v.dtype != "float32":
            v = L.Dense(3)(v)
        if len(v.shape) == 2 and (v.dtype != "float32" or d.flip(0.3)):
            v = L.Dense(d.int(2, 4), d.smooth(), **d.kernel())(v)
        self.inputs.append((name, kind, tuple(t.shape[1:]), str(t.dtype)))
        return t, v

    def output(self, x, name, plain):
        d = self.d
        kind = "classes" if self.photos else d.one(["real", "real", "binary", "classes", "one_hot", "logits", "class_logits", "positive"])
        n = {"real": d.int(1, 3), "binary": d.int(1, 2), "classes": CLASSES, "one_hot": CLASSES, "logits": d.one([1, 3]),
             "class_logits": CLASSES, "positive": d.int(1, 2)}[kind]  # fmt: skip
        if plain and n != CLASSES:
            n = d.int(1, 2)
        activation = {"binary": "sigmoid", "classes": "softmax", "one_hot": "softmax", "positive": "softplus"}.get(kind)
        t = self.steps if self.steps is not None and not (plain or self.photos) and d.flip(0.5) else x
        if d.flip(0.2) and activation:
            t = L.Activation(activation, name=name)(L.Dense(n, **d.kernel())(t))
        elif d.flip(0.1):
            t = d.one([L.Identity(name=name), L.Reshape(t.shape[1:-1] + (n,), name=name), L.Dropout(0.0, name=name)])(L.Dense(n, activation, **d.kernel())(t))
        elif d.flip(0.1) and len(t.shape) == 2:
            m = t.shape[-1]
            begin = [vector_layer(d, m)] if d.flip() else []
            t = keras.Sequential([L.Input((m,)), *begin, L.Dense(n, activation, **d.kernel())], name=name)(t)
        else:
            t = L.Dense(n, activation, name=name, **d.kernel())(t)
        self.outputs.append((name, kind, tuple(t.shape[1:])))
        return t


# ---- losses and metrics -------------------------------------------------------------------------


def loss_of(d, kind, n):
    """A loss of an output of n numbers."""
    reduction = d.one(["sum_over_batch_size"] * 5 + ["sum", "mean_with_sample_weight"])
    r = {} if reduction == "sum_over_batch_size" else dict(reduction=reduction)
    smoothing = lambda: dict(label_smoothing=d.one([0, 0.1]))
    of_kind = {
        "real": [lambda: d.one(["mse", "mae", "huber", "log_cosh", "mean_squared_error"]), lambda: losses.MeanSquaredError(**r),
                 lambda: losses.MeanAbsoluteError(**r), lambda: losses.MeanAbsolutePercentageError(**r),
                 lambda: losses.Huber(**r), lambda: losses.CosineSimilarity(**r) if n > 1 else losses.LogCosh(**r)],
        "binary": [lambda: d.one(["binary_crossentropy", "mse"]), lambda: losses.BinaryCrossentropy(**smoothing(), **r),
                   lambda: losses.BinaryFocalCrossentropy(apply_class_balancing=d.flip(), **r)],
        "logits": [lambda: losses.BinaryCrossentropy(from_logits=True, **r), lambda: "hinge", lambda: "squared_hinge",
                   lambda: losses.BinaryFocalCrossentropy(from_logits=True, **r)],
        "one_hot": [lambda: d.one(["categorical_crossentropy", "kl_divergence", "mse"]),
                    lambda: losses.CategoricalCrossentropy(**smoothing(), **r), lambda: losses.CategoricalFocalCrossentropy(**r),
                    lambda: losses.Dice(), lambda: losses.Tversky(d.real(0.2, 0.8), d.real(0.2, 0.8)),
                    lambda: losses.CategoricalHinge(**r), lambda: losses.KLDivergence(**r),
                    lambda: losses.CategoricalFocalCrossentropy(alpha=[0.2, 0.5, 0.3], gamma=d.real(0.5, 3), **smoothing(), **r),
                    lambda: losses.MeanSquaredError(**r), lambda: losses.Dice(axis=0)],
        "classes": [lambda: losses.CategoricalGeneralizedCrossEntropy(d.real(0.1, 0.9), **r), lambda: losses.SparseCategoricalCrossentropy(ignore_class=1, **r),
                    lambda: "sparse_categorical_crossentropy", lambda: losses.SparseCategoricalCrossentropy(**r)],
        "class_logits": [lambda: losses.SparseCategoricalCrossentropy(from_logits=True, **r),
                         lambda: losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=d.int(0, CLASSES - 1), **r)],
        "positive": [lambda: losses.Poisson(**r), lambda: d.one(["poisson", "msle", "log_cosh"]), lambda: losses.MeanSquaredLogarithmicError(**r)],
    }  # fmt: skip
    return d.one(of_kind[kind])()


def metric_of(d, kind, n, rank):
    """A metric of an output of n numbers, whose rows have that rank."""
    t = d.one([None, 0.3, [0.2, 0.5, 0.7]])
    one = d.one([None, 0.3])  # of several Keras's history has the live variable, which a validation changes
    name = {"name": f"m{d.int(0, 99)}"} if d.flip(0.3) else {}
    smoothing = lambda: dict(label_smoothing=d.one([0, 0.1]))
    of_kind = {
        "binary": [lambda: "accuracy", lambda: M.BinaryAccuracy(threshold=d.real(0.2, 0.8), **name),
                   lambda: M.Precision(thresholds=t, **name), lambda: M.Recall(thresholds=t, **name),
                   lambda: M.AUC(d.one([200, 11, 50]), curve=d.one(["ROC", "PR"]),
                                 summation_method=d.one(["interpolation", "minoring", "majoring"]), **name),
                   lambda: M.TruePositives(one, **name), lambda: M.FalseNegatives(one, **name), lambda: M.TrueNegatives(one),
                   lambda: M.FalsePositives(one), lambda: M.SensitivityAtSpecificity(d.real(0.2, 0.8), **name),
                   lambda: M.PrecisionAtRecall(d.real(0.2, 0.8), num_thresholds=50), lambda: M.BinaryCrossentropy(**smoothing(), **name),
                   lambda: "mse", lambda: M.BinaryIoU([d.int(0, 1)], d.real(0.2, 0.8)), lambda: M.SpecificityAtSensitivity(d.real(0.2, 0.8)),
                   lambda: M.RecallAtPrecision(d.real(0.2, 0.8)), lambda: M.AUC(thresholds=[0.2, 0.45, 0.7]), lambda: M.BinaryCrossentropy()],
        "real": [lambda: "mae", lambda: "mse", lambda: M.RootMeanSquaredError(**name), lambda: M.LogCoshError(**name),
                 lambda: M.MeanAbsolutePercentageError(**name), lambda: "msle", lambda: M.MeanMetricWrapper(keras.losses.huber, name="w", delta=0.5),
                 lambda: M.MeanSquaredLogarithmicError(**name), lambda: M.MeanSquaredError(**name)],
        "one_hot": [lambda: "accuracy", lambda: "acc", lambda: M.CategoricalAccuracy(**name),
                    lambda: M.CategoricalCrossentropy(**smoothing(), **name), lambda: M.TopKCategoricalAccuracy(2, **name),
                    lambda: M.KLDivergence(**name), lambda: M.AUC(50, **name),
                    lambda: M.Precision(top_k=d.one([None, 1, 2]), class_id=d.one([None, 1]), **name), lambda: M.Recall(class_id=2, **name),
                    lambda: M.OneHotIoU(CLASSES, [0, 2], **name), lambda: M.OneHotMeanIoU(CLASSES, **name),
                    lambda: M.CategoricalHinge(**name), lambda: M.BinaryAccuracy(**name), lambda: M.FalsePositives(one)],
        "classes": [lambda: "accuracy", lambda: M.SparseCategoricalAccuracy(**name), lambda: M.SparseTopKCategoricalAccuracy(2, **name),
                    lambda: M.SparseCategoricalCrossentropy(**name), lambda: M.MeanIoU(CLASSES, sparse_y_pred=False, **name),
                    lambda: M.IoU(CLASSES, [1], sparse_y_pred=False), lambda: "sparse_categorical_crossentropy",
                    lambda: M.MeanIoU(CLASSES, sparse_y_pred=False, ignore_class=1), lambda: M.SparseCategoricalCrossentropy(ignore_class=0)],
        "logits": [lambda: d.one(["hinge", "Hinge"]), lambda: M.SquaredHinge(**name), lambda: M.BinaryCrossentropy(from_logits=True, **name),
                   lambda: M.BinaryAccuracy(threshold=0.0, **name), lambda: "mse"],
        "class_logits": [lambda: "accuracy", lambda: M.SparseCategoricalCrossentropy(from_logits=True, **name),
                         lambda: M.SparseCategoricalAccuracy(**name)],
        "positive": [lambda: M.Poisson(**name), lambda: "poisson", lambda: M.MeanSquaredLogarithmicError(**name), lambda: "mae",
                     lambda: M.RootMeanSquaredError(**name)],
    }[kind]  # fmt: skip
    if kind == "binary" and rank == 1 and n > 1:
        of_kind += [lambda: M.F1Score(average=d.one([None, "micro", "macro", "weighted"]), threshold=d.one([0.5, 0.3]), **name),
                    lambda: M.FBetaScore(beta=d.real(0.5, 2), average=d.one([None, "micro"]), threshold=0.5, **name),
                    lambda: M.AUC(11, multi_label=True, num_labels=n)]  # fmt: skip
    if kind == "real" and rank == 1:
        of_kind += [lambda: M.R2Score(d.one(["uniform_average", "variance_weighted_average", None]), **name), lambda: M.ConcordanceCorrelation(),
                    lambda: M.PearsonCorrelation() if n > 2 else M.MeanAbsoluteError()]  # that of two numbers is 1, -1 or, where they are equal, none
    if kind == "real" and n > 1:
        of_kind += [lambda: M.CosineSimilarity(**name), lambda: "cosine_similarity"]
    if kind == "one_hot" and rank == 1:
        of_kind += [lambda: M.F1Score(average=d.one([None, "macro", "weighted"]), **name), lambda: M.FBetaScore(average="micro", beta=0.5)]
    return d.one(of_kind)()


def compile_model(d, m, optimizer):
    """Compiles it; arguments come in all forms that Keras takes: lists, dicts, a single one. Returns them, to be shown."""
    names = [o[0] for o in m.outputs]

    def spread(values):
        if len(names) == 1:
            return values[0] if d.flip(0.7) else {names[0]: values[0]}
        return values if d.flip() and not m.named else dict(zip(names, values))

    def metric_lists():
        of_all = spread([[metric_of(d, k, s[-1], len(s)) for _ in range(d.int(0, 2))] for _, k, s in m.outputs])
        return {k: v for k, v in of_all.items() if v} if isinstance(of_all, dict) and d.flip() else of_all

    a = dict(loss=spread([loss_of(d, k, s[-1]) for _, k, s in m.outputs]))
    of_each = [a["loss"]] if not isinstance(a["loss"], (list, dict)) else a["loss"] if isinstance(a["loss"], list) else [a["loss"][n] for n in names]
    m.flat.update(n for n, loss in zip(names, of_each) if isinstance(loss, losses.CategoricalGeneralizedCrossEntropy))
    if isinstance(a["loss"], list) and d.flip(0.15):
        a["loss"][d.int(0, len(names) - 1)] = None  # Keras takes no dict without a loss for each output
    if len(names) > 1 and not m.named and d.flip(0.1) and all(k == "real" for _, k, _ in m.outputs):
        a["loss"] = d.one(["mse", "mae"])  # one for all
    if d.flip(0.7):
        a["metrics"] = metric_lists()
    if d.flip(0.4):
        a["weighted_metrics"] = metric_lists()
    if len(names) > 1 and d.flip(0.6):
        weights = [d.real(0.1, 2) for _ in names]
        a["loss_weights"] = dict(zip(names, weights))
        # Keras gives those of a dict to a list of losses in the order of the sorted names (README, differences)
        if isinstance(a["loss"], list) and (d.flip() or names != sorted(names)):
            a["loss_weights"] = weights
    elif len(names) == 1 and d.flip(0.15):
        a["loss_weights"] = [d.real(0.1, 2)]
    m.model.compile(optimizer, jit_compile=False, **a)
    return a
