"""Data that libkeel reads itself: what `--data` of the command takes, and folders as by keras.utils."""

import ctypes
import os

import numpy as np

from . import _library as c
from ._rows import Rows

# The texts of Keras for the enums of dataset_options.h, in their order.
COLORS = ("rgb", "rgba", "grayscale")
LABELS = ("int", "categorical", "binary", None)
INTERPOLATIONS = (
    "bilinear",
    "bicubic",
    "area",
    "lanczos3",
    "lanczos5",
    "gaussian",
    "mitchellcubic",
    "nearest",
)
SUBSETS = (None, "training", "validation")
MISSING = ("error", "drop", "fill", "mean")
ENUMS = {
    "color_mode": COLORS,
    "label_mode": LABELS,
    "interpolation": INTERPOLATIONS,
    "subset": SUBSETS,
    "missing": MISSING,
}


class Dataset(Rows):
    """Rows for fit, evaluate and predict, any number of times. `batch_size` and `shuffle` are what fit
    uses if it is not told otherwise; `class_names` those of the labels, `rows` None if nobody knows."""

    def __init__(self, batch_size=None, shuffle=True):
        super().__init__()
        self.batch_size, self.shuffle = batch_size, shuffle

    @property
    def rows(self):
        n = c.lib.keel_dataset_rows(self.handle)
        return n if n >= 0 else None

    @property
    def class_names(self):
        n = c.lib.keel_dataset_class_count(self.handle)
        return [c.lib.keel_dataset_class_name(self.handle, i).decode() for i in range(n)]

    def __del__(self):
        if c.lib and getattr(self, "handle", None):
            self.close()


def texts(values, kept):
    array = (ctypes.c_char_p * len(values))(*(str(v).encode() for v in values))
    kept.append(array)
    return array


def options_of(d, named):
    """keel_dataset_options from its members by name; None is the default."""
    o = c.DatasetOptions(ctypes.sizeof(c.DatasetOptions))
    for name, value in named.items():
        if name in ENUMS:
            value = c.place(name, value, ENUMS[name])
        elif value is None:
            continue
        elif isinstance(value, str):
            value = value.encode()
        elif name in c.LISTS_OF_TEXTS:
            setattr(o, c.LISTS_OF_TEXTS[name], len(value))
            value = texts(value, d.kept)
        setattr(o, name, value)
    note = c.Line(lambda _, line: c.tell(line.decode(errors="replace")))
    o.note = note
    d.kept += [o, note]
    return o


def opened(function, path, d, named):
    c.check(function(ctypes.byref(d.handle), os.fsencode(path), ctypes.byref(options_of(d, named))))
    return d


def open(source, *, inputs=None, targets=None, label=None, sample_weight=None, image_size=None, color_mode="rgb",
         interpolation="bilinear", label_mode="int", class_names=None, missing="error", features=None, no_header=False,
         audio_length=None, sampling_rate=None, max_length=None, skip_list=None, batch_size=None, shuffle=True):  # fmt: skip
    """Data by the text that --data of the command takes: "d.npz", "table.csv", "train-*.tfrecord",
    "shard-{000..010}.tar", "photos/", "pipeline.toml" and so on. The arguments are keel_dataset_options'
    (keel/dataset_options.h). missing may be a number, which fills inputs."""
    fill = not isinstance(missing, str)
    named = {
        "inputs": inputs, "targets": targets, "label": label, "sample_weight": sample_weight,
        "color_mode": color_mode, "interpolation": interpolation, "label_mode": label_mode,
        "class_names": class_names, "missing": "fill" if fill else missing,
        "missing_value": float(missing) if fill else None, "features": features, "no_header": no_header,
        "audio_length": audio_length, "sampling_rate": sampling_rate, "max_length": max_length,
        "skip_list": skip_list,
    }  # fmt: skip
    if image_size:
        named["height"], named["width"] = image_size
    return opened(c.lib.keel_dataset_open, source, Dataset(batch_size, shuffle), named)


def from_directory(function, directory, labels, label_mode, class_names, batch_size, shuffle, seed, validation_split,
                   subset, follow_links, **named):  # fmt: skip
    """What the three functions share."""
    if subset == "both":
        return tuple(
            from_directory(function, directory, labels, label_mode, class_names, batch_size, shuffle, seed,
                           validation_split, part, follow_links, **named)
            for part in SUBSETS[1:]
        )  # fmt: skip
    if validation_split and not shuffle:
        raise c.Unsupported("a part of a directory is taken in the order of a seed: with shuffle=False it would be the last"
                            " classes alone. Give a seed, and shuffle=False to fit")  # fmt: skip
    if validation_split and seed is None:
        raise c.ArgumentError("validation_split needs a seed, so that both parts are of one order")
    d = Dataset(batch_size, shuffle)
    if labels is None:
        label_mode = None
    elif not isinstance(labels, str):
        labels = np.ascontiguousarray(labels, np.int32)
        named["labels"] = labels.ctypes.data_as(ctypes.POINTER(ctypes.c_int32))
        named["label_count"] = len(labels)
        d.kept.append(labels)
    elif labels != "inferred":
        raise c.ArgumentError(
            f"labels is {labels!r}; it is 'inferred', None, or a list with a number for each file"
        )
    named.update(
        label_mode=label_mode, folders=class_names, seed=seed or 0, validation_split=validation_split or 0.0
    )
    return opened(function, directory, d, {**named, "subset": subset, "follow_links": follow_links})


def image_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None, color_mode="rgb",
                                 batch_size=32, image_size=(256, 256), shuffle=True, seed=None, validation_split=None,
                                 subset=None, interpolation="bilinear", follow_links=False,
                                 crop_to_aspect_ratio=False, pad_to_aspect_ratio=False):  # fmt: skip
    """As keras.utils.image_dataset_from_directory: the same files, order of classes, labels and pixels,
    decoded by Keel's threads. For subset="both" a pair."""
    return from_directory(
        c.lib.keel_dataset_from_image_directory, directory, labels, label_mode, class_names, batch_size, shuffle,
        seed, validation_split, subset, follow_links, color_mode=color_mode, height=image_size[0],
        width=image_size[1], interpolation=interpolation, crop_to_aspect_ratio=crop_to_aspect_ratio,
        pad_to_aspect_ratio=pad_to_aspect_ratio,
    )  # fmt: skip


def audio_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None, batch_size=32,
                                 sampling_rate=None, output_sequence_length=None, shuffle=True, seed=None,
                                 validation_split=None, subset=None, follow_links=False):  # fmt: skip
    """As keras.utils.audio_dataset_from_directory; sounds of another sampling_rate are refused."""
    return from_directory(
        c.lib.keel_dataset_from_audio_directory, directory, labels, label_mode, class_names, batch_size, shuffle,
        seed, validation_split, subset, follow_links, sampling_rate=sampling_rate, audio_length=output_sequence_length,
    )  # fmt: skip


def text_dataset_from_directory(directory, labels="inferred", label_mode="int", class_names=None, batch_size=32,
                                max_length=None, shuffle=True, seed=None, validation_split=None, subset=None,
                                follow_links=False):  # fmt: skip
    """As keras.utils.text_dataset_from_directory."""
    return from_directory(
        c.lib.keel_dataset_from_text_directory, directory, labels, label_mode, class_names, batch_size, shuffle,
        seed, validation_split, subset, follow_links, max_length=max_length,
    )  # fmt: skip
