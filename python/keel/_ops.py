"""keras.ops while a `call` of the caller's is traced. How many rows there are is not known: it is -1, as reshape
takes it, so what has as many rows as a tensor is made for each row."""

import contextlib
import functools

import numpy as np

from ._folds import has_rows, places
from ._patches import Patches

CONVOLUTIONS = {"conv": (None, "Conv1D", "Conv2D", "Conv3D"),
                "depthwise_conv": (None, "DepthwiseConv1D", "DepthwiseConv2D")}  # fmt: skip
FILLED = ("full", "ones", "zeros")
NAMES = ("broadcast_to", "repeat", "reshape", "shape", "tile", "transpose", "unstack", *CONVOLUTIONS, *FILLED)


class Rows(int):
    """The number of rows: -1. Each row of the input has become `factor` of them."""

    def __new__(cls, factor=1):
        rows = super().__new__(cls, -1)
        rows.factor = factor
        return rows

    def __mul__(self, times):
        return Rows(self.factor * times) if isinstance(times, int) and times > 0 else int(self) * times

    def __floordiv__(self, by):
        whole = isinstance(by, int) and by > 0 and self.factor % by == 0
        return Rows(self.factor // by) if whole else int(self) // by

    __rmul__ = __mul__


def known(shape):
    return shape if isinstance(shape, int) else tuple(-1 if d is None else d for d in shape)


class RowOps:
    """in_each_row(x, shape): x, whose first dim is 1, broadcast to this shape, whose first dim is the rows."""

    def __init__(self, keras, in_each_row, factors, is_shared):
        self.keras, self.in_each_row, self.factors, self.is_shared = keras, in_each_row, factors, is_shared
        self.original = {name: getattr(keras.ops, name) for name in NAMES}
        self.item = keras.KerasTensor.__getitem__
        for names, function in (FILLED, self.filled), (CONVOLUTIONS, self.by_layer):
            vars(self).update({name: functools.partial(function, name) for name in names})
        self.fixed = {}  # layers of kernels that stay as they are, by all that they are made of
        self.turned = {}  # by id: a tensor whose second dim is the rows, and the same with the rows first

    @contextlib.contextmanager
    def open(self):
        with Patches() as patches:
            for name in NAMES:
                patches.put(self.keras.ops, name, getattr(self, name))
            patches.put(self.keras.KerasTensor, "__getitem__", lambda t, key: self.part(t, key))
            yield

    def has_rows(self, x):
        return isinstance(x, self.keras.KerasTensor) and has_rows(x)

    def shape(self, x):
        shape = known(self.original["shape"](x))
        return (Rows(self.factors.of(x)), *shape[1:]) if self.has_rows(x) else shape

    def reshape(self, x, newshape):
        newshape = known(newshape)
        several = isinstance(newshape, tuple) and newshape[:1] == (-1,) and newshape.count(-1) == 2
        if several and self.has_rows(x) and places(x.shape):  # one is the rest of a row
            rows = newshape[0] if isinstance(newshape[0], Rows) else Rows(self.factors.of(x))
            rest = places(x.shape) * self.factors.of(x) // rows.factor // -np.prod(newshape[1:])
            newshape = (-1, *(int(rest) if d == -1 else d for d in newshape[1:]))
        return self.original["reshape"](x, newshape)

    def broadcast_to(self, x, shape):
        shape = known(shape)
        return self.in_each_row(x, shape) if shape[:1] == (-1,) else self.original["broadcast_to"](x, shape)

    def filled(self, name, shape, *args, **kwargs):
        """The same numbers for each row, where the first dim is the rows."""
        shape = (shape,) if isinstance(shape, int) else shape
        dims = known(tuple(shape)) if isinstance(shape, (list, tuple)) else shape
        of_rows = isinstance(dims, tuple) and dims[:1] == (-1,)
        x = self.original[name]((1, *dims[1:]) if of_rows else shape, *args, **kwargs)
        return self.in_each_row(x, dims) if of_rows else x

    def tile(self, x, repeats):
        ops, tile = self.keras.ops, self.original["tile"]
        repeats = np.ravel(ops.convert_to_numpy(repeats)).tolist()
        dims = (1,) * (len(repeats) - len(x.shape)) + tuple(x.shape)
        if repeats[0] == -1 and self.is_shared(x) and len(repeats) == len(x.shape):  # there for each row
            return x if set(repeats[1:]) <= {1} else tile(x, (1, *repeats[1:]))
        if repeats[0] != -1 or len(dims) > len(repeats) or dims[0] != 1:
            return tile(x, repeats)
        x = self.in_each_row(x, (-1, *dims[1:]))
        return x if set(repeats[1:]) <= {1} else tile(x, (1, *repeats[1:]))

    def repeat(self, x, repeats, axis=None):
        if isinstance(repeats, int) and repeats == -1 and axis == 0:
            return self.in_each_row(x, (-1, *x.shape[1:]))
        if axis is None and self.has_rows(x) and places(x.shape) and np.size(repeats) == 1:
            times = int(np.ravel(repeats)[0])  # of the numbers of all rows, which stay with their rows
            each = self.original["repeat"](self.reshape(x, (-1, places(x.shape))), times, 1)
            return self.reshape(each, (-1,))
        return self.original["repeat"](x, repeats, axis)

    def by_layer(self, name, x, kernel, strides=1, padding="valid", data_format=None, dilation_rate=1):
        """Numbers that stay as they are, as those of a filter, are the kernel of a layer that is not trained."""
        tensor, kinds = self.keras.KerasTensor, CONVOLUTIONS[name]
        rank = len(kernel.shape) - 2
        if not isinstance(x, tensor) or isinstance(kernel, tensor) or rank >= len(kinds):
            return self.original[name](x, kernel, strides, padding, data_format, dilation_rate)
        kernel = self.keras.ops.convert_to_numpy(kernel)
        how = strides, padding, data_format, dilation_rate, x.shape
        key = name, kernel.tobytes(), kernel.shape, str(how)
        if key not in self.fixed:
            by_name = "depthwise" if name == "depthwise_conv" else "kernel"
            more = {"depth_multiplier" if by_name == "depthwise" else "filters": kernel.shape[-1]}
            self.fixed[key] = getattr(self.keras.layers, kinds[rank])(
                kernel_size=kernel.shape[:rank], strides=strides, padding=padding, data_format=data_format,
                dilation_rate=dilation_rate, use_bias=False, trainable=False, **more,
                **{f"{by_name}_initializer": lambda shape, dtype=None: self.keras.ops.cast(kernel, dtype)},
            )  # fmt: skip
        return self.fixed[key](x)

    def transpose(self, x, axes=None):
        """Rows may become the second dim, of what is then taken apart: q, k and v of a product."""
        transpose = self.original["transpose"]
        out = transpose(x, axes)
        if self.has_rows(x) and axes is not None and len(axes) > 1 and axes[1] == 0:
            self.turned[id(out)] = out, transpose(x, (0, axes[0], *axes[2:]))
        return out

    def unstack(self, x, num=None, axis=0):
        if id(x) in self.turned and axis == 0:
            return [self.part(x, k) for k in range(x.shape[0])]
        return self.original["unstack"](x, num, axis)

    def part(self, t, key):
        """t[key]. Keras takes no slice of the first dim alone, and no new dim before it."""
        first, *rest = key if isinstance(key, tuple) and key else (key,)
        if id(t) in self.turned and isinstance(first, int):
            rows_first = self.item(self.turned[id(t)][1], (slice(None), first))
            return self.item(rows_first, tuple(rest)) if rest else rows_first
        return self.item(t, (key,) if key is None or isinstance(key, slice) else key)
