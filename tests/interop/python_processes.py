#!/usr/bin/env python3
"""Keras models that several processes train together by the package keel: the bits of one process in all.

python_processes.py [NAME...]    needs Keras 3 on TensorFlow, libkeel (KEEL_LIBRARY), and mpirun or mpiexec

Each case runs as one process, then as several, whose programs have other seeds: this file starts itself."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

NAME = "KEEL_PROCESSES_CASE"
LAUNCHERS = (
    ("mpirun.openmpi", ["--oversubscribe", "--bind-to", "none"]),
    ("mpiexec.mpich", []),
)


# ---- what one process does --------------------------------------------------------------------


def run(name):
    import keras
    import numpy as np
    from keras import callbacks as kc, layers, ops

    import keel

    own_seed = 5 if keel.rank() == 0 else 50 + keel.rank()
    keras.utils.set_random_seed(own_seed)
    draws = np.random.RandomState(1)
    images, rows, labels = draws.rand(75, 8, 8, 3), draws.rand(75, 12), draws.randint(0, 3, 75)
    images, rows = images.astype("float32"), rows.astype("float32")
    fit = {"batch_size": 16, "epochs": 3, "verbose": 2, "reproducible": True, "devices": "cpu:0"}

    def convolutions():
        x = inputs = keras.Input((8, 8, 3))
        for layer in (layers.Conv2D(4, 3, use_bias=False), layers.BatchNormalization(), layers.ReLU(),
                      layers.Dropout(0.2), layers.GlobalAveragePooling2D(), layers.Dense(3)):  # fmt: skip
            x = layer(x)
        m = keras.Model(inputs, x)
        m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
        return m

    def fitted(m, x, y, **more):
        return m, keel.fit(m, x, y, **{**fit, **more})

    def layers_with_statistics_and_noise():
        return fitted(convolutions(), images, labels, validation_data=(images[:30], labels[:30]))

    def a_second_fit():
        m, _ = layers_with_statistics_and_noise()
        return fitted(m, images, labels, initial_epoch=3, epochs=4)

    def callbacks():
        m = convolutions()
        written = "w-{epoch}.keras"
        return fitted(m, images, labels, validation_split=0.2, callbacks=[
            kc.EarlyStopping(monitor="val_loss", patience=0, restore_best_weights=True),
            kc.ReduceLROnPlateau(monitor="loss", patience=0), kc.ModelCheckpoint(written), kc.CSVLogger("log.csv"),
        ])  # fmt: skip

    def a_class():
        class Block(keras.Model):
            def __init__(self):
                super().__init__()
                self.a, self.b = layers.Dense(16, activation="relu"), layers.Dense(3)

            def call(self, x):
                return self.b(self.a(x))

        m = Block()
        m.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        return fitted(m, rows, labels)

    def a_generator():
        class Rows:
            def __iter__(self):
                return ((images[i : i + 16], labels[i : i + 16]) for i in range(0, 75, 16))

        return fitted(convolutions(), Rows(), None)

    def a_step(**more):
        import tensorflow as tf

        class Noisy(keras.Model):
            def __init__(self):
                super().__init__()
                self.a, self.n, self.b = layers.Dense(16), layers.BatchNormalization(), layers.Dense(3)
                self.seeds = keras.random.SeedGenerator(own_seed)

            def call(self, x, training=False):
                return self.b(self.n(self.a(x), training=training))

            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    p = self(x + keras.random.normal(ops.shape(x), seed=self.seeds), training=True)
                    loss = self.compute_loss(x, y, p)
                w = self.trainable_weights
                self.optimizer.apply_gradients(zip(tape.gradient(loss, w), w))
                return {"loss": loss}

        m = Noisy()
        m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        try:
            return fitted(m, rows, labels, **more)
        except (keel.Error, RuntimeError) as error:
            assert more and "no luck" in str(error), error
            return m, keras.callbacks.History()

    def a_failure_between_steps():
        class Fails(kc.Callback):
            def on_epoch_end(self, epoch, logs=None):
                if epoch == 1 and keel.rank() == keel.processes() - 1:
                    raise RuntimeError("no luck")

        m, h = a_step(callbacks=[Fails()])
        h.history = {}
        assert int(m.optimizer.iterations) == 10, "two epochs of 5 steps are kept"
        return m, h

    def what_keras_computes():
        class Spread(keras.metrics.Metric):
            def __init__(self):
                super().__init__(name="spread")
                self.most = self.add_weight(name="most", initializer="zeros")

            def update_state(self, y_true, y_pred, sample_weight=None):
                self.most.assign(ops.maximum(self.most, ops.max(y_pred) - ops.min(y_pred)))

            def result(self):
                return self.most

        short = lambda w: w / ops.maximum(1.0, ops.norm(w))  # a constraint of one's own
        m = keras.Sequential([keras.Input((12,)), layers.Dense(3, kernel_constraint=short)])
        m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=[Spread()])
        m, h = fitted(m, rows, labels, validation_split=0.2)
        assert "val_spread" in h.history
        return m, h

    def rows_that_are_compared():
        def pairs(truth, values):
            unit = ops.normalize(values, axis=1)
            return ops.mean(ops.square(ops.matmul(unit, ops.transpose(unit)) - 0.3))

        m = keras.Sequential([keras.Input((12,)), layers.Dense(4)])
        m.compile("adam", pairs)
        return fitted(m, rows, labels)

    m, h = locals()[name]()
    given = images if name in OF_IMAGES else rows
    evaluated = (
        keel.evaluate(m, given, labels, verbose=0, reproducible=True)
        if name not in ("a_step", "a_failure_between_steps")
        else 0
    )
    predicted = keel.predict(m, given, verbose=0, reproducible=True)
    arrays = [*m.get_weights(), *(ops.convert_to_numpy(v) for v in m.optimizer.variables), predicted]
    arrays += [np.float64([v for values in h.history.values() for v in values]), np.float64(evaluated)]
    bits = hashlib.md5(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()
    os.write(1, f"\nRESULT {keel.rank()} of {keel.processes()} {bits}\n".encode())


CASES = """layers_with_statistics_and_noise a_second_fit callbacks a_class a_generator a_step a_failure_between_steps
    what_keras_computes rows_that_are_compared""".split()
OF_IMAGES = "layers_with_statistics_and_noise a_second_fit callbacks a_generator".split()
FILES = {"callbacks": ["log.csv", "w-1.keras"]}  # which process 0 alone writes


# ---- the cases --------------------------------------------------------------------------------


def results(launcher, count, name, folder):
    """What each process gives, in the order of their ranks."""
    environment = {**os.environ, NAME: name, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_btl": "self,vader"}  # fmt: skip
    here = os.path.abspath(__file__)
    words = [*launcher, *(["-n", str(count)] if launcher else []), sys.executable, here]
    done = subprocess.run(words, env=environment, cwd=folder, capture_output=True, text=True, timeout=240)
    lines = sorted(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("RESULT "))
    if done.returncode or [line[0] for line in lines] != [str(i) for i in range(count)]:
        raise AssertionError(
            f"{count} processes: exit code {done.returncode}: {done.stdout[-600:]} {done.stderr[-1500:]}"
        )
    if launcher and done.stdout.count("\nEpoch 1/") > 1:
        raise AssertionError(f"more than one process speaks: {done.stdout}")
    return [line[3] for line in lines]


def check(launchers, name):
    with tempfile.TemporaryDirectory() as folder:
        (alone,) = results([], 1, name, folder)
        for i, launcher in enumerate(launchers):
            for made in FILES.get(name, []):
                os.remove(os.path.join(folder, made))
            several = results(launcher, 3 if i == 0 else 2, name, folder)
            if set(several) != {alone}:
                raise AssertionError(f"{launcher[0]}: not the bits of one process: {alone}, {several}")
            for made in FILES.get(name, []):
                assert os.path.exists(os.path.join(folder, made)), made


def main(names):
    launchers = [[program, *more] for program, more in LAUNCHERS if shutil.which(program)]
    if not launchers:
        print("SKIPPED: no mpirun.openmpi or mpiexec.mpich")
        names = []
    passed = failed = 0
    for name in names or (CASES if launchers else []):
        try:
            check(launchers if name == CASES[0] else launchers[:1], name)
            passed += 1
        except Exception as error:
            print(f"{name}: {error}")
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
    sys.exit(run(os.environ[NAME]) if NAME in os.environ else main(sys.argv[1:]))
