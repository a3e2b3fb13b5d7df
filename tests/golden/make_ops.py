"""Writes ops.json: what Keras computes for every op, forward and gradients.

Run with Keras 3 on TensorFlow: KERAS_BACKEND=tensorflow python make_ops.py
A case has the op's arguments in the words of the op's own test cases, the inputs x and weights w,
a gradient r of the output, and what came out: y, dx, dw (null where there is none), and for
batch_norm the weights after the step, moved. Numbers are computed in float64.
"""
import json
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf

keras.backend.set_floatx("float64")
random = np.random.default_rng(20)
cases = []
ROWS = 3


def numbers(shape):
    return np.round(random.uniform(-2, 2, shape), 3)


def flat(a):
    return None if a is None else [float("%.9g" % v) for v in np.asarray(tf.convert_to_tensor(a)).ravel()]


def case(op, layer, inputs, weights=(), args=None, training=True, moved=False, whole=False,
         positive=False, inside=False, definite=False):
    """layer: a function of the list of inputs, or a Keras layer whose weights are `weights`. whole:
    the numbers of the inputs are whole ones, so that some are equal; positive: above 0; inside: from
    -1 to 1. definite: those of the first input are positive definite matrices."""
    x = [numbers((ROWS,) + s) for s in inputs]
    x = [tf.constant(np.trunc(v) if whole else np.abs(v) + 0.1 if positive else v) for v in x]
    x = [v * 0.45 if inside else v for v in x]
    if definite:
        x[0] = tf.matmul(x[0], x[0], transpose_b=True) + 2 * tf.eye(x[0].shape[-1], dtype="float64")
    is_layer = isinstance(layer, keras.layers.Layer)
    w = []
    if is_layer:
        shapes = [tuple(v.shape) for v in x]
        layer.build(shapes[0] if len(x) == 1 else shapes)
        w = [numbers(v.shape) for v in layer.weights]
        if "batch_norm" in op:
            w[-1] = np.abs(w[-1]) + 0.5
        layer.set_weights(w)
    with tf.GradientTape() as tape:
        for v in x:
            tape.watch(v)
        y = layer(x[0] if len(x) == 1 else x, training=training) if is_layer else layer(x)
        y, *more = y if isinstance(y, list) else [y]
        r, more_r = numbers(y.shape), [numbers(v.shape) for v in more]
        total = tf.reduce_sum(y * r) + sum(tf.reduce_sum(v * s) for v, s in zip(more, more_r))
    wanted = x + [v.value for v in layer.trainable_weights] if is_layer else x
    g = tape.gradient(total, wanted) if wanted else []
    dw = g[len(x):]
    dw = dw + [None] * (len(w) - len(dw))
    cases.append({
        "op": op, "in": "|".join(",".join(map(str, s)) for s in inputs),
        "weights": "|".join(",".join(map(str, v.shape)) for v in w) or None, "args": args,
        "training": training, "rows": ROWS,
        "x": [flat(v) for v in x], "w": [flat(v) for v in w], "r": flat(r), "y": flat(y),
        "dx": [flat(v) for v in g[:len(x)]], "dw": [flat(v) for v in dw],
        "moved": [flat(v) for v in layer.get_weights()] if moved else None,
    })
    if more:  # the op's other outputs
        cases[-1]["more"] = [{"r": flat(s), "y": flat(v)} for v, s in zip(more, more_r)]


def same(size, k, stride, dilation=1):
    """TensorFlow's 'same': (before, after)."""
    out = -(-size // stride)
    total = max(0, (out - 1) * stride + (k - 1) * dilation + 1 - size)
    return total // 2, total - total // 2


def words(strides=(1, 1), dilation=(1, 1), pads=None, groups=1, pool=None):
    t = "strides %d,%d dilation %d,%d groups %d" % (*strides, *dilation, groups)
    if pool:
        t = "pool %d,%d strides %d,%d" % (*pool, *strides)
    return t + (" pad %d,%d,%d,%d" % (*pads[0], *pads[1]) if pads else "")


def sparsemax(x, axis=-1):
    """By its definition: Keras 3.15 sums the cumulated sums of the whole support, where the last one
    is meant, and gives zeros whenever more than one element is in the support."""
    z = tf.sort(tf.experimental.numpy.moveaxis(x, axis, -1), direction="DESCENDING")
    sums = tf.cumsum(z, axis=-1)
    r = tf.range(1, z.shape[-1] + 1, dtype=x.dtype)
    inside = tf.cast(z - (sums - 1) / r > 0, x.dtype)
    k = tf.reduce_sum(inside, axis=-1, keepdims=True)
    tau = (tf.reduce_sum(z * inside, axis=-1, keepdims=True) - 1) / k
    return tf.maximum(x - tf.experimental.numpy.moveaxis(tau, -1, axis), 0.0)


L = keras.layers
A = keras.activations

case("dense", L.Dense(4), [(5,)])
case("dense", L.Dense(3, use_bias=False), [(2, 3, 4)])
for padding in "valid", "same":
    for k, s, d in ((3, 3), (1, 1), (1, 1)), ((3, 2), (2, 2), (1, 1)), ((2, 3), (1, 1), (2, 2)):
        h, w = 6, 5
        pads = padding == "same" and [same(h, k[0], s[0], d[0]), same(w, k[1], s[1], d[1])]
        text = words(s, d, pads or None)
        case("conv2d", L.Conv2D(3, k, s, padding, dilation_rate=d), [(h, w, 2)], args=text)
        if s[0] == 1 or d[0] == 1:
            case("depthwise_conv2d",
                 L.DepthwiseConv2D(k, s, padding, depth_multiplier=2, dilation_rate=d),
                 [(h, w, 2)], args=text)
case("conv2d", L.Conv2D(6, 2, groups=2, use_bias=False), [(3, 4, 4)], args=words(groups=2))
case("depthwise_conv2d", L.DepthwiseConv2D(3, padding="same", use_bias=False), [(4, 4, 3)],
     args=words(pads=[(1, 1), (1, 1)]))
for op, layer in ("max_pool2d", L.MaxPooling2D), ("average_pool2d", L.AveragePooling2D):
    for p, s, padding in ((2, 2), (2, 2), "valid"), ((3, 2), (2, 1), "same"), ((3, 3), (2, 2), "same"):
        pads = [same(5, p[0], s[0]), same(6, p[1], s[1])] if padding == "same" else None
        case(op, layer(p, s, padding), [(5, 6, 2)], args=words(s, pads=pads, pool=p))
case("global_average_pool2d", L.GlobalAveragePooling2D(), [(4, 5, 3)])
case("global_average_pool2d", L.GlobalAveragePooling2D(keepdims=True), [(4, 5, 3)], args="keepdims")
case("reshape", L.Flatten(), [(2, 3, 2)])
case("reshape", L.Reshape((3, -1)), [(2, 3, 2)], args="shape 3,-1")
case("zero_pad2d", L.ZeroPadding2D(((1, 2), (0, 3))), [(3, 2, 2)], args="pad 1,2,0,3")
case("rescaling", L.Rescaling(1 / 127.5, -1.0), [(3, 2, 2)],
     args="scale %.17g offset -1" % (1 / 127.5))
case("add", L.Add(), [(2, 3)] * 3)
case("concatenate", L.Concatenate(), [(2, 3), (2, 1)])
case("concatenate", L.Concatenate(axis=1), [(2, 3), (1, 3), (3, 3)], args="axis 0")
case("dropout", L.Dropout(0.5), [(5,)], training=False)

for name, center, scale in ("", True, True), ("no_center", False, True), ("no_scale", True, False):
    for training in True, False:
        text = (name + " epsilon 0.01 momentum 0.9").strip()
        layer = L.BatchNormalization(epsilon=0.01, momentum=0.9, center=center, scale=scale)
        case("batch_norm", layer, [(2, 3, 4)], args=text, training=training, moved=training)
frozen = L.BatchNormalization()
frozen.trainable = False
case("batch_norm", frozen, [(4,)], args="frozen")

wide = [(24,)]
for name in ("sigmoid tanh exponential relu relu6 elu selu celu silu softplus softsign hard_sigmoid "
             "hard_silu hard_tanh hard_shrink soft_shrink tanh_shrink log_sigmoid mish sparse_plus "
             "sparse_sigmoid squareplus leaky_relu gelu softmax log_softmax sparsemax glu").split():
    f = sparsemax if name == "sparsemax" else getattr(A, name)
    scale = 1 if name in ("exponential", "sparsemax") else 4  # 4: into the tails of the others
    case(name, lambda x: f(scale * x[0]), wide)
    if scale > 1:
        cases[-1]["x"] = [[4 * v for v in cases[-1]["x"][0]]]
        cases[-1]["dx"] = [[v / 4 for v in cases[-1]["dx"][0]]]
case("threshold", lambda x: A.threshold(x[0], 0.5, -3.0), wide, args="threshold 0.5 value -3")
case("relu", L.ReLU(1.5, 0.25, 0.5), wide, args="max_value 1.5 negative_slope 0.25 threshold 0.5")
case("relu", L.ReLU(6.0), wide, args="max_value 6")
case("relu", L.ReLU(negative_slope=0.1), wide, args="negative_slope 0.1")
case("elu", lambda x: A.elu(x[0], 0.5), wide, args="alpha 0.5")
case("celu", lambda x: A.celu(x[0], 0.5), wide, args="alpha 0.5")
case("gelu", lambda x: A.gelu(x[0], True), wide, args="approximate")
case("squareplus", lambda x: A.squareplus(x[0], 1.5), wide, args="b 1.5")
case("leaky_relu", L.LeakyReLU(0.5), wide, args="negative_slope 0.5")
case("hard_shrink", lambda x: A.hard_shrink(x[0], 1.0), wide, args="threshold 1")
case("soft_shrink", lambda x: A.soft_shrink(x[0], 1.0), wide, args="threshold 1")
case("softmax", L.Softmax(axis=1), [(3, 4)], args="axis 0")
case("log_softmax", lambda x: A.log_softmax(x[0], 1), [(3, 4)], args="axis 0")
case("sparsemax", lambda x: sparsemax(x[0], 2), [(3, 4)], args="axis 1")
case("glu", lambda x: A.glu(x[0], 1), [(4, 3)], args="axis 0")

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops.json")

case("cast", L.Identity(), [(4, 3)])

def masked(f):
    """f of values and of a boolean mask, given as numbers: above one half counts."""
    return lambda v: f(v[0], v[1] > 0.5)


O = keras.ops
BINARY = {"plus": O.add, "subtract": O.subtract, "multiply": O.multiply, "divide": O.divide,
          "maximum": O.maximum, "minimum": O.minimum}
for op, f in BINARY.items():
    case(op, lambda v, f=f: f(v[0], v[1]), [(2, 3), (2, 3)])
    case(op, lambda v, f=f: f(v[0], v[1]), [(3, 1, 2), (1, 4, 2)])
    case(op, lambda v, f=f: f(v[0], 1.5), [(5,)], args="right 1.5")
    case(op, lambda v, f=f: f(-0.5, v[0]), [(5,)], args="left -0.5")
case("power", lambda v: O.power(v[0], 2), [(5,)], args="right 2")
case("power", lambda v: O.power(v[0], 3.0), [(5,)], args="right 3")
case("power", lambda v: O.power(1.5, v[0]), [(5,)], args="left 1.5")
case("gather", L.Embedding(5, 3), [(4,)])
case("gather", L.Embedding(3, 4), [(2, 3)])
case("masked", masked(lambda x, m: O.where(m[..., None], x, 0)), [(4, 3), (4,)])
case("masked_mean", masked(lambda x, m: L.GlobalAveragePooling1D()(x, mask=m)), [(7, 3), (7,)])
case("masked_mean", masked(lambda x, m: L.GlobalAveragePooling1D(keepdims=True)(x, mask=m)),
     [(6, 2), (6,)], args="keepdims")
case("not_equal_to", lambda v: O.cast(O.not_equal(v[0], 1), "float64"), [(6, 2)], args="value 1",
     whole=True)
case("not_equal_to", lambda v: O.cast(O.any(O.not_equal(v[0], 1), -1), "float64"), [(9, 2)],
     args="any value 1", whole=True)
for op, f in ("absolute", O.abs), ("square", O.square), ("sin", O.sin), ("cos", O.cos):
    case(op, lambda v, f=f: f(v[0]), [(2, 5)])
for op, f in ("sqrt", O.sqrt), ("rsqrt", O.rsqrt), ("log", O.log):
    case(op, lambda v, f=f: f(v[0]), [(2, 5)], positive=True)
for k, f in enumerate((O.equal, O.not_equal, O.less, O.less_equal, O.greater, O.greater_equal)):
    case("compare", lambda v, f=f: O.cast(f(v[0], v[1]), "float64"), [(8, 2), (8, 2)],
         args="is %d" % k, whole=True)
    case("compare", lambda v, f=f: O.cast(f(v[0], 1.0), "float64"), [(9,)],
         args="right 1 is %d" % k, whole=True)
case("where", lambda v: O.where(v[0] > 0.5, v[1], v[2]), [(3, 4), (3, 1), (1, 4)])
case("where", lambda v: O.where(v[0] > 0.5, v[1], 0.25), [(5,), (5,)], args="right 0.25")
case("where", lambda v: O.where(v[0] > 0.5, 0.25, v[1]), [(5,), (5,)], args="left 0.25")
for k, f in enumerate((O.mean, O.sum, O.max, O.min)):
    case("reduce", lambda v, f=f: f(v[0], axis=1), [(3, 4)], args="to %d over 0" % k)
    case("reduce", lambda v, f=f: f(v[0], axis=(1, 3), keepdims=True), [(2, 3, 2)],
         args="to %d over 0,2 keepdims" % k)
    case("reduce", lambda v, f=f: f(v[0], axis=-1), [(3, 6)], args="to %d over 1" % k, whole=True)
case("permute", lambda v: O.transpose(v[0], (0, 3, 1, 2)), [(2, 3, 4)], args="from 2,0,1")
case("slice", lambda v: v[0][:, 1:3, ::2], [(4, 5)], args="begin 1,0 step 1,2 count 2,3")
case("slice", lambda v: v[0][:, ::-1], [(4,)], args="begin 3 step -1 count 4")
case("matmul", lambda v: O.matmul(v[0], v[1]), [(2, 3, 4), (2, 4, 2)])



class OverTime(keras.layers.Layer):
    """A recurrent layer whose kernel is the identity: its inputs are what the op's steps bring. The
    weights are all but that kernel. masked: a mask comes behind the steps; states come last."""

    def __init__(self, layer, masked=False):
        super().__init__()
        self.masked = masked
        object.__setattr__(self, "layer", layer)

    def build(self, shape):
        self.layer.build(shape[0] if isinstance(shape[0], tuple) else shape)
        self.built = True

    weights = property(lambda self: self.layer.weights[1:])
    trainable_weights = property(lambda self: self.layer.weights[1:])

    def set_weights(self, values):
        self.layer.set_weights([np.eye(self.layer.weights[0].shape[0])] + values)

    def call(self, x, training=None):
        x = list(x) if isinstance(x, (list, tuple)) else [x]
        z = x.pop(0)
        mask = x.pop(0) > 0.5 if self.masked else None
        return self.layer(z, initial_state=x or None, mask=mask)


ALL = dict(return_sequences=True, use_bias=False)
BACK = dict(go_backwards=True, use_bias=False)
case("lstm", OverTime(L.LSTM(3, use_bias=False)), [(4, 12)])
case("lstm", OverTime(L.LSTM(3, **ALL), True), [(5, 12), (5,)], args="masked sequences")
case("lstm", OverTime(L.LSTM(3, **BACK), True), [(5, 12), (5,), (3,), (3,)],
     args="masked stated backwards")
case("lstm", OverTime(L.LSTM(3, activation="silu", recurrent_activation="hard_sigmoid",
                             zero_output_for_mask=True, **ALL), True), [(5, 12), (5,)],
     args="masked zeros sequences by_silu gates_hard_sigmoid")
case("gru", OverTime(L.GRU(3, use_bias=False)), [(4, 9)], args="reset_after")
case("gru", OverTime(L.GRU(3, reset_after=False, **ALL), True), [(5, 9), (5,)],
     args="masked sequences")
case("gru", OverTime(L.GRU(3, **BACK), True), [(5, 9), (5,), (3,)],
     args="masked stated backwards reset_after")
case("gru", OverTime(L.GRU(3, return_sequences=True)), [(5, 9)], args="sequences reset_after")
case("simple_rnn", OverTime(L.SimpleRNN(4, **ALL), True), [(5, 4), (5,)], args="masked sequences")
case("simple_rnn", OverTime(L.SimpleRNN(4, activation="relu", **BACK), True), [(3, 4), (3,), (4,)],
     args="masked stated backwards by_relu")


def words3d(size, k, s, d=(1, 1, 1), padding="valid", groups=1):
    pads = [same(*v) for v in zip(size, k, s, d)] if padding == "same" else [(0, 0)] * 3
    one = lambda word, v: "%s %s" % (word, ",".join(map(str, v)))
    return " ".join([one("strides", s), one("dilation", d), one("pad", sum(pads, ()))]) + (
        " groups %d" % groups if groups > 1 else "")


ONES = (1, 1, 1)
case("conv3d", L.Conv3D(3, 2), [(3, 2, 4, 2)], args=words3d((3, 2, 4), (2, 2, 2), ONES))
case("conv3d", L.Conv3D(2, (3, 2, 1), (2, 1, 3), "same", use_bias=False), [(4, 3, 4, 1)],
     args=words3d((4, 3, 4), (3, 2, 1), (2, 1, 3), padding="same"))
case("conv3d", L.Conv3D(4, (1, 2, 2), dilation_rate=(1, 2, 2), groups=2), [(2, 3, 4, 2)],
     args=words3d((2, 3, 4), (1, 2, 2), ONES, (1, 2, 2), groups=2))
case("conv_transpose", L.Conv3DTranspose(3, 2, use_bias=False), [(2, 2, 3, 2)],
     args=words3d((3, 3, 4), (2, 2, 2), ONES) + " to 3,3,4")
case("conv_transpose", L.Conv3DTranspose(2, (1, 3, 2), (1, 2, 3), "same"), [(1, 3, 2, 3)],
     args=words3d((1, 6, 6), (1, 3, 2), (1, 2, 3), padding="same") + " to 1,6,6")
case("upsample", lambda v: O.repeat(v[0], 3, axis=2), [(2, 3, 2)], args="axis 1 factor 3")
for factor in 2, 4:  # resize computes in float32, which holds these weights exactly
    weights = tf.cast(O.image.resize(tf.eye(3)[None, :, :, None], (3, 3 * factor), "bilinear"), "float64")
    case("upsample", lambda v: tf.einsum("bhic,iw->bhwc", v[0], weights[0, :, :, 0]), [(4, 3, 2)],
         args="axis 1 factor %d between" % factor)
case("prelu", L.PReLU(), [(3, 2)])
case("prelu", L.PReLU(shared_axes=[1, 3]), [(2, 3, 2)])
case("noise", L.GaussianNoise(0.5), [(5,)], training=False)
case("layer_norm", L.LayerNormalization(), [(3, 5)])
case("layer_norm", L.LayerNormalization(center=False), [(2, 7)], args="no_center")
case("layer_norm", L.LayerNormalization(axis=(2, 3)), [(2, 3, 4)], args="dims 2")
case("layer_norm", L.RMSNormalization(epsilon=1e-3), [(2, 6)], args="rms no_center")
# a place that sees nothing gets nothing
SEEN = lambda v: L.Softmax()(v[0], mask=v[1] > 0.5)
case("masked_softmax", SEEN, [(4, 5), (4, 5)])
case("masked_softmax", SEEN, [(2, 3, 4), (1, 3, 4)])
case("masked_softmax", lambda v: L.Softmax()(v[0], mask=tf.linalg.band_part(tf.ones((4, 5)), -1, 0)[None] > 0.5),
     [(4, 5)], args="causal")


def resize_weights(length, size, method, antialias):
    """What each of `length` places counts in each of `size`: an image per place resized by Keras."""
    ones = np.eye(length, dtype="float32").reshape(1, length, 1, length)
    out = keras.ops.image.resize(ones, (size, 1), interpolation=method, antialias=antialias)
    return tf.cast(tf.reshape(out, (size, length)), "float64")


for length, size in (5, 8), (9, 4), (6, 2):
    for method in "nearest bilinear bicubic lanczos3 lanczos5 area".split():
        for antialias in (False,) if method in ("nearest", "area") else (False, True):
            w = resize_weights(length, size, method, antialias)
            text = "axis 0 length %d size %d %s" % (length, size, method)
            case("resize", lambda x: tf.einsum("ol,bli->boi", w, x[0]), [(length, 2)],
                 args=text + " antialias" * antialias)
w = resize_weights(7, 5, "bilinear", False)
case("resize", lambda x: tf.einsum("ol,bil->bio", w, tf.pad(x[0], ((0, 0), (0, 0), (1, 2)), constant_values=0.25)),
     [(2, 4)], args="axis 1 begin -1 length 7 size 5 fill 0.25 bilinear")


def warp(text, shape, matrix, interpolation="bilinear", fill="reflect", value=0.0):
    """Numbers that float32 holds exactly. No gradient: TensorFlow's goes through the inverse."""
    m = np.array([matrix + [0, 0]] * ROWS, "float32")
    case("warp", lambda x: tf.stop_gradient(keras.ops.image.affine_transform(
        x[0], m, interpolation=interpolation, fill_mode=fill, fill_value=value)), [shape], args=text)
    cases[-1]["dx"] = [None]


warp("flip across nearest", (3, 4, 2), [-1, 0, 3, 0, 1, 0])
warp("flip across down nearest first 0.5", (3, 4, 2), [-1, 0, 3, 0, -1, 2])
warp("flip across down nearest first 0.75", (3, 4, 2), [1, 0, 0, 0, 1, 0])
for fill in "reflect", "constant", "wrap", "nearest":
    for how in "bilinear", "nearest":
        text = " ".join([{"nearest": "edge"}.get(fill, fill), how, "value 0.5 "])
        warp(text + "zoom first 1.5 second 0.75", (5, 6, 2),
             [0.75, 0, 2.5 * 0.25, 0, 1.5, -1.0], how, fill, 0.5)
        warp(text + "zoom alike first 3.75", (3, 5, 1), [3.75, 0, -5.5, 0, 3.75, -2.75], how, fill, 0.5)
        warp(text + "translate first 0.4375 second -1.625", (4, 4, 2),
             [1, 0, 6.5, 0, 1, -1.75], how, fill, 0.5)
        warp(text + "shear first 0.25 second 0.625", (4, 5, 2), [1, 0.625, 0, 0.25, 1, 0], how, fill, 0.5)
        warp(text + "rotate first 90", (4, 6, 1), [0, -1, 4.0, 1, 0, -1.0], how, fill, 0.5)
        warp(text + "zoom first 1.25 second 1.25", (1, 1, 3), [1.25, 0, 0, 0, 1.25, 0], how, fill, 0.5)


def recolor(text, layer, numbers, shape=(3, 4, 3), positive=False):
    case("recolor", lambda x: layer.transform_images(x[0], numbers, training=True), [shape], args=text,
         positive=positive)


def each(value, dtype="float64"):
    return tf.fill((ROWS, 1, 1, 1), tf.constant(value, dtype))


inside = {"value_range": (-1, 1)}
recolor("brightness a 0.25", L.RandomBrightness(1, **inside), {"rgb_delta": each(0.5)})
recolor("brightness a -0.75", L.RandomBrightness(1, **inside), {"rgb_delta": each(-1.5)})
recolor("contrast a 0.625", L.RandomContrast(1, **inside), {"contrast_factor": each(0.625)})
recolor("contrast a 1.75", L.RandomContrast(1, **inside), {"contrast_factor": each(1.75)}, (3, 4, 2))
recolor("fade a 0.75", L.RandomColorDegeneration(1, **inside), {"factor": each(0.75)})
recolor("fade a -0.5", L.RandomColorDegeneration(1, **inside), {"factor": each(-0.5)})
recolor("fade a 0.5", L.RandomColorDegeneration(1, **inside), {"factor": each(0.5)}, (3, 4, 1))
recolor("gray a 0.5 b 0.25", L.RandomGrayscale(), each(True, "bool"))
recolor("gray a 0.5 b 0.75", L.RandomGrayscale(), each(False, "bool"))
recolor("invert a 0.5 b 0.25", L.RandomInvert(**inside), {"apply_inversion": tf.ones(ROWS, "bool")})
recolor("invert a 0.5 b 0.75", L.RandomInvert(**inside), {"apply_inversion": tf.zeros(ROWS, "bool")})
for a, high in (0.25, 1), (0.75, 1), (0.75, 0.5), (-0.5, 1):
    factor = tf.fill((ROWS,), tf.constant(a / (1 - a + 1e-7), "float64"))
    recolor("saturate a %g low 0 high %g positive" % (a, high),
            L.RandomSaturation(1, value_range=(0, high)), {"factor": factor}, positive=True)
for bits, high in (1, 3), (5, 3), (8, 3), (3, 255):
    recolor("posterize a %d low 0 high %d positive" % (bits, high),
            L.RandomPosterization(8, value_range=(0, high)),
            {"shift_factor": tf.fill((ROWS,), tf.constant(8 - bits, "uint8"))}, positive=True)
    cases[-1]["dx"] = [[0.0] * len(cases[-1]["x"][0])]
recolor("stretch low -2 high 2", L.AutoContrast(value_range=(-2, 2)), None)
recolor("stretch low -3 high 5", L.AutoContrast(value_range=(-3, 5)), None, (4, 2, 2))
for f in 0.25, 0.875:
    sharp = L.RandomSharpness(1, **inside)
    case("smooth", lambda x: sharp.transform_images(x[0], {"factor": tf.fill((ROWS,), tf.constant(f, "float64"))}),
         [(4, 5, 2)], args="sharpens first %g" % f)
for size, d in ((3, 3), 0.75), ((5, 3), 1.5), ((1, 5), 1.0):
    blur = L.RandomGaussianBlur(kernel_size=size, **inside)
    case("smooth", lambda x: blur.transform_images(x[0], {
        "blur_factor": tf.constant([d + 1e-6] * 2, "float64"), "should_apply_blur": tf.ones(ROWS, "bool")}),
         [(5, 6, 2)], args="size %d,%d first 0.5 deviation %g" % (*size, d))


def erased(h, w, area, begin):
    """The places of a rectangle, as the layer finds them."""
    sides = [(begin * (1 - area ** 0.5) * n, (begin * (1 - area ** 0.5) + area ** 0.5) * n) for n in (w, h)]
    corners = [tf.fill((ROWS,), tf.constant(v, "float64")) for pair in sides for v in pair]
    return L.RandomErasing()._generate_batch_mask((ROWS, h, w, 3), corners)


case("erase", lambda x: tf.where(erased(6, 5, 0.25, 0.25), tf.constant(0.5, "float64"), x[0]), [(6, 5, 3)],
     args="area 0.25 begin 0.25 fill 0.5")
case("erase", lambda x: tf.where(erased(4, 7, 0.3, 0.9), tf.constant([0.75, 0.375, -0.75], "float64"), x[0]),
     [(4, 7, 3)], args="area 0.3 begin 0.9 colours fill 0.75")
wide_range = {"value_range": (-2, 2)}
recolor("solarize a 30 b 0 low -2 high 2", L.Solarization(**wide_range),
        {"additions": each(30.0), "thresholds": each(0.0)})
recolor("solarize a 0 b 100 low -2 high 2", L.Solarization(**wide_range),
        {"additions": each(0.0), "thresholds": each(100.0)})


for name in "arcsinh", "arctan", "cosh", "erf", "expm1", "sinh":
    function = getattr(O, name)
    case(name, lambda x: function(x[0]), [(4,)])
case("log1p", lambda x: O.log1p(x[0]), [(4,)], positive=True)
case("arctan2", lambda x: O.arctan2(x[0], x[1]), [(2, 3), (2, 3)])
case("arctan2", lambda x: O.arctan2(x[0], x[1]), [(2, 3), (1, 3)])
case("mod", lambda x: O.mod(x[0], x[1]), [(2, 3), (2, 3)])
case("mod", lambda x: O.mod(x[0], x[1]), [(2, 1), (1, 3)])
for axis in 0, 1:
    case("argmax", lambda x: tf.cast(O.argmax(x[0], axis + 1), "float64"), [(3, 4)], args="axis %d" % axis, whole=True)
    case("cumsum", lambda x: O.cumsum(x[0], axis + 1), [(3, 4)], args="axis %d" % axis)
    case("product", lambda x: O.prod(x[0], axis + 1), [(3, 4)], args="axis %d" % axis)
    case("sorted", lambda x: O.sort(x[0], axis + 1), [(3, 4)], args="axis %d" % axis)


def mel(fft_length=8, top_db=None, **more):
    """Keras's own decibels are float32 only, so they are written out here; top_db is of a row."""
    layer = L.MelSpectrogram(fft_length, 3, num_mel_bins=3, sampling_rate=100, min_freq=2.0,
                             power_to_db=False, dtype="float64", **more)

    def f(x):
        y = layer(x[0])
        if top_db is None:
            return y
        y = 10 * tf.math.log(tf.maximum(y, tf.constant(1e-10, "float64"))) / np.log(10)
        return tf.maximum(y, tf.reduce_max(y, (1, 2), True) - top_db)

    return f


case("mel_spectrogram", mel(), [(20,)], args="hann")
case("mel_spectrogram", mel(sequence_length=5, top_db=80.0), [(17,)], args="hann decibels length 5")
case("mel_spectrogram", mel(12, window="hamming", mag_exp=3.0), [(14,)], args="hamming size 12 exponent 3")
case("mel_spectrogram", mel(top_db=4.0), [(13,)], args="hann decibels top 4")
for to, function in enumerate((O.floor, O.ceil, O.round, O.trunc, O.sign)):
    case("rounded", lambda x: function(x[0]), [(5,)], args="to %d" % to)
case("one_hot", lambda x: O.one_hot(tf.cast(x[0], "int32"), 3, dtype="float64"), [(5,)], args="n 3", whole=True)
case("pad", lambda x: O.pad(x[0], ((0, 0), (0, 2), (1, 0)), constant_values=0.5), [(2, 3)],
     args="before 0,1 behind 2,0 value 0.5")
for size, n in (3, 7), (4, 3):
    case("adaptive_pool", L.AdaptiveAveragePooling1D(size), [(n, 2)], args="axis 0 size %d" % size)
    case("adaptive_pool", L.AdaptiveMaxPooling1D(size), [(n, 2)], args="axis 0 size %d largest" % size)
case("group_norm", L.GroupNormalization(2), [(3, 6)], args="groups 2")
case("group_norm", L.GroupNormalization(3, center=False, epsilon=0.25), [(2, 2, 3)],
     args="groups 3 no_center epsilon 0.25")
# Keras takes 1e9 away, which would leave no digits to compare
case("masked_scores", lambda x: x[0] - 3.0 * tf.cast(tf.linalg.band_part(tf.ones((3, 4)), -1, 0) == 0, "float64"),
     [(3, 4)], args="causal")
given = L.Normalization(mean=[0.5, -1.0, 2.0], variance=[1.0, 4.0, 0.25])
case("normalization", lambda x: given(x[0]), [(2, 2, 3)], args="last")
given_invert = L.Normalization(mean=[0.5, -1.0, 2.0], variance=[1.0, 4.0, 0.25], invert=True)
case("normalization", lambda x: given_invert(x[0]), [(2, 2, 3)], args="last invert")
case("scale", lambda x: x[0] * tf.constant(0.75, "float64"), [(2, 3)])
cases[-1].update(weights="1", w=[[0.75]], dw=[[float(np.dot(cases[-1]["x"][0], cases[-1]["r"]))]])

attention = O.dot_product_attention
case("dot_product_attention", lambda v: attention(v[0], v[1], v[2], scale=0.5), [(4, 2, 3), (5, 2, 3), (5, 2, 2)])
case("dot_product_attention", lambda v: attention(v[0], v[1], v[2], scale=0.25, is_causal=True), [(5, 1, 4)] * 3,
     args="scale 0.25 causal")
case("dot_product_attention", lambda v: attention(v[0], O.repeat(v[1], 2, 2), O.repeat(v[2], 2, 2), scale=0.5),
     [(3, 4, 2), (5, 2, 2), (5, 2, 3)])
case("dot_product_attention", lambda v: attention(v[0], v[1], v[2], mask=v[3] > 0.5, scale=0.5),
     [(4, 2, 3), (5, 2, 3), (5, 2, 2), (1, 4, 5)], args="uniform")

case("cbrt", lambda x: O.cbrt(x[0]), [(4,)], positive=True)
case("erfc", lambda x: O.erfc(x[0]), [(4,)])
case("stop_gradient", lambda x: O.stop_gradient(x[0]), [(4,)])
case("numbers", lambda x: 0 * x[0][:, :1, None] + np.array([[0.5, -1, 2], [0, 3.25, -0.75]]), [(5,)])
for axis in 0, 1:
    case("cumprod", lambda x: O.cumprod(x[0], axis + 1), [(3, 4)], args="axis %d" % axis)
    case("argsort", lambda x: tf.cast(O.argsort(x[0] + 0.0, axis + 1), "float64"), [(3, 4)], args="axis %d" % axis, whole=True)
    case("take_along", lambda x: O.take_along_axis(x[0], tf.cast(x[1], "int32"), axis + 1), [(3, 3), (3, 3)], args="axis %d" % axis, whole=True)
case("rounded", lambda x: tf.cast(O.signbit(x[0]), "float64"), [(5,)], args="to 5")
cases[-1]["dx"] = [[0.0] * len(cases[-1]["x"][0])]


def whole_pair(function):
    return lambda x: tf.stop_gradient(tf.cast(function(*[tf.cast(v * 9, "int64") for v in x]), "float64"))


for how, function in enumerate((O.bitwise_and, O.bitwise_or, O.bitwise_xor)):
    case("whole_numbers", whole_pair(function), [(2, 3), (2, 3)], args="how %d" % how)
case("whole_numbers", whole_pair(lambda a, b: O.gcd(a, b)), [(2, 1), (1, 3)], args="how 5")
case("whole_numbers", whole_pair(lambda a, b: O.lcm(a, b)), [(2, 3), (2, 3)], args="how 6")
case("whole_numbers", whole_pair(lambda a: O.left_shift(a, np.int64(3))), [(4,)], args="right 3 how 3")
case("whole_numbers", whole_pair(lambda a: O.right_shift(a, np.int64(1))), [(4,)], args="right 1 how 4")
for c in cases[-7:]: # whole numbers, which the op gets as they are
    c["x"] = [[float(int(v * 9)) for v in x] for x in c["x"]]
    c["dx"] = [None] * len(c["x"])
case("band", lambda x: O.tril(x[0], 1), [(3, 4)], args="low -9 high 1")
case("band", lambda x: O.triu(x[0], -1), [(2, 4, 3)], args="low -1 high 9")


def pairs(y):
    return tf.stack(y, axis=-1)


case("fourier", lambda x: pairs(O.fft((x[0][..., 0], x[0][..., 1]))), [(2, 5, 2)], args="size 5")
case("fourier", lambda x: pairs(O.rfft(x[0])), [(2, 8)], args="size 8 from_reals")
case("fourier", lambda x: pairs(O.rfft(x[0], fft_length=9)), [(7,)], args="size 9 from_reals")
case("fourier", lambda x: O.irfft((x[0][..., 0], x[0][..., 1])), [(2, 5, 2)], args="size 8 to_reals")
case("fourier", lambda x: O.irfft((x[0][..., 0], x[0][..., 1]), fft_length=7), [(4, 2)], args="size 7 to_reals")
case("frames", lambda x: O.extract_sequences(x[0], 4, 3), [(2, 11)], args="size 4 stride 3")
case("overlap", lambda x: tf.signal.overlap_and_add(x[0], 3), [(3, 4)], args="size 4 stride 3 count 10")
case("erfinv", lambda x: O.erfinv(x[0]), [(6,)], args="inside", inside=True)
case("bessel_i0", lambda x: tf.math.bessel_i0(x[0]), [(5,)])

case("determinant", lambda x: O.det(x[0]), [(3, 3)], definite=True)
case("log_determinant", lambda x: tf.stack(tf.linalg.slogdet(x[0]), -1), [(2, 2, 2)], definite=True)
case("inverse", lambda x: O.inv(x[0]), [(3, 3)], definite=True)
case("solve", lambda x: O.solve(x[0], x[1]), [(3, 3), (3, 2)], definite=True)
case("cholesky", lambda x: O.cholesky(x[0]), [(3, 3)], definite=True)


def qr(x):
    """Q, and beside it R with rows of zeros below."""
    q, r = O.qr(x)
    below = q.shape[-2] - r.shape[-2]
    return tf.concat([q, tf.pad(r, [[0, 0]] * (len(x.shape) - 2) + [[0, below], [0, 0]])], axis=-1)


case("qr", lambda x: qr(x[0]), [(4, 3)])
case("qr", lambda x: qr(x[0]), [(2, 2, 2)])
case("singular_values", lambda x: O.svd(x[0], compute_uv=False), [(4, 3)])
case("singular_values", lambda x: O.svd(x[0], compute_uv=False), [(2, 2, 3)])
case("pseudo_inverse", lambda x: O.pinv(x[0]), [(4, 3)])
case("pseudo_inverse", lambda x: O.pinv(x[0]), [(2, 3)])



class Reversed(keras.layers.Layer):
    def __init__(self, *dims):
        super().__init__()
        self.table = L.ReversibleEmbedding(*dims)

    def build(self, shape):
        self.table.build()
        self.built = True

    def call(self, x, training=None):
        return self.table(x, reverse=True)


case("dense_transposed", Reversed(4, 5), [(5,)])
case("dense_transposed", Reversed(7, 3), [(2, 2, 3)])


def by_row(layer):
    """Keras counts the values of all images of a batch together."""
    return lambda x: tf.concat([layer.transform_images(x[0][i : i + 1], None) for i in range(ROWS)], 0)


case("equalize", by_row(L.Equalization((-1, 1))), [(4, 5, 2)])
case("equalize", by_row(L.Equalization((-3, 2), bins=5)), [(3, 4, 3)], args="low -3 high 2 bins 5")
case("equalize", by_row(L.Equalization((-3, 3), bins=1)), [(3, 2, 1)], args="low -3 high 3 bins 1")
LOCAL = L.ContrastLimitedAdaptiveHistogramEqualization
for text, layer, shape in [
    ("grid 2,2 low -2 high 2", LOCAL((-2, 2), 4.0, (2, 2)), (4, 8, 2)),
    ("grid 2,1 limit 32 low -2 high 2", LOCAL((-2, 2), 32.0, (2, 1)), (7, 4, 1)),
    ("grid 2,3 limit 0", LOCAL((-1, 1), 0.0, (2, 3)), (5, 7, 3)),
]:
    case("clahe", lambda x: layer.transform_images(x[0]), [shape], args=text)
    cases[-1]["dx"] = [[0.0] * len(cases[-1]["x"][0])]
case("one_of", lambda x: sharp.transform_images(x[0], {"factor": tf.fill((ROWS,), tf.constant(0.25, "float64"))}),
     [(4, 5, 2)], args="always 3")
case("one_of", by_row(L.Equalization((-1, 1), bins=2)), [(4, 5, 2)], args="always 4")
case("one_of", lambda x: x[0] + 0.0, [(4, 5, 2)], args="always 0")
# so large an alpha leaves nothing to chance
case("augmix", lambda x: O.clip(0.5 * x[0] + 0.5 * (0.5 * x[1] + 0.5 * x[2]), -1, 1), [(2, 3, 2)] * 3,
     args="alpha 1e30")
case("augmix", lambda x: O.clip(0.5 * x[0] + 0.5 * x[1], -1, 1), [(1, 4, 1)] * 2, args="alpha 1e30")
# what is drawn is in augment.json
case("elastic", lambda x: O.clip(x[0], -1.5, 1.5), [(4, 5, 2)], args="scale 0")
case("hsv", lambda x: O.image.rgb_to_hsv(x[0]), [(2, 2, 3)], positive=True)
case("hsv", lambda x: tf.stop_gradient(O.image.hsv_to_rgb(x[0])), [(2, 3, 3)], args="to_rgb")
cases[-1]["dx"] = [None]  # TensorFlow has none


class SumAndNorm(L.Layer):
    """[a + b, the normalisation of that]; its weights are those of the normalisation."""

    def __init__(self, norm):
        super().__init__()
        self.norm = norm

    def build(self, shapes):
        self.norm.build(shapes[0])

    def call(self, x, training=None):
        return [x[0] + x[1], self.norm(x[0] + x[1])]


case("add_layer_norm", SumAndNorm(L.LayerNormalization()), [(3, 5)] * 2)
case("add_layer_norm", SumAndNorm(L.LayerNormalization(axis=(2, 3))), [(2, 3, 4)] * 2, args="dims 2")
case("add_layer_norm", SumAndNorm(L.RMSNormalization(epsilon=1e-3)), [(2, 6)] * 2,
     args="rms no_center")


class MaskedBatchNormalization(L.BatchNormalization):
    def build(self, shapes):
        super().build(shapes[0])
        self.input_spec = None

    def call(self, v, training=None):
        return super().call(v[0], training=training, mask=v[1] > 0.5)


for name, center, scale in ("", True, True), ("no_center", False, True), ("no_scale", True, False):
    case("masked_batch_norm", MaskedBatchNormalization(momentum=0.9, center=center, scale=scale),
         [(4, 3), (4,)], args=(name + " momentum 0.9").strip(), moved=True)
case("masked_batch_norm", MaskedBatchNormalization(epsilon=0.01), [(2, 3, 2), (2, 3)],
     args="epsilon 0.01", moved=True)
for p, s, padding in ((2, 2), (2, 2), "valid"), ((3, 2), (2, 1), "same"), ((3, 3), (2, 2), "same"):
    pads = [same(5, p[0], s[0]), same(6, p[1], s[1])] if padding == "same" else None
    how = dict(ksize=(1, *p, 1), strides=(1, *s, 1), padding=padding.upper())
    out = tuple(tf.nn.max_pool2d(tf.zeros((1, 5, 6, 2)), **how).shape[1:])
    case("max_unpool2d", lambda x: tf.raw_ops.MaxPoolGrad(
        orig_input=x[0], orig_output=tf.nn.max_pool2d(x[0], **how), grad=x[1], **how),
        [(5, 6, 2), out], args=words(s, pads=pads, pool=p))
    case("average_unpool2d", lambda x: tf.raw_ops.AvgPoolGrad(
        orig_input_shape=(ROWS, 5, 6, 2), grad=x[0], **how),
        [out], args=words(s, pads=pads, pool=p) + " to 5,6")


with open(path, "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
print(len(cases), "cases,", os.path.getsize(path), "bytes")
