"""Rows per second of tf.data from a TFRecord file that bench_records has written.

    taskset -c 0 python bench/peers/records.py FILE

Three ways to read it, each with one thread: parse_example on batches (the fastest), on single rows,
and on batches of shuffled rows. A line of JSON for each: rows per second of the best pass, and rows
per second of processor time over all passes but the first.
"""
import json
import os
import sys
import time

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
import tensorflow as tf

BATCH, PASSES = 256, 4
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
spec = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def many(records):
    e = tf.io.parse_example(records, spec)
    return tf.reshape(tf.io.decode_raw(e["image"], tf.uint8), [-1, 28, 28, 1]), e["label"]


def one(record):
    e = tf.io.parse_single_example(record, spec)
    return tf.reshape(tf.io.decode_raw(e["image"], tf.uint8), [28, 28, 1]), e["label"]


def read(name, data):
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    data = data.with_options(options).prefetch(2)
    best, used = 0, 0
    for i in range(PASSES):
        begin, cpu, rows = time.perf_counter(), time.process_time(), 0
        for x, y in data:
            rows += int(x.shape[0])
        if i:
            best = max(best, rows / (time.perf_counter() - begin))
            used += time.process_time() - cpu
    line = {"program": "tf.data", "order": name, "rows": rows, "rows_per_s": round(best)}
    line |= {"rows_per_cpu_s": round((PASSES - 1) * rows / used), "version": tf.__version__}
    print(json.dumps(line), flush=True)


file = tf.data.TFRecordDataset(sys.argv[1], buffer_size=1 << 20)
read("stored", file.batch(BATCH).map(many))
read("stored, row by row", file.map(one).batch(BATCH))
read("shuffled", file.shuffle(10000).batch(BATCH).map(many))
