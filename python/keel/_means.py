"""One number for a batch that is a mean over its rows, as values of rows."""

import contextlib

import numpy as np

from ._branches import node_of, nodes_behind
from ._masks import mask_of

REDUCTIONS = ("sum_over_batch_size", "mean", "mean_with_sample_weight")
AFFINE = ("Add", "Subtract", "Multiply", "Divide", "TrueDivide", "Negative", "Cast")


def has_rows(keras, t):
    """Whether a tensor depends on the rows of the batch, not on weights alone."""
    nodes = nodes_behind(keras, [t]).values()
    return any(n.is_input and n.outputs[0].shape[:1] == (None,) for n in nodes)


def counting(t, factor):
    """Marks the number of the rows of a batch, of which each row of the data has become so many."""
    t._keel_count = factor
    return t


def values_of_rows(keras, t, refuse, base="Mean"):
    """Values of rows in place of `t`, whose mean over all rows is the same; means over a batch, or sums of
    them with other values, become those of each row. What depends on no row stays one number. base: "Sum" for
    values whose sum over all rows is the same."""
    ops = keras.ops
    is_tensor = lambda a: isinstance(a, keras.KerasTensor)
    if not is_tensor(t) or (not t.shape and not has_rows(keras, t)):
        return t
    is_no_mean = lambda what: refuse(f"it gives one number for a batch, and {what} is no mean over its rows")
    node = node_of(t)
    args, operation, name = node.arguments.args, node.operation, type(node.operation).__name__
    if name in ("Mean", "Sum") and is_tensor(args[0]) and not args[0].shape:  # of one number
        return values_of_rows(keras, args[0], refuse, base)
    if name == base and not t.shape and args[0].shape and args[0].shape[0] is None:
        inner, reduce = values_of_rows(keras, args[0], refuse), ops.mean if base == "Mean" else ops.sum
        return reduce(inner, axis=list(range(1, len(inner.shape)))) if len(inner.shape) > 1 else inner
    divides = name in ("Divide", "TrueDivide")
    factor = getattr(args[1], "_keel_count", None) if divides and not t.shape and base == "Mean" else None
    if factor:
        return values_of_rows(keras, args[0], refuse, "Sum") / factor
    if name not in AFFINE or (divides and is_tensor(args[1])):
        if t.shape:
            return t
        is_no_mean(f"the result of {name}")
    now = [values_of_rows(keras, a, refuse, base) for a in args]
    if base == "Sum" and name in ("Add", "Subtract") and not all(is_tensor(a) and a.shape for a in now):
        is_no_mean("a sum over them with a number added")
    if all(a is b for a, b in zip(now, args)):
        if t.shape:
            return t
        is_no_mean(f"the result of {name}")
    of_rows = [a for a in now if is_tensor(a) and a.shape]
    if name == "Multiply" and len(of_rows) == 2:
        is_no_mean("a product with it")
    rank = max(len(a.shape) for a in of_rows)
    level = lambda a: ops.reshape(a, (-1, *a.shape[1:], *(1,) * (rank - len(a.shape))))
    is_lower = lambda a: is_tensor(a) and 0 < len(a.shape) < rank
    return operation(*(level(a) if is_lower(a) else a for a in now))


class NoMean(Exception):
    pass


def is_mean(keras, number):
    """Whether one number for a batch is a mean over its rows."""

    def refuse(why):
        raise NoMean(why)

    try:
        values_of_rows(keras, number, refuse)
        return True
    except NoMean:
        return False


def weighed(keras, values, weight):
    """values [rows, ...] times weights, which have as many dims or fewer, or a last one of 1."""
    ops, rank = keras.ops, len(values.shape)
    if len(weight.shape) == rank + 1:
        weight = ops.squeeze(weight, -1)
    return values * ops.reshape(
        ops.cast(weight, values.dtype), (-1, *weight.shape[1:], *(1,) * (rank - len(weight.shape)))
    )


def of_no_rows(keras, t):
    """The numbers of a tensor that is made of ones and zeros as many as another has, for one row; None: it is of rows."""
    if not isinstance(t, keras.KerasTensor):
        return keras.ops.convert_to_numpy(t)
    node = node_of(t)
    like = {"OnesLike": np.ones, "ZerosLike": np.zeros}.get(type(node.operation).__name__)
    if like and None not in t.shape[1:]:
        return like((1, *t.shape[1:]), t.dtype)
    if node.is_input:
        return None
    args = [of_no_rows(keras, a) if isinstance(a, keras.KerasTensor) else a for a in node.arguments.args]
    if any(a is None for a in args):
        return None
    return keras.ops.convert_to_numpy(node.operation(*args, **node.arguments.kwargs))


def hinge(keras, loss, labels, y_pred):
    """Values of a hinge loss. Labels that are all 0 and 1 are -1 and 1, which Keras sees in the numbers of the batch."""
    ops, known = keras.ops, of_no_rows(keras, labels)
    if known is not None:
        labels = (2.0 * known - 1.0 if np.isin(known, (0, 1)).all() else known).astype("float32")
    else:
        binary = ops.all(ops.logical_or(ops.equal(labels, 0), ops.equal(labels, 1)))
        labels = ops.where(binary, 2.0 * labels - 1.0, labels)
    below = ops.maximum(1.0 - labels * y_pred, 0.0)  # the margin
    return ops.mean(ops.square(below) if isinstance(loss, keras.losses.SquaredHinge) else below, axis=-1)


@contextlib.contextmanager
def losses_give_means(keras):
    """A loss that is called within a function gives its mean, in one operation."""
    loss_class, original = keras.losses.Loss, keras.losses.Loss.__call__

    def mean(loss, y_true, y_pred, sample_weight=None):
        if not isinstance(y_pred, keras.KerasTensor):
            return original(loss, y_true, y_pred, sample_weight)
        weighted = sample_weight is not None
        masked = mask_of(y_pred) is not None or mask_of(y_true) is not None
        whole = y_pred.shape[:1] != (None,)  # a batch, with a known number of rows
        if whole and (loss.reduction not in REDUCTIONS or weighted or masked):
            return original(loss, y_true, y_pred, sample_weight)
        if loss.reduction not in (*REDUCTIONS, "none", None):
            raise ValueError(
                f"'{loss.name}' is called without a mean over rows: its reduction is '{loss.reduction}'"
            )
        if masked or (weighted and loss.reduction == REDUCTIONS[2]):
            raise ValueError(f"'{loss.name}' is divided by {'masks' if masked else 'weights'} of the batch")
        is_hinge = isinstance(loss, (keras.losses.Hinge, keras.losses.SquaredHinge))
        values = hinge(keras, loss, y_true, y_pred) if is_hinge else loss.call(y_true, y_pred)
        values = weighed(keras, values, sample_weight) if weighted else values
        return values if loss.reduction in ("none", None) else keras.ops.mean(values)

    loss_class.__call__ = mean
    try:
        yield
    finally:
        loss_class.__call__ = original
