#!/usr/bin/env python3
"""Pass models back and forth between Keras and the command keel; both must go on alike.

    with_keras.py path/to/keel [--no-deep | NAME...]      needs Keras 3 on TensorFlow; not run by make check

Every model below goes through these steps, each training an epoch of uneven steps, unshuffled:
  1. Keras trains an epoch and saves; keel predicts from that file, as Keras does
  2. keel trains the next epoch from the file, Keras from its memory: weights and the optimizer's
     variables are equal, so the state of the optimizer was read
  3. Keras loads what keel saved: weights, optimizer and predictions are equal
  4. Keras and keel both train a third epoch from keel's file: equal, so its state was written
  5. Keras loads keel's last checkpoint of that epoch, which has a member more: equal to the file
Models that keel makes (keel new) begin at step 3. Differences are the largest |a - b| over the
largest |b| of the tensor and must stay below 1e-5; the worst of each model is printed. The optimizer's
moments are compared to 1e-4: they are small differences of large sums.
"""
import os
import subprocess
import sys
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers, losses, ops, optimizers, regularizers

ROWS, BATCH, DEVICES, ALLOWED, STATE_ALLOWED = 37, 8, "cpu:0-2", 1e-5, 1e-4
TOKENS = 7  # vocabulary of the models that take texts
SPARSE = "sparse_categorical_crossentropy"


def mlp():
    return keras.Sequential(
        [
            layers.Input((9,)),
            layers.Dense(16, "relu", kernel_regularizer=regularizers.L1L2(1e-3, 1e-2)),
            layers.Dense(16, "tanh", kernel_initializer="he_normal", bias_initializer="ones"),
            layers.Dense(8, "gelu", use_bias=False, activity_regularizer="l2"),
            layers.ActivityRegularization(1e-3),
            layers.Dropout(0.0),
            layers.Dense(4, "softmax"),
        ]
    )


def cnn():
    return keras.Sequential(
        [
            layers.Input((12, 10, 3)),
            layers.Rescaling(0.5, offset=0.1),
            layers.ZeroPadding2D(((1, 0), (2, 1))),
            layers.Conv2D(6, 3, use_bias=False, kernel_regularizer=regularizers.L2(1e-3)),
            layers.BatchNormalization(momentum=0.9),
            layers.ReLU(max_value=1.0),
            layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2, use_bias=False),
            layers.BatchNormalization(momentum=0.8, epsilon=1e-4, scale=False),
            layers.Activation("swish"),
            layers.MaxPooling2D(2, padding="same"),
            layers.Conv2D(8, (2, 3), padding="same", dilation_rate=2, activation="elu"),
            layers.AveragePooling2D((2, 1), strides=2, padding="same"),
            layers.Conv2D(4, 1, strides=2),
            layers.Reshape((-1, 4)),
            layers.Flatten(),
            layers.Dense(4),
            layers.Softmax(),
        ]
    )


def residual():
    x = i = layers.Input((8, 8, 2), name="image")
    x = layers.Conv2D(4, 3, padding="same", use_bias=False, name="stem")(x)
    x = s = layers.BatchNormalization(name="stem_bn", momentum=0.9)(x)
    shared = layers.Conv2D(4, 3, padding="same", activation="relu", name="shared")
    x = layers.Add()([shared(x), shared(s), s])
    x = layers.Concatenate()([x, layers.ReLU(negative_slope=0.1)(s)])
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(i, layers.Dense(4, name="scores")(x), name="residual")


def steps():
    """A layer held, one of them frozen, a model held, wrappers in wrappers."""
    each = layers.TimeDistributed
    base = keras.Sequential([layers.Input((3, 4)), layers.Dense(3, use_bias=False)])
    still = layers.Dense(4, trainable=False)
    return keras.Sequential(
        [
            layers.Input((2, 5, 3, 4)),
            each(each(base)),
            each(layers.Conv2D(3, 2, use_bias=False)),
            each(layers.BatchNormalization(momentum=0.9)),
            each(layers.Flatten()),
            each(layers.Dense(6, "tanh")),
            each(still),
            layers.GlobalAveragePooling1D(),
            layers.Dense(4, "softmax"),
        ]
    )


def one_dim():
    return keras.Sequential(
        [
            layers.Input((20, 3)),
            layers.ZeroPadding1D((1, 2)),
            layers.Conv1D(6, 3, padding="causal", activation="relu"),
            layers.MaxPooling1D(2, padding="same"),
            layers.Conv1D(6, 3, strides=2, padding="same", groups=3),
            layers.AveragePooling1D(3, strides=1),
            layers.Reshape((2, 2, 6)),
            layers.GlobalMaxPooling2D(),
            layers.Dense(4, "softmax"),
        ]
    )


def frozen():
    m = cnn()
    m.layers[2].trainable = False
    m.layers[3].trainable = False
    return m


def transfer():
    """The base is frozen and called with training=False, as in Keras's guide."""
    base = cnn()
    base = keras.Sequential([layers.Input((12, 10, 3)), *base.layers[:8]], name="base")
    base.trainable = False
    i = layers.Input((12, 10, 3))
    x = layers.GlobalAveragePooling2D()(base(i, training=False))
    return keras.Model(i, layers.Dense(4, "softmax")(layers.Dense(6, "relu")(x)))


def nested():
    """Three deep, the middle one called twice, none of it frozen; two outputs of a model inside."""
    low = keras.Sequential(
        [
            layers.Input((8, 8, 2)),
            layers.Conv2D(3, 3, use_bias=False),
            layers.BatchNormalization(momentum=0.9),
        ]
    )
    i, j = layers.Input((8, 8, 2)), layers.Input((8, 8, 2))
    first = low(i)
    other = layers.Add()([first, layers.Conv2D(3, 3)(j)])
    mid = keras.Model([i, j], [layers.ReLU()(first), other], name="mid")
    i = layers.Input((8, 8, 2))
    a, b = mid([i, layers.Rescaling(0.5)(i)])
    c, d = mid([i, i])
    x = layers.Concatenate()([layers.GlobalAveragePooling2D()(v) for v in (a, b, c, d)])
    return keras.Model(i, layers.Dense(4, "softmax")(x))


def operations():
    i = layers.Input((6, 4))
    x = layers.Dense(4, "tanh")(i)
    y = (2 - x * 3) ** 2 / 4 + ops.abs(-i) - ops.where(x > 0.1, x, 0.5)
    z = ops.matmul(ops.reshape(y, (-1, 6, 4)), ops.transpose(x, (0, 2, 1)))
    parts = [ops.mean(y, 1), ops.max(z, (1, 2), keepdims=True)[:, 0], ops.sum(y[:, 1:5:2], -1)]
    parts.append(ops.minimum(ops.exp(ops.sqrt(ops.square(x) + 1.0))[:, -1], ops.sigmoid(x[:, 2])))
    return keras.Model(i, layers.Dense(4, "softmax")(ops.concatenate(parts, axis=-1)))


def masked():
    """Steps below 0 become 0 and do not count."""
    i = layers.Input((7, 1))
    x = layers.Masking(0.0)(layers.ReLU()(i))
    x = layers.Add()([layers.Dense(5, "tanh")(x), layers.Dense(5)(x)])
    x = layers.GlobalAveragePooling1D()(layers.Concatenate()([x, layers.Dense(2)(i)]))
    return keras.Model(i, layers.Dense(4, "softmax")(x))


def over_time():
    """Both ways with gates, steps below 0 do not count; a state goes from one layer to another."""
    i = layers.Input((7, 1))
    x = layers.Masking(0.0)(layers.ReLU()(i))
    x, h, c = layers.LSTM(9, return_sequences=True, return_state=True, recurrent_regularizer="l2")(x)
    y = layers.Bidirectional(layers.GRU(6, return_sequences=True))(x)
    z = layers.LSTM(9, go_backwards=True, activation="relu")(i, initial_state=[h, c])
    y = layers.SimpleRNN(5)(layers.GRU(4, return_sequences=True, reset_after=False)(y))
    return keras.Model(i, layers.Dense(4, "softmax")(layers.Concatenate()([y, z])))


def transformer():
    """Blocks that look at steps which are not masked, then back only. Keys have no bias: theirs has no
    gradient but noise."""
    i = layers.Input((9, 1))
    x = layers.Add()([layers.Dense(8)(i), layers.Masking(0.0)(layers.Dense(8)(layers.ReLU()(i)))])
    for gate, more in [(True, {}), (False, {"use_causal_mask": True})]:
        heads = layers.MultiHeadAttention(2, 4, use_gate=gate, use_bias=False)
        x = layers.LayerNormalization()(layers.Add()([x, heads(x, x, **more)]))
        x = layers.LayerNormalization()(layers.Add()([x, layers.Dense(8)(layers.Dense(16, "relu")(x))]))
    return keras.Model(i, layers.Dense(4, "softmax")(layers.GlobalAveragePooling1D()(x)))


WORDS = ["a", "b", "c", "", "zz", "ü", "日本語", "a longer text than thirty-two bytes are"]


def attentions():
    """Attention of every kind, with masks that come along and scores as an output. A bias of keys has
    no gradient, but noise."""
    i = layers.Input((6, 4))
    x = layers.Masking(0.25)(i)
    y, scores = layers.Attention(use_scale=True)([x, x], use_causal_mask=True, return_attention_scores=True)
    y = layers.AdditiveAttention()([layers.LayerNormalization()(y), x])
    z = layers.GroupQueryAttention(4, 4, 2, use_gate=True, use_bias=False)(x, y, use_causal_mask=True)
    z = layers.Attention(score_mode="concat")([z, y, x])
    both = layers.Concatenate()([ops.mean(z, 1), ops.mean(scores, 1)])
    return keras.Model(i, layers.Dense(4, "softmax")(both))


def conv_over_time():
    """Convolutions over steps, and cells one upon another with their states handed on."""
    i = layers.Input((4, 5, 2))
    x, h, _ = layers.ConvLSTM1D(3, 2, padding="same", return_sequences=True, return_state=True)(i)
    x = layers.Reshape((4, 5, 3, 1))(layers.Bidirectional(layers.ConvLSTM1D(3, 3, strides=1, padding="same",
        return_sequences=True), merge_mode="sum")(x))
    x = layers.ConvLSTM2D(2, 2, strides=2, return_sequences=True)(x)
    x = layers.Reshape((4, -1))(x)
    cells = [layers.GRUCell(3), layers.LSTMCell(4), layers.GRUCell(3)]
    x, *states = layers.RNN(layers.StackedRNNCells(cells), return_sequences=True, return_state=True)(x)
    cells = [layers.GRUCell(3), layers.LSTMCell(4)]
    x = layers.RNN(layers.StackedRNNCells(cells))(x, initial_state=states[:2])
    return keras.Model(i, layers.Dense(4, "softmax")(layers.Concatenate()([x, layers.Flatten()(h)])))


def words():
    """Vocabularies in the configuration and beside it, in a model inside another, too."""
    low = layers.Input((1,), dtype="string")
    look = layers.StringLookup(vocabulary=["c", "a"], num_oov_indices=3)
    weighed = layers.StringLookup(output_mode="tf_idf")
    weighed.adapt(np.array([["a", "b", "ü"], ["zz", "a", "日本語"]]))
    base = keras.Model(low, [layers.Embedding(5, 3)(look(low)), weighed(low)], name="base")
    i = layers.Input((1,), dtype="string")
    counted = layers.StringLookup(output_mode="multi_hot", num_oov_indices=2, max_tokens=9, pad_to_max_tokens=True)
    counted.adapt(np.array(["b", "zz", "zz"]))
    a, b = base(i)
    x = layers.Concatenate()([layers.Flatten()(a), b, counted(i)])
    return keras.Model(i, layers.Dense(4, "softmax")(layers.Dense(6, "tanh")(x)))


def head(units, activation):
    return lambda: keras.Sequential(
        [layers.Input((9,)), layers.Dense(12, "relu"), layers.Dense(units, activation)]
    )


LOGITS = losses.SparseCategoricalCrossentropy(from_logits=True)
MODELS = {  # name: model, optimizer, loss, metrics, kind of y
    "mlp-sgd": (mlp, optimizers.SGD(0.05), SPARSE, ["accuracy"], "int"),
    "mlp-momentum": (mlp, optimizers.SGD(0.05, 0.9, nesterov=True), SPARSE, ["accuracy"], "int"),
    "mlp-adam": (mlp, optimizers.Adam(1e-3), SPARSE, ["accuracy"], "int"),
    "mlp-loss-scale": (
        mlp,
        optimizers.LossScaleOptimizer(optimizers.Adam(1e-3), 8.0, 3),
        SPARSE,
        ["accuracy"],
        "int",
    ),
    "mlp-loss-scale-adafactor": (
        mlp,
        optimizers.LossScaleOptimizer(optimizers.Adafactor(1e-3), 8.0, 3),
        SPARSE,
        ["accuracy"],
        "int",
    ),
    "mlp-amsgrad": (mlp, optimizers.Adam(1e-3, amsgrad=True), SPARSE, ["accuracy"], "int"),
    "mlp-adamw": (mlp, optimizers.AdamW(1e-3, clipnorm=0.5), SPARSE, ["accuracy"], "int"),
    "cnn-momentum": (cnn, optimizers.SGD(0.02, 0.9), SPARSE, ["accuracy"], "int"),
    "cnn-adamw": (cnn, optimizers.AdamW(1e-3, global_clipnorm=1.0), SPARSE, [], "int"),
    "cnn-frozen": (frozen, optimizers.Adam(1e-3, clipvalue=0.1), SPARSE, ["accuracy"], "int"),
    "residual": (residual, optimizers.SGD(0.02, 0.9), LOGITS, ["accuracy"], "int"),
    "steps": (steps, optimizers.Adam(1e-3), SPARSE, ["accuracy"], "int"),
    "transformer": (transformer, optimizers.SGD(0.02, 0.9), SPARSE, ["accuracy"], "int"),
    "one-dim": (one_dim, optimizers.Adam(1e-3), SPARSE, ["accuracy"], "int"),
    "transfer": (transfer, optimizers.Adam(1e-3), SPARSE, ["accuracy"], "int"),
    "nested": (nested, optimizers.SGD(0.02, 0.9), SPARSE, ["accuracy"], "int"),
    "operations": (operations, optimizers.SGD(0.02, 0.9), SPARSE, ["accuracy"], "int"),
    "words": (words, optimizers.SGD(0.1, 0.9), SPARSE, ["accuracy"], "int"),
    "masked": (masked, optimizers.Adam(1e-3), SPARSE, [], "int"),
    "attentions": (attentions, optimizers.SGD(0.05, 0.9), SPARSE, ["accuracy"], "int"),
    "conv-over-time": (conv_over_time, optimizers.Adam(1e-3), SPARSE, ["accuracy"], "int"),
    "over-time": (over_time, optimizers.Adam(1e-3), SPARSE, ["accuracy"], "int"),
    "smoothed": (
        head(4, "softmax"),
        optimizers.Adam(1e-3),
        losses.CategoricalCrossentropy(label_smoothing=0.1),
        ["accuracy"],
        "one-hot",
    ),
    "binary": (
        head(1, "sigmoid"),
        optimizers.Adam(1e-3),
        "binary_crossentropy",
        ["accuracy"],
        "binary",
    ),
    "regression": (head(2, None), optimizers.SGD(0.01, 0.5), "mse", ["mae"], "real"),
    "weight-decay": (head(2, None), optimizers.SGD(0.01, weight_decay=0.01), "mse", [], "real"),
}
MADE = {  # name: arguments of keel new
    "new-mlp": "mlp --input 9 --classes 4 --optimizer sgd(momentum=0.9)",
    "new-cnn": "cnn --input 12,10,3 --sizes 8,16 --classes 4 --no-rescaling --optimizer sgd",
    "new-lstm": "lstm --input 9 --vocabulary 7 --classes 4 --optimizer sgd",
}
# Trained on so few rows these double any rounding from layer to layer, in Keras as well: they only
# go there and back, and predict.
MADE_DEEP = {
    "new-gpt": "gpt --input 9 --vocabulary 7 --classes 4 --optimizer sgd",
    "new-efficientnetb0": "efficientnetb0 --input 32,32,3 --classes 4 --optimizer sgd",
    "new-conv1d": "conv1d --input 200,1 --classes 4 --optimizer sgd",
    "new-convnexttiny": "convnexttiny --input 32,32,3 --classes 4 --optimizer sgd",
    "new-densenet121": "densenet121 --input 32,32,3 --classes 4 --optimizer sgd",
    "new-transformer": "transformer --input 9 --vocabulary 7 --classes 4 --optimizer sgd",
    "new-unet": "unet --input 32,32,3 --classes 4 --optimizer sgd",
    "new-mobilenetv2": "mobilenetv2 --input 32,32,3 --classes 4 --optimizer sgd",
    "new-resnet18": "resnet18 --input 32,32,3 --classes 4 --optimizer adamw",
    "new-resnet50": "resnet50 --input 32,32,3 --classes 4 --optimizer adam",
}


def low_rank():
    """Every layer with a product that is trained instead of its kernel."""
    i = layers.Input((9,), dtype="int32")
    table = layers.ReversibleEmbedding(TOKENS, 8, lora_rank=2)
    x = layers.Add()([table(i), layers.Embedding(TOKENS, 8, lora_rank=3)(i)])
    x = layers.EinsumDense("abc,cde->abde", (None, 2, 4), bias_axes="de", lora_rank=2, lora_alpha=3.0)(x)
    x = layers.Dense(8, "tanh", lora_rank=2)(layers.Reshape((9, 8))(x))
    x = layers.Conv1D(8, 2, padding="same", lora_rank=2)(x)
    return keras.Model(i, layers.Dense(4, "softmax")(ops.mean(table(x, reverse=True), 1)))


class keel:
    def __init__(self, command, folder):
        self.command, self.folder = command, folder

    def run(self, *args):
        done = subprocess.run([self.command, *args], capture_output=True, text=True, cwd=self.folder)
        if done.returncode:
            raise RuntimeError(f"keel {' '.join(args)}: {done.stderr.strip()[-500:]}")

    def path(self, name):
        return os.path.join(self.folder, name)

    def fit(self, model, out, more=""):
        options = f"--no-shuffle --batch-size {BATCH} --epochs 1 --devices {DEVICES} {more}"
        self.run("fit", model, "--data", "rows.npz", *options.split(), "-o", out)

    def predict(self, model):
        self.run("predict", model, "--data", "rows.npz", "--devices", DEVICES, "-o", "p.npy")
        return np.load(self.path("p.npy"))


def apart(a, b):
    a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
    if a.shape != b.shape:
        return float("inf")
    d = np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30)
    return d if d == d else float("inf")


class report:
    """Collects the differences of one model; the worst of each step."""

    def __init__(self, name):
        self.name, self.worst, self.bad = name, {}, []

    def see(self, step, what, got, want, allowed=ALLOWED):
        d = apart(got, want)
        self.worst[step] = max(self.worst.get(step, 0), d)
        if not d <= allowed:
            self.bad.append(f"{step}: {what} differs by {d:.1e}")

    def models(self, step, got, want):
        assert len(got.weights) == len(want.weights)
        for a, b in zip(got.weights, want.weights):
            self.see(step, b.path, a.numpy(), b.numpy())
        assert len(got.optimizer.variables) == len(want.optimizer.variables)
        for a, b in zip(got.optimizer.variables, want.optimizer.variables):
            self.see(step + " state", "optimizer/" + b.path, a.numpy(), b.numpy(), STATE_ALLOWED)

    def end(self):
        steps = ", ".join(f"{k} {v:.0e}" for k, v in self.worst.items())
        print(f"{'FAILED' if self.bad else 'ok':6} {self.name:14} {steps}", flush=True)
        for line in self.bad[:8]:
            print("       ", line)
        return not self.bad


def data_of(m, kind, folder):
    shape, classes = m.input_shape[1:], m.output_shape[-1]
    chance = np.random.default_rng(5)
    texts = m.inputs[0].dtype == "string"
    x = chance.choice(WORDS, (ROWS, *shape)) if texts else chance.normal(size=(ROWS, *shape)).astype("float32")
    if m.inputs[0].dtype == "int32":
        x = chance.integers(0, TOKENS, (ROWS, *shape)).astype("int32")
    y = chance.integers(0, classes, (ROWS, *m.output_shape[1:-1]))
    y = {
        "int": lambda: y,
        "one-hot": lambda: np.eye(classes, dtype="float32")[y],
        "binary": lambda: (y[:, None] % 2).astype("float32"),
        "real": lambda: chance.normal(size=(ROWS, classes)).astype("float32"),
    }[kind]()
    np.savez(os.path.join(folder, "rows.npz"), x=x, y=y)
    return keras.ops.convert_to_tensor(x.tolist()) if texts else x, y


def epoch(m, x, y):
    m.fit(x, y, BATCH, 1, shuffle=False, verbose=0)


def go_on_from_keel(r, k, file, x, y):
    """Steps 3 and 4: file is what keel saved."""
    m = keras.models.load_model(k.path(file))
    r.see("3 predict", "predict", k.predict(file), m.predict(x, verbose=0))
    epoch(m, x, y)
    k.fit(file, "third.keras", "--checkpoint checkpoints")
    third = keras.models.load_model(k.path("third.keras"))
    r.models("4 third epoch", third, m)
    if not m.optimizer.use_ema:  # its weights become averages when training ends
        newest = sorted(os.listdir(k.path("checkpoints")))[-1]
        r.models("5 checkpoint", keras.models.load_model(k.path("checkpoints/" + newest)), third)


def from_keras(name, k):
    r = report(name)
    build, optimizer, loss, metrics, kind = MODELS[name]
    m = build()
    x, y = data_of(m, kind, k.folder)
    m.compile(optimizer, loss, metrics=metrics)
    epoch(m, x, y)
    m.save(k.path("first.keras"))
    r.see("1 predict", "predict", k.predict("first.keras"), m.predict(x, verbose=0))
    k.fit("first.keras", "second.keras")
    epoch(m, x, y)
    r.models("2 second epoch", keras.models.load_model(k.path("second.keras")), m)
    go_on_from_keel(r, k, "second.keras", x, y)
    return r.end()


def from_keel(name, k):
    r = report(name)
    k.run("new", *MADE[name].split(), "-o", "made.keras")
    m = keras.models.load_model(k.path("made.keras"))
    x, y = data_of(m, "int", k.folder)
    k.fit("made.keras", "first.keras")
    epoch(m, x, y)
    r.models("2 first epoch", keras.models.load_model(k.path("first.keras")), m)
    go_on_from_keel(r, k, "first.keras", x, y)
    return r.end()


def there_and_back(name, k):
    r = report(name)
    k.run("new", *MADE_DEEP[name].split(), "-o", "made.keras")
    m = keras.models.load_model(k.path("made.keras"))
    x, y = data_of(m, "int", k.folder)
    want = m.predict(x, verbose=0)
    r.see("3 predict", "predict", k.predict("made.keras"), want)
    m.save(k.path("back.keras"))
    r.see("1 predict", "predict", k.predict("back.keras"), want)
    k.fit("back.keras", "first.keras")
    m = keras.models.load_model(k.path("first.keras"))
    r.see("3 predict trained", "predict", k.predict("first.keras"), m.predict(x, verbose=0))
    return r.end()


def with_low_rank(name, k):
    """Keras's file has the sums only, and Keras begins with products of 0 that do not move: so epochs
    are not compared. Keel's file is read by Keras, and two epochs in two fits are those of one fit."""
    r = report(name)
    m = low_rank()
    x, y = data_of(m, "int", k.folder)
    m.compile(optimizers.Adam(1e-2), SPARSE)
    epoch(m, x, y)
    m.save(k.path("first.keras"))
    r.see("1 predict", "predict", k.predict("first.keras"), m.predict(x, verbose=0))
    for begin, out, more in (
        ("first", "second", ""),
        ("second", "third", "--initial-epoch 1 --epochs 2"),
        ("first", "both", "--epochs 2"),
    ):
        k.fit(f"{begin}.keras", f"{out}.keras", more + " --reproducible")
        m = keras.models.load_model(k.path(f"{out}.keras"))
        r.see("3 predict", out, k.predict(f"{out}.keras"), m.predict(x, verbose=0))
    first = keras.models.load_model(k.path("first.keras"))
    r.models("4 resumed", m, keras.models.load_model(k.path("third.keras")))
    if not apart(m.get_weights()[0], first.get_weights()[0]) > 1e-3:
        r.bad.append("the product did not move")
    return r.end()


def main():
    names = sys.argv[2:] or [*MODELS, "low-rank", *MADE, *MADE_DEEP]
    if names == ["--no-deep"]:
        names = [*MODELS, "low-rank", *MADE]
    steps = {name: from_keras for name in MODELS}
    steps["low-rank"] = with_low_rank
    steps.update({name: from_keel for name in MADE})
    steps.update({name: there_and_back for name in MADE_DEEP})
    failed = 0
    for name in names:
        keras.backend.clear_session()
        keras.utils.set_random_seed(3)
        with tempfile.TemporaryDirectory() as folder:
            k = keel(os.path.abspath(sys.argv[1]), folder)
            try:
                ok = steps[name](name, k)
            except Exception as e:
                print(f"FAILED {name:14} {type(e).__name__}: {e}", flush=True)
                ok = False
            failed += not ok
    print(f"{len(names) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
