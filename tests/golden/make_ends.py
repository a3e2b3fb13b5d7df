"""Optimizer steps of Keras's fit for data of known, unknown and infinite length: ends.json.

Run by hand: python make_ends.py. Ten rows, batches of 4, three epochs, TensorFlow's backend."""
import json
import os
import warnings

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

ROWS, BATCH, EPOCHS = 10, 4, 3
warnings.simplefilter("ignore")


def rows(cardinality):
    x = np.arange(ROWS, dtype="float32").reshape(ROWS, 1)
    data = tf.data.Dataset.from_tensor_slices((x, x))
    if cardinality == "unknown":
        data = data.filter(lambda a, b: True)
    return data.repeat() if cardinality == "infinite" else data


def steps(cardinality, end, per_epoch):
    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    seen = []

    class Count(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(int(self.model.optimizer.iterations))

    data = rows(cardinality).batch(BATCH, drop_remainder=end == "drop")
    model.fit(data, epochs=EPOCHS, steps_per_epoch=per_epoch, verbose=0, callbacks=[Count()])
    return [b - a for a, b in zip([0] + seen, seen)]


table = []
for cardinality in "known", "unknown", "infinite":
    for end in "keep", "drop":
        for per_epoch in None, 2, 5:
            if cardinality == "infinite" and per_epoch is None:
                continue
            table.append({"cardinality": cardinality, "end": end, "steps_per_epoch": per_epoch or 0,
                          "steps": steps(cardinality, end, per_epoch)})
            print(table[-1])
with open(os.path.join(os.path.dirname(__file__), "ends.json"), "w") as f:
    json.dump({"keras": keras.__version__, "tensorflow": tf.__version__, "runs": table}, f, indent=0)
    f.write("\n")
