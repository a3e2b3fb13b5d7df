#!/usr/bin/env python3
"""Make layers.json: what each layer does to shapes, and the weights it has, as the real Keras says.

A case holds the class, the whole config as Keras writes it, the shapes of one row of its inputs, the
shape of one row of its output, and the weights: name, shape, and whether training moves them. Cases
of COMPUTED hold what the layer computes of ROWS rows too, where element i of input or weight k is
number(i, k).
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
    (L.GroupQueryAttention(2, 4, 4, kernel_initializer="he_normal", bias_regularizer="l2"), [(5, 4), (5, 4)]),
    (L.MultiHeadAttention(2, 3, kernel_constraint="non_neg", bias_constraint="non_neg",
                          flash_attention=False), [(5, 4), (5, 4)]),
    (L.GroupQueryAttention(2, 4, 2, kernel_constraint="non_neg", bias_constraint="non_neg"), [(5, 4), (5, 4)]),
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
    (L.RandomCrop(9, 8, seed=3), IMAGE),
    (L.RandomCrop(4, 5, seed=3), IMAGE),
]
ROWS = 2
VOLUME = [(4, 3, 5, 2)]
SMALL = [(3, 4, 2)]
PICTURE = [(5, 6, 3)]
COMPUTED = [
    (L.Conv3D(3, 2), VOLUME),
    (L.Conv3D(4, (2, 3, 3), strides=(2, 1, 3), padding="same", activation="tanh"), VOLUME),
    (L.Conv3D(2, (1, 2, 2), dilation_rate=(1, 2, 2), groups=2, use_bias=False), VOLUME),
    (L.MaxPooling3D(), VOLUME),
    (L.MaxPooling3D(3, strides=(2, 1, 2), padding="same"), VOLUME),
    (L.AveragePooling3D((2, 1, 3)), VOLUME),
    (L.AveragePooling3D(3, strides=2, padding="same"), VOLUME),
    (L.GlobalMaxPooling3D(), VOLUME),
    (L.GlobalMaxPooling3D(keepdims=True), VOLUME),
    (L.GlobalAveragePooling3D(), VOLUME),
    (L.GlobalAveragePooling3D(keepdims=True), VOLUME),
    (L.ZeroPadding3D(), [(2, 1, 2, 2)]),
    (L.ZeroPadding3D((1, 0, 2)), [(2, 1, 2, 2)]),
    (L.ZeroPadding3D(((1, 0), (0, 2), (2, 1))), [(2, 1, 2, 2)]),
    (L.Cropping1D(), [(4, 2)]),
    (L.Cropping1D((0, 3)), [(4, 2)]),
    (L.Cropping2D(), SMALL),
    (L.Cropping2D((1, 0)), SMALL),
    (L.Cropping2D(((0, 2), (1, 1))), SMALL),
    (L.Cropping3D(), [(3, 4, 3, 2)]),
    (L.Cropping3D(((1, 0), (0, 2), (1, 1))), [(3, 4, 3, 2)]),
    (L.UpSampling1D(), [(3, 2)]),
    (L.UpSampling1D(3), [(3, 2)]),
    (L.UpSampling2D(), SMALL),
    (L.UpSampling2D((1, 3)), SMALL),
    (L.UpSampling2D((2, 3), interpolation="bilinear"), SMALL),
    (L.UpSampling3D((1, 2, 3)), [(2, 2, 2, 1)]),
    (L.RepeatVector(3), [(4,)]),
    (L.Permute((3, 1, 2)), SMALL),
    (L.Conv2DTranspose(3, 3), SMALL),
    (L.Conv2DTranspose(2, 2, strides=3, activation="tanh"), SMALL),
    (L.Conv2DTranspose(2, (3, 4), strides=2, padding="same", use_bias=False), SMALL),
    (L.Conv2DTranspose(2, (3, 1), strides=(2, 3), padding="same", output_padding=(1, 0)), SMALL),
    (L.Conv2DTranspose(2, 2, strides=2, output_padding=1), SMALL),
    (L.Conv1DTranspose(3, 3, strides=2), [(4, 2)]),
    (L.Conv1DTranspose(3, 4, strides=3, padding="same"), [(4, 2)]),
    (L.Conv3DTranspose(2, 2), [(2, 2, 2, 2)]),
    (L.Conv3DTranspose(2, (1, 2, 3), strides=(1, 2, 1), padding="same"), [(2, 2, 2, 2)]),
    (L.SeparableConv2D(3, 2), SMALL),
    (L.SeparableConv2D(3, 3, strides=2, padding="same", depth_multiplier=2, use_bias=False), SMALL),
    (L.SeparableConv1D(3, 2, activation="relu"), [(5, 2)]),
    (L.SeparableConv1D(2, 3, padding="same", dilation_rate=2, depth_multiplier=2), [(5, 2)]),
    (L.DepthwiseConv1D(2, depth_multiplier=2), [(5, 2)]),
    (L.DepthwiseConv1D(3, strides=2, padding="same", use_bias=False), [(5, 2)]),
    (L.LeakyReLU(), [(3, 2)]),
    (L.LeakyReLU(0.125), [(3, 2)]),
    (L.ELU(), [(3, 2)]),
    (L.ELU(0.5), [(3, 2)]),
    (L.PReLU(), [(3, 2)]),
    (L.PReLU(alpha_initializer="ones", alpha_regularizer="l2", shared_axes=[1, 2]), SMALL),
    (L.Multiply(), [(3, 2), (3, 2)]),
    (L.Multiply(), [(2, 3, 4), (1, 1, 4), (4,)]),
    (L.Average(), [(3, 2)] * 3),
    (L.Average(), [(3, 2), (2,)]),
    (L.Maximum(), [(3, 2), (3, 1)]),
    (L.Minimum(), [(3, 2)] * 3),
    (L.Subtract(), [(3, 2), (2,)]),
    (L.Add(), [(3, 2), (2,), (3, 1)]),
    (L.Dot(1), [(4,), (4,)]),
    (L.Dot((2, 1)), [(3, 4), (4, 2)]),
    (L.Dot(-1, normalize=True), [(3, 4), (2, 4)]),
    (L.Dot((1, 2)), [(3, 4), (2, 3)]),
    (L.SpatialDropout1D(0.25), [(3, 2)]),
    (L.SpatialDropout2D(0.25), SMALL),
    (L.SpatialDropout3D(0.25, seed=3), [(2, 2, 2, 1)]),
    (L.GaussianNoise(0.5), [(3, 2)]),
    (L.GaussianDropout(0.5), [(3, 2)]),
    (L.AlphaDropout(0.5), [(3, 2)]),
    (L.AlphaDropout(0.5, noise_shape=(None, 1, 2)), [(3, 2)]),
    (L.Attention(), [(3, 4), (5, 4)]),
    (L.Attention(use_scale=True, dropout=0.25), [(3, 4), (5, 2), (5, 4)]),
    (L.Attention(score_mode="concat"), [(3, 4), (5, 4)]),
    (L.Attention(use_scale=True, score_mode="concat", seed=3), [(3, 4), (5, 4), (5, 4)]),
    (L.AdditiveAttention(), [(3, 4), (5, 4)]),
    (L.AdditiveAttention(use_scale=False, dropout=0.5), [(3, 4), (5, 2), (5, 4)]),
    (L.GroupQueryAttention(4, 4, 2), [(5, 3), (7, 3)]),
    (L.GroupQueryAttention(2, 6, 2, use_bias=False, use_gate=True, sliding_window=2, dropout=0.25),
     [(5, 4), (5, 4), (5, 3)]),
    (L.GroupQueryAttention(1, 3, 1), [(2, 3), (4, 3)]),
    (L.RNN(L.StackedRNNCells([L.LSTMCell(3), L.GRUCell(2), L.LSTMCell(2)])), [(4, 3)]),
    (L.RNN(L.StackedRNNCells([L.SimpleRNNCell(3, dropout=0.25), L.GRUCell(2, reset_after=False)]),
           return_sequences=True, go_backwards=True), [(4, 3)]),
    (L.ConvLSTM1D(2, 3), [(3, 5, 2)]),
    (L.ConvLSTM1D(3, 2, strides=2, padding="same", return_sequences=True, go_backwards=True, dropout=0.25,
                  use_bias=False), [(4, 5, 2)]),
    (L.ConvLSTM1D(2, 2, padding="same"), [(1, 3, 2)]),
    (L.ConvLSTM2D(2, 2), [(3, 3, 4, 2)]),
    (L.ConvLSTM2D(3, (3, 2), dilation_rate=(1, 2), activation="relu", recurrent_activation="hard_sigmoid",
                  unit_forget_bias=False, recurrent_dropout=0.5, return_sequences=True), [(2, 4, 4, 1)]),
    (L.ConvLSTM2D(2, (2, 3), strides=(1, 2), padding="same", kernel_regularizer="l2"), [(2, 3, 4, 2)]),
    (L.ConvLSTM3D(2, 2), [(2, 2, 3, 2, 1)]),
    (L.ConvLSTM3D(1, (1, 2, 3), strides=(2, 1, 1), padding="same", return_sequences=True), [(3, 2, 2, 3, 2)]),
    (L.Bidirectional(L.ConvLSTM2D(2, 2, padding="same", return_sequences=True)), [(3, 2, 3, 1)]),
    (L.Bidirectional(L.RNN(L.StackedRNNCells([L.LSTMCell(2)]), return_sequences=True)), [(3, 2)]),
    (L.GRU(3, activation="relu", recurrent_activation="linear", reset_after=False), [(4, 3)]),
    (L.GRU(3, activation="hard_sigmoid", recurrent_activation="relu"), [(4, 3)]),
    (L.LSTM(3, activation="elu", recurrent_activation="hard_sigmoid", return_sequences=True), [(4, 3)]),
    (L.UpSampling2D((2, 3), interpolation="bicubic"), SMALL),
    (L.UpSampling2D(2, interpolation="lanczos3"), SMALL),
    (L.UpSampling2D((1, 2), interpolation="lanczos5"), SMALL),
    (L.Resizing(4, 7), PICTURE),
    (L.Resizing(4, 7, antialias=True), PICTURE),
    (L.Resizing(7, 3, interpolation="nearest"), PICTURE),
    (L.Resizing(3, 8, interpolation="bicubic", crop_to_aspect_ratio=True), PICTURE),
    (L.Resizing(3, 2, interpolation="bicubic", antialias=True), PICTURE),
    (L.Resizing(6, 4, interpolation="lanczos3", pad_to_aspect_ratio=True, fill_value=0.5), PICTURE),
    (L.Resizing(2, 9, interpolation="lanczos5", antialias=True, pad_to_aspect_ratio=True), PICTURE),
    (L.Resizing(3, 4, interpolation="area", crop_to_aspect_ratio=True), PICTURE),
    (L.Resizing(5, 6), PICTURE),
    (L.Resizing(1, 1), [(1, 3, 2)]),
    (L.CenterCrop(2, 3), PICTURE),
    (L.CenterCrop(5, 6), PICTURE),
    (L.CenterCrop(7, 4), PICTURE),
    (L.RandomFlip(), PICTURE),
    (L.RandomFlip("vertical", seed=3), PICTURE),
    (L.RandomRotation(0.25), PICTURE),
    (L.RandomRotation((-0.1, 0.3), fill_mode="constant", fill_value=0.5, interpolation="nearest"), PICTURE),
    (L.RandomZoom(0.25), PICTURE),
    (L.RandomZoom((-0.5, 0.5), (0, 0.25), fill_mode="wrap"), PICTURE),
    (L.RandomTranslation(0.25, (-0.5, 0.25), fill_mode="nearest"), PICTURE),
    (L.RandomBrightness(0.25), PICTURE),
    (L.RandomBrightness((-0.5, 0.25), value_range=(0, 1)), PICTURE),
    (L.RandomContrast(0.25), PICTURE),
    (L.RandomContrast((0.5, 0.25), value_range=(0.0, 1.0)), PICTURE),
    (L.RandomColorDegeneration((0.25, 0.5)), PICTURE),
    (L.RandomSaturation(0.25), PICTURE),
    (L.RandomInvert((0.25, 0.5)), PICTURE),
    (L.RandomHue(0.25), PICTURE),
    (L.RandomGrayscale(0.25), PICTURE),
    (L.RandomPosterization(4), PICTURE),
    (L.RandomPosterization((2, 6), value_range=(0, 1)), PICTURE),
    (L.Solarization(0.25, (0.5, 0.75)), PICTURE),
    (L.RandomShear((0.25, 0.5), (0, 0.25), fill_mode="constant"), PICTURE),
    (L.RandomPerspective(0.5, 0.25, fill_value=0.5), PICTURE),
    (L.UnitNormalization(), [(3, 4)]),
    (L.UnitNormalization(axis=(1, 3)), [(3, 2, 4)]),
    (L.GroupNormalization(groups=2), [(5, 6)]),
    (L.GroupNormalization(groups=-1, epsilon=0.25, center=False), SMALL),
    (L.GroupNormalization(groups=1, scale=False, beta_initializer="ones"), [(4,)]),
    (L.GroupNormalization(groups=3, axis=3, gamma_regularizer="l2"), [(2, 3, 6)]),
    (L.Identity(), [(3, 2)]),
    (L.AdaptiveAveragePooling1D(3), [(7, 2)]),
    (L.AdaptiveAveragePooling1D(4), [(3, 2)]),
    (L.AdaptiveAveragePooling2D((2, 3)), [(5, 7, 2)]),
    (L.AdaptiveAveragePooling3D((2, 1, 3)), [(3, 2, 4, 2)]),
    (L.AdaptiveMaxPooling1D(3), [(7, 2)]),
    (L.AdaptiveMaxPooling2D(2), [(5, 3, 2)]),
    (L.AdaptiveMaxPooling3D(2), [(3, 2, 5, 2)]),
    (L.Normalization(), [(3,)]),
    (L.Normalization(axis=(1, -1), invert=True), [(3, 2, 4)]),
    (L.Normalization(axis=None), [(3, 2)]),
    (L.Normalization(mean=0.5, variance=2.25), [(3, 2)]),
    (L.Normalization(mean=[0.5, -1.0], variance=[4.0, 0.25], invert=True), [(3, 2)]),
    (L.Normalization(axis=(1, 3), mean=[[0.5], [1.0], [0.0]], variance=[[1.0], [4.0], [0.0]]), [(3, 2, 4)]),
    (L.Normalization(axis=None, mean=3.0, variance=0.0), [(2,)]),
    (L.AutoContrast(), PICTURE),
    (L.AutoContrast(value_range=(0, 1)), [(1, 1, 2)]),
    (L.RandomSharpness(0.25), PICTURE),
    (L.RandomGaussianBlur(0.5, (3, 5), (0.25, 0.75)), PICTURE),
    (L.RandomErasing(), PICTURE),
    (L.RandomErasing(0.5, 0.25, fill_value=(1, 2, 3)), PICTURE),
    (L.RandomColorJitter(), PICTURE),
    (L.RandomColorJitter((0, 1), 0.25, (0.25, 0.5), 0.5, 0.125), PICTURE),
    (L.MixUp(), PICTURE),
    (L.CutMix(0.5), PICTURE),
    (L.STFTSpectrogram(frame_length=4), [(11, 2)]),
    (L.STFTSpectrogram("magnitude", 5, 2, 8, window="hamming", periodic=True, padding="same", expand_dims=True),
     [(9, 2)]),
    (L.STFTSpectrogram("psd", 3, 3, window=None, scaling=None), [(8, 1)]),
    (L.STFTSpectrogram("real", 3, 1, window=[1.0, 2.0, 0.5], scaling="spectrum"), [(6, 2)]),
    (L.STFTSpectrogram("imag", 4, padding="same"), [(6, 1)]),
    (L.STFTSpectrogram("angle", 4), [(6, 2)]),
    (L.STFTSpectrogram("stft", 4, 3, expand_dims=True), [(9, 2)]),
    (L.MelSpectrogram(16, 5, 12, num_mel_bins=4, sampling_rate=200, ref_power=1e-6), [(33,)]),
    (L.MelSpectrogram(6, 2, window="hamming", num_mel_bins=2, sampling_rate=100, min_freq=5.0, max_freq=40.0,
                      top_db=6.0, min_power=0.5, ref_power=2.0), [(9,)]),
    (L.MelSpectrogram(7, 3, window=None, num_mel_bins=3, sampling_rate=50, power_to_db=False, mag_exp=1.0),
     [(15,)]),
    (L.MelSpectrogram(8, 3, 5, window=None, num_mel_bins=3, sampling_rate=50, min_freq=1.0, power_to_db=False), [(15,)]),
    (L.MelSpectrogram(8, 3, 5, window=[0.5, 2.0, -1.0, 0.25, 1.0], num_mel_bins=3, sampling_rate=50, min_freq=1.0,
                      power_to_db=False), [(15,)]),
    (L.ReversibleEmbedding(5, 3), [(4,)]),
    (L.ReversibleEmbedding(4, 3, tie_weights=False, mask_zero=True, embeddings_regularizer="l2",
                           embeddings_constraint="non_neg", reverse_dtype="float32", logit_soft_cap=2.5), [(2, 3)]),
    (L.Equalization(), PICTURE),
    (L.Equalization((1, -1), bins=64), PICTURE),
    (L.ContrastLimitedAdaptiveHistogramEqualization(value_range=(-2, 2)), PICTURE),
    (L.ContrastLimitedAdaptiveHistogramEqualization((-1.0, 1.0), 1.5, (2, 3)), PICTURE),
    (L.ContrastLimitedAdaptiveHistogramEqualization((-2, 2), 0.0, (2, 2)), [(7, 5, 1)]),
    (L.RandomElasticTransform(), PICTURE),
    (L.RandomElasticTransform((0.25, 0.5), 0.5, "nearest", "wrap", 0.5, (0, 1)), PICTURE),
    (L.RandAugment(), PICTURE),
    (L.RandAugment((0, 1), 3, (0.25, 0.5), "nearest"), PICTURE),
    (L.AugMix(), PICTURE),
    (L.AugMix((0, 1), 2, 4, 0.5, 0.25, False, "nearest"), PICTURE),
    (L.Rescaling([0.5, 2, -1.0]), PICTURE),
    (L.Rescaling(0.25, offset=[[1.0], [2], [0.5]]), [(2, 3, 4)]),
    (L.Rescaling([[[[3.0, 0.5, -2]]]], offset=[0, 1.5, -1]), PICTURE),
    (L.Dense(3, activation=L.LeakyReLU(negative_slope=0.125)), [(4,)]),
    (L.Conv2D(3, 2, activation=L.ReLU(max_value=1.5, negative_slope=0.25, threshold=0.5)), SMALL),
    (L.Dense(3, activation=L.ReLU()), [(4,)]),
    (L.Dense(3, activation=L.ELU(0.5)), [(4,)]),
    (L.Activation(L.Softmax()), [(2, 4)]),
    (L.Dense(4, activation=L.Softmax(axis=1)), [(3, 2)]),
    (L.Dense(4, activation=L.Softmax(axis=-2)), [(3, 2)]),
    (L.LSTM(2, activation=L.LeakyReLU()), [(3, 2)]),
    (L.Softmax(axis=[1, 3]), SMALL),
    (L.GroupNormalization(groups=2, axis=1), [(4, 3, 2)]),
    (L.GroupNormalization(groups=-1, axis=-2, scale=False), [(3, 2)]),
    (L.BatchNormalization(axis=1), [(3, 2, 4)]),
    (L.BatchNormalization(axis=-2, center=False), [(3, 2)]),
    (L.LayerNormalization(rms_scaling=True), [(3, 4)]),
    (L.LayerNormalization(axis=(1, 3), rms_scaling=True, scale=False, epsilon=0.25, gamma_initializer="zeros"), SMALL),
]
BY_ROW = L.MelSpectrogram  # what it does to a row depends on the others
NAMED = (L.MultiHeadAttention, L.GroupQueryAttention)  # their inputs are arguments, not a list


def number(shape, k):
    return (((np.arange(np.prod(shape)) * 37 + 29 * k + 11) % 101 - 50) / 32).reshape(shape)


def computed(layer, shapes):
    got = case(layer, shapes)
    for k, w in enumerate(layer.weights):
        if w.name != "count":  # of Normalization, which nothing reads
            w.assign(np.abs(number(w.shape, k)) if "variance" in w.name else number(w.shape, k))
    if isinstance(layer, L.Normalization):
        layer.finalize_state()
    x = [number((ROWS,) + s, k) for k, s in enumerate(shapes)]
    x = [v.astype("float32") for v in x]
    told = {"training": False} if layer._call_has_training_arg else {}  # by itself it may be true
    rows = [[v[i : i + 1] for v in x] for i in range(ROWS)] if isinstance(layer, BY_ROW) else [x]
    y = [layer(*x, **told) if len(x) == 1 or isinstance(layer, NAMED) else layer(x, **told) for x in rows]
    got["y"] = [float("%.7g" % v) for v in np.ravel(y)]
    return got


def case(layer, shapes):
    inputs = [keras.Input(s) for s in shapes]
    apart = len(inputs) == 1 or isinstance(layer, NAMED)
    layer(*inputs) if apart else layer(inputs)
    ones = [np.ones((1, *s)) for s in shapes]
    out = layer(*ones) if apart else layer(ones)
    moved = [id(w) for w in layer.trainable_weights]
    return {
        "class": keras.saving.serialize_keras_object(layer)["class_name"],
        "config": keras.saving.serialize_keras_object(layer)["config"],
        "in": shapes,
        "out": list(out.shape[1:]),
        "weights": [[w.name, list(w.shape), id(w) in moved] for w in layer.weights if w.name != "count"],
    }


def first(make, shape, **more):
    """A layer with channels first. TensorFlow has most of them on other devices only, so the numbers
    are those of the same layer with channels last. The last dim has another size than the filters:
    else Keras 3.15 on TensorFlow adds the bias along that dim."""
    layer, last = make(data_format="channels_first", **more), make(data_format="channels_last", **more)
    turn = lambda v: np.moveaxis(v, 1, -1)
    x = number((ROWS,) + shape, 0).astype("float32")
    last.build(turn(x).shape)
    for k, w in enumerate(last.weights):
        w.assign(number(w.shape, k))
    y = np.array(last(turn(x)))
    y = np.moveaxis(y, -1, 1) if y.ndim == x.ndim else y
    serialized = keras.saving.serialize_keras_object(layer)
    return {
        "class": serialized["class_name"],
        "config": serialized["config"],
        "in": [shape],
        "out": list(layer.compute_output_shape((None,) + shape)[1:]),
        "weights": [[w.name, list(w.shape), True] for w in last.weights],
        "y": [float("%.7g" % v) for v in np.ravel(y)],
    }


def first_of_steps(make, shape, **more):
    """The same of layers over time, whose channels are the second dim of a row."""
    layer, last = make(data_format="channels_first", **more), make(data_format="channels_last", **more)
    turn = lambda v: np.moveaxis(v, 2, -1)
    x = number((ROWS,) + shape, 0).astype("float32")
    last.build(turn(x).shape)
    for k, w in enumerate(last.weights):
        w.assign(number(w.shape, k))
    y = np.moveaxis(np.array(last(turn(x))), -1, 2 if more.get("return_sequences") else 1)
    serialized = keras.saving.serialize_keras_object(layer)
    return {
        "class": serialized["class_name"],
        "config": serialized["config"],
        "in": [shape],
        "out": list(y.shape[1:]),
        "weights": [[w.name, list(w.shape), True] for w in last.weights],
        "y": [float("%.7g" % v) for v in np.ravel(y)],
    }


FIRST = [
    (L.Conv1D, (2, 5), dict(filters=4, kernel_size=2, strides=2, padding="same")),
    (L.Conv1D, (6, 5), dict(filters=6, kernel_size=2, groups=3)),
    (L.DepthwiseConv1D, (2, 6), dict(kernel_size=1, depth_multiplier=3)),
    (L.Conv2D, (2, 4, 5), dict(filters=4, kernel_size=(2, 3), activation="tanh")),
    (L.Conv3D, (2, 3, 2, 4), dict(filters=2, kernel_size=2)),
    (L.Conv2DTranspose, (2, 3, 2), dict(filters=3, kernel_size=2, strides=2)),
    (L.DepthwiseConv2D, (3, 4, 3), dict(kernel_size=2, depth_multiplier=2)),
    (L.SeparableConv2D, (2, 3, 4), dict(filters=4, kernel_size=2)),
    (L.MaxPooling2D, (2, 4, 5), dict(pool_size=2, padding="same")),
    (L.AveragePooling1D, (2, 5), dict(pool_size=2)),
    (L.MaxPooling3D, (2, 2, 4, 3), dict(pool_size=2)),
    (L.GlobalAveragePooling2D, (3, 2, 4), dict()),
    (L.GlobalAveragePooling2D, (3, 2, 4), dict(keepdims=True)),
    (L.GlobalMaxPooling1D, (3, 4), dict(keepdims=True)),
    (L.AdaptiveAveragePooling2D, (2, 4, 5), dict(output_size=(2, 3))),
    (L.ZeroPadding2D, (2, 2, 3), dict(padding=((1, 0), (0, 2)))),
    (L.Cropping2D, (2, 4, 3), dict(cropping=((1, 0), (0, 1)))),
    (L.UpSampling2D, (2, 2, 3), dict(size=(2, 1))),
    (L.Flatten, (2, 3, 2), dict()),
    (L.Resizing, (3, 4, 5), dict(height=6, width=3)),
    (L.Resizing, (2, 4, 7), dict(height=3, width=3, crop_to_aspect_ratio=True)),
    (L.CenterCrop, (3, 5, 6), dict(height=3, width=3)),
    (L.CenterCrop, (2, 3, 6), dict(height=4, width=4)),
    (L.ContrastLimitedAdaptiveHistogramEqualization, (3, 6, 4), dict(tile_grid_size=(2, 2))),
]
FIRST_OF_STEPS = [
    (L.ConvLSTM1D, (2, 2, 5), dict(filters=3, kernel_size=2, padding="same")),
    (L.ConvLSTM2D, (3, 2, 3, 4), dict(filters=3, kernel_size=2, return_sequences=True)),
    (L.ConvLSTM3D, (2, 3, 2, 4, 2), dict(filters=1, kernel_size=2, go_backwards=True)),
]
LATER = [
    (L.STFTSpectrogram("magnitude", 5, 2, 8, padding="same", data_format="channels_first"), [(2, 9)]),
    (L.STFTSpectrogram("stft", 4, 3, expand_dims=True, data_format="channels_first"), [(2, 9)]),
    (L.EinsumDense("abc,cd->adb", (5, 4), bias_axes="d", activation="tanh"), [(4, 3)]),
    (L.EinsumDense("abc,cd->abd", (4, 5), bias_axes="bd"), [(4, 3)]),
    (L.EinsumDense("ab,bcd->acd", (2, 4), bias_axes="c"), [(3,)]),
    (L.EinsumDense("abc,bcd->abd", (4, 2), bias_axes="bd"), [(4, 3)]),
    (L.EinsumDense("abc,cb->ab", 4, bias_axes="b"), [(4, 3)]),
    (L.EinsumDense("abc,cd->ad", 5, bias_axes="d"), [(4, 3)]),
    (L.EinsumDense("ab,cb->ac", 5), [(3,)]),
    (L.EinsumDense("ab,bc->abc", (3, 2), bias_axes="c"), [(3,)]),
]
with open("layers.json", "w") as f:
    lines = [json.dumps(case(*c)) for c in CASES] + [json.dumps(computed(*c)) for c in COMPUTED]
    lines += [json.dumps(first(make, shape, **more)) for make, shape, more in FIRST]
    lines += [json.dumps(first_of_steps(make, shape, **more)) for make, shape, more in FIRST_OF_STEPS]
    lines += [json.dumps(computed(*c)) for c in LATER]
    f.write("[\n" + ",\n".join(lines) + "\n]\n")
