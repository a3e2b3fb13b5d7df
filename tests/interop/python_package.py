#!/usr/bin/env python3
"""The package keel for Python beside Keras's own fit, evaluate and predict: rows, options and callbacks.

python_package.py [NAME...]      needs Keras 3 on TensorFlow, and libkeel (KEEL_LIBRARY)
"""

import os
import signal
import sys
import tempfile
import warnings

from beside_keras import (
    PLAIN,
    ROWS,
    SPARSE,
    Batches,
    Seen,
    batches,
    beside,
    case,
    close,
    equal,
    fails,
    labels,
    mlp,
    rows,
    run_cases,
    same_history,
    two_by_two,
)
import keras
import numpy as np
import tensorflow as tf
from keras import callbacks as kc, layers, ops

import keel


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
def initializers_of_the_caller():
    class Small(keras.initializers.Initializer):
        def __call__(self, shape, dtype=None):
            return keras.random.normal(shape, stddev=0.1, dtype=dtype, seed=4)

    def make():
        ones = lambda shape, dtype=None: 0.1 * ops.ones(shape, dtype)
        i = layers.Input((5, 9))
        x = layers.LSTM(6, kernel_initializer=Small(), recurrent_initializer=ones)(i)
        m = keras.Model(i, layers.Dense(4, "softmax", kernel_initializer=Small(), bias_initializer=ones)(x))
        m.compile("sgd", SPARSE)
        return m

    m, *_ = beside(make, lambda: (rows(0, 5, 9), labels()))
    assert isinstance(m.layers[-1].kernel_initializer, Small)


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
def callbacks_that_ask_metrics_for_their_direction():
    """Which way is better they learn from the metrics of the model, also from one that was never run."""

    def some(*watched):
        first = kc.EarlyStopping(watched[0], patience=1, restore_best_weights=True)
        return lambda: {"callbacks": [first, *(kc.ReduceLROnPlateau(w, patience=0) for w in watched)]}

    options = dict(epochs=6, validation_split=0.3)
    top = lambda: keras.metrics.SparseTopKCategoricalAccuracy(2, name="top")
    make = lambda: mlp(keras.optimizers.SGD(0.2), metrics=["accuracy", top()], weighted_metrics=[SPARSE])

    def alike(make, data, per_side):
        m, k, *_ = beside(make, data, per_side=per_side, **options)
        mine, theirs = ([x.name for x in v._compile_metrics.metrics] for v in (m, k))
        assert mine == theirs, f"metrics {mine} and {theirs}"
        mine, theirs = (x.evaluate(*data(), verbose=0) for x in (m, k))
        close(np.array(mine), np.array(theirs), "evaluate")

    for watched in ("val_accuracy", "val_top", SPARSE):
        alike(make, lambda: (rows(), labels()), some(watched))
    batches = lambda: (tf.data.Dataset.from_tensor_slices((rows(), labels()[:, None])).batch(8),)
    beside(make, batches, per_side=some("accuracy"), epochs=6, batch_size=None)
    for outputs in (list, dict):
        named = lambda: two_by_two(outputs, metrics={"kind": "accuracy", "size": ["mae"]})
        given = {"kind": labels(), "size": rows(2, 1)}
        data = lambda: ([rows(), rows(1, 5)], given if outputs is dict else list(given.values()))
        alike(named, data, lambda: {"callbacks": [kc.EarlyStopping("val_kind_accuracy", mode="max")]})


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


class Warmup(keras.optimizers.schedules.LearningRateSchedule):
    """The schedule of Keras's example of a translation by a transformer; it has no get_config."""

    def __init__(self, size=64, steps=5, ends=None):
        self.size, self.steps, self.ends = float(size), steps, ends

    def __call__(self, step):
        if self.ends and step >= self.ends:
            raise ArithmeticError("it ends here")
        step = ops.cast(step, "float32")
        return ops.rsqrt(self.size) * ops.minimum(ops.rsqrt(step + 1), step * self.steps**-1.5)


@case
def schedules_of_the_caller():
    data = lambda: (rows(), labels())
    seen = lambda: {"callbacks": [Seen(False)]}
    for optimizer in (lambda: keras.optimizers.Adam(Warmup()), lambda: keras.optimizers.SGD(Warmup(), 0.9)):
        m, k, mine, theirs = beside(lambda: mlp(optimizer()), data, seen, validation_split=0.2)
        keel.fit(m, *data(), **PLAIN)  # goes on, and so does Keras
        k.fit(*data(), **PLAIN)
        equal(m, k)
    m, k = mlp(keras.optimizers.SGD(Warmup(ends=10))), mlp(keras.optimizers.SGD(Warmup()))
    m.set_weights(k.get_weights())
    fails(ArithmeticError, lambda: keel.fit(m, *data(), **PLAIN), "it ends here")
    k.fit(*data(), **{**PLAIN, "epochs": 1})  # 7 steps, and 3
    k.fit(rows()[:24], labels()[:24], **{**PLAIN, "epochs": 1})
    equal(m, k)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.keras")
        m = mlp(keras.optimizers.SGD(Warmup()))
        keel.fit(m, *data(), callbacks=[f"ModelCheckpoint('{path}')"], **PLAIN)
        of_file = keras.models.load_model(path)
        equal(of_file, m)
        close(of_file.optimizer.learning_rate, m.optimizer.learning_rate, "the rate of the next step")


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
        [layers.Input((9,)), layers.Lambda(lambda x: tf.signal.dct(x)), layers.Dense(4, "softmax")]
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


sys.exit(run_cases(__file__))
