"""Functions of TensorFlow that steps use beside keras.ops, and what is the same there."""

PLACES = ("", "math", "nn", "linalg")  # of tf; many functions are in several of them

# By the name in tf, with the arguments that both have in this order.
SAME = {
    "abs": "abs", "add": "add", "cast": "cast", "clip_by_value": "clip", "concat": "concatenate", "cos": "cos",
    "diag_part": "diagonal", "divide": "divide", "divide_no_nan": "divide_no_nan", "einsum": "einsum",
    "equal": "equal", "erf": "erf", "exp": "exp", "expand_dims": "expand_dims", "floor": "floor",
    "greater": "greater", "greater_equal": "greater_equal", "less": "less", "less_equal": "less_equal",
    "log": "log", "log1p": "log1p", "logical_and": "logical_and", "logical_not": "logical_not",
    "logical_or": "logical_or", "maximum": "maximum", "minimum": "minimum", "multiply": "multiply",
    "negative": "negative", "not_equal": "not_equal", "ones": "ones", "ones_like": "ones_like", "pow": "power",
    "reduce_all": "all", "reduce_any": "any", "reduce_logsumexp": "logsumexp", "reduce_max": "max",
    "reduce_mean": "mean", "reduce_min": "min", "reduce_prod": "prod", "reduce_std": "std", "reduce_sum": "sum",
    "reduce_variance": "var", "relu": "relu", "reshape": "reshape", "round": "round", "rsqrt": "rsqrt",
    "shape": "shape", "sigmoid": "sigmoid", "sign": "sign", "sin": "sin", "softplus": "softplus", "split": "split",
    "sqrt": "sqrt", "square": "square", "squeeze": "squeeze", "stack": "stack", "stop_gradient": "stop_gradient",
    "subtract": "subtract", "tanh": "tanh", "tensordot": "tensordot", "tile": "tile", "trace": "trace",
    "where": "where", "zeros": "zeros", "zeros_like": "zeros_like",
}  # fmt: skip


def others(ops):
    """By the name in tf, functions whose arguments or defaults are others."""

    def matmul(a, b, transpose_a=False, transpose_b=False):
        turned = lambda t, turn: ops.swapaxes(t, -1, -2) if turn else t
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

    return {
        "argmax": lambda x, axis=0: ops.argmax(x, axis=axis),
        "argsort": lambda x, axis=-1: ops.argsort(x, axis=axis),
        "gather": gather,
        "l2_normalize": l2_normalize,
        "log_softmax": lambda x, axis=-1: ops.log_softmax(x, axis=axis),
        "matmul": matmul,
        "reverse": lambda x, axis: ops.flip(x, axis=tuple(axis)),
        "one_hot": lambda x, depth, axis=-1: ops.one_hot(x, depth, axis=axis),
        "softmax": lambda x, axis=-1: ops.softmax(x, axis=axis),
        "transpose": lambda x, perm=None: ops.transpose(x, perm),
    }


def functions(tf, ops):
    """(where, name, function) of each place in tf."""
    found = {name: lambda *a, same=same, **k: getattr(ops, same)(*a, **k) for name, same in SAME.items()}
    found.update(others(ops))
    for place in PLACES:
        where = getattr(tf, place) if place else tf
        yield from ((where, name, f) for name, f in found.items() if hasattr(where, name))
