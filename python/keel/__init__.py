"""Train Keras models with Keel, on all cores and GPUs of a machine, exactly as one device would.

    import keel
    history = keel.fit(model, x, y, batch_size=64, epochs=5, validation_data=(xv, yv))

is model.fit of a compiled Keras model, by libkeel: weights and optimizer of `model` are afterwards those
of the training, and `history` is as Keras's. keel.evaluate and keel.predict are model.evaluate and
model.predict. keel.Model is a model from a .keras file, for programs without Keras.

Arguments are those of Keras, and behind them Keel's own, by name:

    devices       "cpu:0-3" is four logical devices, "cuda:0-1" two GPUs; None: all cores. The result
                  does not depend on them
    reproducible  True, or a number of shards: the same bits on any devices and any number of cores
    seed          of shuffling and dropout; None: drawn from NumPy's, which keras.utils.set_random_seed sets
    end           rows that do not fill a batch: "keep", "drop", "carry", "wrap", "error"
    float32       how products are made: "exact", "fma", "fast"
    recompute, micro_batch, threads, input_memory
                  as keel fit's options of these names
    processes     1: this process alone. None: all that mpirun, mpiexec or srun started, of which
                  keel.rank() is one, and keel.processes() their number

Callbacks are objects as Keras's, or Keel's own by their text, "EarlyStopping(patience=3)", which cost
less: no weights are copied for them.
"""

from ._fit import History, evaluate, fit, predict
from ._library import ArgumentError, Error, FileError, OutOfMemory, Unsupported
from ._model import Model, devices
from ._processes import processes, rank
from ._sources import (
    Dataset,
    audio_dataset_from_directory,
    image_dataset_from_directory,
    open,
    text_dataset_from_directory,
)

Model.fit, Model.evaluate, Model.predict = fit, evaluate, predict

__all__ = [
    "ArgumentError", "Dataset", "Error", "FileError", "History", "Model", "OutOfMemory", "Unsupported",
    "audio_dataset_from_directory", "devices", "evaluate", "fit", "image_dataset_from_directory",
    "open", "predict", "processes", "rank", "text_dataset_from_directory",
]  # fmt: skip
