#!/usr/bin/env python3
"""The package keel for Python beside Keras's own fit, evaluate and predict.

    python_package.py [NAME...]      needs Keras 3 on TensorFlow, and libkeel (KEEL_LIBRARY)

Each case trains one model by keras.Model.fit and its copy by keel.fit, from the same rows in the same
order: logs, weights, the optimizer's variables, predictions and what callbacks have seen are equal.
"""

import os
import signal
import sys
import tempfile
import traceback
import warnings

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import keras
import numpy as np
import tensorflow as tf
from keras import callbacks as kc
from keras import layers, ops

import keel

ROWS, ALLOWED, STATE_ALLOWED = 53, 5e-5, 2e-4
PLAIN = dict(batch_size=8, epochs=3, shuffle=False, verbose=0)
SPARSE = "sparse_categorical_crossentropy"


def rows(seed=0, *shape):
    return np.random.default_rng(seed).normal(size=(ROWS, *(shape or (9,)))).astype("float32")


def labels(classes=4):
    return np.random.default_rng(7).integers(0, classes, ROWS)


def mlp(optimizer="adam", **compile):
    m = keras.Sequential(
        [
            layers.Input((9,)),
            layers.Dense(16, "relu"),
            layers.BatchNormalization(),
            layers.Dense(4, "softmax"),
        ]
    )
    m.compile(optimizer, **{"loss": SPARSE, "metrics": ["accuracy"], **compile})
    return m


def two_by_two(outputs=list):
    a, b = layers.Input((9,), name="left"), layers.Input((5,), name="right")
    x = layers.Concatenate()([layers.Dense(8, "tanh")(a), layers.Dense(8, "tanh")(b)])
    kind, size = layers.Dense(4, "softmax", name="kind")(x), layers.Dense(1, name="size")(x)
    m = keras.Model([a, b], {"kind": kind, "size": size} if outputs is dict else [kind, size])
    m.compile("sgd", {"kind": SPARSE, "size": "mse"} if outputs is dict else [SPARSE, "mse"])
    return m


def close(a, b, what, allowed=ALLOWED):
    a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
    assert a.shape == b.shape, f"{what}: shapes {a.shape} and {b.shape}"
    error = np.abs(a - b).max() / max(np.abs(b).max(), 1e-3) if a.size else 0
    assert error <= allowed, f"{what}: {error:.1e} of the largest"


def equal(mine, theirs):
    for a, b in zip(mine.weights, theirs.weights):
        close(a, b, a.path)
    for a, b in zip(mine.optimizer.variables, theirs.optimizer.variables):
        close(a, b, f"optimizer: {a.path}", STATE_ALLOWED)


def same_history(mine, theirs):
    assert set(mine.history) == set(theirs.history), f"{set(mine.history)} and {set(theirs.history)}"
    assert mine.epoch == theirs.epoch, f"epochs {mine.epoch} and {theirs.epoch}"
    for name in theirs.history:
        if name.endswith(("kind_loss", "size_loss")):
            continue  # Keras weighs them by batches, Keel by rows
        close(mine.history[name], theirs.history[name], name)


def beside(make, data, per_side=dict, **options):
    """Trains both and compares. data(): x, y, ...; per_side(): options that each side gets anew."""
    keras.utils.set_random_seed(3)
    theirs, mine = make(), make()
    mine.set_weights(theirs.get_weights())
    options = {**PLAIN, **options}
    a, b = per_side(), per_side()
    h = theirs.fit(*data(), **options, **a)
    g = keel.fit(mine, *data(), **options, **b)
    same_history(g, h)
    equal(mine, theirs)
    return mine, theirs, b, a


def fails(kind, function, *parts):
    try:
        function()
    except kind as error:
        for part in parts:
            assert part in str(error), f"'{part}' is not in: {error}"
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


CASES = []


def case(function):
    CASES.append(function)
    return function


@case
def arrays_and_what_follows_them():
    m, k, *_ = beside(mlp, lambda: (rows(), labels()), validation_split=0.2)
    close(keel.predict(m, rows(1), verbose=0), k.predict(rows(1), verbose=0), "predict")
    mine = keel.evaluate(m, rows(1), labels(), verbose=0, return_dict=True)
    theirs = k.evaluate(rows(1), labels(), verbose=0, return_dict=True)
    assert mine.keys() == theirs.keys()
    close([mine[name] for name in theirs], list(theirs.values()), "evaluate")
    close(
        keel.evaluate(m, rows(1), labels(), verbose=0),
        k.evaluate(rows(1), labels(), verbose=0),
        "evaluate, a list",
    )
    # Keras goes on from there, with the optimizer's state
    h, g = k.fit(rows(), labels(), **PLAIN), m.fit(rows(), labels(), **PLAIN)
    close(g.history["loss"], h.history["loss"], "the next fit, by Keras")
    equal(m, k)


@case
def a_second_fit_goes_on():
    keras.utils.set_random_seed(3)
    theirs, mine = mlp(), mlp()
    mine.set_weights(theirs.get_weights())
    for _ in range(2):
        theirs.fit(rows(), labels(), **PLAIN)
        keel.fit(mine, rows(), labels(), **PLAIN)
    equal(mine, theirs)


@case
def several_inputs_and_outputs_in_lists():
    m, k, *_ = beside(two_by_two, lambda: ([rows(), rows(1, 5)], [labels(), rows(2, 1)]))
    for a, b in zip(
        keel.predict(m, [rows(), rows(1, 5)], verbose=0), k.predict([rows(), rows(1, 5)], verbose=0)
    ):
        close(a, b, "predict")


@case
def several_inputs_and_outputs_in_dicts():
    x = {"right": rows(1, 5), "left": rows()}
    m, k, *_ = beside(lambda: two_by_two(dict), lambda: (x, {"size": rows(2, 1), "kind": labels()}))
    mine, theirs = keel.predict(m, x, verbose=0), k.predict(x, verbose=0)
    assert mine.keys() == theirs.keys()
    for name in theirs:
        close(mine[name], theirs[name], name)


@case
def weights_of_rows_and_classes():
    w = np.random.default_rng(5).random(ROWS)
    beside(mlp, lambda: (rows(), labels()), sample_weight=w)
    beside(mlp, lambda: (rows(), labels()), class_weight={0: 2.0, 3: 0.25})
    beside(mlp, lambda: (rows(), labels()), validation_data=(rows(1), labels(), w))


@case
def arguments_that_files_of_keras_leave_out():
    def make():
        m = keras.Sequential([layers.Input((9,)), layers.Dense(5)])
        m.compile("sgd", keras.losses.Huber(delta=0.1))
        return m

    m, *_ = beside(make, lambda: (rows(), rows(1, 5)))
    assert "delta" not in m.loss.get_config(), "the loss is as it was"

    def turned():
        m = keras.Sequential([layers.Input((9,)), layers.Dense(12), layers.Reshape((4, 3))])
        m.compile("sgd", [keras.losses.CosineSimilarity(axis=1)])
        return m

    beside(turned, lambda: (rows(), rows(1, 4, 3)))
    for names in (["bias"], ["gamma", "bias"], ["kernel"]):

        def decays():
            m = mlp(keras.optimizers.AdamW(0.01, weight_decay=0.1))
            m.optimizer.exclude_from_weight_decay(var_names=names)
            return m

        beside(decays, lambda: (rows(), labels()))

    def decays():
        inner = keras.Sequential([layers.Input((9,)), layers.Dense(5)], name="inner")
        m = keras.Sequential([layers.Input((9,)), inner, layers.Dense(4, "softmax")])
        m.compile(keras.optimizers.AdamW(0.01, weight_decay=0.1), SPARSE, metrics=["accuracy"])
        m.optimizer.exclude_from_weight_decay(var_list=[inner.layers[-1].kernel])
        return m

    beside(decays, lambda: (rows(), labels()))
    m = mlp()
    m.layers[0].enable_lora(2)
    m.compile("sgd", SPARSE)
    fails(keel.Unsupported, lambda: keel.fit(m, rows(), labels()), "LoRA")


@case
def types_that_are_made_wider():
    beside(mlp, lambda: (rows().astype("float64"), labels().astype("int8")))
    beside(mlp, lambda: (rows().astype("float16"), labels().astype("uint16")))
    beside(mlp, lambda: (np.asfortranarray(rows()), labels()[:, None].astype(">i4")))
    beside(mlp, lambda: (tf.constant(rows()), tf.constant(labels())))


@case
def texts():
    words = np.array([["a"], ["b"], ["ccc"], ["日本"]], object)[labels()]

    def make():
        look = layers.StringLookup(vocabulary=["a", "b", "ccc", "日本"], output_mode="one_hot")
        m = keras.Sequential([layers.Input((1,), dtype="string"), look, layers.Dense(4, "softmax")])
        m.compile("sgd", SPARSE)
        return m

    keras.utils.set_random_seed(3)
    theirs, mine = make(), make()
    mine.set_weights(theirs.get_weights())
    h = theirs.fit(tf.constant(words.tolist()), labels(), **PLAIN)
    same_history(keel.fit(mine, words, labels(), **PLAIN), h)
    equal(mine, theirs)


def batches(n=8):
    for i in range(0, ROWS, n):
        yield rows()[i : i + n], labels()[i : i + n]


class Batches(keras.utils.PyDataset):
    def __init__(self, n=8):
        super().__init__()
        self.n, self.ended = n, 0

    def __len__(self):
        return -(-ROWS // self.n)

    def __getitem__(self, i):
        return rows()[i * self.n : (i + 1) * self.n], labels()[i * self.n : (i + 1) * self.n]

    def on_epoch_end(self):
        self.ended += 1


@case
def batches_of_the_caller():
    beside(mlp, lambda: (Batches(),), batch_size=None)
    beside(mlp, lambda: (tf.data.Dataset.from_tensor_slices((rows(), labels())).batch(8),), batch_size=None)
    keras.utils.set_random_seed(3)
    theirs, mine = mlp(), mlp()
    mine.set_weights(theirs.get_weights())
    theirs.fit(rows(), labels(), **{**PLAIN, "epochs": 1})
    keel.fit(mine, batches(), verbose=0)
    equal(mine, theirs)  # Keras counts a step too many at the end of a generator

    def forever():
        while True:
            yield from batches()

    beside(mlp, lambda: (forever(),), batch_size=None, epochs=2, steps_per_epoch=5)
    data = lambda: tf.data.Dataset.from_tensor_slices((rows(), labels(), np.ones(ROWS))).batch(8)
    beside(mlp, lambda: (data(),), batch_size=None, per_side=lambda: {"validation_data": data()})


def folder_of_images():
    folder = tempfile.mkdtemp()
    for i, image in enumerate(np.random.default_rng(2).integers(0, 256, (ROWS, 11, 12, 3)).astype("uint8")):
        os.makedirs(f"{folder}/{'cba'[i % 3]}", exist_ok=True)
        tf.io.write_file(f"{folder}/{'cba'[i % 3]}/{i:02}.png", tf.io.encode_png(image))
    return folder


@case
def folders_of_images():
    folder = folder_of_images()

    def make():
        m = keras.Sequential(
            [layers.Input((9, 8, 3)), layers.Rescaling(1 / 255), layers.Conv2D(4, 3), layers.Flatten()]
        )
        m.add(layers.Dense(3, "softmax"))
        m.compile("sgd", SPARSE)
        return m

    options = {"batch_size": 8, "image_size": (9, 8), "shuffle": False}
    split = {**options, "shuffle": True, "validation_split": 0.3, "subset": "both", "seed": 3}
    for named in (
        {},
        {"class_names": ["b", "a", "c"]},
        {"crop_to_aspect_ratio": True, "interpolation": "nearest"},
    ):
        keras.utils.set_random_seed(3)
        theirs, mine = make(), make()
        mine.set_weights(theirs.get_weights())
        a = keras.utils.image_dataset_from_directory(folder, verbose=False, **options, **named)
        b = keel.image_dataset_from_directory(folder, **options, **named)
        assert a.class_names == b.class_names and b.rows == ROWS
        same_history(keel.fit(mine, b, epochs=2, verbose=0), theirs.fit(a, epochs=2, verbose=0))
        equal(mine, theirs)
        a = keras.utils.image_dataset_from_directory(folder, verbose=False, **split)
        b = keel.image_dataset_from_directory(folder, **split)
        for x, y in zip(a, b):
            close(keel.evaluate(mine, y, verbose=0), theirs.evaluate(x, verbose=0), "a part of the files")
    fails(
        keel.ArgumentError, lambda: keel.image_dataset_from_directory(folder, color_mode="cmyk"), "grayscale"
    )
    fails(keel.ArgumentError, lambda: keel.fit(mine, b[0], labels()), "keel.Dataset")
    fails(
        keel.Unsupported,
        lambda: keel.image_dataset_from_directory(folder, **{**split, "shuffle": False}),
        "seed",
    )
    fails(keel.Error, lambda: keel.image_dataset_from_directory("/nowhere"), "nowhere")


@case
def data_by_the_text_of_the_command():
    path = os.path.join(tempfile.mkdtemp(), "t.csv")
    names = np.array(["ash", "elm", "fir", "oak"])[labels()]
    with open(path, "w") as f:
        f.write(",".join([*(f"c{i}" for i in range(9)), "tree"]) + "\n")
        f.writelines(
            ",".join([*(f"{v!r}" for v in row.tolist()), name]) + "\n" for row, name in zip(rows(), names)
        )
    data = keel.open(path, label="tree", batch_size=8)
    assert data.class_names == ["ash", "elm", "fir", "oak"] and data.rows == ROWS
    keras.utils.set_random_seed(3)
    theirs, mine = mlp(), mlp()
    mine.set_weights(theirs.get_weights())
    h = theirs.fit(rows(), labels(), validation_data=(rows(), labels()), **PLAIN)
    g = keel.fit(mine, data, epochs=3, shuffle=False, verbose=0, validation_data=data)
    same_history(g, h)
    equal(mine, theirs)
    close(keel.predict(mine, data, verbose=0), theirs.predict(rows(), verbose=0), "predict")


class Seen(kc.Callback):
    """What a callback sees at the ends of epochs and batches."""

    def __init__(self, per_batch):
        super().__init__()
        self.seen = []
        if per_batch:
            self.on_train_batch_end = self.look

    def look(self, i, logs=None):
        self.seen.append(
            [
                float(i),
                logs["loss"],
                float(np.sum(self.model.get_weights()[0])),
                float(self.model.optimizer.iterations),
            ]
        )

    def on_epoch_end(self, epoch, logs=None):
        self.look(epoch, logs)
        logs["mine"] = float(epoch) + 0.5


@case
def callbacks_see_and_set_the_model():
    for per_batch in (False, True):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            _, _, mine, theirs = beside(
                mlp, lambda: (rows(), labels()), per_side=lambda: {"callbacks": [Seen(per_batch)]}
            )
        close(mine["callbacks"][0].seen, theirs["callbacks"][0].seen, "seen")
        assert any("slow" in str(w.message) for w in said) == per_batch

    class Old(kc.Callback):
        """The names of functions, and what they get, of Keras 2."""

        def __init__(self):
            super().__init__()
            self.seen = []

        def on_batch_end(self, batch, logs=None):
            self.seen.append([float(batch), logs["loss"], float(self.params["steps"])])

        def on_train_begin(self, logs=None):
            assert not logs

        def on_train_end(self, logs=None):
            self.seen.append([logs["val_loss"], logs["loss"], float(self.params["epochs"])])

    _, _, mine, theirs = beside(
        mlp, lambda: (rows(), labels()), per_side=lambda: {"callbacks": [Old()]}, validation_split=0.2
    )
    close(mine["callbacks"][0].seen, theirs["callbacks"][0].seen, "seen by the old names")

    class Sets(kc.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            self.model.optimizer.learning_rate = 0.1 / (epoch + 1)

        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1:
                self.model.layers[0].kernel.assign(self.model.layers[0].kernel * 0.5)
            self.model.stop_training = epoch == 3

    beside(lambda: mlp("sgd"), lambda: (rows(), labels()), epochs=9, per_side=lambda: {"callbacks": [Sets()]})


@case
def callbacks_of_keras():
    folder = tempfile.mkdtemp()
    count = iter(range(100))

    def some():
        n = next(count)
        return {
            "callbacks": [
                kc.EarlyStopping("val_loss", patience=1, restore_best_weights=True),
                kc.ReduceLROnPlateau("val_loss", patience=1, factor=0.3),
                kc.ModelCheckpoint(f"{folder}/{n}.keras", save_best_only=True),
                kc.CSVLogger(f"{folder}/{n}.csv"),
                kc.TerminateOnNaN(),
                kc.LambdaCallback(on_epoch_end=lambda epoch, logs: None),
            ]
        }

    beside(
        lambda: mlp(keras.optimizers.SGD(0.8)),
        lambda: (rows(), labels()),
        epochs=12,
        per_side=some,
        validation_split=0.3,
    )
    a, b = keras.models.load_model(f"{folder}/0.keras"), keras.models.load_model(f"{folder}/1.keras")
    equal(a, b)
    beside(
        mlp,
        lambda: (rows(), labels()),
        per_side=lambda: {"callbacks": [kc.LearningRateScheduler(lambda e, r: r * 0.5)]},
    )
    beside(
        lambda: mlp(keras.optimizers.Adam(use_ema=True)),
        lambda: (rows(), labels()),
        per_side=lambda: {"callbacks": [kc.SwapEMAWeights(swap_on_epoch=True)]},
    )


@case
def averages_of_weights():
    optimizer = lambda **named: keras.optimizers.Adagrad(0.2, use_ema=True, ema_momentum=0.9, **named)
    for frequency in (None, 3):
        for swap_on_epoch in (False, True):
            beside(
                lambda: mlp(optimizer(ema_overwrite_frequency=frequency)),
                lambda: (rows(), labels()),
                validation_split=0.3,
                per_side=lambda: {"callbacks": [Seen(False), kc.SwapEMAWeights(swap_on_epoch), Seen(False)]},
            )
    stops = lambda: {
        "callbacks": [kc.EarlyStopping("loss", patience=0, baseline=0.1, restore_best_weights=True)]
    }
    beside(lambda: mlp(optimizer()), lambda: (rows(), labels()), per_side=stops)

    class Forgets(kc.Callback):
        def on_epoch_end(self, epoch, logs=None):
            v = self.model.optimizer.variables[2]
            v.assign(v * 0)

    fails(
        keel.Unsupported,
        lambda: keel.fit(mlp(), rows(), labels(), callbacks=[Forgets()], **PLAIN),
        "momentum",
    )


@case
def callbacks_of_keel_by_their_text():
    keras.utils.set_random_seed(3)
    theirs, mine = mlp(keras.optimizers.SGD(0.8)), mlp(keras.optimizers.SGD(0.8))
    mine.set_weights(theirs.get_weights())
    options = {**PLAIN, "epochs": 12, "validation_split": 0.3}
    h = theirs.fit(
        rows(),
        labels(),
        callbacks=[kc.EarlyStopping("val_loss", patience=1, restore_best_weights=True)],
        **options,
    )
    text = "EarlyStopping(monitor='val_loss', patience=1, restore_best_weights=True)"
    g = keel.fit(mine, rows(), labels(), callbacks=[text], **options)
    same_history(g, h)
    equal(mine, theirs)
    assert g.stopped


@case
def schedules_policies_and_frozen_layers():
    decay = lambda: keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.5)
    beside(
        lambda: mlp(keras.optimizers.SGD(decay())),
        lambda: (rows(), labels()),
        per_side=lambda: {"callbacks": [Seen(False)]},
    )

    def frozen():
        m = mlp()
        m.layers[0].trainable = False
        m.compile("rmsprop", SPARSE, metrics=["accuracy"])
        return m

    beside(frozen, lambda: (rows(), labels()))


@case
def devices_do_not_change_the_bits_of_reproducible_fits():
    got = []
    for devices in ("cpu:0", "cpu:0-3", "cpu:0+1"):
        keras.utils.set_random_seed(3)
        m = mlp()
        keel.fit(m, rows(), labels(), batch_size=8, epochs=2, verbose=0, devices=devices, reproducible=True)
        got.append(m.get_weights())
    for other in got[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(got[0], other))


@case
def a_model_without_keras():
    folder = tempfile.mkdtemp()
    keras.utils.set_random_seed(3)
    m = mlp()
    m.save(f"{folder}/m.keras")
    with keel.Model(f"{folder}/m.keras") as k:
        k.fit(rows(), labels(), **PLAIN)
        k.save(f"{folder}/out.keras")
        mine = k.predict(rows(1), verbose=0)
    out = keras.models.load_model(f"{folder}/out.keras")
    close(mine, out.predict(rows(1), verbose=0), "predict")
    m.fit(rows(), labels(), **PLAIN)
    equal(out, m)


@case
def failures_are_exceptions_and_leave_the_model_as_it_was():
    m = mlp()
    before = m.get_weights()
    fit = lambda *data, **named: keel.fit(m, *data, **{**PLAIN, **named})
    fails(keel.ArgumentError, lambda: fit(rows(), labels()[:-1]), "53", "52")
    fails(keel.ArgumentError, lambda: fit(rows(0, 8), labels()), "9")
    fails(keel.Error, lambda: fit(rows(), labels() + 9), "12")
    fails(keel.ArgumentError, lambda: fit(rows(), labels(), end="never"), "carry")
    fails(keel.Error, lambda: fit(rows(), labels(), devices="tpu:0"), "tpu")
    fails(keel.Unsupported, lambda: fit(rows().astype("complex64"), labels()), "complex64")
    fails(keel.ArgumentError, lambda: fit(rows(), labels(), callbacks=["Nonsense()"]), "Nonsense")
    fails(keel.Unsupported, lambda: fit(rows(), labels(), callbacks=[kc.BackupAndRestore("x")]), "Keel's own")
    fails(TypeError, lambda: keel.fit("m.keras", rows(), labels()), "str")
    fails(keel.FileError, lambda: keel.Model("/nowhere.keras"), "nowhere")
    plain = keras.Sequential([layers.Input((9,)), layers.Dense(2)])
    fails(keel.ArgumentError, lambda: keel.fit(plain, rows(), labels()), "compile")
    fails(
        keel.ArgumentError,
        lambda: keel.fit(keras.Sequential([layers.Dense(2)]), rows(), labels()),
        "no weights",
    )
    assert all(np.array_equal(a, b) for a, b in zip(before, m.get_weights()))

    class Raises(kc.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 1:
                raise KeyError("mine")

    fails(KeyError, lambda: fit(rows(), labels(), callbacks=[Raises()]), "mine")
    assert int(m.optimizer.iterations) == 14, "two epochs of 7 steps are kept"

    def breaks():
        yield next(batches())
        raise ZeroDivisionError("in the generator")

    fails(ZeroDivisionError, lambda: fit(breaks(), batch_size=None, epochs=1), "generator")

    def grows():
        yield rows()[:4], labels()[:4]
        yield rows()[:8], labels()[:8]

    fails(ValueError, lambda: fit(grows(), batch_size=None, epochs=1), "largest")
    endless = tf.data.Dataset.from_tensor_slices((rows(), labels())).batch(8).repeat()
    fails(keel.Error, lambda: fit(endless, batch_size=None), "steps_per_epoch")
    custom = keras.Sequential(
        [layers.Input((9,)), layers.Lambda(lambda x: tf.reverse(x, [1])), layers.Dense(4, "softmax")]
    )
    custom.compile("sgd", SPARSE)
    fails(keel.Unsupported, lambda: keel.fit(custom, rows(), labels()), "'lambda", "a Lambda")
    i = layers.Input((3, 8, 8))
    small = ops.image.resize(i, (4, 4), data_format="channels_first")
    other = keras.Model(i, layers.Dense(4, "softmax")(layers.Flatten()(small)))
    other.compile("sgd", SPARSE)
    fails(keel.Unsupported, lambda: keel.fit(other, rows(0, 3, 8, 8), labels()), f"model '{other.name}'")


@case
def control_c_ends_the_run_after_its_step():
    class Presses(kc.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 2:
                os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
    m = mlp()
    fit = lambda: keel.fit(m, rows(), labels(), callbacks=[Presses()], **{**PLAIN, "epochs": 10**4})
    fails(KeyboardInterrupt, fit)
    assert 21 <= int(m.optimizer.iterations) <= 28, "what it learned is in the model"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# ---- classes of the caller's own -----------------------------------------------------------------


class Block(layers.Layer):
    """As in Keras's examples: attention and a network, with what is normalised and added."""

    def __init__(self, width, rate=0.0):
        super().__init__()
        self.ffn = keras.Sequential([layers.Dense(2 * width, "gelu"), layers.Dense(width, use_bias=False)])
        self.att = layers.MultiHeadAttention(2, width)
        self.norms = [layers.LayerNormalization(epsilon=1e-6), layers.BatchNormalization(momentum=0.9)]
        self.drop = layers.Dropout(rate)

    def call(self, x, training=False):
        y = self.norms[0](x + self.drop(self.att(x, x), training=training))
        return self.norms[1](y + self.ffn(y), training=training)


class Places(layers.Layer):
    def __init__(self, words, length, width):
        super().__init__()
        self.places, self.words = layers.Embedding(length, width), layers.Embedding(words, width)
        self.length = length

    def call(self, x):
        return self.words(x) + self.places(ops.arange(0, self.length))


class Patches(layers.Layer):
    def call(self, images):
        patches = ops.image.extract_patches(images, 3)
        n, h, w, c = ops.shape(patches)
        return ops.reshape(patches, (n, h * w, c))


class Encoder(layers.Layer):
    def __init__(self, count, width):
        super().__init__()
        self.count, self.project, self.place = count, layers.Dense(width), layers.Embedding(count, width)

    def call(self, x):
        return self.project(x) + self.place(ops.expand_dims(ops.arange(self.count), axis=0))


class Inner(keras.Model):
    def __init__(self):
        super().__init__()
        self.last, self.first = layers.Dense(6), layers.Dense(5, "tanh")  # not in the order of the calls
        self.norm = layers.BatchNormalization()

    def call(self, x):
        return self.last(self.norm(self.first(x)))


class Outer(keras.Model):
    def __init__(self, inner=None):
        super().__init__()
        self.head, self.inner = layers.Dense(4, "softmax", name="head"), inner or Inner()

    def call(self, x, training=None):
        return self.head(ops.relu(self.inner(x)) + 0.1)


class Still(Outer):
    def call(self, x):
        return self.head(ops.relu(self.inner(x)) + 0.1)


def traced(make, data, **options):
    """As beside, in two epochs."""
    return beside(make, data, epochs=2, **options)


@case
def layers_of_the_caller():
    def texts_of_numbers():
        i = layers.Input((12,), dtype="int32")
        x = layers.GlobalAveragePooling1D()(Block(8)(Block(8)(Places(30, 12, 8)(i))))
        m = keras.Model(i, layers.Dense(4, "softmax")(x))
        m.compile(keras.optimizers.SGD(0.1, momentum=0.9), SPARSE, metrics=["accuracy"])
        return m

    words = np.random.default_rng(4).integers(0, 30, (ROWS, 12))
    m, k, *_ = traced(texts_of_numbers, lambda: (words, labels()), validation_split=0.2)
    close(keel.predict(m, words, verbose=0), k.predict(words, verbose=0), "predict")
    close(keel.evaluate(m, words, labels(), verbose=0), k.evaluate(words, labels(), verbose=0), "evaluate")
    keel.fit(m, words, labels(), **PLAIN)  # goes on, and so does Keras
    k.fit(words, labels(), **PLAIN)
    equal(m, k)

    def images():
        i = layers.Input((9, 12, 3))
        x = Block(8)(Encoder(12, 8)(Patches()(i)))
        m = keras.Model(i, layers.Dense(4, "softmax")(layers.Flatten()(x)))
        m.compile("sgd", SPARSE)
        return m

    traced(images, lambda: (rows(0, 9, 12, 3), labels()), per_side=lambda: {"callbacks": [Seen(False)]})


@case
def models_of_the_caller():
    def outer(optimizer="adam"):
        m = Outer()
        m(rows()[:1])
        m.compile(optimizer, SPARSE, metrics=["accuracy"])
        return m

    m, k, *_ = traced(outer, lambda: (rows(), labels()), validation_split=0.2)
    for go_on in (keel.fit, lambda model, *data, **named: model.fit(*data, **named)):
        go_on(m, rows(), labels(), **PLAIN)
        k.fit(rows(), labels(), **PLAIN)
        equal(m, k)
    stops = lambda: {"callbacks": [kc.EarlyStopping("val_loss", patience=1, restore_best_weights=True)]}
    beside(
        lambda: outer(keras.optimizers.SGD(0.8)),
        lambda: (rows(), labels()),
        epochs=9,
        per_side=stops,
        validation_split=0.3,
    )

    def still():
        m = Still()
        m(rows()[:1])
        m.compile("sgd", SPARSE)
        return m

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        traced(still, lambda: (rows(), labels()))
    assert any("takes no 'training'" in str(w.message) for w in said)
    for data in (Batches(), tf.data.Dataset.from_tensor_slices((rows(), labels())).batch(8)):
        unbuilt = Outer()
        unbuilt.compile("sgd", SPARSE)
        assert keel.fit(unbuilt, data, verbose=0).history["loss"]
    fails(keel.Unsupported, lambda: keel.predict(Outer(), iter([rows()]), verbose=0), "begun anew")
    unbuilt = Outer()
    unbuilt.compile("sgd", SPARSE)
    assert keel.fit(unbuilt, rows(), labels(), verbose=0).history["loss"] and len(unbuilt.weights) == 10

    def heads():
        i = layers.Input((9,))
        x = Inner()(i)
        named = {
            "size": layers.Dense(1, name="size")(x),
            "kind": Outer(keras.Sequential([layers.Dense(6)]))(x),
        }
        m = keras.Model(i, named)
        m.compile("sgd", {"kind": SPARSE, "size": "mse"}, loss_weights={"kind": 0.5, "size": 2.0})
        return m

    m, k, *_ = traced(heads, lambda: (rows(), {"kind": labels(), "size": rows(1, 1)}))
    mine, theirs = keel.predict(m, rows(), verbose=0), k.predict(rows(), verbose=0)
    for name in theirs:
        close(mine[name], theirs[name], name)


class Weighs(layers.Layer):
    """A layer with weights of its own, and how it uses them."""

    def __init__(self, shapes, use, **options):
        super().__init__()
        self.shapes, self.use, self.options = shapes, use, options

    def build(self, shape):
        for name, dims in self.shapes.items():
            normal = keras.initializers.RandomNormal(0.0, 0.5, seed=len(name) + sum(dims))
            setattr(self, name, self.add_weight(shape=dims, initializer=normal, name=name, **self.options))

    def call(self, x):
        return self.use(self, x)


def gram(x):
    return ops.sqrt(ops.sum(ops.square(x), 0, keepdims=True))


VECTORS, STEPS, IMAGES = (6,), (4, 6), (8, 8, 3)
# Of what rows, which weights, and how they are used
USES = {
    "a product and a bias": (VECTORS, {"w": (6, 5), "b": (5,)}, lambda l, x: ops.matmul(x, l.w) + l.b),
    "a bias before it": (STEPS, {"w": (6, 5), "b": (5,)}, lambda l, x: l.b + x @ l.w),
    "both, twice": (
        VECTORS,
        {"w": (6, 6), "b": (6,)},
        lambda l, x: ops.tanh(ops.tanh(x @ l.w + l.b) @ l.w + l.b),
    ),
    "a bias for two": (VECTORS, {"w": (6, 6), "b": (6,)}, lambda l, x: (x @ l.w + l.b) * l.b),
    "a scale": (STEPS, {"g": (6,)}, lambda l, x: l.g * x),
    "a number": (STEPS, {"g": ()}, lambda l, x: ops.sigmoid(l.g) * x + (1 - ops.sigmoid(l.g)) * x**2),
    "places": (STEPS, {"p": (1, 4, 6)}, lambda l, x: x + l.p),
    "the first places": (STEPS, {"p": (9, 6)}, lambda l, x: x + l.p[: ops.shape(x)[1]]),
    "a step before all": (
        STEPS,
        {"p": (1, 1, 6)},
        lambda l, x: ops.concatenate([ops.broadcast_to(l.p, [ops.shape(x)[0], 1, 6]), x], 1),
    ),
    "two steps before all": (
        STEPS,
        {"p": (1, 1, 6)},
        lambda l, x: ops.concatenate([ops.tile(l.p, [ops.shape(x)[0], 2, 1]), x], 1),
    ),
    "a product there and back": (STEPS, {"w": (6, 3)}, lambda l, x: x @ l.w @ ops.transpose(l.w)),
    "a turned product": (STEPS, {"w": (5, 6)}, lambda l, x: x @ ops.swapaxes(l.w, 0, 1)),
    "a product from the left": (STEPS, {"w": (5, 4)}, lambda l, x: ops.matmul(l.w, x)),
    "einsum": (STEPS, {"w": (6, 2, 3)}, lambda l, x: ops.einsum("btd,dhk->bthk", x, l.w)),
    "einsum with dots": (
        STEPS,
        {"w": (6, 3), "b": (3,)},
        lambda l, x: ops.einsum("...d,dk->...k", x, l.w) + l.b,
    ),
    "tensordot": (STEPS, {"w": (6, 3)}, lambda l, x: ops.tensordot(x, l.w, axes=1)),
    "scores of steps": (
        STEPS,
        {"w": (6, 1), "b": (4, 1)},
        lambda l, x: ops.sum(x * ops.softmax(ops.tanh(ops.dot(x, l.w) + l.b), axis=1), axis=1),
    ),
    "prototypes": (
        VECTORS,
        {"c": (5, 6), "s": (5,)},
        lambda l, x: ops.exp(-ops.softplus(l.s) * ops.sum((x[:, None, :] - l.c) ** 2, -1)),
    ),
    "a weight of length 1": (VECTORS, {"c": (6, 5)}, lambda l, x: ops.matmul(x, l.c / gram(l.c))),
    "weights times weights": (
        VECTORS,
        {"u": (6, 2), "v": (2, 6)},
        lambda l, x: ops.matmul(x, ops.matmul(l.u, l.v)),
    ),
    "a table": (
        VECTORS,
        {"t": (5, 3)},
        lambda l, x: ops.take(l.t, ops.cast(ops.clip(ops.abs(x) * 4, 0, 4), "int32"), axis=0),
    ),
    "a convolution": (
        IMAGES,
        {"k": (3, 3, 3, 4), "b": (4,)},
        lambda l, x: ops.relu(ops.conv(x, l.k, strides=2, padding="same") + l.b),
    ),
    "questions": (
        STEPS,
        {"q": (3, 6)},
        lambda l, x: ops.softmax(ops.matmul(l.q, ops.transpose(x, (0, 2, 1))), -1) @ x,
    ),
}


@case
def weights_of_the_layers_of_the_caller():
    def make(name, optimizer="sgd", **options):
        shape, *uses = USES[name]
        i = layers.Input(shape)
        m = keras.Model(i, layers.Dense(2)(layers.Flatten()(Weighs(*uses, **options)(i))))
        m.compile(optimizer, "mse")
        return m

    def both(name, *made, **options):
        shape = USES[name][0]
        try:
            return beside(
                lambda: make(name, *made, **options),
                lambda: (rows(0, *shape), rows(1, 2)),
                epochs=2,
            )
        except Exception as error:
            error.args = (f"{name}: {error}",)
            raise

    for name in USES:
        both(name)
    m, k, *_ = both("a product and a bias", "adam", regularizer="l2", constraint="unit_norm")
    for go_on in (keel.fit, lambda model, *data, **named: model.fit(*data, **named)):
        go_on(m, rows(0, *VECTORS), rows(1, 2), **PLAIN)
        k.fit(rows(0, *VECTORS), rows(1, 2), **PLAIN)
        equal(m, k)
    both("a scale", "adam", trainable=False)
    USES["many numbers"] = (VECTORS, {"c": (6, 12000)}, lambda l, x: ops.matmul(x, ops.tanh(l.c)))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        keel.predict(make("many numbers"), rows(0, *VECTORS), verbose=0)
    assert any("each row of a batch has its own" in str(w.message) for w in said)

    class Tower(keras.Model):
        """Weights in a list, one of them in a layer of the same name."""

        def __init__(self):
            super().__init__()
            self.first = Weighs({"w": (9, 6)}, lambda l, x: x @ l.w)
            self.last = [self.add_weight(shape=(6, 4), name="w", initializer="glorot_uniform")]
            self.bias = self.add_weight(shape=(4,), name="b", initializer="zeros")

        def call(self, x, training=False):
            return ops.softmax(ops.relu(self.first(x)) @ self.last[0] + self.bias)

    def tower():
        m = Tower()
        m(rows()[:1])
        m.compile("adam", SPARSE, metrics=["accuracy"])
        return m

    m, k, *_ = beside(tower, lambda: (rows(), labels()), epochs=2, validation_split=0.2)
    close(keel.predict(m, rows(), verbose=0), k.predict(rows(), verbose=0), "predict")


def squashed(x):
    return x * ops.sigmoid(1.5 * x)


@case
def functions_of_the_caller_in_layers():
    def make():
        i = layers.Input((6, 6, 3))
        x = layers.Lambda(lambda t: t / 2 + ops.mean(t, axis=(1, 2), keepdims=True))(i)
        x = layers.Conv2D(4, 3, activation=squashed, kernel_regularizer="l2")(x)
        x = layers.Activation(squashed)(layers.SeparableConv2D(4, 2, activation="relu")(x))
        same = layers.Dense(4, lambda t: ops.maximum(t, 0.1 * t))
        x = layers.Flatten()(same(same(x)))
        x = layers.Lambda(lambda t, scale: t * scale, arguments={"scale": 0.5})(x)
        m = keras.Model(i, layers.Dense(4, "softmax")(layers.Dense(5, tf.nn.relu)(x)))
        m.compile("adam", SPARSE)
        return m

    m, k, *_ = traced(make, lambda: (rows(0, 6, 6, 3), labels()), validation_split=0.2)
    close(keel.predict(m, rows(0, 6, 6, 3), verbose=0), k.predict(rows(0, 6, 6, 3), verbose=0), "predict")

    def recurrent():
        m = keras.Sequential([layers.Input((5, 3)), layers.LSTM(4, activation=squashed), layers.Dense(2)])
        m.compile("sgd", "mse")
        return m

    def masked():
        of = [layers.Input((5, 3)), layers.Masking(), layers.Dense(4, squashed), layers.LSTM(2)]
        return keras.Sequential(of)

    def regularized():
        return keras.Sequential([layers.Input((5, 3)), layers.Dense(2, squashed, activity_regularizer="l2")])

    for model, *parts in (recurrent(), "lstm", "activation"), (masked(), "mask"), (regularized(), "behind"):
        fails(keel.Unsupported, lambda: keel.predict(model, rows(0, 5, 3), verbose=0), *parts)


@case
def attention_to_what_came_before():
    """A mask for each row, as in Keras's example of a small GPT."""

    class Causal(layers.Layer):
        def __init__(self):
            super().__init__()
            self.att = layers.MultiHeadAttention(2, 4)

        def call(self, x):
            n, length, _ = ops.shape(x)
            i, j = ops.arange(length)[:, None], ops.arange(length)
            mask = ops.reshape(ops.cast(i >= j, "bool"), [1, length, length])
            return x + self.att(x, x, attention_mask=ops.tile(mask, (n, 1, 1)))

    def make():
        i = layers.Input((5, 8))
        m = keras.Model(i, layers.Dense(3)(Causal()(i)))
        m.compile("sgd", "mse")
        return m

    traced(make, lambda: (rows(0, 5, 8), rows(1, 5, 3)))


class Told(layers.Layer):
    """What it computes of x depends on whether it is trained."""

    def __init__(self, call, units=6):
        super().__init__()
        self.of, self.dense = call, units and layers.Dense(units, "tanh")

    def build(self, shape):
        if self.dense:
            self.dense.build(shape)

    def call(self, x, training=None):
        return self.of(self, x, training)


class Outermost(layers.Layer):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.norm = inner, layers.BatchNormalization()

    def call(self, x, training=None):
        return self.norm(self.inner(x, training=training), training=training)


class DropsPaths(layers.Layer):
    """Stochastic depth, as in Keras's examples."""

    def __init__(self):
        super().__init__()
        self.seed_generator = keras.random.SeedGenerator(1)

    def call(self, x, training=None):
        if not training:
            return x
        keep = 0.75 + keras.random.uniform((ops.shape(x)[0], 1), 0, 1, seed=self.seed_generator)
        return x / 0.75 * ops.floor(keep)


@case
def calls_that_do_something_else_in_training():
    def make(*calls):
        x = i = layers.Input((6,))
        for call in calls:
            x = Outermost(call if isinstance(call, layers.Layer) else Told(call))(x)
        m = keras.Model(i, layers.Dense(2)(x))
        m.compile("sgd", "mse")
        return m

    for calls in [
        (lambda l, x, training: l.dense(x * 2 if training else x),),
        (lambda l, x, training: l.dense(x) * (0.5 if training else 0.25),),
        (
            lambda l, x, training: l.dense(x) if training else x,
            lambda l, x, training: l.dense(x) + 1.0 * bool(training),
        ),
        (lambda l, x, training: l.dense(ops.flip(x, 1) if training else x),),
        (
            lambda l, x, training: (
                l.dense(x) + 0.0 * keras.random.normal(ops.shape(x)) if training else l.dense(x)
            ),
        ),
    ]:
        data = lambda: (rows(0, 6), rows(1, 2))
        m, k, *_ = beside(lambda: make(*calls), data, epochs=2, validation_split=0.2)
        close(keel.predict(m, rows(0, 6), verbose=0), k.predict(rows(0, 6), verbose=0), "predict")

    def paths():
        i = layers.Input((6,))
        m = keras.Model(i, layers.Dense(2)(i + DropsPaths()(layers.Dense(6)(i))))
        m.compile("sgd", "mse")
        return m

    m = paths()
    before = keel.evaluate(m, rows(0, 6), rows(1, 2), verbose=0)
    keel.fit(m, rows(0, 6), rows(1, 2), epochs=5, verbose=0)
    m.fit(rows(0, 6), rows(1, 2), verbose=0)
    assert keel.evaluate(m, rows(0, 6), rows(1, 2), verbose=0) < before

    def of_noise(call):
        """What the only weight learns, which is the mean of what `call` makes of ones."""
        i = layers.Input((1,))
        one = layers.Dense(1, kernel_initializer="zeros", use_bias=False)
        drawn = Told(call, units=None)(i)
        m = keras.Model(i, one(ops.ones_like(i)) + ops.stop_gradient(0.0 * drawn) - drawn)
        m.compile(keras.optimizers.SGD(0.25), "mse")
        ones = np.ones((4000, 1), "float32")
        m.set_weights([np.zeros_like(w) for w in m.get_weights()])
        keel.fit(m, ones, 0 * ones, batch_size=4000, epochs=60, verbose=0, seed=1)
        loss = keel.fit(m, ones, 0 * ones, batch_size=4000, verbose=0, seed=2).history["loss"][0]
        return float(one.get_weights()[0][0, 0]), loss

    random = keras.random
    draws = {
        "normal": (lambda l, x, t: random.normal(ops.shape(x), 1.0, 0.5) if t else x, 1.0, 0.25),
        "uniform": (lambda l, x, t: random.uniform(ops.shape(x), 1.0, 3.0) if t else x, 2.0, 1 / 3),
        "dropout": (lambda l, x, t: random.dropout(x, 0.2) if t else x, 1.0, 0.25),
        "paths": (
            lambda l, x, t: x / 0.75 * ops.floor(0.75 + random.uniform(ops.shape(x))) if t else x,
            1.0,
            1 / 3,
        ),
    }
    for name, (call, mean, variance) in draws.items():
        found = of_noise(call)
        assert np.allclose(found, (mean, variance), atol=0.06), f"{name}: {found}"


# ---- losses and metrics of the caller's own --------------------------------------------------------


def squares(y_true, y_pred):
    return ops.mean(ops.square(y_true - y_pred), axis=-1)


def of_the_batch(y_true, y_pred):
    return 0.5 * ops.mean(ops.abs(y_true - y_pred)) + ops.mean(y_pred**2)


def each_number(y_true, y_pred):
    apart = y_true - y_pred
    return ops.where(apart > 0, apart * 0.9, -0.1 * apart)


def both_kinds(y_true, y_pred):
    sure = keras.losses.BinaryCrossentropy()(y_true, ops.sigmoid(y_pred))
    return sure + keras.losses.mean_squared_error(y_true, y_pred) - 0.1 * ops.mean(ops.abs(y_pred))


def overlap(y_true, y_pred):
    y_pred = ops.sigmoid(y_pred)
    shared = ops.sum(y_true * y_pred, axis=-1)
    return 1 - (2 * shared + 1) / (ops.sum(y_true, axis=-1) + ops.sum(y_pred, axis=-1) + 1)


def entropy_of_labels(y_true, y_pred):
    hot = ops.one_hot(ops.cast(ops.reshape(y_true, (-1,)), "int32"), 4)
    return -ops.sum(hot * ops.log(y_pred + 1e-7), axis=-1)


def largest(y_true, y_pred):
    return ops.max(ops.abs(y_true - y_pred), axis=-1)


class Exponents(keras.losses.Loss):
    def __init__(self, factor=0.3, **options):
        super().__init__(**options)
        self.factor = factor

    def call(self, y_true, y_pred):
        return ops.sum(ops.exp(self.factor * (y_pred - y_true)), axis=-1)


@case
def losses_and_metrics_of_the_caller():
    def of_two(loss, **compile):
        def make():
            i = layers.Input((9,))
            m = keras.Model(i, layers.Dense(2)(layers.Dense(5, "tanh")(i)))
            m.compile("adam", loss, **compile)
            return m

        return make

    data = lambda: (rows(), np.float32(rows(1, 2) > 0))
    for loss in [
        squares,
        of_the_batch,
        each_number,
        both_kinds,
        overlap,
        Exponents(),
        Exponents(0.2, reduction="sum"),
        keras.losses.MeanSquaredError.__mro__[1](squares),
    ]:
        m, k, *_ = beside(of_two(loss, metrics=["mae", largest]), data, epochs=2, validation_split=0.3)
        mine, theirs = (
            f(*data(), verbose=0) for f in (lambda *a, **o: keel.evaluate(m, *a, **o), k.evaluate)
        )
        close(mine, theirs, "evaluate")
    weights = {"sample_weight": np.linspace(0, 2, ROWS, dtype="float32")}
    for loss in squares, Exponents(reduction="mean_with_sample_weight"):
        beside(of_two(loss, weighted_metrics=[largest]), data, **weights)

    def classes():
        m = mlp()
        m.compile("adam", entropy_of_labels, metrics=["accuracy"])
        return m

    beside(classes, lambda: (rows(), labels()), class_weight={0: 2.0, 3: 0.25})
    beside(classes, lambda: (rows(), labels()[:, None]), validation_split=0.2)
    beside(classes, lambda: (Batches(),))
    stops = lambda: {
        "callbacks": [kc.EarlyStopping("val_largest", mode="min", patience=0, restore_best_weights=True)]
    }
    beside(of_two(squares, metrics=[largest]), data, per_side=stops, epochs=6, validation_split=0.3)

    with tempfile.TemporaryDirectory() as folder:
        named = {"x": rows(), "y": labels()}
        np.savez(os.path.join(folder, "d.npz"), **named)
        np.savez(os.path.join(folder, "w.npz"), **named, sample_weight=np.ones(ROWS, "float32"))
        read, weighed = (keel.open(os.path.join(folder, name)) for name in ("d.npz", "w.npz"))
        m, same = classes(), classes()
        same.set_weights(m.get_weights())
        keel.fit(m, rows(), labels(), **PLAIN)
        keel.fit(same, read, **PLAIN)
        equal(m, same)
        batch = mlp()
        batch.compile("sgd", of_the_batch)
        fails(keel.Unsupported, lambda: keel.fit(batch, weighed, verbose=0), "one for each row")

    def several():
        m = two_by_two()
        m.compile("sgd", [squares, "mse"], loss_weights=[0.5, 2.0], metrics=[[largest], [largest, "mae"]])
        return m

    beside(several, lambda: ([rows(), rows(1, 5)], [rows(2, 4), rows(3, 1)]), epochs=2)

    class Inside(keras.Model):
        def __init__(self):
            super().__init__()
            self.of = layers.Dense(2)

        def call(self, x):
            return self.of(x)

    def own_model():
        m = Inside()
        m(rows()[:1])
        m.compile("sgd", Exponents(), metrics=[largest])
        return m

    beside(own_model, data)
    image = lambda y, p: 1 - ops.mean(ops.square(y - p), axis=(1, 2))

    def images():
        i = layers.Input((6, 6, 3))
        m = keras.Model(i, layers.Conv2D(3, 3, padding="same")(i))
        m.compile("sgd", image)
        return m

    beside(images, lambda: (rows(0, 6, 6, 3), rows(1, 6, 6, 3)))


@case
def functions_that_are_no_program_are_refused():
    class Counts(keras.metrics.Metric):
        def update_state(self, y_true, y_pred, sample_weight=None):
            pass

        def result(self):
            return 0.0

    def fitted(loss, metrics=None, **options):
        m = keras.Sequential([layers.Input((9,)), layers.Dense(2)])
        m.compile("sgd", loss, metrics=metrics)
        return keel.fit(m, rows(), rows(1, 2), verbose=0, **options)

    for loss, *parts in [
        (lambda y, p: ops.mean(y * p) / ops.mean(p**2), "TrueDivide", "no mean over its rows"),
        (lambda y, p: ops.mean(y * p) * ops.square(y - p), "a product with it"),
        (lambda y, p: ops.sqrt(ops.mean(ops.square(y - p))), "Sqrt"),
        (lambda y, p: ops.square(p - ops.mean(p, axis=0)), "depends on other rows"),
        (lambda y, p: ops.sum(ops.reshape(y - p, [-1])), "no mean"),
        (lambda y, p: ops.square(p - ops.flip(p, axis=0)), "depends on other rows"),
        (lambda y, p: tf.square(y - p), "keras.ops"),
        (lambda y, p: 1.0, "not computed of"),
        (lambda y, p: p[:2], "'<lambda>'", "a value for each row"),
        (lambda y, p: ops.transpose(y - p), "the first dim"),
        (lambda y, p: keras.random.normal(ops.shape(p)) * p, "random"),
    ]:
        fails(keel.Unsupported, lambda: fitted(loss), *parts)
    weights = {"sample_weight": np.ones(ROWS, "float32")}
    fails(keel.Unsupported, lambda: fitted(of_the_batch, **weights), "one for each row")
    fails(keel.Unsupported, lambda: fitted(of_the_batch, class_weight={0: 2.0}), "one for each row")
    tested = {"validation_data": (rows(), rows(1, 2), weights["sample_weight"])}
    fails(keel.Unsupported, lambda: fitted(of_the_batch, **tested), "one for each row")
    fails(keel.ArgumentError, lambda: fitted({"none": squares}), "none")
    m = keras.Sequential([layers.Input((9,)), layers.Dense(2)])
    m.compile("sgd", squares)
    once = iter([(rows(), rows(1, 2))])
    fails(keel.Unsupported, lambda: keel.fit(m, once, verbose=0), "begun anew")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        logs = fitted("mse", [largest, Counts(name="counts"), lambda y, p: ops.sqrt(ops.mean(p**2))]).history
        batch = fitted("mse", [of_the_batch]).history
    assert set(logs) == {"loss", "largest"} and set(batch) == {"loss", "of_the_batch"}, (logs, batch)
    for part in "Counts", "Sqrt", "over batches in Keras":
        assert any(
            part in str(w.message) for w in said
        ), f"'{part}' is not in {[str(w.message) for w in said]}"


@case
def code_that_is_no_graph_is_refused():
    class Own(layers.Layer):
        def __init__(self, call):
            super().__init__()
            self.dense, self.drop, self.call_of = layers.Dense(4), layers.Dropout(0.5), call
            self.norm = layers.BatchNormalization()

        def build(self, shape):
            self.dense.build(shape)
            self.norm.build(shape)

        def call(self, x, training=False):
            return self.call_of(self, x, training)

    class Steps(keras.Model):
        def train_step(self, data):
            return super().train_step(data)

    def uses(call):
        i = layers.Input((9,))
        m = keras.Model(i, Own(call)(i))
        m.compile("sgd", "mse")
        return m

    def weighs(use, **options):
        i = layers.Input((9,))
        m = keras.Model(i, Weighs({"w": (4, 4), "v": (4,)}, use, **options)(layers.Dense(4)(i)))
        m.compile("sgd", "mse")
        return m

    def assigns(layer, x):
        layer.v.assign(layer.v * 0.9)
        return x * layer.v + ops.sum(layer.w)

    def adds(layer, x, training):
        layer.add_loss(ops.mean(x))
        return layer.dense(x)

    x = layers.Masking()(layers.Input((9, 2)))
    masked = keras.Model(x._keras_history.operation.input, layers.Flatten()(Patched()(x)))
    masked.compile("sgd", "mse")
    i = layers.Input((9,))
    steps = Steps(i, layers.Dense(4)(i))
    steps.compile("sgd", "mse")
    for model, *parts in [
        (weighs(lambda l, x: x + l.v), "weighs", "/w' is not reached"),
        (weighs(lambda l, x: x * l.v + l.w), "dim 4 would be that of rows"),
        (weighs(lambda l, x: ops.transpose(ops.matmul(l.w, ops.transpose(x))) + l.v), "mix rows"),
        (weighs(lambda l, x: x @ ops.linalg.inv(l.w) + l.v), "own weights are used in Inv"),
        (weighs(lambda l, x: x @ layers.Dropout(0.5)(l.w) + l.v), "a Dropout"),
        (weighs(assigns, trainable=False), "assign"),
        (uses(lambda layer, x, training: x[:, :4] + layer.dense(np.ones((1, 9), "float32"))), "not reached"),
        (uses(lambda l, x, training: keras.random.normal(ops.shape(x)) + x), "not only in training"),
        (uses(lambda l, x, training: x * keras.random.uniform((1, 9)) if training else x), "all rows share"),
        (uses(lambda l, x, training: x + keras.random.gamma((-1, 9), 2.0) if training else x), "gamma"),
        (uses(lambda l, x, training: l.norm(x) if training else x), "learns twice"),
        (uses(adds), "add_loss"),
        (uses(lambda layer, x, training: layer.drop(layer.dense(x), training=True)), "training=True"),
        (uses(lambda layer, x, training: layers.Masking()(layer.dense(x))), "mask"),
        (steps, "train_step"),
        (masked, "mask"),
    ]:
        shape = [d or 5 for d in model.input.shape[1:]]
        fails(keel.Unsupported, lambda: keel.fit(model, rows(0, *shape), rows(1, 4), verbose=0), *parts)


class Patched(layers.Layer):
    def call(self, x):
        return x * 2


def main():
    warnings.filterwarnings("ignore")  # a case that wants one catches it
    passed = failed = 0
    for function in CASES:
        if sys.argv[1:] and function.__name__ not in sys.argv[1:]:
            continue
        try:
            function()
            passed += 1
        except Exception as error:
            failed += 1
            at = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == __file__]
            print(f"FAILED {function.__name__}, lines {at[1:]}: {type(error).__name__}: {str(error)[:300]}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
