"""A model of libkeel, and the devices that train it."""

import ctypes
import os
import warnings

from . import _library as c
from ._library import check, lib


def devices():
    """The devices of this machine, as `keel devices` lists them: a dict of names and descriptions."""
    count = ctypes.c_int()
    check(lib.keel_devices(None, 0, ctypes.byref(count)))
    info = (c.DeviceInfo * max(count.value, 1))()
    check(lib.keel_devices(info, count.value, ctypes.byref(count)))
    return {d.name.decode(): d.description.decode() for d in info[: count.value]}


def open_strategy(run, handle, devices, reproducible, recompute=False, micro_batch=0):
    """Makes a keel_strategy of the options of a run (_processes.py). The caller destroys it, after a failure, too."""
    run.open_strategy(handle, devices.encode() if devices else None)
    if reproducible:
        shards = c.SHARDS if reproducible is True else c.whole("reproducible", reproducible, 1)
        check(lib.keel_strategy_reproducible(handle, shards))
    lib.keel_strategy_recompute(handle, recompute)
    check(lib.keel_strategy_micro_batch(handle, micro_batch))


def loaded(path, trains, where, name):
    """The Model of a file that only the package knows, so errors say `name` in the place of `where`."""
    try:
        return Model(path, trains)
    except c.Error as error:
        error.args = (str(error).replace(where, name),)
        raise


class Model:
    """A model of a .keras file. Not for two runs at a time; close() frees it, as does the end of `with`.

    trains=False leaves the state of its optimizer in the file, for less memory."""

    def __init__(self, path, trains=True):
        self.handle, self.stop_training = ctypes.c_void_p(), False
        load = lib.keel_model_load if trains else lib.keel_model_load_without_state
        check(load(ctypes.byref(self.handle), os.fsencode(path)))
        m = self.handle
        self.inputs = [lib.keel_model_input_name(m, i).decode() for i in range(lib.keel_model_input_count(m))]
        self.outputs = [
            lib.keel_model_output_name(m, i).decode() for i in range(lib.keel_model_output_count(m))
        ]

    name = property(lambda self: lib.keel_model_name(self.handle).decode())

    @property
    def learning_rate(self):
        rate = ctypes.c_double()
        check(lib.keel_model_learning_rate(self.handle, ctypes.byref(rate)))
        return rate.value

    @learning_rate.setter
    def learning_rate(self, rate):
        check(lib.keel_model_set_learning_rate(self.handle, rate))

    def save(self, path):
        """Write a .keras file, which Keras loads."""
        check(lib.keel_model_save(self.handle, os.fsencode(path)))

    def save_weights(self, path):
        check(lib.keel_model_save_weights(self.handle, os.fsencode(path)))

    def load_weights(self, path):
        check(lib.keel_model_load_weights(self.handle, os.fsencode(path)))

    def give_weights(self, keras, folder):
        """A Keras model of the same layers gets what this one has, by way of a file in `folder`."""
        path = os.path.join(folder, "now.weights.h5")
        self.save_weights(path)
        with warnings.catch_warnings():  # a model within has an optimizer, whose state is not in the file
            warnings.filterwarnings("ignore", "Skipping variable loading for optimizer")
            keras.load_weights(path)
        os.remove(path)

    def take_weights(self, keras, folder):
        """And the other way round."""
        path = os.path.join(folder, "set.weights.h5")
        keras.save_weights(path)
        self.load_weights(path)
        os.remove(path)

    def exclude_from_weight_decay(self, names):
        array = (ctypes.c_char_p * len(names))(*(name.encode() for name in names))
        check(lib.keel_model_exclude_from_weight_decay(self.handle, array, len(names)))

    def summary(self):
        text = ctypes.c_void_p()
        check(lib.keel_model_summary(self.handle, ctypes.byref(text)))
        try:
            print(ctypes.string_at(text.value).decode())
        finally:
            lib.keel_model_summary_free(text)

    def close(self):
        lib.keel_model_destroy(self.handle)
        self.handle = ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if lib and getattr(self, "handle", None):  # at the interpreter's end modules are gone
            self.close()
