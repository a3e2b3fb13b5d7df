#!/usr/bin/env python3
"""A contrastive loss on 1, 2 and 4 logical CPU devices, by Keras with MirroredStrategy and by keel.fit.

contrastive.py      needs Keras 3 on TensorFlow, and libkeel (KEEL_LIBRARY); prints a table in Markdown

Each row is to find its other view among all rows of the global batch. A replica of MirroredStrategy has its own
rows only, so what it computes is another loss.
"""

import os
import subprocess
import sys

os.environ.update(KERAS_BACKEND="tensorflow", CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
DEVICES, ROWS, BATCH, EPOCHS = (1, 2, 4), 256, 32, 3


def model():
    import keras
    import tensorflow as tf
    from keras import layers, ops

    class Contrastive(keras.Model):
        def __init__(self):
            super().__init__()
            self.encoder = keras.Sequential([layers.Input((9,)), layers.Dense(16, "tanh"), layers.Dense(8)])
            self.mean, self.built = keras.metrics.Mean(name="loss"), True

        def call(self, x):
            return self.encoder(x)

        def train_step(self, x):
            with tf.GradientTape() as tape:
                a, b = (ops.normalize(self.encoder(v), axis=1) for v in (x, x * 0.9 + 0.1))
                similar, own = ops.matmul(a, ops.transpose(b)) / 0.2, ops.arange(ops.shape(x)[0])
                values = keras.losses.sparse_categorical_crossentropy(own, similar, from_logits=True)
                loss = ops.mean(values)
            weights = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            self.mean.update_state(loss)
            return {"loss": self.mean.result()}

    keras.utils.set_random_seed(1)
    made = Contrastive()
    made.compile(keras.optimizers.SGD(0.05))
    return made


def trained(peer, devices):
    """The loss of the last epoch, and the sum of the first kernel's absolute values."""
    import numpy as np
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * devices)
    x = np.random.default_rng(0).normal(size=(ROWS, 9)).astype("float32")
    options = dict(epochs=EPOCHS, verbose=0)
    if peer == "keel":
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
        import keel

        m, options["devices"] = model(), f"cpu:0-{devices - 1}"
        history = keel.fit(m, x, batch_size=BATCH, shuffle=False, **options)
    else:
        with tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(devices)]).scope():
            m = model()
        history = m.fit(tf.data.Dataset.from_tensor_slices(x).batch(BATCH), **options)
    return history.history["loss"][-1], float(np.abs(m.get_weights()[0]).sum())


def main():
    if len(sys.argv) == 3:
        print("%.6f %.6f" % trained(sys.argv[1], int(sys.argv[2])))
        return
    print("| devices | MirroredStrategy: loss, weights | Keel: loss, weights |\n|---|---|---|")
    for devices in DEVICES:
        cells = []
        for peer in "mirrored", "keel":
            command = [sys.executable, "-W", "ignore", __file__, peer, str(devices)]
            made = subprocess.run(command, capture_output=True, text=True, check=True)
            cells.append(", ".join(made.stdout.split()[-2:]))
        print(f"| {devices} | {cells[0]} | {cells[1]} |")


if __name__ == "__main__":
    main()
