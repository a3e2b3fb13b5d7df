#!/usr/bin/env python3
"""Make the small seeds of fuzz_example, fuzz_tfrecord and fuzz_tar. Run in this folder; needs
TensorFlow and Pillow."""
import io
import os
import tarfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
import numpy as np
import tensorflow as tf
from PIL import Image


def put(target, name, data):
    os.makedirs(f"corpus/{target}", exist_ok=True)
    with open(f"corpus/{target}/{name}", "wb") as f:
        f.write(data)


def png():
    out = io.BytesIO()
    Image.new("RGB", (4, 4), (9, 8, 7)).save(out, format="PNG")
    return out.getvalue()


def example(x, y):
    def feature(v):
        if isinstance(v[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=v))
        if isinstance(v[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=v))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=v))

    features = tf.train.Features(feature={"x": feature(x), "y": feature(y)})
    return tf.train.Example(features=features).SerializeToString()


rows = {
    "floats": [example([1.5, -2.0], [3]), example([0.5], [4])],
    "bytes": [example([b"abcd"], [1]), example([b"ef"], [0])],
    "texts": [example([b"a", b"b"], [b"cat"]), example([b"c"], [b"dog"])],
    "image": [example([png()], [2])],
}
for name, records in rows.items():
    put("example", name, records[0])
    for first in (0, 1, 3, 0x35):
        pieces = b"".join(bytes([len(r)]) + r for r in records)
        put("tfrecord", f"{name}_{first}", bytes([first]) + pieces)
for kind in ("", "GZIP", "ZLIB"):
    with tf.io.TFRecordWriter("/tmp/seed.tfrecord", kind) as w:
        w.write(rows["floats"][0])
        w.write(rows["floats"][1])
    with open("/tmp/seed.tfrecord", "rb") as f:
        put("tfrecord", f"whole{kind.lower()}", f.read())


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


members = {
    "array": ("npy", npy(np.arange(3, dtype=np.float32))),
    "text": ("txt", b"a text"),
    "image": ("png", png()),
}
for form, kind in (("ustar", tarfile.USTAR_FORMAT), ("pax", tarfile.PAX_FORMAT), ("gnu", tarfile.GNU_FORMAT)):
    for what, (ending, data) in members.items():
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=kind) as tar:
            for i in range(2):
                prefix = "n" * (120 if form != "ustar" else 3)
                for end, content in ((ending, data), ("cls", b"%d" % i)):
                    info = tarfile.TarInfo(f"{prefix}{i}.{end}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
        whole = out.getvalue().rstrip(b"\0")
        put("tar", f"{form}_{what}", whole + bytes(-len(whole) % 512 + 1024))
