#!/usr/bin/env python3
"""Make lookups.json and lookups.keras: what layers look up in texts and numbers, as the real Keras
does.

A case of lookups.json holds a class, its arguments, the rows of its input and the rows of its output;
those of `crossed` have several inputs.
`hashes` are buckets of TensorFlow's two hashes for texts of many lengths. lookups.keras is a model
with vocabularies in its configuration and beside it, before its first step; `training` has its rows
and what it predicts after two epochs. `weighted` is what lookups_weighted.keras gives. Run with Keras 3
on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

WORDS = ["a", "b", "c", "", "zz", "ü", "[UNK]", "a longer text of more than thirty-two bytes",
         "日本語", "x" * 70, "A", " a"]  # fmt: skip
NUMBERS = [1, 5, 7, 0, -1, -3, 12345678901234, 5, 2, 4, 6, 8]
ABC, ODD = dict(vocabulary=["a", "b", "ü"]), dict(vocabulary=[1, 5, 7])
IDF = dict(output_mode="tf_idf", idf_weights=[0.5, 1.25, 2.0])
CASES = [
    (L.StringLookup, dict(**ABC), (1,)),
    (L.StringLookup, dict(**ABC), ()),
    (L.StringLookup, dict(**ABC), (2, 3)),
    (L.StringLookup, dict(**ABC, mask_token=""), (3,)),
    (L.StringLookup, dict(**ABC, mask_token="", num_oov_indices=4), (3,)),
    (L.StringLookup, dict(**ABC, num_oov_indices=7, salt=[3, -9]), (4,)),
    (L.StringLookup, dict(vocabulary=sorted(set(WORDS) - {"[UNK]"}), num_oov_indices=0), "known"),
    (L.StringLookup, dict(vocabulary=["", "[UNK]", "[UNK]", "c", "a"], mask_token="", num_oov_indices=2), (1,)),
    (L.StringLookup, dict(vocabulary=["[UNK]", "c", "a"], max_tokens=3), (1,)),
    (L.StringLookup, dict(**ABC, output_mode="one_hot"), (1,)),
    (L.StringLookup, dict(**ABC, output_mode="one_hot"), ()),
    (L.StringLookup, dict(**ABC, output_mode="one_hot", num_oov_indices=2), (2, 3)),
    (L.StringLookup, dict(**ABC, output_mode="multi_hot", mask_token="zz"), (4,)),
    (L.StringLookup, dict(**ABC, output_mode="multi_hot", max_tokens=9, pad_to_max_tokens=True), (4,)),
    (L.StringLookup, dict(**ABC, output_mode="count", num_oov_indices=3), (6,)),
    (L.StringLookup, dict(**ABC, **IDF), (6,)),
    (L.StringLookup, dict(**ABC, **IDF, max_tokens=8, pad_to_max_tokens=True), (6,)),
    (L.StringLookup, dict(vocabulary=["[UNK]", "a", "c"], **IDF), (6,)),
    (L.IntegerLookup, dict(**ODD), (1,)),
    (L.IntegerLookup, dict(**ODD, mask_token=0), (3,)),
    (L.IntegerLookup, dict(**ODD, num_oov_indices=3), (2, 2)),
    (L.IntegerLookup, dict(**ODD, num_oov_indices=3, oov_method="farmhash"), (4,)),
    (L.IntegerLookup, dict(**ODD, num_oov_indices=5, oov_method="farmhash", salt=[8, 8]), (4,)),
    (L.IntegerLookup, dict(vocabulary=[-1, 5, 1]), (1,)),
    (L.IntegerLookup, dict(**ODD, output_mode="one_hot"), (1,)),
    (L.IntegerLookup, dict(**ODD, output_mode="multi_hot", mask_token=0, num_oov_indices=2), (4,)),
    (L.IntegerLookup, dict(**ODD, output_mode="count"), (12,)),
    (L.IntegerLookup, dict(**ODD, **IDF), (12,)),
    (L.IntegerLookup, dict(**ODD, invert=True, mask_token=0, oov_token=-7), (4,)),
    (L.IntegerLookup, dict(**ODD, invert=True), (1,)),
]  # fmt: skip


SENTENCES = ["the cat sat on the mat", "", "  The\tCAT,\nsat; on\x0b\x0c\rTHE mat!!  ", "don't [UNK] a_b",
             "日本 cat ü Ü", "mat mat mat the", "...", "one two three four five six seven eight"]  # fmt: skip
CATS = dict(vocabulary=["the", "cat", "sat", "on", "mat", "日本", "ü"])
PAIRS = dict(vocabulary=["the cat", "the", "on the mat", "mat", "cat sat"])
WEIGHTED = dict(output_mode="tf_idf", idf_weights=[0.5, 1.25, 2.0, 0.75, 1.5, 3.0, 1.0])
T = L.TextVectorization
CASES += [
    (T, dict(**CATS, output_sequence_length=7), (1,)),
    (T, dict(**CATS, output_sequence_length=3), ()),
    (T, dict(**CATS, output_sequence_length=7, standardize=None), (1,)),
    (T, dict(**CATS, output_sequence_length=7, standardize="lower"), (1,)),
    (T, dict(**CATS, output_sequence_length=7, standardize="strip_punctuation"), (1,)),
    (T, dict(vocabulary=["t", "本", "ü", " "], output_sequence_length=9, split="character"), (1,)),
    (T, dict(**CATS, split=None, standardize="lower"), (4,)),
    (T, dict(**CATS, split=None, standardize="lower", output_sequence_length=3), (4,)),
    (T, dict(**CATS, split=None, standardize="lower", output_sequence_length=6), (4,)),
    (T, dict(**PAIRS, output_sequence_length=12, ngrams=3), (1,)),
    (T, dict(**PAIRS, output_sequence_length=12, ngrams=(2, 1)), (1,)),
    (T, dict(**CATS, output_mode="multi_hot"), (1,)),
    (T, dict(**CATS, output_mode="count", max_tokens=12, pad_to_max_tokens=True), (1,)),
    (T, dict(**PAIRS, output_mode="count", ngrams=2), (1,)),
    (T, dict(**CATS, **WEIGHTED), (1,)),
    (T, dict(**CATS, output_mode="count", split=None), (4,)),
]  # fmt: skip
FEW = [0, 1, 2, 3, 4, 4, 2, 1, 0, 0, 3, 2]
REALS = [0.0, 1.5, -2.0, 0.25, 7.0, 1.4999, -0.0, 100.0, -1e30, 0.1, 2.5, 3.0]
BINS = dict(bin_boundaries=[-1.0, 0.1, 1.5, 7.0])
TO_BE_HASHED = [
    (L.Hashing, dict(num_bins=7), (1,)),
    (L.Hashing, dict(num_bins=7), (2, 3)),
    (L.Hashing, dict(num_bins=1, mask_value="a"), (1,)),
    (L.Hashing, dict(num_bins=1000000007, mask_value=""), (4,)),
    (L.Hashing, dict(num_bins=9, salt=133), (1,)),
    (L.Hashing, dict(num_bins=9, salt=[5, -7], mask_value="zz"), (4,)),
    (L.Hashing, dict(num_bins=5, output_mode="one_hot"), (1,)),
    (L.Hashing, dict(num_bins=5, output_mode="multi_hot"), (4,)),
    (L.Hashing, dict(num_bins=5, output_mode="count", mask_value="a"), (6,)),
]
CASES += TO_BE_HASHED
CASES += [(c, {**a, "mask_value": 5} if "mask_value" in a else a, s, NUMBERS) for c, a, s in TO_BE_HASHED]
CASES += [
    (L.CategoryEncoding, dict(num_tokens=6), (4,), FEW),
    (L.CategoryEncoding, dict(num_tokens=5, output_mode="count"), (4,), FEW),
    (L.CategoryEncoding, dict(num_tokens=5, output_mode="one_hot"), (1,), FEW),
    (L.CategoryEncoding, dict(num_tokens=5, output_mode="one_hot"), (3,), FEW),
    (L.CategoryEncoding, dict(num_tokens=5, output_mode="one_hot"), (), FEW),
    (L.Discretization, dict(**BINS), (1,), REALS),
    (L.Discretization, dict(**BINS), (2, 2), REALS),
    (L.Discretization, dict(bin_boundaries=[]), (2,), REALS),
    (L.Discretization, dict(bin_boundaries=[float("-inf"), 0.5, float("inf")]), (4,), REALS),
    (L.Discretization, dict(**BINS, output_mode="one_hot"), (1,), REALS),
    (L.Discretization, dict(**BINS, output_mode="multi_hot"), (4,), REALS),
    (L.Discretization, dict(**BINS, output_mode="count"), (4,), REALS),
    (L.Discretization, dict(**BINS), (3,), NUMBERS),
    (L.StringLookup, dict(**ABC, output_mode="multi_hot", sparse=True, encoding="utf-16"), (4,)),
    (L.IntegerLookup, dict(**ODD, output_mode="count", sparse=True), (12,)),
    (L.Hashing, dict(num_bins=5, output_mode="multi_hot", sparse=True), (4,)),
    (L.Discretization, dict(**BINS, output_mode="count", sparse=True), (4,), REALS),
    (T, dict(**CATS, output_mode="multi_hot", sparse=True), (1,)),
    (T, dict(**CATS, output_sequence_length=7, encoding="latin-1"), (1,)),
]  # fmt: skip


def case(cls, args, shape, flat=None):
    flat = flat or (SENTENCES if cls is T else NUMBERS if cls is L.IntegerLookup else WORDS)
    dtype = "string" if isinstance(flat[0], str) else "float32" if flat is REALS else "int64"
    if shape == "known":
        flat, shape = [w for w in WORDS if w != "[UNK]"], (1,)
    rows = np.array(flat, dtype=object if dtype == "string" else dtype).reshape(-1, *shape)
    i = keras.Input(shape, dtype=dtype)
    m = keras.Model(i, cls(**args)(i))
    out = m(tf.constant(rows.tolist()))
    out = np.array(tf.sparse.to_dense(out) if isinstance(out, tf.SparseTensor) else out)
    return {
        "class": cls.__name__,
        "args": args,
        "dtype": dtype,
        "shape": list(rows.shape),
        "in": rows.ravel().tolist(),
        "out_shape": list(out.shape),
        "out": [float(v) for v in out.astype("float64").ravel()],
    }


def crossed(num_bins, shape, output_mode, *columns):
    """Inputs that count together; rows of texts and of numbers."""
    inputs = [keras.Input(shape, dtype="string" if isinstance(c[0], str) else "int64") for c in columns]
    m = keras.Model(inputs, L.HashedCrossing(num_bins, output_mode=output_mode)(inputs))
    out = np.array(m([tf.constant(np.array(c).reshape(-1, *shape).tolist()) for c in columns]))
    return {
        "args": {"num_bins": num_bins, "output_mode": output_mode},
        "shape": [len(columns[0]), *shape],
        "in": columns,
        "out_shape": list(out.shape),
        "out": [float(v) for v in out.ravel()],
    }


CROSSED = [
    crossed(1000003, (1,), "int", WORDS, NUMBERS),
    crossed(11, (), "int", NUMBERS, NUMBERS[::-1]),
    crossed(5, (1,), "one_hot", WORDS, WORDS[::-1]),
]


def text_of(n):
    return "".join(chr(97 + (i * 7 + n * 5) % 26) for i in range(n))


def hashes():
    buckets = 2**62 + 11
    for n in [*range(0, 69), 95, 96, 97, 127, 128, 129, 192, 193, 200, 257, 1000]:
        s = text_of(n)
        fast = tf.strings.to_hash_bucket_fast(s, buckets)
        strong = tf.strings.to_hash_bucket_strong(s, buckets, key=[17, -4])
        yield [s, str(int(fast)), str(int(strong))]  # as texts: JSON's numbers are doubles to many


def adapted(layer, data):
    layer.adapt(np.array(data))
    return layer


def model():
    city = keras.Input((1,), dtype="string", name="city")
    tags = keras.Input((4,), dtype="string", name="tags")
    code = keras.Input((1,), dtype="int64", name="code")
    look = L.StringLookup(vocabulary=["a", "b", "c"], num_oov_indices=3, name="look")
    h = L.Concatenate()(
        [
            L.Flatten()(L.Embedding(6, 3)(look(city))),
            adapted(L.StringLookup(output_mode="tf_idf"), [["a", "zz", "a"], ["日本語", "x", "a"]])(tags),
            L.StringLookup(vocabulary=["a", "c"], output_mode="multi_hot")(tags),
            adapted(L.IntegerLookup(output_mode="one_hot", num_oov_indices=2), [[1, 5, 5], [7, 8, 9]])(code),
        ]
    )
    m = keras.Model([city, tags, code], L.Dense(1, name="y")(L.Dense(5, activation="tanh")(h)))
    m.compile(keras.optimizers.SGD(0.1, momentum=0.9), "mse")
    return m


def training():
    keras.utils.set_random_seed(4)
    rng = np.random.default_rng(2)
    m = model()
    m.save("lookups.keras")
    n = 22
    x = {
        "city": rng.choice(WORDS, (n, 1)),
        "tags": rng.choice(WORDS, (n, 4)),
        "code": rng.choice(NUMBERS, (n, 1)),
    }
    y = (rng.integers(-16, 17, (n, 1)) / 8).astype("float32")
    tensors = {k: tf.constant(v.tolist()) for k, v in x.items()}
    before = m.predict(tensors, verbose=0)
    h = m.fit(tensors, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return {
        "rows": n,
        **{k: v.ravel().tolist() for k, v in x.items()},
        "y": [float(v) for v in y.ravel()],
        "before": [float(v) for v in before.ravel()],
        "loss": h.history["loss"],
        "after": [float(v) for v in m.predict(tensors, verbose=0).ravel()],
    }


def weighted():
    """Categories that count as much as another input says. The last layer is the identity, so that
    the file has a weight."""
    code = keras.Input((3,), dtype="int64", name="code")
    weight = keras.Input((3,), name="weight")
    counts = L.CategoryEncoding(num_tokens=5, output_mode="count")(code, count_weights=weight)
    m = keras.Model([code, weight], L.Dense(5, use_bias=False, kernel_initializer="identity")(counts))
    m.save("lookups_weighted.keras")
    x = {"code": np.array(FEW).reshape(-1, 3), "weight": np.arange(12).reshape(-1, 3) / 4 - 1}
    out = m.predict(x, verbose=0)
    return {k: v.ravel().tolist() for k, v in {**x, "out": out.astype("float64")}.items()}


def shaped():
    """Texts and numbers that are given another shape before they are looked up, as in Keras's example
    of wide and deep networks; one layer for two shapes. The last layer is the identity, so that the
    file has a weight."""
    city = keras.Input((), dtype="string", name="city")
    tags = keras.Input((6,), dtype="string", name="tags")
    code = keras.Input((), dtype="int64", name="code")
    one = L.StringLookup(vocabulary=["a", "b", "c"], output_mode="multi_hot")
    look = L.StringLookup(vocabulary=["a", "c"])
    pairs = keras.ops.squeeze(L.Reshape((1, 2, 3))(tags), 1)
    out = [
        one(keras.ops.expand_dims(city, -1)),
        L.Flatten()(keras.ops.cast(look(pairs), "float32")),
        keras.ops.cast(look(tags), "float32"),
        L.IntegerLookup(vocabulary=[7, 2**40 + 1], output_mode="one_hot")(keras.ops.expand_dims(code, -1)),
        L.HashedCrossing(5, output_mode="one_hot")([L.Reshape((1,))(city), keras.ops.expand_dims(code, 1)]),
    ]
    h = L.Concatenate()(out)
    m = keras.Model([city, tags, code], L.Dense(h.shape[-1], use_bias=False, kernel_initializer="identity")(h))
    m.save("lookups_shaped.keras")
    x = {
        "city": np.array(["a", "zz", "c", "b"]),
        "tags": np.array(["a", "b", "c", "c", "a", "", "zz", "a", "a", "b", "c", "c"] * 2).reshape(4, 6),
        "code": np.array([7, 2**40 + 1, 2**40, 8]),
    }
    y = m.predict({k: tf.constant(v.tolist(), tf.int64 if k == "code" else None) for k, v in x.items()}, verbose=0)
    return {k: v.ravel().tolist() for k, v in {**x, "out": y.astype("float64")}.items()}


data = {"cases": [case(*c) for c in CASES], "crossed": CROSSED, "hashes": list(hashes()), "training": training(),
        "weighted": weighted(), "shaped": shaped()}
text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
with open("lookups.json", "w") as f:
    f.write(text.replace('{"class"', '\n{"class"').replace('],["', '],\n["').replace('{"args"', '\n{"args"') + "\n")
