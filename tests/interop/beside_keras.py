"""What the scripts that compare the package keel with Keras share: models, rows, and the comparison.

Each case trains one model by keras.Model.fit and its copy by keel.fit, from the same rows in the same
order: logs, weights, the optimizer's variables, predictions and what callbacks have seen are equal."""

import os
import sys
import traceback
import warnings

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import keras
import numpy as np
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


def functional(kind):
    """Of a subclass of keras.Model."""
    i = layers.Input((9,))
    h = layers.Dense(16, "relu")(i)
    h = layers.BatchNormalization()(h)
    return kind(i, layers.Dense(4, "softmax")(h))


class OwnLoss(keras.Model):
    """With a loss of its own in Keras's step."""

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        picked = ops.one_hot(ops.cast(y, "int32"), 4)
        return ops.mean(ops.sum(ops.square(picked - y_pred), axis=-1)) + 0.1 * ops.mean(ops.square(y_pred))


def two_by_two(outputs=list, **compile):
    a, b = layers.Input((9,), name="left"), layers.Input((5,), name="right")
    x = layers.Concatenate()([layers.Dense(8, "tanh")(a), layers.Dense(8, "tanh")(b)])
    kind, size = layers.Dense(4, "softmax", name="kind")(x), layers.Dense(1, name="size")(x)
    m = keras.Model([a, b], {"kind": kind, "size": size} if outputs is dict else [kind, size])
    m.compile("sgd", {"kind": SPARSE, "size": "mse"} if outputs is dict else [SPARSE, "mse"], **compile)
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


def traced(make, data, **options):
    """As beside, in two epochs."""
    return beside(make, data, epochs=2, **options)


def run_cases(script):
    """Of all cases, or those that the command names: the exit status."""
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
            at = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == script]
            print(f"FAILED {function.__name__}, lines {at[1:]}: {type(error).__name__}: {str(error)[:300]}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0
