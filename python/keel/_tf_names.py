"""Functions of TensorFlow that code of the caller's calls beside keras.ops, and what is the same there."""

import inspect

import numpy as np

PLACES = ("", "math", "nn", "linalg", "image")  # of tf; many functions are in several of them

# By the name in tf, with the arguments that both have in this order.
SAME = {
    "abs": "abs", "acos": "arccos", "acosh": "arccosh", "add": "add", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh", "broadcast_to": "broadcast_to", "cast": "cast",
    "ceil": "ceil", "clip_by_value": "clip", "concat": "concatenate", "cos": "cos", "cosh": "cosh",
    "diag_part": "diagonal", "divide": "divide", "divide_no_nan": "divide_no_nan", "einsum": "einsum",
    "elu": "elu", "equal": "equal", "erf": "erf", "erfinv": "erfinv", "exp": "exp", "expand_dims": "expand_dims",
    "expm1": "expm1", "fill": "full", "floor": "floor", "floordiv": "floor_divide", "floormod": "mod",
    "greater": "greater", "greater_equal": "greater_equal", "is_finite": "isfinite", "is_inf": "isinf",
    "is_nan": "isnan", "leaky_relu": "leaky_relu", "less": "less", "less_equal": "less_equal", "log": "log",
    "log1p": "log1p", "log_sigmoid": "log_sigmoid", "logical_and": "logical_and", "logical_not": "logical_not",
    "logical_or": "logical_or", "logical_xor": "logical_xor", "maximum": "maximum", "minimum": "minimum",
    "mod": "mod", "multiply": "multiply", "negative": "negative", "not_equal": "not_equal", "ones": "ones",
    "ones_like": "ones_like", "pow": "power", "reciprocal": "reciprocal", "reduce_all": "all", "reduce_any": "any",
    "reduce_logsumexp": "logsumexp", "reduce_max": "max", "reduce_mean": "mean", "reduce_min": "min",
    "reduce_prod": "prod", "reduce_std": "std", "reduce_sum": "sum", "reduce_variance": "var", "relu": "relu",
    "relu6": "relu6", "repeat": "repeat", "reshape": "reshape", "roll": "roll", "round": "round", "rsqrt": "rsqrt",
    "selu": "selu", "shape": "shape", "sigmoid": "sigmoid", "sign": "sign", "sin": "sin", "sinh": "sinh",
    "softplus": "softplus", "softsign": "softsign", "sqrt": "sqrt", "square": "square", "squeeze": "squeeze",
    "stack": "stack", "stop_gradient": "stop_gradient", "subtract": "subtract", "tan": "tan", "tanh": "tanh",
    "tensordot": "tensordot", "tile": "tile", "top_k": "top_k", "trace": "trace", "truediv": "true_divide",
    "unstack": "unstack", "where": "where", "zeros": "zeros", "zeros_like": "zeros_like",
}  # fmt: skip
OF_SHAPES = {"broadcast_to", "fill", "ones", "repeat", "tile", "zeros"}  # which may be those of all rows: -1


def others(ops):
    """By the name in tf, functions whose arguments or defaults are others."""

    def matmul(a, b, transpose_a=False, transpose_b=False):
        last = lambda t: [*range(len(t.shape) - 2), len(t.shape) - 1, len(t.shape) - 2]
        turned = lambda t, turn: ops.transpose(t, last(t)) if turn else t
        return ops.matmul(turned(a, transpose_a), turned(b, transpose_b))

    def l2_normalize(x, axis=None, epsilon=1e-12):
        return x * ops.rsqrt(ops.maximum(ops.sum(ops.square(x), axis=axis, keepdims=True), epsilon))

    def gather(x, at, validate_indices=None, axis=None, batch_dims=0):
        if not batch_dims:
            return ops.take(x, at, axis=axis or 0)
        if batch_dims != 1 or axis not in (None, 1) or len(at.shape) != 2:
            raise ValueError("tf.gather with these batch_dims is not known")
        at = ops.reshape(at, (-1, at.shape[1], *(1,) * (len(x.shape) - 2)))
        return ops.take_along_axis(x, at + ops.cast(ops.zeros_like(x[:, :1]), at.dtype), axis=1)

    def norm(x, ord="euclidean", axis=None, keepdims=False):
        if ord in ("euclidean", 2):
            return ops.sqrt(ops.sum(ops.square(x), axis=axis, keepdims=keepdims))
        return ops.norm(x, ord, axis, keepdims)

    def pad(x, paddings, mode="CONSTANT", constant_values=0):
        value = {"constant_values": constant_values} if mode.lower() == "constant" else {}
        return ops.pad(x, np.asarray(paddings).tolist(), mode.lower(), **value)

    def cut(x, begin, size):
        ends = [None if n == -1 else b + n for b, n in zip(begin, size)]
        return x[tuple(slice(b or None, end) for b, end in zip(begin, ends))]

    def moments(x, axes, shift=None, keepdims=False):
        return ops.mean(x, axes, keepdims), ops.var(x, axes, keepdims)

    def band_part(x, below, above):
        x = x if below < 0 else ops.triu(x, -below)
        return x if above < 0 else ops.tril(x, above)

    def summed(x, axis=0, exclusive=False, reverse=False):
        x = ops.flip(x, axis) if reverse else x
        total = ops.cumsum(x, axis) - (x if exclusive else 0)
        return ops.flip(total, axis) if reverse else total

    def sort(x, axis=-1, direction="ASCENDING"):
        return ops.sort(x, axis) if direction == "ASCENDING" else ops.flip(ops.sort(x, axis), axis)

    def silu(x, beta=1.0):
        return x * ops.sigmoid(beta * x)

    def windows(of):
        """strides and window of 4 numbers, or of as many as there are dims."""
        return [of] * 2 if isinstance(of, int) else list(of)[1:-1] if len(of) > 2 else list(of)

    def conv2d(x, kernel, strides, padding, data_format="NHWC", dilations=None):
        dims = padding.lower(), layout(data_format), windows(dilations or 1)
        return ops.conv(x, kernel, windows(strides), *dims)

    def depthwise_conv2d(x, kernel, strides, padding, data_format="NHWC", dilations=None):
        dims = padding.lower(), layout(data_format), windows(dilations or 1)
        return ops.depthwise_conv(x, kernel, windows(strides), *dims)

    def pool(function):
        return lambda x, ksize, strides, padding, data_format="NHWC": function(
            x, windows(ksize), windows(strides), padding.lower(), layout(data_format)
        )

    def layout(name):
        return "channels_last" if name in (None, "NHWC") else "channels_first"

    def extract_patches(images, sizes, strides, rates, padding):
        dims = windows(sizes), windows(strides), windows(rates)[0], padding.lower()
        return ops.image.extract_patches(images, *dims)

    def resize(images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False):
        if preserve_aspect_ratio:
            raise ValueError("tf.image.resize with preserve_aspect_ratio is not known")
        return ops.image.resize(images, tuple(size), method, antialias)

    return {
        "argmax": lambda x, axis=0, *_: ops.argmax(x, axis=axis),
        "argmin": lambda x, axis=0, *_: ops.argmin(x, axis=axis),
        "argsort": lambda x, axis=-1: ops.argsort(x, axis=axis),
        "avg_pool2d": pool(ops.average_pool),
        "band_part": band_part,
        "bias_add": lambda x, bias: x + bias,
        "conv2d": conv2d,
        "cumsum": summed,
        "depthwise_conv2d": depthwise_conv2d,
        "embedding_lookup": lambda table, at: ops.take(table, at, axis=0),
        "extract_patches": extract_patches,
        "flip_left_right": lambda x: ops.flip(x, axis=-2),
        "flip_up_down": lambda x: ops.flip(x, axis=-3),
        "gather": gather,
        "gelu": lambda x, approximate=False: ops.gelu(x, approximate),
        "identity": lambda x: x,
        "l2_normalize": l2_normalize,
        "log_softmax": lambda x, axis=-1: ops.log_softmax(x, axis=-1 if axis is None else axis),
        "matmul": matmul,
        "max_pool2d": pool(ops.max_pool),
        "moments": moments,
        "norm": norm,
        "one_hot": lambda x, depth, on=None, off=None, axis=-1, dtype=None: one_hot(
            ops, x, depth, on, off, axis, dtype
        ),
        "pad": pad,
        "resize": resize,
        "reverse": lambda x, axis: ops.flip(x, axis=tuple(axis)),
        "scalar_mul": lambda scalar, x: scalar * x,
        "sigmoid_cross_entropy_with_logits": lambda labels, logits: ops.binary_crossentropy(
            labels, logits, from_logits=True
        ),
        "silu": silu,
        "slice": cut,
        "softmax": lambda x, axis=-1: ops.softmax(x, axis=-1 if axis is None else axis),
        "softmax_cross_entropy_with_logits": lambda labels, logits, axis=-1: ops.categorical_crossentropy(
            labels, logits, from_logits=True, axis=axis
        ),
        "sort": sort,
        "sparse_softmax_cross_entropy_with_logits": lambda labels, logits: ops.sparse_categorical_crossentropy(
            labels, logits, from_logits=True
        ),
        "split": lambda x, parts, axis=0, num=None: ops.split(x, split_points(parts), axis),
        "squared_difference": lambda a, b: ops.square(a - b),
        "swish": silu,
        "transpose": lambda x, perm=None, *_: ops.transpose(x, perm),
    }


def split_points(parts):
    """A number of parts, or where each of these sizes ends."""
    return parts if isinstance(parts, int) else np.cumsum(np.asarray(parts))[:-1].tolist()


def one_hot(ops, x, depth, on, off, axis, dtype):
    hot = ops.one_hot(x, depth, axis=-1 if axis is None else axis)
    if on is not None or off is not None:
        on, off = 1 if on is None else on, 0 if off is None else off
        hot = hot * (on - off) + off
    return hot if dtype is None else ops.cast(hot, dtype)


def in_order(original, args, named):
    """Arguments as tf names them, by their places as far as all before them are there; without `name`."""
    named = {k: v for k, v in named.items() if k != "name"}
    if not named:
        return args, named
    names = list(inspect.signature(original).parameters)[len(args) :]
    while names and names[0] in named:
        args = (*args, named.pop(names.pop(0)))
    return args, named


def has_open_number(values):
    """Whether a shape, or a number of times, is that of all rows, which is -1 (_ops.py)."""
    try:
        numbers = np.ravel(np.asarray(values)).tolist()
    except (NotImplementedError, TypeError, ValueError):  # tensors of a graph of TensorFlow's own
        return False
    return any(isinstance(v, int) and v < 0 for v in numbers)


def functions(tf, ops):
    """(where, name, function, original) of each place in tf."""
    found = {name: lambda *a, same=same, **k: getattr(ops, same)(*a, **k) for name, same in SAME.items()}
    found.update(others(ops))
    for place in PLACES:
        where = getattr(tf, place) if place else tf
        yield from (
            (where, name, f, getattr(where, name)) for name, f in found.items() if hasattr(where, name)
        )


def put_functions(tf, ops, is_symbolic, put):
    """In place of tf's, while code of the caller's is traced: those of keras.ops for what has no numbers yet."""
    running = set()  # names of those that run: what Keras calls within is TensorFlow's own

    def is_ours(name, original, args, named):
        if name in running:
            return False
        if is_symbolic((args, named)):
            return True
        if name not in OF_SHAPES:
            return False
        given, _ = in_order(original, args, named)
        of = given[0] if name in ("fill", "ones", "zeros") else given[1] if len(given) > 1 else 1
        return has_open_number(of)

    def choosing(name, ours, original):
        def call(*args, **named):
            if not is_ours(name, original, args, named):
                return original(*args, **named)
            args, named = in_order(original, args, named)
            running.add(name)
            try:
                return ours(*args, **named)
            finally:
                running.discard(name)

        return call

    for where, name, ours, original in functions(tf, ops):
        put(where, name, choosing(name, ours, original))
