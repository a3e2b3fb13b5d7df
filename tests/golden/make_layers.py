#!/usr/bin/env python3
"""Make layers.json: what each layer does to shapes, and the weights it has, as the real Keras says.

A case holds the class, the whole config as Keras writes it, the shapes of one row of its inputs, the
shape of one row of its output, and the weights: name, shape, and whether training moves them.
Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers as L
from keras import regularizers as R

IMAGE = [(9, 8, 6)]
STEPS = [(9, 6)]
CASES = [
    (L.Dense(5), [(7,)]),
    (L.Dense(5, activation="relu", use_bias=False, kernel_initializer="he_normal"), [(3, 7)]),
    (L.Dense(2, kernel_regularizer=R.L1L2(0.1, 0.2), bias_regularizer="l1"), [(2, 3, 4)]),
    (L.Conv2D(4, 3), IMAGE),
    (L.Conv2D(4, (3, 2), strides=(2, 3), padding="same", activation="gelu"), IMAGE),
    (L.Conv2D(4, 3, strides=2, padding="same", use_bias=False), [(1, 2, 1)]),
    (L.Conv2D(6, 3, dilation_rate=(2, 1), groups=3, bias_initializer="ones"), IMAGE),
    (L.Conv2D(8, 5, strides=4, padding="same", kernel_regularizer="l2"), IMAGE),
    (L.Conv1D(4, 3), STEPS),
    (L.Conv1D(6, (2,), strides=(3,), padding="same", activation="gelu"), STEPS),
    (L.Conv1D(4, 3, padding="causal", dilation_rate=2, groups=2, use_bias=False), STEPS),
    (L.DepthwiseConv2D(3), IMAGE),
    (L.MaxPooling1D(), STEPS),
    (L.MaxPooling1D(3, strides=2, padding="same"), STEPS),
    (L.AveragePooling1D((2,)), STEPS),
    (L.AveragePooling1D(3, strides=1, padding="same"), STEPS),
    (L.GlobalMaxPooling1D(), STEPS),
    (L.GlobalMaxPooling1D(keepdims=True), STEPS),
    (L.GlobalMaxPooling2D(), IMAGE),
    (L.GlobalMaxPooling2D(keepdims=True), IMAGE),
    (L.ZeroPadding1D(), STEPS),
    (L.ZeroPadding1D(3), STEPS),
    (L.ZeroPadding1D((0, 2)), STEPS),
    (L.ActivityRegularization(l1=0.5), STEPS),
    (L.DepthwiseConv2D((2, 3), strides=2, padding="same", depth_multiplier=2), IMAGE),
    (L.DepthwiseConv2D(3, dilation_rate=2, use_bias=False, activation="relu6"), IMAGE),
    (L.MaxPooling2D(), IMAGE),
    (L.MaxPooling2D(3, strides=2, padding="same"), IMAGE),
    (L.MaxPooling2D((1, 4), padding="same"), IMAGE),
    (L.AveragePooling2D(2), IMAGE),
    (L.AveragePooling2D((3, 2), strides=(1, 3), padding="same"), IMAGE),
    (L.GlobalAveragePooling2D(), IMAGE),
    (L.GlobalAveragePooling2D(keepdims=True), IMAGE),
    (L.Flatten(), IMAGE),
    (L.Flatten(), [(5,)]),
    (L.Reshape((2, -1, 3)), IMAGE),
    (L.Reshape((432,)), IMAGE),
    (L.ZeroPadding2D(), IMAGE),
    (L.ZeroPadding2D(2), IMAGE),
    (L.ZeroPadding2D((1, 3)), IMAGE),
    (L.ZeroPadding2D(((1, 0), (2, 3))), IMAGE),
    (L.Dropout(0.25, seed=3), IMAGE),
    (L.Dropout(0.5, noise_shape=(None, 1, 1, 6)), IMAGE),
    (L.BatchNormalization(), IMAGE),
    (L.BatchNormalization(axis=3, momentum=0.9, epsilon=1e-5, synchronized=True), IMAGE),
    (L.BatchNormalization(center=False, gamma_regularizer="l2"), [(4,)]),
    (L.BatchNormalization(scale=False, beta_initializer="ones"), [(4,)]),
    (L.Activation("softmax"), [(4,)]),
    (L.Activation("linear"), [(4, 2)]),
    (L.ReLU(), [(4,)]),
    (L.ReLU(max_value=6, negative_slope=0.1, threshold=0.5), [(4,)]),
    (L.Softmax(), [(4, 3)]),
    (L.Softmax(axis=1), [(4, 3)]),
    (L.Add(), [(4, 3), (4, 3)]),
    (L.Add(), [(4,), (4,), (4,)]),
    (L.Concatenate(), [(4, 3), (4, 2)]),
    (L.Concatenate(axis=1), [(4, 3), (2, 3), (1, 3)]),
    (L.Concatenate(axis=-2), [(4, 3), (2, 3)]),
    (L.Rescaling(1 / 255.0), IMAGE),
    (L.Rescaling(2.0, offset=-1.0), [(4,)]),
    (L.LayerNormalization(), STEPS),
    (L.LayerNormalization(axis=(1, 3), center=False, gamma_regularizer="l2"), IMAGE),
    (L.LayerNormalization(axis=[-2, -1], epsilon=1e-6, scale=False), STEPS),
    (L.RMSNormalization(), STEPS),
    (L.RMSNormalization(axis=(2, 3), epsilon=1e-3), IMAGE),
    (L.EinsumDense("abc,cd->abd", output_shape=(None, 5), bias_axes="d"), STEPS),
    (L.EinsumDense("...x,xy->...y", output_shape=7, activation="relu"), IMAGE),
    (L.EinsumDense("abc,bcde->ade", output_shape=(2, 3), bias_axes="de", kernel_regularizer="l2"), STEPS),
    (L.EinsumDense("ab...,bc->ac...", output_shape=4), STEPS),
    (L.MultiHeadAttention(2, 3), [(5, 4), (5, 4)]),
    (L.MultiHeadAttention(3, 4, value_dim=2, use_bias=False, use_gate=True, dropout=0.25),
     [(5, 4), (7, 3), (7, 6)]),
    (L.MultiHeadAttention(2, 3, output_shape=(2, 5), attention_axes=2, kernel_initializer="he_normal",
                          bias_regularizer="l2"), [(3, 5, 4), (3, 2, 4)]),
    (L.LSTM(4), STEPS),
    (L.LSTM(4, activation="relu", recurrent_activation="hard_sigmoid", use_bias=False, dropout=0.25,
            recurrent_dropout=0.5, return_sequences=True, go_backwards=True, unroll=True), STEPS),
    (L.GRU(4, return_sequences=True, kernel_regularizer="l1", recurrent_regularizer="l2"), STEPS),
    (L.GRU(4, reset_after=False, bias_initializer="ones", bias_regularizer="l2"), STEPS),
    (L.SimpleRNN(4, activation="linear", recurrent_initializer="he_normal"), STEPS),
    (L.RNN(L.LSTMCell(3, unit_forget_bias=False), return_sequences=True, zero_output_for_mask=True), STEPS),
    (L.RNN(L.GRUCell(3)), STEPS),
    (L.RNN(L.SimpleRNNCell(3)), STEPS),
    (L.Bidirectional(L.LSTM(4, return_sequences=True)), STEPS),
    (L.Bidirectional(L.GRU(4), merge_mode="sum"), STEPS),
]


def case(layer, shapes):
    inputs = [keras.Input(s) for s in shapes]
    apart = len(inputs) == 1 or isinstance(layer, L.MultiHeadAttention)
    layer(*inputs) if apart else layer(inputs)
    ones = [np.ones((1, *s)) for s in shapes]
    out = layer(*ones) if apart else layer(ones)
    moved = [id(w) for w in layer.trainable_weights]
    return {
        "class": type(layer).__name__,
        "config": keras.saving.serialize_keras_object(layer)["config"],
        "in": shapes,
        "out": list(out.shape[1:]),
        "weights": [[w.name, list(w.shape), id(w) in moved] for w in layer.weights],
    }


with open("layers.json", "w") as f:
    lines = [json.dumps(case(*c)) for c in CASES]
    f.write("[\n" + ",\n".join(lines) + "\n]\n")
