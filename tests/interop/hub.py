#!/usr/bin/env python3
"""Models of keras-hub, small and without dropout, by keel.fit beside Keras's own fit: logs and weights of two
epochs.

hub.py [NAME...]      needs keras-hub on TensorFlow, and libkeel (KEEL_LIBRARY)
"""

import sys

from beside_keras import beside, case, run_cases
import keras
import keras_hub.models as hub
import numpy as np
from keras import layers

ROWS, LENGTH = 20, 8
generator = np.random.default_rng(0)
TOKENS = generator.integers(1, 30, (ROWS, LENGTH))
THERE = np.repeat([[1] * 6 + [0] * 2], ROWS, axis=0)
NONE = np.zeros_like(TOKENS)
IMAGES = generator.random((12, 32, 32, 3)).astype("float32")
BLOCKS = dict(num_layers=2, hidden_dim=8, intermediate_dim=16)
HEADS = dict(**BLOCKS, num_heads=2)
WITH_DROPOUT = dict(**HEADS, dropout=0.0)
PLACED = dict(**WITH_DROPOUT, max_sequence_length=LENGTH)
GROUPED = dict(**BLOCKS, num_query_heads=2, num_key_value_heads=1)
TEXT = {"token_ids": TOKENS, "padding_mask": THERE}
SEGMENTS = {**TEXT, "segment_ids": NONE}
BOTH = {f"{part}_{name}": value for part in ("encoder", "decoder") for name, value in TEXT.items()}

TEXTS = {
    "Albert": (SEGMENTS, dict(**PLACED, embedding_dim=4)),
    "Bart": (BOTH, PLACED),
    "Bert": (SEGMENTS, PLACED),
    "Bloom": (TEXT, WITH_DROPOUT),
    "DistilBert": (TEXT, PLACED),
    "Electra": (SEGMENTS, dict(**PLACED, vocab_size=30, embedding_dim=4)),
    "FNet": ({"token_ids": TOKENS, "segment_ids": NONE}, dict(**BLOCKS, max_sequence_length=LENGTH, dropout=0.0)),
    "GPT2": (TEXT, PLACED),
    "GPTNeoX": (TEXT, dict(**PLACED, rotary_percentage=0.5)),
    "Gemma": (TEXT, dict(**GROUPED, head_dim=4)),
    "Gemma3": (TEXT, dict(**GROUPED, head_dim=4, image_size=16, vision_encoder=None)),
    "Llama": (TEXT, GROUPED),
    "Mistral": (TEXT, GROUPED),
    "OPT": (TEXT, PLACED),
    "Phi3": (TEXT, GROUPED),
    "Qwen": (TEXT, GROUPED),
    "Qwen3": (TEXT, dict(**GROUPED, head_dim=4)),
    "Roberta": (TEXT, PLACED),
    "T5": (BOTH, dict(**WITH_DROPOUT, key_value_dim=4)),
    "XLMRoberta": (TEXT, PLACED),
}  # fmt: skip
PICTURES = {
    "DenseNet": dict(stackwise_num_repeats=[1, 1], compression_ratio=0.5, growth_rate=4),
    "EfficientNet": dict(
        width_coefficient=1.0, depth_coefficient=1.0, dropout=0.0, stackwise_kernel_sizes=[3], stackwise_num_repeats=[1],
        stackwise_input_filters=[8], stackwise_output_filters=[8], stackwise_expansion_ratios=[2],
        stackwise_squeeze_and_excite_ratios=[0.25], stackwise_strides=[1], stackwise_block_types=["v1"]),
    "MiT": dict(
        layerwise_depths=[1, 1], num_layers=2, hidden_dims=[8, 16], layerwise_num_heads=[1, 2], layerwise_sr_ratios=[2, 1],
        layerwise_patch_sizes=[3, 3], layerwise_strides=[2, 2], max_drop_path_rate=0.0),
    "ResNet": dict(
        input_conv_filters=[64], input_conv_kernel_sizes=[7], stackwise_num_filters=[64, 64], stackwise_num_blocks=[1, 1],
        stackwise_num_strides=[1, 2], block_type="basic_block"),
    "VGG": dict(stackwise_num_repeats=[1, 1], stackwise_num_filters=[4, 8]),
    "ViT": dict(patch_size=8, num_layers=2, num_heads=2, hidden_dim=8, mlp_dim=16, dropout_rate=0.0),
    "Xception": dict(
        stackwise_conv_filters=[[8, 8], [8, 8]], stackwise_pooling=[True, False]),
}  # fmt: skip


def compared(name, data, reduced, options):
    def make():
        backbone = getattr(hub, f"{name}Backbone")(**options)
        out = backbone.output
        if isinstance(out, dict):
            sequence = [k for k in ("decoder_sequence_output", "sequence_output") if k in out]
            out = out[sequence[0]] if sequence else list(out.values())[-1]
        if reduced:
            out = (
                layers.GlobalAveragePooling2D() if len(out.shape) == 4 else layers.GlobalAveragePooling1D()
            )(out)
        m = keras.Model(backbone.input, layers.Dense(2)(out))
        for layer in m._flatten_layers():
            if isinstance(layer, layers.Dropout):
                layer.rate = 0.0
        m.compile(keras.optimizers.SGD(0.01), "mse")
        return m

    def run():
        rows = len(IMAGES if reduced else TOKENS)
        y = np.random.default_rng(1).random((rows, 2) if reduced else (rows, LENGTH, 2)).astype("float32")
        beside(make, lambda: (data, y), epochs=2)

    run.__name__ = name
    case(run)


for name, (data, options) in TEXTS.items():
    words = {} if "vocab_size" in options else {"vocabulary_size": 30}
    compared(name, data, False, {**words, **options})
for name, options in PICTURES.items():
    compared(name, IMAGES, True, dict(image_shape=(32, 32, 3), **options))
sys.exit(run_cases(__file__))
