"""Rows drawn by chance for random_fits.py, as Keras takes them and as files for keel.

A file is one of arrays (.npz, .h5), of columns (.csv) or of lines (.jsonl); or the rows are a folder
of images, one folder for each class, as Keras's image_dataset_from_directory reads it.
"""
import contextlib
import csv
import io
import json
import os
import shutil

import random_graphs as graphs
import fit_models
import h5py
import keras
import numpy as np

FOLDERS = ["a", "b b", "c"]  # one for each class


def is_dict(model, which):
    """A Sequential model of a file has no inputs in Keras before it is called, if its first layer takes texts."""
    return not isinstance(model, keras.Sequential) and isinstance(getattr(model, which), dict)


class Rows:
    def __init__(self, x, y, w):
        """{name: array} of inputs and of targets; w: None, an array, or one for each output by its name"""
        self.x, self.y, self.w = x, y, w

    def part(self, of):
        def cut(values):
            return {k: a[of] for k, a in values.items()}

        return Rows(cut(self.x), cut(self.y), cut(self.w) if isinstance(self.w, dict) else None if self.w is None else self.w[of])

    def n(self):
        return len(next(iter(self.x.values())))

    def is_flat(self):
        return all(a.ndim <= 2 for a in [*self.x.values(), *self.y.values()])

    def has_texts(self):
        return any(a.dtype.kind == "U" for a in self.x.values())

    def keras_x(self, model, chance=None):
        """chance: moves each number by what rounding makes of it"""

        def of(a):
            if a.dtype.kind == "U":
                return keras.ops.convert_to_tensor(a.tolist())
            if chance is not None and a.dtype == "float32" and not (a == np.round(a)).all():
                return (a * (1 + graphs.ROUNDING * chance.choice([-1.0, 1.0], a.shape))).astype("float32")
            return a

        values = {k: of(a) for k, a in self.x.items()}
        return values if is_dict(model, "input") else graphs.one(list(values.values()))

    def keras_y(self, model):
        return self.y if is_dict(model, "output") else graphs.one(list(self.y.values()))

    def keras_w(self, model):
        return list(self.w.values()) if isinstance(self.w, dict) and not is_dict(model, "output") else self.w


# ---- drawn --------------------------------------------------------------------------------------


def input_rows(d, kind, shape, dtype):
    """shape: [rows, ...]"""
    if kind == "text":
        return d.chance.choice(fit_models.WORDS, shape)
    if kind in ("image", "image8"):
        return d.chance.integers(0, 256, shape).astype(dtype)
    if kind == "table":
        a = d.chance.integers(0, fit_models.TOKENS, shape).astype(dtype)
        a[:, 0] = np.maximum(a[:, 0], 1)  # not all steps are masked
        return a
    if dtype == "bool":
        return d.chance.integers(0, 2, shape).astype(bool)
    if kind in ("lookup", "bytes", "whole"):
        return d.chance.integers(0, 7, shape).astype(dtype)
    a = d.chance.normal(size=shape).astype(dtype)
    if kind == "steps":
        for row in a:
            row[d.int(1, fit_models.STEPS) :] = 0
    return a


def target_rows(d, kind, shape, flat=False):
    """shape: [rows, ..., numbers of the output]. flat: labels have no last dim of 1"""
    if kind == "real":
        return d.chance.normal(size=shape).astype(d.one(["float32", "float32", "float64", "float16"]))
    if kind == "positive":
        return np.abs(d.chance.normal(size=shape)).astype("float32")
    if kind in ("binary", "logits"):
        y = d.chance.integers(0, 2, shape).astype(d.one(["float32", "int32", "uint8", "bool", "int8", "float16"]))
        # Keras's hinge, a metric of logits here, compares each of [B] with each of [B, 1]
        return y[:, 0] if kind == "binary" and shape[1:] == (1,) and d.flip(0.3) else y
    c = d.chance.integers(0, shape[-1], shape[:-1])
    if kind == "one_hot":
        return np.eye(shape[-1], dtype="float32")[c]
    c = c.astype(d.one(["int64", "int32", "uint8", "float32", "int16", "uint32", "int8"]))
    return c[..., None] if d.flip(0.3) and not flat else c


def rows_of(d, m, n):
    """({name: x}, {name: y}) of n rows for the model m."""
    x = {name: input_rows(d, kind, (n, *shape), dtype) for name, kind, shape, dtype in m.inputs}
    return x, {name: target_rows(d, kind, (n, *shape), name in m.flat) for name, kind, shape in m.outputs}


def weights_of(d, m, n):
    """Sample weights of n rows, or None."""
    if not d.flip(0.4):
        return None

    def some(shape):
        """One for each row, or for each step or pixel of it."""
        if len(shape) > 1 and d.flip():
            return d.chance.uniform(0.3, 2, (n, *shape[:-1])).astype("float32")
        w = d.chance.uniform(0.3, 2, n).astype("float32")
        if d.flip(0.3):
            w[d.chance.integers(0, n, 2)] = 0
            w[::3] = 1
        return w.astype("float64") if d.flip(0.2) else w

    of_each = {name: some(shape) for name, _, shape in m.outputs}
    return of_each if len(of_each) > 1 else next(iter(of_each.values()))


def all_ones(like, n):
    """Weights of n rows that change nothing, for the outputs of other weights."""
    if isinstance(like, dict):
        return {k: np.ones(n, "float32") for k in like}
    return None if like is None else np.ones(n, "float32")


# ---- batches for Python ---------------------------------------------------------------------------


class Batches(keras.utils.PyDataset):
    def __init__(self, rows, batch):
        super().__init__()
        self.rows, self.batch = rows, batch

    def __len__(self):
        return -(-len(keras.tree.flatten(self.rows)[0]) // self.batch)

    def __getitem__(self, i):
        return keras.tree.map_structure(lambda a: a[i * self.batch : (i + 1) * self.batch], self.rows)


class Begun:
    """An object that gives the batches anew to each for loop."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return (self.batches[i] for i in range(len(self.batches)))


def batches(kind, x, y, batch, w):
    """Rows in batches, as a PyDataset, a tf.data.Dataset or another object that can be begun anew."""
    rows = tuple(tuple(v) if isinstance(v, list) else v for v in (x, y, w) if v is not None)
    if kind == "dataset":
        return graphs.tf.data.Dataset.from_tensor_slices(rows).batch(batch)
    of = Batches(rows, batch)
    return of if kind == "PyDataset" else Begun(of)


# ---- files: (path, options of keel that name the fields) ------------------------------------------


def by_names(option, names):
    return [option, " ".join(f"{k}={v}" for k, v in names.items())]


def write_arrays(path, rows, by_name):
    """by_name: arrays have names of their own, else those that keel looks for."""
    arrays, options = {}, []
    groups = [("x", rows.x, "--inputs"), ("y", rows.y, "--label")]
    if isinstance(rows.w, dict):
        groups.append(("sample_weight", rows.w, "--sample-weight"))
    elif rows.w is not None:
        arrays["sample_weight"] = rows.w
    for role, values, option in groups:
        single = role if len(values) == 1 else None
        names = {k: f"array_{role}{i}" if by_name else single or f"{role}_{i}" for i, k in enumerate(values)}
        arrays.update({names[k]: a for k, a in values.items()})
        options += by_names(option, names) if by_name else []
    if path.endswith("npz"):
        np.savez(path, **arrays)
        return path, options
    with h5py.File(path, "w") as f:
        for k, a in arrays.items():
            if a.dtype.kind == "U":
                f.create_dataset(k, data=a.astype(object), dtype=h5py.string_dtype())
            else:
                f.create_dataset(k, data=a)
    return path, options


def csv_text(v):
    return v if isinstance(v, str) else int(v) if isinstance(v, (np.bool_, np.integer)) else repr(float(v))


def write_csv(path, rows):
    columns, options = {}, []
    for role, values, option in (("i", rows.x, "--inputs"), ("t", rows.y, "--label")):
        names = {}
        for i, (k, a) in enumerate(values.items()):
            a = a if a.ndim == 2 else a[:, None]
            parts = [f"{role}{i}_{j}" for j in range(a.shape[1])]
            columns.update(zip(parts, a.T))
            names[k] = ",".join(parts)
        options += by_names(option, names)
    if isinstance(rows.w, dict):
        names = {k: f"w{i}" for i, k in enumerate(rows.w)}
        columns.update({names[k]: a for k, a in rows.w.items()})
        options += by_names("--sample-weight", names)
    elif rows.w is not None:
        columns["sample_weight"] = rows.w
        options += ["--sample-weight", "sample_weight"]
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(columns)
        out.writerows([csv_text(v) for v in row] for row in zip(*columns.values()))
    return path, options


def write_jsonl(path, rows):
    columns = {f"i{k}": a for k, a in rows.x.items()} | {f"t{k}": a for k, a in rows.y.items()}
    options = by_names("--inputs", {k: f"i{k}" for k in rows.x}) + by_names("--label", {k: f"t{k}" for k in rows.y})
    if isinstance(rows.w, dict):
        columns |= {f"w{k}": a for k, a in rows.w.items()}
        options += by_names("--sample-weight", {k: f"w{k}" for k in rows.w})
    elif rows.w is not None:
        columns["w"] = rows.w
        options += ["--sample-weight", "w"]
    with open(path, "w") as f:
        for i in range(rows.n()):
            f.write(json.dumps({k: a[i].tolist() for k, a in columns.items()}, ensure_ascii=False) + "\n")
    return path, options


def write_file(folder, stem, kind, rows, by_name):
    path = os.path.join(folder, f"{stem}.{kind}")
    if kind == "csv":
        return write_csv(path, rows)
    return write_jsonl(path, rows) if kind == "jsonl" else write_arrays(path, rows, by_name)


# ---- folders of images --------------------------------------------------------------------------


class Photos:
    """A folder of drawn images, and its rows as Keras reads them: those of the training before those of the validation.

    options    of keel, by which it reads them alike
    n_train    how many rows are before the validation; 0: there is none
    """

    def __init__(self, d, m, folder, n):
        (name, kind, shape, dtype), = m.inputs  # fmt: skip
        self.path = os.path.join(folder, "photos")
        self.write(d, n, shape[:2] if kind == "image8" else None)
        self.split, self.seed = d.one([0, 0, 0.2, 0.3]), d.int(0, 99)
        fits = "crop_to_aspect_ratio" if d.flip(0.2) else "pad_to_aspect_ratio" if d.flip(0.2) else None
        how = dict(image_size=shape[:2], batch_size=4, verbose=False, interpolation=d.one(["bilinear", "nearest", "bicubic", "area"]))
        how.update({fits: True} if fits else {})
        self.options = ["--interpolation", how["interpolation"], *(["--" + fits.replace("_", "-")] if fits else [])]
        every = self.read(shuffle=False, **how)
        image = dict(zip(every.file_paths, np.concatenate([a.numpy() for a, _ in every])))
        paths, self.n_train = every.file_paths, 0
        if self.split:
            parts = self.read(seed=self.seed, validation_split=self.split, subset="both", **how)
            paths, self.n_train = [*parts[0].file_paths, *parts[1].file_paths], len(parts[0].file_paths)
        classes = [FOLDERS.index(os.path.basename(os.path.dirname(p))) for p in paths]
        self.rows = Rows({name: np.stack([image[p] for p in paths]).astype(dtype)}, {m.outputs[0][0]: np.array(classes)}, None)

    def write(self, d, n, size):
        """n images, of that size or of any."""
        tf = graphs.tf
        shutil.rmtree(self.path, ignore_errors=True)
        for i in range(n):
            folder = os.path.join(self.path, FOLDERS[i % len(FOLDERS)])
            os.makedirs(folder, exist_ok=True)
            a = d.chance.integers(0, 256, (*(size or d.ints(2, 4, 9)), 3)).astype("uint8")
            end, encode = d.one([("png", tf.io.encode_png), ("jpg", tf.io.encode_jpeg), ("PNG", tf.io.encode_png)])
            tf.io.write_file(os.path.join(folder, f"{d.int(0, 999)}_{i}.{end}"), encode(a))

    def read(self, **how):
        with contextlib.redirect_stdout(io.StringIO()):  # it says how many files there are
            return keras.utils.image_dataset_from_directory(self.path, **how)
