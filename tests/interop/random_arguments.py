#!/usr/bin/env python3
"""Layers whose arguments are drawn by chance, by Keel and by the real Keras: outputs, and one step.

    random_arguments.py path/to/keel [NAME...] [--from NAME] [--seed 1] [--sets 5] [--policy mixed_bfloat16] [--show]

A set is a small model around one layer of keras.layers: a Dense layer of as many units on each input
of real numbers, then the layer, with arguments of every kind that its constructor takes. Keras saves
the model; both predict, and train a step with SGD of rate 1, as in random_graphs.py, which says how
they are compared. Layers that draw numbers while they train are not here: golden/make_augment.py
gives them draws that are known. Layers that look something up are only compared in what they give.
Long because the arguments of every layer are drawn here. --show prints each set. A failing one is printed with its arguments. The last line is 'N passed, N
failed'.
"""
import argparse
import os
import sys
import tempfile
import warnings

import random_graphs as graphs  # sets up Keras; draws nothing when imported
import keras
import numpy as np
import tensorflow as tf
from keras import constraints as C
from keras import initializers as I
from keras import layers as L
from keras import regularizers as R

ACTIVATIONS = ["relu", "tanh", "sigmoid", "elu", "gelu", "softplus", "silu", "mish", "hard_tanh", "linear", None,
               "softmax", "celu", "hard_sigmoid", "leaky_relu", "log_sigmoid", "relu6", "selu", "softsign",
               "squareplus", "tanh_shrink", "soft_shrink", "sparse_plus", "sparse_sigmoid"]  # fmt: skip
WORDS = ["a", "b", "c", "", "zz", "ü", "日本語", "a b", "A, c! b zz", "a longer text than thirty-two bytes are"]
FIRST, LAST = "channels_first", "channels_last"
# GROUPED: TensorFlow 2.21 on CPUs gives other numbers in each run for one-dimensional convolutions of
# groups with the channels first: Conv1D(6, 2, groups=3) of (3, 7), DepthwiseConv1D(1) of (2, 6). So
# they are drawn with the channels last; tests/golden has channels first by other layouts of Keras.
# BIAS: it adds the bias of a convolution with the channels first along the last dim, if that has as many
# places as there are filters: Conv1D(2, 2, strides=3) of (1, 6). JAX adds it to the channels, as Keel does.


class Draw:
    def __init__(self, seed):
        self.chance = np.random.default_rng(seed)

    def int(self, a, b):
        return int(self.chance.integers(a, b + 1))

    def ints(self, n, a, b):
        return tuple(self.int(a, b) for _ in range(n))

    def real(self, a, b):
        return round(float(self.chance.uniform(a, b)), 3)

    def one(self, values):
        return values[self.int(0, len(values) - 1)]

    def flip(self, p=0.5):
        return bool(self.chance.random() < p)

    def some(self, p, value, other=None):
        return value() if self.flip(p) else other

    def shape(self, ranks, least=1, most=6):
        return self.ints(self.one(ranks), least, most)

    def axes(self, rank):
        """One dim of a row of that rank, or several."""
        dims = [i if self.flip() else i - rank - 1 for i in range(1, rank + 1)]
        if self.flip(0.6):
            return self.one(dims)
        return sorted({d % (rank + 1): d for d in (self.one(dims) for _ in range(self.int(1, rank)))}.values(),
                      key=lambda d: d % (rank + 1))  # fmt: skip

    def regularizer(self):
        return self.one([None, None, "l2", R.L1(self.real(0, 0.1)), R.L1L2(self.real(0, 0.1), self.real(0, 0.1))])

    def activity_regularizer(self):
        """None in a mixed policy, where Keras does not add terms of the loss that differ in type."""
        r = self.regularizer()
        return r if graphs.POLICY == "float32" else None

    def constraint(self):
        low = self.real(0, 1)
        return self.one([None, None, None, "non_neg", C.MaxNorm(self.real(0.2, 2)), C.UnitNorm(axis=0),
                         C.MinMaxNorm(low, low + self.real(0.1, 1), self.real(0, 1))])  # fmt: skip

    def weights(self, *names):
        """Initializer, regularizer and constraint of each."""
        a = {}
        for n in names:
            a[n + "_initializer"] = I.RandomNormal(0.1, 0.5, seed=self.int(0, 99))
            a[n + "_regularizer"] = self.regularizer()
            a[n + "_constraint"] = self.constraint()
        return a

    def activation(self):
        return self.one(ACTIVATIONS)

    def padding(self):
        return self.one(["valid", "same"])

    def image(self, rank, channels, least=3, most=8, first=0.25):
        """(data_format, shape of a row); first: how often channels come first"""
        places = self.ints(rank, least, most)
        if self.flip(first):
            return FIRST, (channels, *places)
        return LAST, (*places, channels)


def out_of(value, rank):
    """As many numbers as an argument of that rank may have."""
    return value[0] if len(set(value)) == 1 else value if rank > 1 else value[0]


def steps_apart(d, rank, equal=False):
    """strides or dilation_rate; Keras refuses both at once."""
    a = d.ints(rank, 1, 3)
    a = (a[0],) * rank if equal else a
    return {d.one(["strides", "dilation_rate"]): out_of(a, rank)} if d.flip(0.7) else {}


def without_bias(name, a, shape):
    """The arguments, without a bias that TensorFlow would add to another dim: see BIAS."""
    made = getattr(L, name)(**a).compute_output_shape((None, *shape))
    return {**a, "use_bias": a["use_bias"] and not (a["data_format"] == FIRST and made[1] == made[-1])}


def conv(d, rank, transposed=False):
    groups = 1 if transposed else d.one([1, 1, 1, 2, 3])
    kind, shape = d.image(rank, groups * d.int(1, 2), 6, 8, 0 if rank == 1 and groups > 1 else 0.25)  # see GROUPED
    a = dict(filters=groups * d.int(1, 3), kernel_size=out_of(d.ints(rank, 1, 3), rank), padding=d.padding(),
             data_format=kind, activation=d.activation(), use_bias=d.flip(0.7),
             activity_regularizer=d.activity_regularizer(), **steps_apart(d, rank), **d.weights("kernel", "bias"))  # fmt: skip
    if transposed:
        if "strides" in a and d.flip(0.4):
            s = a["strides"] if isinstance(a["strides"], tuple) else (a["strides"],) * rank
            a["output_padding"] = out_of(tuple(d.int(0, n - 1) for n in s), rank)
    else:
        a["groups"] = groups
        if rank == 1 and kind == LAST and d.flip(0.3):
            a["padding"] = "causal"
    return without_bias(f"Conv{rank}D{'Transpose' * transposed}", a, shape), [shape]


def depthwise(d, rank, separable=False):
    kind, shape = d.image(rank, d.int(1, 3), 6, 8, 0 if rank == 1 else 0.25)  # see GROUPED
    a = dict(kernel_size=out_of(d.ints(rank, 1, 3), rank), padding=d.padding(), data_format=kind,
             depth_multiplier=d.int(1, 3), activation=d.activation(), use_bias=d.flip(0.7),
             activity_regularizer=d.activity_regularizer(), **steps_apart(d, rank, True), **d.weights("depthwise", "bias"))  # fmt: skip
    if separable:
        a.update(filters=d.int(1, 4), **d.weights("pointwise"))
    return without_bias(f"{'Separable' if separable else 'Depthwise'}Conv{rank}D", a, shape), [shape]


def gates(d, **more):
    return dict(units=d.int(1, 4), activation=d.one(["tanh", "relu", "sigmoid", "softsign", "linear"]),
                use_bias=d.flip(0.8), **d.weights("kernel", "recurrent", "bias"), **more)  # fmt: skip


def over_time(d):
    return dict(return_sequences=d.flip(), return_state=d.flip(0.3), go_backwards=d.flip(0.3), unroll=d.flip(0.3),
                activity_regularizer=d.activity_regularizer())  # fmt: skip


def hard(d):
    return d.one(["sigmoid", "hard_sigmoid", "tanh", "relu"])


def lstm(d):
    return gates(d, recurrent_activation=hard(d), unit_forget_bias=d.flip())


def gru(d):
    return gates(d, recurrent_activation=hard(d), reset_after=d.flip())


def recurrent(make):
    return lambda d: ({**make(d), **over_time(d)}, [(d.int(2, 5), d.int(1, 3))])


def cell_of(d):
    return d.one([lambda: L.LSTMCell(**lstm(d)), lambda: L.GRUCell(**gru(d)), lambda: L.SimpleRNNCell(**gates(d))])()


def rnn(d):
    cell = [cell_of(d) for _ in range(d.int(1, 3))] if d.flip() else cell_of(d)
    return dict(cell=cell, zero_output_for_mask=d.flip(0.3), **over_time(d)), [(d.int(2, 5), d.int(1, 3))]


def both_ways(d):
    make, kind = d.one([(lstm, L.LSTM), (gru, L.GRU), (gates, L.SimpleRNN)])
    how = dict(return_sequences=d.flip(), go_backwards=d.flip(0.2))
    a = dict(layer=kind(**make(d), **how), merge_mode=d.one(["concat", "sum", "mul", "ave"]))
    if d.flip(0.3):
        back = make(d)
        back["units"] = a["layer"].units
        a["backward_layer"] = kind(**back, return_sequences=how["return_sequences"],
                                   go_backwards=not how["go_backwards"])  # fmt: skip
    return a, [(d.int(2, 5), d.int(1, 3))]


def each_step(d):
    return d.one([lambda: (dict(layer=L.Dense(d.int(1, 4), d.activation())), [d.shape([2, 3])]),
                  lambda: (dict(layer=L.Conv1D(d.int(1, 3), 2, padding=d.padding())), [d.shape([3], 2, 5)]),
                  lambda: (dict(layer=L.LSTM(d.int(1, 3), return_sequences=d.flip())), [d.shape([3], 2, 4)]),
                  lambda: (dict(layer=L.Flatten()), [d.shape([3])])])()  # fmt: skip


def conv_lstm(d, rank):
    kind, shape = d.image(rank, d.int(1, 2), 3, 5)
    a = dict(filters=d.int(1, 3), kernel_size=out_of(d.ints(rank, 1, 2), rank), padding=d.padding(), data_format=kind,
             activation=d.one(["tanh", "relu"]), recurrent_activation=d.one(["sigmoid", "hard_sigmoid"]),
             use_bias=d.flip(0.8), unit_forget_bias=d.flip(), return_sequences=d.flip(), return_state=d.flip(0.3),
             go_backwards=d.flip(0.3), activity_regularizer=d.activity_regularizer(),
             **d.weights("kernel", "recurrent", "bias"))  # fmt: skip
    if d.flip(0.3):
        a["strides"] = 2
    return a, [(d.int(2, 3), *shape)]


def pool(d, rank):
    kind, shape = d.image(rank, d.int(1, 3), 3, 7)
    return dict(pool_size=out_of(d.ints(rank, 1, 3), rank), strides=d.some(0.6, lambda: out_of(d.ints(rank, 1, 3), rank)),
                padding=d.padding(), data_format=kind), [shape]  # fmt: skip


def whole_pool(d, rank):
    kind, shape = d.image(rank, d.int(1, 3))
    return dict(data_format=kind, keepdims=d.flip()), [shape]


def adaptive(d, rank, least):
    """least: of places; a maximum over all of them ends TensorFlow by a division by zero."""
    kind, shape = d.image(rank, d.int(1, 3), 4, 7)
    return dict(output_size=out_of(d.ints(rank, least, 4), rank), data_format=kind), [shape]


def around(d, rank, least, cut):
    kind, shape = d.image(rank, d.int(1, 3), least, least + 3)
    ways = [d.int(0, 1), d.ints(rank, 0, 1) if rank > 1 else d.ints(2, 0, 2),
            tuple(d.ints(2, 0, 2) for _ in range(rank)) if rank > 1 else d.ints(2, 0, 2)]  # fmt: skip
    a = {"cropping" if cut else "padding": d.one(ways)}
    if rank > 1 or not cut:
        a["data_format"] = kind
    return a, [shape if "data_format" in a else d.shape([2], least, 7)]


def upsampling(d, rank):
    kind, shape = d.image(rank, d.int(1, 3), 2, 4)
    if rank == 1:
        return dict(size=d.int(1, 3)), [d.shape([2])]
    a = dict(size=out_of(d.ints(rank, 1, 3), rank), data_format=kind)
    if rank == 2:
        a["interpolation"] = d.one(["nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"])
    return a, [shape]


def merge(d):
    return {}, [d.shape([1, 2, 3])] * d.int(2, 4)


def broadcast(d):
    """Without dims of as many places as the batch has rows: TensorFlow's add takes [rows, 1, 1] for a bias of those."""
    shape = tuple(n + (n == graphs.ROWS) for n in d.shape([2, 3]))
    return {}, [shape] + [tuple(n if d.flip(0.6) else 1 for n in shape) for _ in range(d.int(1, 2))]


def concatenate(d):
    shape = d.shape([1, 2, 3])
    axis = d.int(1, len(shape))
    shapes = [tuple(d.int(1, 4) if i == axis - 1 else n for i, n in enumerate(shape)) for _ in range(d.int(2, 4))]
    return dict(axis=axis if d.flip() else axis - len(shape) - 1), shapes


def dot(d):
    shape = d.shape([1, 2, 3])
    other = d.shape([1, 2, 3])
    i, j = d.int(1, len(shape)), d.int(1, len(other))
    other = tuple(shape[i - 1] if k == j - 1 else n for k, n in enumerate(other))
    return dict(axes=(i, j), normalize=d.flip(0.3)), [shape, other]


def attention(d):
    n, t, s = d.int(1, 4), d.int(2, 4), d.int(2, 4)
    a = dict(use_scale=d.flip(), score_mode=d.one(["dot", "concat"]))
    return a, [(t, n), (s, n), (s, n)][: d.int(2, 3)], dict(use_causal_mask=d.flip(0.4), return_attention_scores=d.flip(0.3))


def additive(d):
    n, t, s = d.int(1, 4), d.int(2, 4), d.int(2, 4)
    return dict(use_scale=d.flip()), [(t, n), (s, n), (s, n)][: d.int(2, 3)], dict(use_causal_mask=d.flip(0.4))


def heads(d):
    t, s = d.int(2, 4), d.int(2, 4)
    # of heads of one number TensorFlow's add takes the biases [heads, 1] for those of steps, if there are as many
    a = dict(num_heads=d.int(1, 3), key_dim=d.int(2, 4), value_dim=d.some(0.5, lambda: d.int(2, 4)),
             use_bias=d.flip(0.7), output_shape=d.some(0.4, lambda: d.one([d.int(1, 4), (2, d.int(1, 3))])),
             use_gate=d.flip(0.3), activity_regularizer=d.activity_regularizer(), **d.weights("kernel", "bias"))  # fmt: skip
    a["kernel_constraint"] = a["bias_constraint"] = None
    if d.flip(0.25):
        more = d.int(2, 3)
        a["attention_axes"] = d.one([1, 2, (1, 2)])
        t = s = d.int(2, 3)
        return a, [(t, more, d.int(1, 3)), (s, more, d.int(1, 3))], {}
    return a, [(t, d.int(1, 4)), (s, d.int(1, 4)), (s, d.int(1, 4))][: d.int(2, 3)], dict(use_causal_mask=d.flip(0.3))


def grouped(d):
    few = d.int(1, 2)
    t, s = d.int(2, 4), d.int(2, 4)
    a = dict(head_dim=d.int(2, 4), num_query_heads=few * d.int(1, 3), num_key_value_heads=few, use_bias=d.flip(0.7),
             use_gate=d.flip(0.3), activity_regularizer=d.activity_regularizer(), **d.weights("kernel", "bias"))  # fmt: skip
    a["kernel_constraint"] = a["bias_constraint"] = None
    n = d.int(1, 4)
    return a, [(t, n), (s, n)], dict(use_causal_mask=d.flip(0.3))


def dense(d):
    return dict(units=d.int(1, 5), activation=d.activation(), use_bias=d.flip(0.7), activity_regularizer=d.activity_regularizer(),
                **d.weights("kernel", "bias")), [d.shape([1, 2, 3])]  # fmt: skip


def einsum(d):
    n = d.int(1, 4)
    how = d.one([("abc,cd->abd", (None, n), "d"), ("abc,cd->adb", (n, None), "d"), ("abc,bcd->ad", n, "d"),
                 ("...c,cd->...d", n, "d"), ("abc,cde->abde", (None, n, 2), "de"), ("abc,cd->abd", (None, n), None),
                 ("abc,cb->ab", None, "b"), ("abc,bcd->abd", (None, n), "bd")])  # fmt: skip
    shape = d.shape([2]) if "..." not in how[0] else d.shape([1, 2, 3])
    if how[0] == "abc,cd->adb" and shape[0] == n:  # TensorFlow's add takes a bias of [n, 1] for one of [n] there
        shape = (n + 1, shape[1])
    if isinstance(how[1], tuple):  # None would be an open dim of the output
        how = (how[0], tuple(shape[0] if k is None else k for k in how[1]), how[2])
    if how[0] == "abc,cb->ab":
        how = (how[0], shape[0], how[2])
    return dict(equation=how[0], output_shape=how[1], bias_axes=how[2], activation=d.activation(),
                activity_regularizer=d.activity_regularizer(), **d.weights("kernel", "bias")), [shape]  # fmt: skip


def embedding(d, **more):
    return dict(input_dim=d.int(5, 8), output_dim=d.int(1, 4), mask_zero=d.flip(), **d.weights("embeddings"), **more), [
        d.shape([1, 2])
    ]


def reversible(d):
    return embedding(d, tie_weights=d.flip(), logit_soft_cap=d.some(0.4, lambda: d.real(0.5, 3)))


def batch_norm(d):
    shape = d.shape([1, 2, 3], 2)
    a = dict(axis=d.int(1, len(shape)) if d.flip() else -d.int(1, len(shape)), momentum=d.real(0.5, 1), epsilon=d.real(0.01, 1),
             center=d.flip(0.7), scale=d.flip(0.7), **d.weights("beta", "gamma"))  # fmt: skip
    a["moving_mean_initializer"] = I.RandomNormal(0, 0.5, seed=1)
    a["moving_variance_initializer"] = I.RandomUniform(0.5, 2, seed=1)
    return a, [shape]


def layer_norm(d):
    shape = d.shape([1, 2, 3], 2)
    axis = d.axes(len(shape))
    if isinstance(axis, list):  # Keras sorts them before they are counted: its weights would be in the wrong order
        axis = sorted(i % (len(shape) + 1) for i in axis)
    return dict(axis=axis, epsilon=d.real(0.01, 1), center=d.flip(0.7), scale=d.flip(0.7),
                **d.weights("beta", "gamma")), [shape]  # fmt: skip


def group_norm(d):
    n = d.int(1, 3)
    shape = [*d.ints(d.int(0, 2), 2, 4), n * d.int(1, 3)]
    axis = d.int(0, len(shape) - 1)
    shape[axis], shape[-1] = shape[-1], shape[axis]
    return dict(groups=d.one([n, 1, -1]), axis=axis + 1 if d.flip() else axis - len(shape), epsilon=d.real(0.01, 1),
                center=d.flip(0.7), scale=d.flip(0.7), **d.weights("beta", "gamma")), [tuple(shape)]  # fmt: skip


def over_axes(d, **more):
    shape = d.shape([1, 2, 3], 2)
    return dict(axis=d.axes(len(shape)), **more), [shape]


def rms_norm(d):
    """Keras multiplies by the scale along the last dims, whatever the axis is: so it is those."""
    shape = d.shape([1, 2, 3], 2)
    last = d.int(1, len(shape))
    axis = range(-last, 0) if d.flip() else range(len(shape) + 1 - last, len(shape) + 1)
    return dict(axis=axis[0] if last == 1 and d.flip() else list(axis), epsilon=d.real(0.01, 1)), [shape]


def spectral(d):
    return d.one([lambda: (dict(layer=L.Dense(d.int(1, 4)), power_iterations=d.int(1, 3)), [d.shape([1, 2], 2)]),
                  lambda: (dict(layer=L.Conv1D(2, 2), power_iterations=d.int(1, 2)), [d.shape([2], 2)])])()  # fmt: skip


def normalization(d):
    shape = d.shape([1, 2, 3])
    kind = d.one([-1, None])
    n = shape[-1]
    mean, variance = ([d.real(-1, 1) for _ in range(n)], [d.real(0.1, 2) for _ in range(n)])
    if kind is None or d.flip(0.3):
        mean, variance = mean[0], variance[0]
    return dict(axis=kind, mean=mean, variance=variance, invert=d.flip(0.3)), [shape]


def resizing(d):
    """Without the interpolation `area`, of which TensorFlow has no gradient."""
    kind, shape = d.image(2, d.int(1, 3), 2, 7)
    how = d.one([{}, {}, dict(crop_to_aspect_ratio=True), dict(pad_to_aspect_ratio=True, fill_mode="constant",
                                                               fill_value=d.real(-1, 1))])  # fmt: skip
    return dict(height=d.int(1, 9), width=d.int(1, 9), interpolation=d.one(["nearest", "bilinear", "bicubic", "lanczos3",
                "lanczos5"]), antialias=d.flip(0.3), data_format=kind, **how), [shape]  # fmt: skip


def center_crop(d):
    kind, shape = d.image(2, d.int(1, 3), 2, 7)
    return dict(height=d.int(1, 9), width=d.int(1, 9), data_format=kind), [shape]


def reshape(d):
    shape = d.shape([1, 2, 3])
    n = int(np.prod(shape))
    a = d.one([k for k in range(1, n + 1) if n % k == 0])
    return dict(target_shape=d.one([(n,), (-1,), (a, n // a), (a, -1), (-1, n // a), (1, a, n // a)])), [shape]


def permute(d):
    shape = d.shape([1, 2, 3, 4])
    return dict(dims=tuple(int(i) + 1 for i in d.chance.permutation(len(shape)))), [shape]


def prelu(d):
    shape = d.shape([1, 2, 3])
    return dict(shared_axes=d.some(0.5, lambda: sorted(set(d.ints(2, 1, len(shape))))), **d.weights("alpha")), [shape]


def window(d, n, names):
    given = [d.real(0.1, 1) for _ in range(n)]
    return d.one([*names, None, given, tuple(given)])


def stft(d):
    n = d.int(2, 5)
    kind, shape = d.image(1, d.int(1, 2), n + 2, 14)
    return dict(mode=d.one(["log", "magnitude", "psd", "real", "imag", "stft"]), frame_length=n,
                frame_step=d.some(0.6, lambda: d.int(1, n)), fft_length=d.some(0.4, lambda: 8),
                window=window(d, n, ["hann", "hamming", "blackman", "boxcar", "cosine", "triang"]), periodic=d.flip(),
                scaling=d.one(["density", "spectrum", None]), padding=d.padding(), expand_dims=d.flip(),
                data_format=kind), [shape]  # fmt: skip


def mel(d):
    n, step = 2 * d.int(2, 4), d.int(2, 4)  # with a stride of 1 Keras always says a frame more than it computes
    samples = d.int(n + 1, 20)
    samples += (samples + 1) % step == 0  # or Keras says another number of frames than it computes
    length = d.some(0.5, lambda: d.int(2, n))
    return dict(fft_length=n, sequence_stride=step, sequence_length=length,
                window=window(d, length or n, ["hann", "hamming"]), sampling_rate=d.int(50, 200),
                num_mel_bins=d.int(1, 4), min_freq=d.real(0.5, 10), max_freq=d.some(0.5, lambda: d.real(15, 25)),
                power_to_db=d.flip(), top_db=500.0, mag_exp=d.one([1.0, 2.0, 1.5]), min_power=d.one([0.01, 0.1]),
                ref_power=d.real(0.5, 2)), [(samples,)]  # fmt: skip


def modes(d, *names):
    return d.one(list(names))


def category(d):
    a = dict(num_tokens=6, output_mode=modes(d, "multi_hot", "count", "one_hot"), sparse=False)
    return a, [(1,) if a["output_mode"] == "one_hot" else (d.int(1, 4),)]


def discretization(d):
    bins = sorted({d.real(-1, 1) for _ in range(d.int(1, 5))})
    mode = modes(d, "int", "multi_hot", "count", "one_hot")
    return dict(bin_boundaries=bins, output_mode=mode), [(1,) if mode == "one_hot" else (d.int(1, 4),)]


def hashing(d):
    mode = modes(d, "int", "multi_hot", "count", "one_hot")
    return dict(num_bins=d.int(2, 9), mask_value=d.some(0.4, lambda: d.int(0, 5)),
                salt=d.some(0.4, lambda: d.one([7, [5, 11]])), output_mode=mode), [(1,) if mode == "one_hot" else (d.int(1, 4),)]  # fmt: skip


def crossing(d):
    return dict(num_bins=d.int(2, 9), output_mode=modes(d, "int", "one_hot")), [(1,), (1,)]


def lookup(d, words):
    v = [int(i) for i in d.chance.permutation(6)[: d.int(2, 5)]]
    mode = modes(d, "int", "multi_hot", "count", "one_hot", "tf_idf")
    a = dict(vocabulary=v, num_oov_indices=d.int(0 if mode == "int" else 1, 3), output_mode=mode)
    a["num_oov_indices"] = max(a["num_oov_indices"], 1)
    if words:
        a["vocabulary"] = [WORDS[i + (3 <= i)] for i in v]
        a["mask_token"] = d.one([None, ""])
        if d.flip(0.3):
            a["oov_token"] = "[ANY]"
    elif d.flip(0.4):
        a["vocabulary"] = [i + 1 for i in v]
        a["mask_token"] = 0
    if mode == "tf_idf":
        a["idf_weights"] = [d.real(0.1, 2) for _ in v]
    elif mode != "int" and d.flip(0.4):
        a.update(max_tokens=len(v) + a["num_oov_indices"] + 2, pad_to_max_tokens=True)
    return a, [(1,) if mode == "one_hot" else (d.int(1, 4),)]


def vectorization(d):
    mode = modes(d, "int", "multi_hot", "count", "tf_idf")
    a = dict(vocabulary=["a", "b", "a b", "zz", "c"][: d.int(2, 5)], output_mode=mode, ngrams=d.one([None, 2, (1, 2)]),
             standardize=d.one(["lower_and_strip_punctuation", "lower", "strip_punctuation", None]),
             split=d.one(["whitespace", "character", None]))  # fmt: skip
    if mode == "int":
        a["output_sequence_length"] = d.int(1, 5)
    if mode == "tf_idf":
        a["idf_weights"] = [d.real(0.1, 2) for _ in a["vocabulary"]]
    return a, [(1,)]


def ranks(make, *more):
    return [lambda d, r=r: make(d, r, *more) for r in (1, 2, 3)]


def plain(*rank, **arguments):
    """Layers with a few arguments: functions of the draw."""
    return lambda d: ({k: f(d) for k, f in arguments.items()}, [d.shape(list(rank))])


def signed(a, b):
    return lambda d: d.real(a, b)


def axis(rank):
    return lambda d: (lambda s: (dict(axis=d.axes(len(s))), [s]))(d.shape(rank))


LAYERS = {
    "Dense": dense, "EinsumDense": einsum, "Embedding": embedding, "ReversibleEmbedding": reversible,
    **{f"Conv{r}D": (lambda d, r=r: conv(d, r)) for r in (1, 2, 3)},
    **{f"Conv{r}DTranspose": (lambda d, r=r: conv(d, r, True)) for r in (1, 2, 3)},
    **{f"DepthwiseConv{r}D": (lambda d, r=r: depthwise(d, r)) for r in (1, 2)},
    **{f"SeparableConv{r}D": (lambda d, r=r: depthwise(d, r, True)) for r in (1, 2)},
    "SimpleRNN": recurrent(gates), "LSTM": recurrent(lstm), "GRU": recurrent(gru), "RNN": rnn,
    "Bidirectional": both_ways, "TimeDistributed": each_step,
    **{f"ConvLSTM{r}D": (lambda d, r=r: conv_lstm(d, r)) for r in (1, 2, 3)},
    **{f"{k}Pooling{r}D": (lambda d, r=r: pool(d, r)) for k in ("Max", "Average") for r in (1, 2, 3)},
    **{f"Global{k}Pooling{r}D": (lambda d, r=r: whole_pool(d, r)) for k in ("Max", "Average") for r in (1, 2, 3)},
    **{f"Adaptive{k}Pooling{r}D": (lambda d, r=r, n=n: adaptive(d, r, n)) for k, n in (("Max", 2), ("Average", 1)) for r in (1, 2, 3)},
    **{f"Cropping{r}D": (lambda d, r=r: around(d, r, 5, True)) for r in (1, 2, 3)},
    **{f"ZeroPadding{r}D": (lambda d, r=r: around(d, r, 1, False)) for r in (1, 2, 3)},
    **{f"UpSampling{r}D": (lambda d, r=r: upsampling(d, r)) for r in (1, 2, 3)},
    **{k: merge for k in ("Average", "Maximum", "Minimum")}, "Add": broadcast, "Multiply": broadcast,
    "Subtract": lambda d: ({}, [d.shape([1, 2, 3])] * 2), "Concatenate": concatenate, "Dot": dot,
    "Attention": attention, "AdditiveAttention": additive, "MultiHeadAttention": heads, "GroupQueryAttention": grouped,
    "BatchNormalization": batch_norm, "LayerNormalization": layer_norm, "GroupNormalization": group_norm,
    "RMSNormalization": rms_norm, "UnitNormalization": over_axes,
    "SpectralNormalization": spectral, "Normalization": normalization, "Resizing": resizing, "CenterCrop": center_crop,
    "Rescaling": plain(1, 2, 3, scale=signed(-2, 2), offset=signed(-1, 1)), "Reshape": reshape, "Permute": permute,
    "RepeatVector": plain(1, n=lambda d: d.int(1, 4)), "Flatten": lambda d: (lambda k, s: (dict(data_format=k), [s]))(*d.image(2, 3)),
    "Softmax": axis([1, 2, 3]), "PReLU": prelu, "Activation": plain(1, 2, activation=lambda d: d.activation() or "linear"),
    "ReLU": plain(1, 2, max_value=lambda d: d.some(0.5, lambda: d.real(0.1, 2)), negative_slope=signed(0, 1), threshold=signed(0, 0.5)),
    "LeakyReLU": plain(1, 2, negative_slope=signed(0, 1)), "ELU": plain(1, 2, alpha=signed(0, 2)),
    "ActivityRegularization": plain(1, 2, l1=signed(0, 1), l2=signed(0, 1)), "Masking": plain(2, mask_value=signed(-1, 1)),
    "STFTSpectrogram": stft, "MelSpectrogram": mel, "CategoryEncoding": category, "Discretization": discretization,
    "Hashing": hashing, "HashedCrossing": crossing, "IntegerLookup": lambda d: lookup(d, False),
    "StringLookup": lambda d: lookup(d, True), "TextVectorization": vectorization,
}  # fmt: skip
TEXTS = ("StringLookup", "TextVectorization")
WHOLE = ("Embedding", "ReversibleEmbedding", "CategoryEncoding", "Hashing", "HashedCrossing", "IntegerLookup")
LOOKS_UP = (*TEXTS, *WHOLE[2:], "Discretization")  # no gradient goes through: only what they give is compared
WRONG = "AdaptiveMax"  # Keras's gradient on TensorFlow reads memory that nothing has written


def build(name, d):
    """The model of a set, and the set as text."""
    arguments, shapes, *more = LAYERS[name](d)
    call = more[0] if more else {}
    kind = "string" if name in TEXTS else "int32" if name in WHOLE else "float32"
    inputs = [L.Input(s, dtype=kind, name=f"in_{i}") for i, s in enumerate(shapes)]
    values = inputs
    if name not in LOOKS_UP and name not in WHOLE:
        values = [L.Dense(s[-1], name=f"first_{i}")(x) for i, (s, x) in enumerate(zip(shapes, inputs))]
    text = f"{name}({', '.join(f'{k}={show(v)}' for k, v in arguments.items() if v is not None)}) of {shapes} {call or ''}"
    layer = getattr(L, name)(name="drawn", **arguments)
    if "Attention" in name and name not in ("Attention", "AdditiveAttention"):
        outputs = layer(*values, **call)
    else:
        outputs = layer(values if len(values) > 1 else values[0], **call)
    outputs = keras.tree.flatten(outputs)  # states of several cells are lists in a list
    if len(outputs) > 1:  # Keras gives the outputs of one layer one name
        outputs = [L.Identity(name=f"out_{i}")(y) for i, y in enumerate(outputs)]
    model = keras.Model(graphs.one(inputs), graphs.one(outputs))
    model.compile(keras.optimizers.SGD(1.0), ["mse"] * len(outputs), jit_compile=False, auto_scale_loss=False)
    return model, text


def show(v):
    if isinstance(v, keras.layers.Layer) or hasattr(v, "get_config"):
        c = {k: a for k, a in v.get_config().items() if not isinstance(a, dict) and a is not None}
        return f"{type(v).__name__}{c}" if not isinstance(v, I.Initializer) else type(v).__name__
    return repr(v)


class Set(graphs.Keras):
    """As a drawn graph, but a layer that looks something up takes numbers or texts of its own."""

    def __init__(self, name, path, seed):
        self.name = name
        super().__init__(path, seed)
        x, y, weights = self.rows
        chance = np.random.default_rng(seed)
        if name in TEXTS:
            x = [chance.choice(WORDS, (graphs.ROWS, *t.shape[1:])) for t in self.model.inputs]
        elif name in WHOLE:
            x = [chance.integers(0, 5, (graphs.ROWS, *t.shape[1:])).astype("int32") for t in self.model.inputs]
        if any(len(t.shape) > 2 for t in self.model.outputs):
            weights = None  # one for each row, which Keras does not take for lists of numbers
        self.rows = x, y, weights

    def run(self, moved):
        if self.name not in LOOKS_UP:
            outputs, updates = super().run(moved)
            return outputs, [] if self.name.startswith(WRONG) else updates
        x = [keras.ops.convert_to_tensor(a.tolist()) if a.dtype.kind == "U" else a for a in self.rows[0]]
        return tf.nest.flatten(self.model.predict_on_batch(graphs.one(x))), []


def one_set(keel, folder, name, seed, text):
    """(outcome, what differs), as graphs.compare; text gets the set."""
    path = os.path.join(folder, "set.keras")
    try:
        model, text[0] = build(name, Draw(seed))
    except (ValueError, NotImplementedError, TypeError) as e:
        return None, f"Keras refuses: {' '.join(str(e).split())[:160]}"
    model.save(path)
    return graphs.compare_with(keel, folder, path, lambda p: Set(name, p, seed), "", trains=name not in LOOKS_UP and not name.startswith(WRONG))


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("keel")
    a.add_argument("names", nargs="*")
    a.add_argument("--from", dest="first", choices=LAYERS, default=next(iter(LAYERS)), help="the first of all layers")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--sets", type=int, default=5)
    a.add_argument("--policy", choices=graphs.POLICIES, default="float32")
    a.add_argument("--show", action="store_true")
    a = a.parse_args()
    graphs.set_policy(a.policy)
    passed = failed = 0
    warnings.filterwarnings("ignore", "Gradients do not exist")
    with tempfile.TemporaryDirectory() as folder:
        for name in a.names or list(LAYERS)[list(LAYERS).index(a.first) :]:
            cannot = 0
            for k in range(a.sets):
                seed, text = 1000 * a.seed + 37 * k + sum(map(ord, name)), [name]
                graphs.begin(a.policy)
                keras.utils.set_random_seed(seed)
                try:
                    ok, why = one_set(os.path.abspath(a.keel), folder, name, seed, text)
                except Exception as e:
                    ok, why = False, f"{type(e).__name__}: {' '.join(str(e).split())[-400:]}"
                passed, failed, cannot = passed + (ok is True), failed + (ok is False), cannot + (ok is None)
                if ok is False or a.show:
                    print(f"{'FAILED' if ok is False else '--' if ok is None else 'ok':6} {text[0]}\n       {why}", flush=True)
            if cannot == a.sets:
                print(f"--     {name}: Keras computes none of its sets: {why}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
