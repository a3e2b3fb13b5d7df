"""Record files as TensorFlow, Python's tarfile and WebDataset write them, with what they read back.

Writes records.json: the bytes of each file (base64), and the rows as tf.io.parse_example and
tf.image give them, or as WebDataset groups them. Needs webdataset.
"""
import base64
import io
import json
import os
import tarfile
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
import numpy as np
import tensorflow as tf
import webdataset

rng = np.random.RandomState(7)
folder = tempfile.mkdtemp()
files = {}
rows = {}


def path(name):
    return os.path.join(folder, name)


def keep(name):
    with open(path(name), "rb") as f:
        files[name] = base64.b64encode(f.read()).decode()


def feature(value):
    if isinstance(value[0] if len(value) else 0, (bytes, str)):
        value = [v.encode() if isinstance(v, str) else v for v in value]
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=value))
    if isinstance(value[0] if len(value) else 0, float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=value))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value))


def write(name, examples, compression=""):
    with tf.io.TFRecordWriter(path(name), compression) as w:
        for e in examples:
            features = tf.train.Features(feature={k: feature(v) for k, v in e.items()})
            w.write(tf.train.Example(features=features).SerializeToString())
    keep(name)


words = ["one", "zwei", "trois", "\u56db", "cinco", "sex"]
examples = [
    {
        "x": [float(v) for v in rng.randn(4).astype(np.float32)],
        "y": [i % 3],
        "raw": [bytes(rng.randint(0, 256, 6, dtype=np.uint8))],
        "halves": [rng.randn(2).astype("<f8").tobytes()],
        "big": [-(2**63) + i, 2**63 - 1 - i, -i],
        "tokens": [int(t) for t in range(10 * i, 10 * i + i)],
        "word": [words[i]],
        "label": [["cat", "dog"][i % 2]],
        "sample_weight": [0.5 * i],
    }
    for i in range(6)
]
write("numbers.tfrecord", examples)
write("numbers.tfrecord.gz", examples, "GZIP")
write("zlib.tfrecord", examples, "ZLIB")
parsed = tf.io.parse_example(
    [r.numpy() for r in tf.data.TFRecordDataset(path("numbers.tfrecord"))],
    {
        "x": tf.io.FixedLenFeature([4], tf.float32),
        "y": tf.io.FixedLenFeature([], tf.int64),
        "raw": tf.io.FixedLenFeature([], tf.string),
        "halves": tf.io.FixedLenFeature([], tf.string),
        "big": tf.io.FixedLenFeature([3], tf.int64),
        "tokens": tf.io.RaggedFeature(tf.int64),
        "word": tf.io.FixedLenFeature([], tf.string),
        "sample_weight": tf.io.FixedLenFeature([], tf.float32),
    },
)
rows["x"] = parsed["x"].numpy().astype(float).ravel().tolist()
rows["y"] = parsed["y"].numpy().tolist()
rows["raw"] = tf.io.decode_raw(parsed["raw"], tf.uint8).numpy().ravel().tolist()
rows["halves"] = tf.io.decode_raw(parsed["halves"], tf.float64).numpy().ravel().tolist()
rows["big"] = [str(v) for v in parsed["big"].numpy().ravel()]
rows["tokens"] = parsed["tokens"].to_tensor().numpy().ravel().tolist()  # padded with 0
rows["word"] = [w.decode() for w in parsed["word"].numpy()]
rows["sample_weight"] = parsed["sample_weight"].numpy().tolist()

y, x = np.mgrid[0:14, 0:18]
pictures = [
    np.clip(
        np.stack([8 * x + i, 9 * y, 4 * (x + y) + 20 * i], -1) + rng.randint(0, 9, (14, 18, 3)), 0, 255
    ).astype(np.uint8)
    for i in range(3)
]
coded = [
    tf.io.encode_jpeg(pictures[0], quality=90).numpy(),
    tf.io.encode_png(pictures[1]).numpy(),
    tf.io.encode_jpeg(pictures[2], quality=80).numpy(),
]
write("images.tfrecord", [{"image": [c], "label": [i]} for i, c in enumerate(coded)])
for name, size in (("images_same", (14, 18)), ("images_small", (7, 10))):
    out = [tf.image.resize(tf.io.decode_image(c, 3, expand_animations=False), size) for c in coded]
    rows[name] = [float(v) for o in out for v in o.numpy().ravel()[::17]]

with tf.io.TFRecordWriter(path("sequence.tfrecord")) as w:
    steps = tf.train.FeatureList(feature=[feature([1]), feature([2])])
    w.write(
        tf.train.SequenceExample(
            context=tf.train.Features(feature={"y": feature([1])}),
            feature_lists=tf.train.FeatureLists(feature_list={"x": steps}),
        ).SerializeToString()
    )
keep("sequence.tfrecord")


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))


long = "a-folder-with-a-long-name/" * 6
for kind in ("USTAR", "PAX", "GNU"):
    name = kind.lower() + ".tar"
    deep = {"USTAR": "folder/" * 18, "PAX": long + "gr\u00f6\u00dfe/", "GNU": long}[kind]
    with tarfile.open(path(name), "w", format=getattr(tarfile, kind + "_FORMAT")) as tar:
        info = tarfile.TarInfo(deep.rstrip("/"))
        info.type = tarfile.DIRTYPE
        tar.addfile(info)
        for i in range(3):  # the members of a key need not stand together
            add(tar, f"{deep}{i:06d}.npy", npy(np.arange(4, dtype=np.float32) + 10 * i))
        for i in range(3):
            add(tar, f"{deep}{i:06d}.cls", b"%d\n" % (2 - i))
        add(tar, "README", b"of no row")
    keep(name)
rows["tar_x"] = [float(10 * i + k) for i in range(3) for k in range(4)]
rows["tar_y"] = [2, 1, 0]

for shard in range(2):
    name = f"wds-{shard:03d}.tar"
    with webdataset.TarWriter(path(name)) as sink:
        for i in range(2):
            k = 2 * shard + i
            sink.write(
                {
                    "__key__": f"sample{k:04d}",
                    "png": tf.io.encode_png(pictures[k % 3]).numpy(),
                    "cls": k % 3,
                    "txt": f"a picture, {words[k]}",
                    "json": {"k": k},
                    "v.npy": np.arange(k + 1, dtype=np.int64),
                }
            )
    keep(name)
read = list(webdataset.WebDataset([path("wds-000.tar"), path("wds-001.tar")], shardshuffle=False))
rows["wds_keys"] = [r["__key__"] for r in read]
rows["wds_txt"] = [r["txt"].decode() for r in read]
rows["wds_cls"] = [int(r["cls"]) for r in read]
rows["wds_png"] = [int(v) for r in read for v in tf.io.decode_png(r["png"]).numpy().ravel()[::17]]

with open("records.json", "w") as f:
    json.dump({"files": files, "rows": rows}, f, separators=(",", ":"), ensure_ascii=True)
    f.write("\n")
