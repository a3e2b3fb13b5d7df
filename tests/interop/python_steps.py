#!/usr/bin/env python3
"""keel.fit of models with a train_step of their own, beside Keras's own fit.

python_steps.py [NAME...]      needs Keras 3 on TensorFlow, and libkeel (KEEL_LIBRARY)
"""

import os
import sys
import tempfile
import warnings

from beside_keras import (
    ALLOWED,
    ROWS,
    Batches,
    OwnLoss,
    case,
    close,
    fails,
    functional,
    labels,
    rows,
    run_cases,
)
import keras
import numpy as np
import tensorflow as tf
from keras import callbacks as kc, layers, ops
from own_steps import Heads, Tracked, both, net

import keel


class Autoencoder(Tracked):
    def __init__(self):
        super().__init__("loss", "kl")
        self.encoder, self.decoder = net(9, 8, 4), net(2, 8, 9)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            h = self.encoder(data)
            mean, log_var = h[:, :2], h[:, 2:]
            z = mean + ops.exp(0.5 * log_var) * keras.random.normal(ops.shape(mean), seed=self.seeds)
            out = self.decoder(z)
            error = ops.mean(ops.sum(ops.square(data - out), axis=-1))
            kl = ops.mean(-0.5 * ops.sum(1 + log_var - ops.square(mean) - ops.exp(log_var), axis=-1))
            loss = error + kl
        grads = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        return self.tracked(loss, kl)


@case
def one_gradient_with_draws():
    def make():
        m = Autoencoder()
        m.compile("adam")
        return m

    both(make, lambda: (rows(),))


class Gan(Tracked):
    """With two steps, of which the second sees what the first has learnt."""

    def __init__(self, joined=False):
        super().__init__("d_loss", "g_loss")
        self.generator, self.discriminator, self.joined = net(3, 8, 9), net(9, 8, 1), joined

    def compile(self):
        super().compile()
        self.d_optimizer = keras.optimizers.Adam(0.01, beta_1=0.5)
        self.g_optimizer = keras.optimizers.RMSprop(0.02, clipnorm=1.0)
        self.loss_fn = keras.losses.BinaryCrossentropy(from_logits=True)

    def noise(self, data):
        return keras.random.normal((ops.shape(data)[0], 3), seed=self.seeds)

    def judge(self, data):
        n = ops.shape(data)[0]
        fake = self.generator(self.noise(data))
        if self.joined:
            says = self.discriminator(ops.concatenate([fake, data], axis=0))
            truth = ops.concatenate([ops.ones((n, 1)), ops.zeros((n, 1))], axis=0)
            truth += 0.05 * keras.random.uniform(ops.shape(truth), seed=self.seeds)
            return self.loss_fn(truth, says)
        of_fake = self.loss_fn(ops.ones((n, 1)), self.discriminator(fake))
        return of_fake + self.loss_fn(ops.zeros((n, 1)), self.discriminator(data))

    def train_step(self, data):
        with tf.GradientTape() as tape:
            d_loss = self.judge(data)
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))
        with tf.GradientTape() as tape:
            says = self.discriminator(self.generator(self.noise(data)))
            g_loss = self.loss_fn(ops.zeros((ops.shape(data)[0], 1)), says)
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
        return self.tracked(d_loss, g_loss)


class AtOnce(Gan):
    """Both gradients of the weights before the step, as in TensorFlow's tutorials."""

    def train_step(self, data):
        n = ops.shape(data)[0]
        with tf.GradientTape() as of_g, tf.GradientTape() as of_d:
            fake = self.generator(self.noise(data), training=True)
            real_says, fake_says = self.discriminator(data), self.discriminator(fake, training=True)
            g_loss = self.loss_fn(ops.ones_like(fake_says), fake_says)
            d_loss = self.loss_fn(ops.ones((n, 1)), real_says) + self.loss_fn(ops.zeros((n, 1)), fake_says)
        g_grads = of_g.gradient(g_loss, self.generator.trainable_variables)
        d_grads = of_d.gradient(d_loss, self.discriminator.trainable_variables)
        self.g_optimizer.apply_gradients(zip(g_grads, self.generator.trainable_variables))
        self.d_optimizer.apply_gradients(zip(d_grads, self.discriminator.trainable_variables))
        return self.tracked(d_loss, g_loss)


class Normalized(AtOnce):
    """With statistics that each call in training moves once."""

    def __init__(self):
        super().__init__()
        part = lambda last: [layers.Dense(8), layers.BatchNormalization(), layers.ReLU(), layers.Dense(last)]
        self.generator = keras.Sequential([layers.Input((3,)), *part(9)])
        self.discriminator = keras.Sequential([layers.Input((9,)), *part(1)])

    def compile(self):
        super().compile()
        self.d_optimizer, self.g_optimizer = keras.optimizers.SGD(0.05), keras.optimizers.SGD(
            0.05, momentum=0.9
        )


class Penalized(Gan):
    """A gradient in the loss: a WGAN's penalty."""

    def train_step(self, data):
        n = ops.shape(data)[0]
        fake = self.generator(self.noise(data))
        with tf.GradientTape() as tape:
            d_loss = ops.mean(self.discriminator(fake)) - ops.mean(self.discriminator(data))
            between = data + keras.random.uniform((n, 1), seed=self.seeds) * (fake - data)
            with tf.GradientTape() as inner:
                inner.watch(between)
                says = self.discriminator(between, training=True)
            slope = inner.gradient(says, [between])[0]
            size = ops.sqrt(ops.sum(ops.square(slope), axis=[1]))
            d_loss += 10.0 * ops.mean((size - 1.0) ** 2)
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))
        with tf.GradientTape() as tape:
            g_loss = -ops.mean(self.discriminator(self.generator(self.noise(data), training=True)))
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
        return self.tracked(d_loss, g_loss)


class Repeated(Penalized):
    """The discriminator's step is made three times, and once all of their losses are shown."""

    def train_step(self, data):
        for _ in range(3):
            fake = self.generator(self.noise(data))
            with tf.GradientTape() as tape:
                d_loss = ops.mean(self.discriminator(fake)) - ops.mean(self.discriminator(data))
            grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
            self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))
        with tf.GradientTape() as tape:
            g_loss = -ops.mean(self.discriminator(self.generator(self.noise(data))))
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
        return self.tracked(d_loss, g_loss)


def compiled(kind, *args):
    def make():
        m = kind(*args)
        m.compile()
        return m

    return make


@case
def a_second_gradient_sees_what_the_first_has_moved():
    both(compiled(Gan), lambda: (rows(),))


@case
def two_gradients_of_the_same_weights():
    both(compiled(AtOnce), lambda: (rows(),))
    both(compiled(Normalized), lambda: (rows(),), epochs=1)


@case
def rows_of_two_kinds_in_one_batch():
    both(compiled(Gan, True), lambda: (rows(),))


@case
def a_step_that_is_made_three_times():
    both(compiled(Repeated), lambda: (rows(),))


@case
def a_gradient_in_the_loss():
    both(compiled(Penalized), lambda: (rows(),))


class Own(keras.Model):
    """A step as in Keras's guide."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


class Averaged(Tracked):
    """A teacher whose weights are moving averages of the student's, and a copy that nobody calls."""

    def __init__(self):
        super().__init__("loss")
        self.student, self.teacher, self.copy = net(9, 8, 4), net(9, 8, 4), net(9, 8, 4)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            apart = self.student(data) - ops.stop_gradient(self.teacher(data + 0.5))
            loss = ops.mean(ops.square(apart))
        weights = self.student.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        for mine, its, copy in zip(self.student.weights, self.teacher.weights, self.copy.weights):
            its.assign(0.9 * its + (1 - 0.9) * mine)
            copy.assign(copy * 0.5 + mine / 2.0)
        return self.tracked(loss)


@case
def weights_that_are_averages_of_others():
    def make():
        m = Averaged()
        m.compile("adam")
        return m

    both(make, lambda: (rows(),))


@case
def the_step_of_keras_s_guide():
    def make():
        m = functional(Own)
        m.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return m

    both(make, lambda: (rows(), labels()))


class Wrapped(keras.Model):
    def train_step(self, data):
        logs = super().train_step(data)
        return {**logs, "twice": 2.0}


@case
def a_step_around_keras_s():
    def make():
        m = functional(Wrapped)
        m.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return m

    both(make, lambda: (rows(), labels()))


@case
def a_loss_of_its_own_in_keras_s_step():
    def make():
        m = functional(OwnLoss)
        m.compile(
            keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.01, 3, 0.5)),
            metrics=["accuracy"],
        )
        return m

    both(make, lambda: (rows(), labels()))


class Partly(Tracked):
    """An optimizer with weight decay gets weights that its loss does not depend on."""

    def __init__(self):
        super().__init__("loss")
        self.net, self.spare = net(9, 8, 4), net(9, 5)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = ops.mean(ops.square(self.net(data)))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.means[0].update_state(loss + 0.0 * ops.mean(self.spare(data)))
        return {"loss": self.means[0].result()}


@case
def weights_without_a_gradient_stay_as_they_are():
    def make():
        m = Partly()
        m.compile(keras.optimizers.AdamW(0.01, weight_decay=0.1))
        return m

    both(make, lambda: (rows(),))


class HalfRecorded(Tracked):
    """What is computed outside of a tape, or while it does not record, has no gradient."""

    def __init__(self):
        super().__init__("loss")
        self.encoder, self.middle, self.head = net(9, 6), net(6, 5), net(5, 4)

    def train_step(self, data):
        features = self.encoder(data)
        with tf.GradientTape() as tape:
            again = self.head(self.middle(self.encoder(data)))
            with tape.stop_recording():
                other = self.middle(features + 1.0)
            loss = ops.mean(ops.square(self.head(self.middle(features)) + self.head(other))) + ops.mean(again)
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return self.tracked(loss)


class Outside(HalfRecorded):
    def train_step(self, data):
        features = self.encoder(data)
        with tf.GradientTape() as tape:
            loss = ops.mean(ops.square(self.head(self.middle(features))))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return self.tracked(loss)


@case
def what_a_tape_does_not_record_has_no_gradient():
    for kind in HalfRecorded, Outside:

        def make():
            m = kind()
            m.compile(keras.optimizers.AdamW(0.01, weight_decay=0.1))
            m.optimizer.exclude_from_weight_decay(var_list=[m.head.weights[0]])
            return m

        both(make, lambda: (rows(),))


class Distiller(keras.Model):
    def __init__(self):
        super().__init__()
        self.teacher, self.student = net(9, 12, 4), net(9, 6, 4)

    def build(self, shape):
        self.built = True

    def call(self, x):
        return self.student(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, allow_empty=False):
        teacher = self.teacher(x, training=False)
        hard = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(y, y_pred)
        soft = keras.losses.KLDivergence()(
            ops.softmax(teacher / 3.0, axis=1), ops.softmax(y_pred / 3.0, axis=1)
        )
        return 0.1 * hard + 0.9 * soft * 9.0


@case
def a_student_learns_from_a_teacher():
    def make():
        m = Distiller()
        m.teacher.trainable = False
        m.compile("adam", metrics=[keras.metrics.SparseCategoricalAccuracy()])
        return m

    both(make, lambda: (rows(), labels()))


def regularized(kind):
    i = layers.Input((9,))
    h = layers.Dense(16, "relu", kernel_regularizer="l2", activity_regularizer=kind.activity)(i)
    return kind(i, layers.Dense(4, "softmax", bias_regularizer=keras.regularizers.L1L2(0.01, 0.02))(h))


class Plain(Own):
    """Its loss has nothing of the regularizers."""

    activity = "l2"

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            picked = ops.one_hot(ops.cast(y, "int32"), 4)
            loss = ops.mean(ops.sum(ops.square(picked - self(x, training=True)), axis=-1))
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        return {"apart": loss}


class WithTerms(Plain):
    """Its loss has them, and what it shows, too."""

    activity = None

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
        variables = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, variables), variables)
        self.metrics[0].update_state(loss)
        return {"loss": self.metrics[0].result(), "terms": sum(self.losses)}


@case
def regularizers_count_where_a_loss_has_them():
    for kind in Plain, WithTerms:

        def make():
            m = regularized(kind)
            m.compile("adam", "sparse_categorical_crossentropy")
            return m

        both(make, lambda: (rows(), labels()))


class Quantizer(layers.Layer):
    """The nearest of some vectors, which learn by terms of add_loss."""

    def build(self, shape):
        self.vectors = self.add_weight(shape=(3, 5), initializer="random_uniform", name="vectors")

    def call(self, x):
        apart = ops.sum(ops.square(x), axis=-1, keepdims=True) - 2 * ops.matmul(x, self.vectors)
        nearest = ops.argmin(apart + ops.sum(ops.square(self.vectors), axis=0), axis=-1)
        found = ops.matmul(ops.one_hot(nearest, 5), ops.transpose(self.vectors))
        self.add_loss(ops.mean(ops.square(found - ops.stop_gradient(x))) + 0.25 * ops.mean(ops.square(x)))
        return x + ops.stop_gradient(found - x)


class Quantized(Tracked):
    def __init__(self):
        super().__init__("loss", "terms")
        i = layers.Input((9,))
        self.inner = keras.Model(i, layers.Dense(9)(Quantizer()(layers.Dense(3)(i))))

    def train_step(self, data):
        with tf.GradientTape() as tape:
            out = self.inner(data)
            loss = ops.mean(ops.square(data - out)) / 0.5 + sum(self.inner.losses)
        weights = self.inner.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return self.tracked(loss, sum(self.inner.losses))


@case
def terms_that_layers_add_are_in_losses():
    def make():
        m = Quantized()
        m.compile("sgd")
        return m

    both(make, lambda: (rows(),))


def guide(**compile):
    def make():
        m = functional(Own)
        m.compile("adam", "sparse_categorical_crossentropy", **compile)
        return m

    return make


@case
def classes_have_weights_and_short_batches_are_left_out():
    class Weighed(keras.Model):
        def train_step(self, data):
            x, y, weight = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True), sample_weight=weight)
            grads = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply(grads, self.trainable_variables)
            self.metrics[0].update_state(loss)
            return {"loss": self.metrics[0].result()}

    def make():
        m = functional(Weighed)
        m.compile("sgd", "sparse_categorical_crossentropy")
        return m

    weights = {0: 3.0, 3: 0.25}
    both(make, lambda: (rows(), labels()), class_weight=weights)
    whole = ROWS // 8 * 8
    keras.utils.set_random_seed(3)
    mine, theirs = make(), make()
    mine.set_weights(theirs.get_weights())
    options = dict(epochs=2, shuffle=False, verbose=0, class_weight=weights)
    theirs.fit(rows()[:whole], labels()[:whole], batch_size=8, **options)
    keel.fit(mine, rows(), labels(), batch_size=8, end="drop", **options)
    for a, b in zip(mine.weights, theirs.weights):
        close(a, b, a.path)
    batches = lambda: tf.data.Dataset.from_tensor_slices((rows(), labels())).batch(8)
    theirs.fit(batches().take(whole // 8), **options)
    keel.fit(mine, batches(), end="drop", **options)
    for a, b in zip(mine.weights, theirs.weights):
        close(a, b, a.path)
    few = rows()[:5], labels()[:5]
    fails(
        keel.ArgumentError, lambda: keel.fit(mine, *few, batch_size=8, end="drop", **options), "leaves none"
    )
    weighed = {**options, "sample_weight": np.ones(ROWS, "float32")}
    fails(keel.ArgumentError, lambda: keel.fit(mine, rows(), labels(), **weighed), "beside it")


@case
def rows_are_validated_by_keras_s_step_or_by_ones_own():
    class Tested(Own):
        def test_step(self, data):
            x, y = data
            loss = 3.0 * self.compute_loss(y=y, y_pred=self(x, training=False))
            self.metrics[0].update_state(loss)
            return {"loss": self.metrics[0].result()}

    def tested():
        m = functional(Tested)
        m.compile("adam", "sparse_categorical_crossentropy")
        return m

    for make in guide(metrics=["accuracy"]), tested:
        both(make, lambda: (rows(), labels()), validation_split=0.3)
        mine, theirs = both(
            make, lambda: (rows(), labels()), validation_data=(rows(1), labels()), validation_freq=2
        )
        close(
            keel.evaluate(mine, rows(), labels(), verbose=0),
            theirs.evaluate(rows(), labels(), verbose=0),
            "evaluate",
        )
        close(keel.predict(mine, rows(), verbose=0), theirs.predict(rows(), verbose=0), "predict")


@case
def batches_come_from_what_keras_takes():
    make = guide(metrics=["accuracy"])
    both(make, lambda: (Batches(),), batch_size=None)
    both(make, lambda: (tf.data.Dataset.from_tensor_slices((rows(), labels())).batch(7),), batch_size=None)
    both(make, lambda: (rows().astype("float64"), labels().astype("int8")))
    both(make, lambda: (Batches(),), batch_size=None, steps_per_epoch=7, epochs=1)
    once = lambda: ((rows()[i : i + 8], labels()[i : i + 8]) for i in range(0, 40, 8))
    both(make, lambda: (once(),), batch_size=None, epochs=1, counts=False)  # Keras counts a step too many
    m = make()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        h = keel.fit(m, once(), epochs=3, steps_per_epoch=4, verbose=0)
    assert len(h.epoch) == 2 and any("the data ended in epoch 2" in str(w.message) for w in said), h.epoch


@case
def rows_have_weights():
    weights = np.random.default_rng(1).random(ROWS).astype("float32")

    class Weighed(Own):
        def train_step(self, data):
            x, y, weight = data
            with tf.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=y_pred, sample_weight=weight)
            variables = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, variables), variables)
            self.metrics[1].update_state(y, y_pred, sample_weight=weight)
            self.metrics[0].update_state(loss)
            return {"loss": self.metrics[0].result(), **self.metrics[1].result()}

    def make():
        m = functional(Weighed)
        m.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return m

    both(make, lambda: (rows(), labels()), sample_weight=weights)


@case
def callbacks_see_and_set_weights_and_rates():
    class Halves(kc.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.set_weights([w * 0.5 for w in self.model.get_weights()])

    class Begins(kc.Callback):
        def halve(self, *_, **__):
            self.model.set_weights([w * 0.5 for w in self.model.get_weights()])

        on_train_begin = on_epoch_begin = halve

    class Stops(kc.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 3:
                self.model.stop_training = True

    for callbacks in [
        lambda: [kc.LearningRateScheduler(lambda epoch: 0.01 / (epoch + 1))],
        lambda: [Halves()],
        lambda: [Begins()],
        lambda: [Stops()],
        lambda: [kc.EarlyStopping("loss", patience=0, baseline=0.1, restore_best_weights=True)],
    ]:
        make = guide()
        keras.utils.set_random_seed(3)
        theirs, mine = make(), make()
        mine.set_weights(theirs.get_weights())
        options = {"batch_size": 8, "epochs": 4, "shuffle": False, "verbose": 0}
        h = theirs.fit(rows(), labels(), callbacks=callbacks(), **options)
        g = keel.fit(mine, rows(), labels(), callbacks=callbacks(), **options)
        close(g.history["loss"], h.history["loss"], "loss")
        for a, b in zip(mine.weights, theirs.weights):
            close(a, b, a.path)


@case
def another_fit_goes_on_with_the_optimizer():
    optimizers = keras.optimizers
    for optimizer in [
        lambda: optimizers.Adam(0.01, amsgrad=True),
        lambda: optimizers.Nadam(0.01),
        lambda: optimizers.SGD(optimizers.schedules.ExponentialDecay(0.1, 5, 0.5), momentum=0.9),
        lambda: optimizers.RMSprop(0.01, centered=True, momentum=0.5),
        lambda: optimizers.Adafactor(0.01),
        lambda: optimizers.Lion(0.001),
        lambda: optimizers.Adam(0.01, gradient_accumulation_steps=3),
    ]:
        keras.utils.set_random_seed(3)
        theirs, mine = functional(Own), functional(Own)
        mine.set_weights(theirs.get_weights())
        for m in theirs, mine:
            m.compile(optimizer(), "sparse_categorical_crossentropy")
        options = {"batch_size": 8, "epochs": 1, "shuffle": False, "verbose": 0}
        of_keel = lambda *a, **o: keel.fit(mine, *a, **o)
        for fit in theirs.fit, theirs.fit, theirs.fit, of_keel, mine.fit, of_keel:
            fit(rows(), labels(), **options)
        for a, b in zip(mine.weights, theirs.weights):
            close(a, b, f"{mine.optimizer.name}: {a.path}", 3 * ALLOWED)


@case
def backup_and_restore_goes_on_after_a_failure():
    class Ends(kc.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 2:
                raise RuntimeError("ends here")

    with tempfile.TemporaryDirectory() as folder:
        options = {"batch_size": 8, "epochs": 4, "shuffle": False, "verbose": 0}
        keras.utils.set_random_seed(3)
        theirs, mine = guide()(), guide()()
        mine.set_weights(theirs.get_weights())
        h = theirs.fit(rows(), labels(), **options)
        backup = lambda: kc.BackupAndRestore(os.path.join(folder, "backup"))
        fails(
            RuntimeError,
            lambda: keel.fit(mine, rows(), labels(), callbacks=[backup(), Ends()], **options),
            "ends",
        )
        again = guide()()
        g = keel.fit(again, rows(), labels(), callbacks=[backup()], **options)
        assert g.epoch == [2, 3], g.epoch
        close(g.history["loss"], h.history["loss"][2:], "loss")
        for a, b in zip(again.weights, theirs.weights):
            close(a, b, a.path)


class Clipped(Tracked):
    """Gradients that the step clips, all of one loss, for two optimizers."""

    def __init__(self, *clips):
        super().__init__("loss")
        self.first, self.second, self.clips = net(9, 8), net(8, 4), clips

    def compile(self):
        super().compile()
        self.optimizer, self.g_optimizer = keras.optimizers.SGD(0.1), keras.optimizers.Adam(0.01)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = ops.mean(ops.square(self.second(self.first(data)) - 3.0))
        weights = self.first.trainable_weights, self.second.trainable_weights
        grads = tape.gradient(loss, [*weights[0], *weights[1]])
        parts = [grads[: len(weights[0])], grads[len(weights[0]) :]]
        for optimizer, clip, part, of in zip((self.optimizer, self.g_optimizer), self.clips, parts, weights):
            optimizer.apply_gradients(zip(clip(part), of))
        return self.tracked(loss)


class TwoKinds(Heads):
    """Rows of two kinds in one batch, each with a layer of its own behind."""

    def train_step(self, x):
        n = ops.shape(x)[0]
        with tf.GradientTape() as tape:
            z = self.encoder(ops.concatenate([x, 0.5 * x], axis=0))
            b = ops.mean(ops.square(self.second(ops.split(z, 2, axis=0)[1]) - 1.0))
            loss = ops.mean(ops.square(self.first(z[:n]))) + b
        grads = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        return self.tracked(loss, b)


@case
def layers_behind_parts_of_joined_rows():
    def make():
        m = TwoKinds("loss", "second")
        m.compile("adam")
        return m

    both(make, lambda: (rows(),), epochs=1)


@case
def gradients_that_the_step_clips():
    norm = lambda grads: [tf.clip_by_norm(g, 0.05) for g in grads]
    of_all = lambda grads: tf.clip_by_global_norm(grads, 0.05)[0]
    value = lambda grads: [tf.clip_by_value(g, -0.01, 0.01) for g in grads]
    by_keras = lambda grads: [ops.clip(g, -0.02, 0.02) for g in grads]
    as_they_are = lambda grads: grads
    for clips in (norm, of_all), (of_all, value), (by_keras, as_they_are):

        def make():
            m = Clipped(*clips)
            m.compile()
            return m

        both(make, lambda: (rows(),), epochs=1)


class Places(layers.Layer):
    """Its weights are made when it is built, its call is TensorFlow's, and it gives a mask on."""

    def build(self, shape):
        self.words = layers.Embedding(12, 6)
        self.places = layers.Embedding(shape[1], 6)
        self.first = self.add_weight(shape=(1, 6), initializer="random_normal", name="first")

    def call(self, ids, training):
        places = self.places(tf.range(start=0, limit=tf.shape(ids)[-1]))
        first = tf.repeat(self.first, repeats=ids.shape[1], axis=0)
        first = tf.repeat(first[tf.newaxis, ...], repeats=tf.shape(ids)[0], axis=0)
        return tf.nn.gelu(self.words(ids) + places) + tf.nn.leaky_relu(first)

    def compute_mask(self, ids, mask=None):
        return tf.math.not_equal(ids, 0)


class Attends(layers.Layer):
    """To what came before, with a mask for all rows."""

    def __init__(self):
        super().__init__()
        self.attention, self.supports_masking = layers.MultiHeadAttention(2, 3), True

    def call(self, x, mask=None):
        rows, length = tf.shape(x)[0], tf.shape(x)[1]
        before = tf.range(length)[:, tf.newaxis] >= tf.range(length)
        before = tf.reshape(tf.cast(before, tf.int32), (1, length, length))
        times = tf.concat([tf.expand_dims(rows, -1), tf.constant([1, 1], dtype=tf.int32)], 0)
        both = tf.minimum(tf.tile(before, times), tf.cast(mask[:, tf.newaxis, :], tf.int32))
        return x + self.attention(x, x, attention_mask=both)


class Words(Tracked):
    """Layers see masks, and the loss is divided by one."""

    def __init__(self):
        super().__init__("loss", "by_mask")
        self.places, self.attends, self.head = Places(), Attends(), layers.Dense(12)

    def train_step(self, ids):
        with tf.GradientTape() as tape:
            x = self.attends(self.places(ids[:, :-1], training=True))
            each = self.loss(ids[:, 1:], self.head(x))
            mask = tf.cast(tf.math.not_equal(ids[:, 1:], 0), each.dtype)
            loss = tf.reduce_sum(each * mask) / tf.reduce_sum(mask)
            apart = keras.losses.MeanSquaredError()(ops.zeros_like(x), x)
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return self.tracked(loss, apart)


@case
def layers_that_compute_by_tensorflow_and_give_masks_on():
    ids = np.random.RandomState(2).randint(1, 12, (ROWS, 7)).astype("int32")
    ids[::3, 4:] = 0

    def make():
        m = Words()
        m.places(ids[:2, :-1], training=False)
        m.attends(m.places(ids[:2, :-1], training=False))
        m.head.build((None, None, 6))
        none = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
        m.compile(keras.optimizers.SGD(0.1, momentum=0.9), none)
        return m

    both(make, lambda: (ids,))
    m = Words()  # and one whose layers are built by the first step
    m.compile(keras.optimizers.SGD(0.1), keras.losses.SparseCategoricalCrossentropy(True, reduction="none"))
    m.built = True
    h = keel.fit(m, ids, epochs=3, verbose=0)
    assert h.history["loss"][2] < h.history["loss"][0] and len(m.trainable_variables) == 13, h.history


class Edges(Tracked):
    """A loss that looks at edges by filters of numbers, and is a sum divided by the number of rows."""

    kernel = np.float32([[0, -1, 0], [-1, 4, -1], [0, -1, 0]])[:, :, None, None]

    def __init__(self):
        super().__init__("loss", "edges", "colours")
        self.net = keras.Sequential(
            [layers.Input((8, 8, 3)), layers.Conv2D(3, 3, padding="same", activation="tanh")]
        )

    def edges(self, x):
        grey = layers.AveragePooling2D(2)(tf.reduce_mean(x, 3, keepdims=True))
        return tf.nn.conv2d(grey, self.kernel, strides=[1, 1, 1, 1], padding="SAME")

    def train_step(self, x):
        with tf.GradientTape() as tape:
            y = self.net(x, training=True)
            count = tf.cast(tf.shape(x)[0], tf.float32)
            moved = 2 * (tf.reduce_sum(tf.pow(y[:, 1:] - y[:, :-1], 2)) / 21.0) / count
            edges = tf.reduce_mean(tf.math.squared_difference(self.edges(y), self.edges(x)))
            means = tf.reduce_mean(y, [1, 2], keepdims=True)
            colours = tf.reduce_mean(tf.reduce_mean(tf.pow(means[..., 0] - means[..., 1], 2)))
            loss = np.float32(0.5) * moved + edges + colours
        variables = self.net.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return self.tracked(loss, edges, colours)


@case
def filters_of_numbers_and_the_number_of_rows():
    images = np.random.RandomState(2).rand(ROWS, 8, 8, 3).astype("float32")

    def make():
        m = Edges()
        m.compile(keras.optimizers.SGD(0.1))
        return m

    both(make, lambda: (images,))


class Captions(Tracked):
    """One optimizer learns from one caption after another, of which each has a loss of its own."""

    def __init__(self):
        super().__init__("loss")
        self.net = net(9, 12, 4)

    def train_step(self, data):
        x, captions = data
        losses = []
        for k in range(3):
            with tf.GradientTape() as tape:
                losses.append(ops.mean(ops.square(self.net(x) - captions[:, k]) * (1.0 + k)))
            variables = self.net.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(losses[-1], variables), variables))
        return self.tracked(sum(losses) / 3)


@case
def one_optimizer_learns_from_losses_that_are_not_alike():
    captions = np.random.RandomState(5).rand(ROWS, 3, 4).astype("float32")
    for optimizer in (lambda: keras.optimizers.Adam(0.01), lambda: keras.optimizers.SGD(0.1, momentum=0.9)):

        def make():
            m = Captions()
            m.compile(optimizer())
            return m

        m, _ = both(make, lambda: (rows(), captions))
        assert int(m.optimizer.iterations) == 2 * 3 * 7


@case
def what_a_step_does_that_keel_cannot_is_refused():
    def of(step):
        kind = type("Odd", (Tracked,), {"train_step": step, "build": lambda self, shape: None})
        m = kind("loss")
        m.net, m.other = net(9, 4), net(9, 4)
        m.compile(keras.optimizers.Adam())
        m.built = True
        return m

    def learn(m, loss, tape, change=lambda g: g, weights=None):
        weights = weights or m.net.trainable_variables
        m.optimizer.apply_gradients(zip(change(tape.gradient(loss, weights)), weights))
        return m.tracked(loss)

    def step(loss, **options):
        def train_step(m, data):
            with tf.GradientTape() as tape:
                value = loss(m, data)
            return learn(m, value, tape, **options)

        return train_step

    square = lambda m, x: ops.mean(ops.square(m.net(x)))

    def parts_of_weights(m, data):
        for weights in m.net.trainable_variables, m.net.trainable_variables[:1]:
            with tf.GradientTape() as tape:
                loss = ops.mean(m.net(data) ** (2 * len(weights)))
            m.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return m.tracked(loss)

    def moved(m, data):
        with tf.GradientTape(persistent=True) as tape:
            first = square(m, data)
        learn(m, first, tape)
        with tape:
            second = first + ops.mean(m.net(data))
        return learn(m, second, tape)

    def draws(m, data):
        return ops.mean(m.net(data + keras.random.normal((1, 9))))

    reads = lambda m, x: square(m, x) + ops.sum(ops.abs(m.net.weights[0]))
    halves = lambda grads: [0.5 * g for g in grads]
    count = tf.Variable(0.0)

    def counted(m, data):
        count.assign_add(1.0)
        return square(m, data)

    def scheduled(m, data):
        with tf.GradientTape() as tape:
            loss = square(m, data)
        learn(m, loss, tape)
        return {"rate": keras.optimizers.schedules.CosineDecay(0.1, 10)(m.optimizer.iterations)}

    def penalized(m, data):
        m.net.layers[0].kernel.regularizer = keras.regularizers.L2(0.1)
        return square(m, data) + 2.0 * sum(m.net.losses)

    def frozen(m, data):
        m.net.trainable = False
        return square(m, data)

    def weighed(m, data):
        with tf.GradientTape() as tape:
            loss = square(m, data)
        weights = m.net.trainable_variables
        m.optimizer.apply(tape.gradient(loss, weights, output_gradients=ops.ones(())), weights)
        return m.tracked(loss)

    no_step = lambda m, data: m.tracked(square(m, data))
    for train_step, *parts in [
        (step(reads), "reads", "kernel'"),
        (step(draws), "not of its rows"),
        (step(square, change=halves), "has a step of its own"),
        (step(square, change=lambda g: [tf.clip_by_value(x, -1.0, 2.0) for x in g]), "than -x and x"),
        (step(square, change=lambda g: [tf.clip_by_norm(g[0], 1.0), g[1]]), "in another way"),
        (step(square, change=lambda g: tf.clip_by_global_norm(g[:1], 1.0)[0] + g[1:]), "in another way"),
        (parts_of_weights, "some weights by one loss, and others by another"),
        (moved, "before its weights were moved"),
        (no_step, "no optimizer gets gradients"),
        (step(penalized), "times a number"),
        (step(frozen), "sets trainable of a layer"),
        (weighed, "output_gradients"),
        (step(counted), "a variable of TensorFlow"),
        (scheduled, "would stay as it is"),
        (lambda m, data: None, "no optimizer gets gradients"),
    ]:
        fails(keel.Unsupported, lambda: keel.fit(of(train_step), rows(), verbose=0), *parts)

    class Mixed(Normalized):
        def train_step(self, data):
            with tf.GradientTape() as tape:
                fake = self.generator(self.noise(data), training=True)
                says = self.discriminator(ops.concatenate([fake, data], axis=0), training=True)
                loss = ops.mean(says)
            weights = self.discriminator.trainable_variables
            self.d_optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
            return self.tracked(loss)

    fails(keel.Unsupported, lambda: keel.fit(compiled(Mixed)(), rows(), verbose=0), "statistics", "joined")
    for option in [{"end": "carry"}, {"float32": "fast"}, {"micro_batch": 4}]:
        fails(
            keel.Unsupported,
            lambda: keel.fit(of(step(square)), rows(), verbose=0, **option),
            next(iter(option)),
        )
    fails(
        keel.Unsupported,
        lambda: keel.fit(of(step(square)), rows(), callbacks=["EarlyStopping()"], verbose=0),
        "give Keras's",
    )


@case
def a_failure_leaves_the_model_as_after_the_last_step():
    class Fails(kc.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                raise RuntimeError("no more")

    keras.utils.set_random_seed(3)
    mine, theirs = guide()(), guide()()
    mine.set_weights(theirs.get_weights())
    options = {"batch_size": 8, "shuffle": False, "verbose": 0}
    fails(RuntimeError, lambda: keel.fit(mine, rows(), labels(), callbacks=[Fails()], **options), "no more")
    theirs.fit(rows()[:24], labels()[:24], **options)
    for a, b in zip(mine.weights, theirs.weights):
        close(a, b, a.path)
    bad = rows()
    bad[30] = np.nan
    before = [np.array(w) for w in mine.get_weights()]
    fails(keel.Error, lambda: keel.fit(mine, bad[24:32], labels()[24:32], **options), "not finite")
    assert all(map(np.array_equal, before, mine.get_weights()))


@case
def layers_in_bfloat16():
    def make():
        policy = keras.config.dtype_policy()
        keras.config.set_dtype_policy("mixed_bfloat16")
        try:
            return compiled(Gan)()
        finally:
            keras.config.set_dtype_policy(policy)

    both(make, lambda: (rows(),), epochs=1, allowed=0.08)


if __name__ == "__main__":
    sys.exit(run_cases(__file__))
