"""The files that Keras chooses for a validation split of a directory, and numpy's shuffle behind it.

Writes split_order.json: for seeds and numbers of rows the first and last places of
numpy.random.RandomState(seed).shuffle and a sum of all weighted by position; and for directories of
images, sound and texts the files and labels of both parts, in Keras's order.
"""
import io
import json
import os
import struct
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", KERAS_BACKEND="tensorflow")
import keras
import numpy as np
from PIL import Image

orders = []
for seed in (0, 1, 42, 1337, 2**32 - 1):
    for n in (2, 3, 16, 17, 625, 1000, 70000):
        at = list(range(n))
        np.random.RandomState(seed).shuffle(at)
        total = sum((i % 97 + 1) * v for i, v in enumerate(at))
        orders.append([seed, n, at[:4], at[-4:], total])

picture = io.BytesIO()
Image.new("RGB", (1, 1)).save(picture, format="PNG")


def sound(i):
    """One sample, of the value i."""
    body = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
    body += b"data" + struct.pack("<Ih", 2, i)
    return b"RIFF" + struct.pack("<I", len(body)) + body


kinds = {
    "images": (lambda i: picture.getvalue(), "png", keras.utils.image_dataset_from_directory, {"image_size": (1, 1)}),
    "audio": (sound, "wav", keras.utils.audio_dataset_from_directory, {}),
    "text": (lambda i: str(i).encode(), "txt", keras.utils.text_dataset_from_directory, {}),
}
tree = [f"{c}/{i}" for c, n in (("a", 9), ("b", 4), ("c", 7)) for i in range(n)] + ["b/deep/0"]


def relative(paths, root, labels):
    return [[os.path.relpath(p, root), int(v)] for p, v in zip(paths, labels)]


# The datasets of texts and sounds do not name their files. So names come from Keras's own lists,
# and the numbers in the files show that the datasets are made of them.
from keras.src.utils import dataset_utils

splits = []
for kind, (data, ending, open_all, more) in kinds.items():
    with tempfile.TemporaryDirectory() as root:
        for i, name in enumerate(tree):
            path = os.path.join(root, name + "." + ending)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(data(i))
        for seed in (0, 7, 123456):
            for split in (0.1, 0.35):
                row = {"kind": kind, "seed": seed, "split": split}
                for subset in ("training", "validation"):
                    opened = open_all(
                        root, batch_size=None, verbose=False, seed=seed, validation_split=split,
                        subset=subset, **more,
                    )  # fmt: skip
                    paths, labels, _ = dataset_utils.index_directory(
                        root, "inferred", ("." + ending,), seed=seed, verbose=False
                    )
                    paths, labels = dataset_utils.get_training_or_validation_split(
                        paths, labels, split, subset
                    )
                    rows = [np.asarray(x) for x, _ in opened]
                    names = [os.path.relpath(p, root).rsplit(".", 1)[0] for p in paths]
                    if kind == "images":
                        assert paths == opened.file_paths and len(rows) == len(paths)
                    else:
                        told = [int(x) if kind == "text" else round(float(x[0, 0]) * 32768) for x in rows]
                        assert sorted(told) == sorted(tree.index(n) for n in names)
                    row[subset] = relative(paths, root, labels)
                splits.append(row)
text = json.dumps({"orders": orders, "tree": tree, "splits": splits}, separators=(",", ":"))
out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "split_order.json")
with open(out, "w") as f:
    f.write(text.replace('{"kind"', '\n{"kind"') + "\n")
