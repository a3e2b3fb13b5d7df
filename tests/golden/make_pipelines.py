"""What stages of tf.data give, for tests/test_stages.c: pipelines.json, with the elements of each
case as text, and the public methods of tf.data.Dataset, all of which docs/pipelines.md names.

    python3 tests/golden/make_pipelines.py
"""
import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

D = tf.data.Dataset


def text_of(value):
    """Numbers or texts joined by , and rows of them by ;"""
    value = np.asarray(value)
    if value.ndim == 0:
        return str(int(value)) if value.dtype.kind in "iub" else value.item().decode()
    return (";" if value.ndim > 1 else ",").join(text_of(v) for v in value)


def elements(dataset, most=200):
    out = ""
    for e in dataset.take(most):
        fields = e if isinstance(e, tuple) else (e,)
        out += "/".join(text_of(f.numpy()) for f in fields) + " "
    return out


def ragged(n):
    """Row k of n has k + 1 times the number k + 1."""
    return D.range(1, n + 1).map(lambda k: tf.fill([k], k))


def boxes(r):
    """Of k times the number k, all numbers from 0 on in the shape (k, 6 - k, 3, 2)."""
    k = tf.size(r)
    return tf.cast(tf.reshape(tf.range(k * (6 - k) * 6), [k, 6 - k, 3, 2]), tf.int64)


def to_3(r):
    return tf.concat([r, tf.fill([3], np.int64(9))], 0)[:3]


def tens(k):
    """k numbers from 10 k on."""
    return D.range(10 * k, 10 * k + k)


def given():
    parts = tf.ragged.constant([[0, 1, 2], [10], [20, 21, 22, 23], [30, 31]], dtype=tf.int64)
    return D.from_tensor_slices(parts)


def row(r):
    return D.from_tensor_slices(r)


def chosen(stop):
    return D.choose_from_datasets(
        [D.range(3), D.range(10, 12), D.range(20, 25)],
        D.from_tensor_slices(np.array([0, 1, 2, 2, 1, 0, 1, 2, 0, 0, 2, 1, 0], np.int64)),
        stop_on_empty_dataset=stop)


def grouped(reduce, size=None, sizes=None):
    return D.range(20).group_by_window(key_func=lambda x: (x * x + 2) % 5, reduce_func=reduce,
                                       window_size=size, window_size_func=sizes)


cases = {
    "enumerate from 5": D.range(3, 7).enumerate(5),
    "enumerate, twice": D.range(3).enumerate().repeat(2),
    "take_while": D.range(10).take_while(lambda x: x * x < 20),
    "take_while of none": D.range(3, 10).take_while(lambda x: x < 3),
    "scan": D.range(7).scan(np.int64(10), lambda s, x: (s + x, s * x)),
    "scan, twice": D.range(4).scan(np.int64(0), lambda s, x: (s + x, s + x)).repeat(2),
    "unique": D.from_tensor_slices([1, 37, 2, 37, 2, 1, 0]).unique(),
    "unique, more than 32": D.range(100).map(lambda x: x * x % 97).unique(),
    "unique of texts": D.from_tensor_slices(["b", "a", "", "b", "ab", "", "a", "ba"]).unique(),
    "unique of lists of texts": D.from_tensor_slices(
        ["b", "a", "", "b", "ab", "", "a", "ba"]).batch(2).repeat(2).unique(),
    "unique of batches": D.from_tensor_slices([1, 2, 1, 2, 2, 1, 1]).batch(2).unique(),
    "range": D.range(5),
    "range by steps": D.range(3, 10, 3),
    "range backward": D.range(9, 2, -2),
    "counter": D.counter(10, 3).take(4),
    "choose until one is empty": chosen(True),
    "choose until all are": chosen(False),
    "flat_map": D.range(5).flat_map(tens),
    "flat_map then batch": D.range(5).flat_map(tens).batch(4),
    "flat_map of batches": D.range(5).flat_map(lambda k: tens(k).batch(2)),
    "interleave of 2": D.range(6).interleave(tens, cycle_length=2, num_parallel_calls=None),
    "interleave of 2 by 3": D.range(7).interleave(tens, cycle_length=2, block_length=3),
    "interleave of 3 by 2": D.range(1, 8).interleave(tens, cycle_length=3, block_length=2),
    "interleave of 10 by 4": D.range(6).interleave(tens, cycle_length=10, block_length=4),
    "interleave then repeat": D.range(4).interleave(tens, cycle_length=2).repeat(2),
    "interleave given": given().interleave(row, cycle_length=4),
    "interleave given by 2": given().interleave(row, cycle_length=4, block_length=2),
    "interleave given, 2 open": given().interleave(row, cycle_length=2),
    "interleave given, 3 open by 2": given().interleave(row, cycle_length=3, block_length=2),
    "group_by_window": grouped(lambda k, d: d.batch(3), size=3),
    "group_by_window by key": grouped(lambda k, d: d.batch(10), sizes=lambda k: k + 1),
    "group_by_window, rows": grouped(lambda k, d: d.skip(1), size=4),
    "padded_batch": ragged(5).padded_batch(2),
    "map to rows of other lengths": ragged(5).map(lambda r: tf.concat([r, r], 0)).padded_batch(2),
    "map of batches to others": ragged(5).padded_batch(2).map(lambda r: tf.concat([r, r], 1)),
    "padded_batch by -1": ragged(5).padded_batch(2, padding_values=np.int64(-1)),
    "padded_batch to 6": ragged(5).padded_batch(3, padded_shapes=[6], padding_values=np.int64(7)),
    "padded_batch of rows of several dims": ragged(5).map(boxes).padded_batch(
        3, padding_values=np.int64(-1)),
    "padded_batch, dropped": ragged(5).padded_batch(2, drop_remainder=True),
    "padded_batch of rows that are too long": ragged(6).concatenate(ragged(4)).padded_batch(
        3, padded_shapes=[4]).ignore_errors(),
    "pad to 3": D.from_tensor_slices(
        tf.ragged.stack(list(ragged(5))).to_tensor(default_value=9, shape=[None, 3])),
    "pad before": D.from_tensor_slices(tf.keras.utils.pad_sequences(
        [[k] * (k - 1) + [0] for k in range(1, 6)], maxlen=3, value=8, padding="pre",
        truncating="pre")),
    "pad two fields of three": D.range(1, 5).map(lambda k: (
        to_3(tf.fill([k], k)), k, to_3(tf.fill([5 - k], 10 * k)))),
    "rebatch": D.range(11).batch(4).rebatch(3),
    "rebatch in turn": D.range(11).batch(4).rebatch([2, 1, 3]),
    "rebatch in turn, dropped": D.range(11).batch(4).rebatch([2, 4], drop_remainder=True),
    "bucket_by_sequence_length": ragged(9).bucket_by_sequence_length(
        lambda r: tf.shape(r)[0], bucket_boundaries=[3, 6], bucket_batch_sizes=[2, 2, 3]),
    "cache then repeat": D.range(7).filter(lambda x: x % 3 > 0).cache().repeat(2),
}

golden = {
    "cases": {name: elements(d) for name, d in cases.items()},
    "methods": sorted(n for n in dir(D) if not n.startswith("_") and callable(getattr(D, n))),
}
with open(os.path.join(os.path.dirname(__file__), "pipelines.json"), "w") as f:
    json.dump(golden, f, indent=1)
    f.write("\n")
