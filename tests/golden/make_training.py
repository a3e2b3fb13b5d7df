#!/usr/bin/env python3
"""Make training.npz and train_*.keras: whole trainings by the real Keras on one device.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder. With names of cases it makes
those and their models, and keeps the others as they are.

train_MODEL.keras is the model before its first step, compiled. training.npz holds for each CASE
(test_against_keras.c has the same table) and TYPE f32 and f64, both from the same initial weights:
  CASE/TYPE/weights/LAYER/WEIGHT   every weight after the last step
  CASE/TYPE/history/NAME           one number an epoch
  CASE/TYPE/evaluate/NAME          on the held-out rows, after training
  CASE/TYPE/predict                the first PREDICT held-out rows, after training
The rows come from integer arithmetic that C repeats exactly: see rows().
"""
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops, optimizers

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)

ROWS, HELD_OUT, PREDICT, BATCH, CLASSES = 70, 53, 23, 16, 5  # 5 steps an epoch, the last of 6 rows


def stream(seed):
    """The generator of Numerical Recipes; its upper bits."""
    while True:
        seed = (seed * 1664525 + 1013904223) % 2**32
        yield seed >> 16


def rows(kind, n, seed):
    """Row by row: the label, then the numbers. All are multiples of 1/128, exact in float32."""
    s = stream(seed)
    size = 20 if kind == "mlp" else 12 * 12 * 3
    x, y = np.zeros((n, size)), np.zeros(n, "int32")
    for i in range(n):
        y[i] = next(s) % CLASSES
        for k in range(size):
            # the class lifts every fifth feature, or diagonal stripes of the image
            place = k if kind == "mlp" else k // 3 % 12 + k // 36
            lift = 48 if place % CLASSES == y[i] else 0
            x[i, k] = (next(s) % 256 + lift - 128) / 128
    return x if kind == "mlp" else x.reshape(n, 12, 12, 3), y


def mlp(regularizer=None):
    return [
        layers.Input((20,)),
        layers.Dense(32, activation="relu", kernel_regularizer=regularizer, name="hidden"),
        layers.Dense(CLASSES, activation="softmax", kernel_regularizer=regularizer, name="out"),
    ]


def cnn():
    return [
        layers.Input((12, 12, 3)),
        layers.Conv2D(8, 3, use_bias=False, name="conv"),
        layers.BatchNormalization(momentum=0.875, name="bn"),
        layers.ReLU(name="relu"),
        layers.MaxPooling2D(2, name="pool"),
        layers.Flatten(name="flat"),
        layers.Dense(CLASSES, activation="softmax", name="out"),
    ]


def shared():
    """Every layer but the last is called twice."""
    x = i = layers.Input((12, 12, 3))
    conv = layers.Conv2D(3, 3, padding="same", name="conv")
    bn = layers.BatchNormalization(momentum=0.875, name="bn")
    depthwise = layers.DepthwiseConv2D(3, name="depthwise")
    dense = layers.Dense(3, activation="tanh", name="dense")
    for _ in range(2):
        x = dense(depthwise(conv(bn(x))))
    x = layers.GlobalAveragePooling2D()(x)
    return i, layers.Dense(CLASSES, activation="softmax", name="out")(x)


def activity():
    """Sizes of activations: of a layer called twice, of a layer of its own, of the softmax."""
    i = layers.Input((20,))
    twice = layers.Dense(20, "tanh", activity_regularizer="l1", name="twice")
    x = layers.ActivityRegularization(l2=2**-6, name="size")(twice(twice(i)))
    r = keras.regularizers.L1L2(2**-5, 2**-6)
    return i, layers.Dense(CLASSES, "softmax", activity_regularizer=r, name="out")(x)


def time_distributed():
    """Layers that hold layers: one call for all steps, a call a step, statistics that move every step,
    a model held, wrappers in wrappers, and one held layer frozen."""
    steps = layers.TimeDistributed
    frozen = layers.Dense(4, name="frozen", trainable=False)
    conv = layers.Conv2D(3, 2, activity_regularizer=keras.regularizers.L2(2**-7), name="conv")
    bn = layers.BatchNormalization(momentum=0.875, name="bn")
    base = [layers.Input((4, 4, 1)), conv, bn, layers.Activation("tanh", name="tanh")]
    return [
        layers.Input((12, 12, 3)),
        layers.Reshape((3, 9, 4, 4, 1), name="cut"),
        steps(steps(keras.Sequential(base, name="base"), name="one"), name="two"),
        steps(layers.Reshape((9, 27), name="in"), name="reshape"),
        steps(layers.BatchNormalization(momentum=0.75, name="inside"), name="bn"),
        steps(layers.GlobalAveragePooling1D(name="mean"), name="mean"),
        steps(layers.Dense(6, "tanh", kernel_regularizer=keras.regularizers.L2(2**-7), name="inner"), name="dense"),
        steps(frozen, name="still"),
        layers.Flatten(name="flat"),
        layers.Dense(CLASSES, activation="softmax", name="out"),
    ]


def steps():
    """Layers over one dim of places."""
    return [
        layers.Input((12, 12, 3)),
        layers.Reshape((48, 9), name="flat"),
        layers.ZeroPadding1D((1, 2), name="zeros"),
        layers.Conv1D(8, 3, strides=2, padding="same", activation="tanh", name="same"),
        layers.MaxPooling1D(3, strides=2, padding="same", name="largest"),
        layers.Conv1D(6, 3, padding="causal", dilation_rate=2, use_bias=False, name="causal"),
        layers.BatchNormalization(momentum=0.875, name="bn"),
        layers.AveragePooling1D(2, strides=1, padding="same", name="mean"),
        layers.Conv1D(8, 2, groups=2, use_bias=False, name="groups"),
        layers.GlobalMaxPooling1D(name="top"),
        layers.Dense(CLASSES, activation="softmax", name="out"),
    ]


def attention():
    """Attention with every kind of mask, one layer called twice, weights as outputs; norms of places.

    The bias of keys has no gradient: adding to all scores of a place changes nothing. By Adam its
    noise would become steps, and relative to zeros it would be large. Keras takes 1 / sqrt(key_dim)
    through float32, so key_dim is a square."""
    i = layers.Input((20,))
    x = layers.Dense(6, name="in")(layers.Reshape((20, 1), name="steps")(i))
    seen = ops.expand_dims(i > -0.5, 1)
    twice = layers.MultiHeadAttention(2, 4, activity_regularizer=keras.regularizers.L2(2**-9), name="twice")
    x = layers.LayerNormalization(name="norm")(x + twice(x, x, use_causal_mask=True))
    wide = layers.MultiHeadAttention(2, 4, value_dim=3, use_gate=True, sliding_window=6,
                                     bias_initializer=keras.initializers.Constant(0.25), name="wide")
    y, scores = wide(x, x, attention_mask=seen, return_attention_scores=True)
    x = layers.LayerNormalization(axis=(1, 2), scale=False, name="whole")(x + layers.RMSNormalization(name="rms")(y))
    x = layers.Concatenate()([layers.GlobalAveragePooling1D()(twice(x, key=y, value=x)), ops.mean(scores, (1, 2))])
    return i, layers.Dense(CLASSES, activation="softmax", name="out")(x)


def attentions():
    """The other layers of attention, by masks that come with values and masks that are given; a step
    that sees none; heads that share keys; rows of two dims of places, one of which attends.

    A bias of keys has no gradient, so it does not begin at 0, see attention()."""
    i = layers.Input((20,))
    seen = i > -0.5
    x = layers.Dense(4, name="in")(layers.Reshape((20, 1), name="steps")(i))
    x = layers.Masking(name="gone")(x * ops.expand_dims(ops.cast(seen, x.dtype), -1))
    y, scores = layers.Attention(use_scale=True, name="dot")(
        [x, x], use_causal_mask=True, return_attention_scores=True)
    y = layers.LayerNormalization(name="norm")(layers.Add(name="sum")([x, y]))
    z = layers.AdditiveAttention(name="tanh")([y, x])
    concat = layers.Attention(use_scale=True, score_mode="concat", name="concat")
    z = concat([z, x, y], mask=[None, seen]) + concat([x, z])
    some = keras.initializers.Constant(0.25)
    few = layers.GroupQueryAttention(4, 4, 2, use_gate=True, bias_initializer=some, name="few")
    z = layers.LayerNormalization(name="between")(few(x, z, use_causal_mask=True) + few(z, x))
    near = layers.GroupQueryAttention(4, 2, 1, sliding_window=3, use_bias=False, name="near")
    z, of = near(z, x, query_mask=seen, attention_mask=ops.expand_dims(i < 0.5, 1), return_attention_scores=True)
    rows = layers.MultiHeadAttention(2, 4, attention_axes=2, use_bias=False, name="rows")
    rows_seen = layers.Reshape((5, 4), name="seen")(seen)
    cut = layers.Reshape((5, 4, 4), name="cut")(z)
    both = ops.logical_and(ops.expand_dims(rows_seen, 2), ops.expand_dims(rows_seen, 3))
    w = rows(cut, cut, value_mask=rows_seen) + rows(cut, cut, attention_mask=both)
    parts = [ops.mean(scores, 1), ops.mean(of, (1, 3)), ops.mean(w, (1, 2)), layers.GlobalAveragePooling1D()(y)]
    return i, layers.Dense(CLASSES, activation="softmax", name="out")(layers.Concatenate()(parts))


def masked():
    """Statistics of the places that a mask leaves."""
    i, some = layers.Input((20,)), keras.initializers.Constant(0.25)
    seen = ops.expand_dims(ops.cast(i > -0.5, i.dtype), -1)
    x = layers.Dense(6, "tanh", bias_initializer=some, name="in")(layers.Reshape((20, 1), name="steps")(i))
    x = layers.Masking(name="gone")(x * seen)
    x = layers.BatchNormalization(momentum=0.875, beta_initializer=some, name="bn")(x)
    x = layers.GRU(5, return_sequences=True, bias_initializer=some, name="gru")(x)
    x = layers.BatchNormalization(momentum=0.875, center=False, name="again")(x)
    return i, layers.Dense(CLASSES, "softmax", name="out")(layers.GlobalAveragePooling1D(name="mean")(x))


def over_time():
    """Recurrent layers with all that they can be told: cells one upon another and their states, masks,
    both ways, backwards, gates by other functions, and convolutions over steps of one to three dims."""
    i = layers.Input((20,))
    seen = layers.Reshape((10, 2), name="pairs")(i > -0.5)[:, :, 0]
    x = layers.Reshape((10, 2), name="steps")(i)
    cells = [layers.LSTMCell(3, name="low"), layers.GRUCell(4, reset_after=False, name="high")]
    two = layers.RNN(layers.StackedRNNCells(cells, name="two"), return_sequences=True, return_state=True, name="stacked")
    y, low, high = two(x, mask=seen)
    again = [layers.SimpleRNNCell(3, name="first"), layers.LSTMCell(4, name="second")]
    again = layers.RNN(layers.StackedRNNCells(again, name="both"), return_sequences=True, go_backwards=True,
                       zero_output_for_mask=True, name="again")
    z = again(y, initial_state=[low[0], [high, layers.Dense(4, name="carry")(high)]], mask=seen)
    gru = layers.GRU(3, "elu", "hard_sigmoid", reset_after=False, return_sequences=True, name="plain_gru")(z)
    gru = layers.GRU(3, "relu", "linear", kernel_initializer="he_normal", unroll=True, name="gru")(gru)
    line = layers.Reshape((5, 4, 1), name="line")(i)
    one = layers.ConvLSTM1D(2, 3, padding="same", return_sequences=True, return_state=True, name="one")
    line, h, c = one(line, mask=seen[:, ::2])
    line = layers.Bidirectional(layers.ConvLSTM1D(2, 2, strides=2, recurrent_activation="hard_sigmoid", name="way"),
                                merge_mode="sum", name="ways")(line, mask=seen[:, 1::2])
    plane = layers.Reshape((2, 2, 5, 1), name="plane")(i)
    plane = layers.ConvLSTM2D(2, (1, 2), dilation_rate=(1, 2), go_backwards=True, name="planes")(plane)
    volume = layers.Reshape((2, 1, 5, 2, 1), name="volume")(i)
    volume = layers.ConvLSTM3D(1, (1, 3, 2), strides=(1, 2, 1), padding="same", use_bias=False, name="volumes")(volume)
    flat = [layers.Flatten()(v) for v in (line, h, c, plane, volume)]
    x = layers.Concatenate(name="all")([gru, layers.GlobalAveragePooling1D(name="mean")(z), low[1], *flat])
    return i, layers.Dense(CLASSES, activation="softmax", name="out")(x)


def pool_of(plain, plain2d):
    """3D pooling as one of lines, then one of planes. TensorFlow has none of float64, and outside XLA,
    which Keras uses where it can, the gradient of a maximum goes to all that are the largest."""

    def pool(x, size, strides, padding, data_format):
        if len(x.shape) != 5:
            return plain(x, size, strides, padding, data_format)
        d, h, w, c = x.shape[1:]
        y = tf.reshape(x, (-1, d * h, w, c))
        y = plain2d(y, (1, size[2]), (1, strides[2]), padding.upper())
        w = y.shape[2]
        y = plain2d(tf.reshape(y, (-1, d, h, w * c)), size[:2], strides[:2], padding.upper())
        return tf.reshape(y, (-1, *y.shape[1:3], w, c))

    return pool


tf.nn.max_pool = pool_of(tf.nn.max_pool, tf.nn.max_pool2d)
tf.nn.avg_pool = pool_of(tf.nn.avg_pool, tf.nn.avg_pool2d)


def volumes():
    """Layers over three dims of places."""
    return [
        layers.Input((12, 12, 3)),
        layers.Reshape((6, 12, 6, 1), name="volume"),
        layers.ZeroPadding3D(((0, 1), (1, 0), (1, 1)), name="zeros"),
        layers.Conv3D(8, 3, (1, 2, 1), "same", activation="tanh", use_bias=False, name="same"),
        layers.MaxPooling3D((2, 2, 3), strides=2, padding="same", name="largest"),
        layers.BatchNormalization(momentum=0.875, name="bn"),
        layers.Conv3D(6, (2, 1, 2), dilation_rate=(2, 1, 1), use_bias=False, name="dilated"),
        layers.AveragePooling3D((1, 2, 2), strides=1, padding="same", name="mean"),
        layers.Conv3D(8, 1, groups=2, name="groups"),
        layers.GlobalMaxPooling3D(keepdims=True, name="top"),
        layers.GlobalAveragePooling3D(name="average"),
        layers.Dense(CLASSES, activation="softmax", name="out"),
    ]


def upsampled():
    """Images made smaller and larger again, merged with broadcasting, and the like over steps."""
    i = layers.Input((12, 12, 3))
    x = layers.Cropping2D(((0, 0), (2, 2)), name="crop")(i)
    x = layers.SeparableConv2D(6, 3, 2, "same", activation="tanh", name="separable")(x)
    a = layers.Conv2DTranspose(4, 3, strides=2, padding="same", name="transposed")(x)
    a = layers.LeakyReLU(0.25, name="leaky")(a)
    b = layers.UpSampling2D(2, name="up")(layers.Conv2D(4, 1, name="narrow")(x))
    b = layers.PReLU(keras.initializers.Constant(0.25), shared_axes=[1, 2], name="prelu")(b)
    gate = layers.Dense(4, "sigmoid", name="gate")(layers.GlobalAveragePooling2D(name="all")(b))
    m = layers.Average(name="mean")([layers.Multiply(name="gated")([a, gate]), b])
    low = layers.Minimum(name="low")([a, m])
    x = layers.Subtract(name="less")([layers.Maximum(name="high")([a, b]), low])
    x = layers.Reshape((8, 48), name="steps")(layers.Permute((2, 1, 3), name="turned")(x))
    x = layers.SeparableConv1D(5, 3, depth_multiplier=2, name="separable1d")(x)
    x = layers.Conv1DTranspose(4, 3, strides=2, name="transposed1d")(x)
    x = layers.UpSampling1D(2, name="up1d")(layers.ELU(0.5, name="elu")(x))
    x = layers.DepthwiseConv1D(3, depth_multiplier=2, name="depthwise1d")(x)
    x = layers.GlobalAveragePooling1D(name="average")(layers.Cropping1D(1, name="crop1d")(x))
    y = layers.Reshape((3, 8), name="cut")(layers.Dense(24, "tanh", name="wide")(x))
    x = layers.Dot((2, 2), True, name="dot")([layers.RepeatVector(2, name="again")(x), y])
    return i, layers.Dense(CLASSES, "softmax", name="out")(layers.Flatten(name="flat")(x))


# Keras takes every rate through float32, in float64 too; these are exact in both. The cases
# adamw and amsgrad have Keras's own betas.
BETAS = dict(beta_1=0.875, beta_2=1 - 2**-10)


def sgd(rate=2**-4, **more):
    return lambda: optimizers.SGD(rate, momentum=0.875, **more)


def adam():
    return optimizers.Adam(2**-8, **BETAS)


MODELS = {  # the files, as compiled
    "mlp_sgd": (mlp, sgd()),
    "mlp_adam": (mlp, adam),
    "cnn_sgd": (cnn, sgd(2**-6)),
    "cnn_adam": (cnn, adam),
    "cnn_shared": (shared, sgd(2**-6)),
    "mlp_l2": (lambda: mlp(keras.regularizers.L2(2**-7)), sgd()),
    "mlp_activity": (activity, sgd()),
    "cnn_steps": (time_distributed, sgd(2**-6)),
    "cnn_1d": (steps, sgd(2**-6)),
    "mlp_attention": (attention, sgd()),
    "cnn_3d": (volumes, sgd(2**-6)),
    "cnn_up": (upsampled, sgd(2**-6)),
    "mlp_attentions": (attentions, sgd()),
    "mlp_over_time": (over_time, sgd()),
    "mlp_masked": (masked, sgd()),
}


def adamw(**more):
    return lambda: optimizers.AdamW(2**-8, weight_decay=0.0625, **more)


CASES = {  # name: model, optimizer (None: the file's), epochs, weights
    "mlp_sgd": ("mlp_sgd", None, 20, None),
    "mlp_adam": ("mlp_adam", None, 20, None),
    "cnn_sgd": ("cnn_sgd", None, 20, None),
    "cnn_adam": ("cnn_adam", None, 20, None),
    "mlp_l2": ("mlp_l2", None, 4, None),
    "cnn_shared": ("cnn_shared", None, 4, None),
    "sample_weight": ("mlp_sgd", None, 4, "sample"),
    "class_weight": ("mlp_adam", None, 4, "class"),
    "cnn_sample_weight": ("cnn_sgd", None, 4, "sample"),
    "clipnorm": ("mlp_sgd", sgd(clipnorm=0.25), 4, None),
    "global_clipnorm": ("mlp_sgd", sgd(global_clipnorm=0.5), 4, None),
    "clipvalue": ("mlp_sgd", sgd(clipvalue=0.03125), 4, None),
    "nesterov": ("mlp_sgd", sgd(nesterov=True), 4, None),
    "adamw": ("mlp_sgd", adamw(), 4, None),
    "cnn_adamw": ("cnn_sgd", adamw(**BETAS), 4, None),
    "amsgrad": ("mlp_sgd", lambda: optimizers.Adam(2**-8, amsgrad=True), 4, None),
    "activity": ("mlp_activity", None, 4, None),
    "activity_weights": ("mlp_activity", None, 4, "sample"),
    "cnn_steps": ("cnn_steps", None, 4, None),
    "cnn_1d": ("cnn_1d", None, 4, None),
    "attention": ("mlp_attention", None, 4, None),
    "cnn_3d": ("cnn_3d", None, 4, None),
    "cnn_up": ("cnn_up", None, 4, None),
    "attentions": ("mlp_attentions", None, 4, None),
    "over_time": ("mlp_over_time", None, 4, None),
    "masked": ("mlp_masked", None, 4, None),
}
CLASS_WEIGHT = {0: 1.0, 1: 2.0, 2: 0.5, 3: 1.0, 4: 1.5}


def compiled(model, optimizer, weighted):
    layers_of, file_optimizer = MODELS[model]
    made = layers_of()
    if isinstance(made, list):
        m = keras.Sequential(made, name=model)
    else:
        m = keras.Model(*made, name=model)
    m.compile(
        (optimizer or file_optimizer)(),
        "sparse_categorical_crossentropy",
        metrics=["accuracy"],
        weighted_metrics=["sparse_categorical_crossentropy"] if weighted else None,
        jit_compile=False,
    )
    return m


def named_weights(list_of, around):
    """By the names of the layers around them, as Keel has it."""
    for layer in list_of:
        held = [layer.layer] if hasattr(layer, "layer") else getattr(layer, "layers", [])
        if isinstance(layer, (layers.MultiHeadAttention, layers.GroupQueryAttention)):
            held = layer._layers
        if isinstance(layer, layers.Bidirectional):
            held = [layer.forward_layer, layer.backward_layer]
        if isinstance(layer, layers.RNN) and "ConvLSTM" not in type(layer).__name__:
            held = [layer.cell]
        if isinstance(layer, layers.StackedRNNCells):
            held = layer.cells
        if held:
            yield from named_weights(held, f"{around}{layer.name}/")
        else:
            yield from ((f"{around}{layer.name}/{w.name}", w) for w in layer.weights)


def run(case, initial, kind, out):
    model, optimizer, epochs, weighting = CASES[case]
    m = compiled(model, optimizer, weighting)
    m.set_weights(initial[model])
    which = model[:3]
    x, y = rows(which, ROWS, 7)
    xt, yt = rows(which, HELD_OUT, 8)
    real = "float32" if kind == "f32" else "float64"
    x, xt = x.astype(real), xt.astype(real)
    options = {}
    if weighting == "sample":
        options["sample_weight"] = (np.arange(ROWS) % 4 * 0.5).astype(real)
    if weighting == "class":
        options["class_weight"] = CLASS_WEIGHT
    h = m.fit(x, y, BATCH, epochs, shuffle=False, verbose=0, **options)
    assert m.optimizer.iterations.numpy() == 5 * epochs
    base = f"{case}/{kind}"
    for name, values in h.history.items():
        out[f"{base}/history/{name}"] = np.array(values, "float64")
    for name, value in m.evaluate(xt, yt, BATCH, verbose=0, return_dict=True).items():
        out[f"{base}/evaluate/{name}"] = np.array([value], "float64")
    out[f"{base}/predict"] = m.predict(xt[:PREDICT], BATCH, verbose=0)
    for name, w in named_weights(m.layers, ""):
        out[f"{base}/weights/{name}"] = w.numpy()
    print(case, kind, {k: round(v[-1], 6) for k, v in h.history.items()}, flush=True)


def main():
    keras.utils.set_random_seed(11)
    initial, out = {}, {}
    asked = sys.argv[1:] or list(CASES)
    if sys.argv[1:]:
        with np.load("training.npz") as before:
            out = {k: before[k] for k in before if k.split("/")[0] not in asked}
    for name in MODELS:  # all of them, as each draws what it begins with
        m = compiled(name, None, None)
        if name in [CASES[case][0] for case in asked]:
            m.save(f"train_{name}.keras")
        initial[name] = m.get_weights()
    for kind in ("f32", "f64"):
        keras.config.set_floatx("float32" if kind == "f32" else "float64")
        keras.config.set_dtype_policy(keras.config.floatx())
        for case in asked:
            run(case, initial, kind, out)
    np.savez_compressed("training.npz", **out)
    for case in asked:  # what float32 alone costs, for the tolerances of the test
        worst = {}
        for path in out:
            if path.startswith(f"{case}/f32/weights/"):
                b = out[path.replace("/f32/", "/f64/")]
                worst[path.split("/", 3)[3]] = np.abs(out[path] - b).max() / np.abs(b).max()
        print(case, {k: float(f"{v:.1e}") for k, v in worst.items()})


if __name__ == "__main__":
    main()
