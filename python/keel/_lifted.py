"""A graph of tensors of a whole batch as one of libkeel's, in which that batch is one row: each tensor has one dim
more, in front, and each operation is the same for the dims behind it."""

import numpy as np

from ._branches import in_order
from ._weights import EACH, RESHAPES, a_number_of_each_row, terms_of

OVER_ALL = set("""All Any CountNonzero Logsumexp Max Mean Min Prod Std Sum Var""".split())  # with axis=None
AXES = {"Diagonal": ("axis1", "axis2"), "Moveaxis": ("source", "destination"), "Swapaxes": ("axis1", "axis2"),
        "Trace": ("axis1", "axis2")}  # fmt: skip
PRODUCTS = {"Dot", "Einsum", "Matmul", "Outer", "Tensordot"}
LARGE = 1 << 10  # numbers of a constant
# whose operands all have rows
BESIDE = {"BinaryCrossentropy", "CategoricalCrossentropy", "SparseCategoricalCrossentropy"}


class Lifted:
    """of(outputs) of a graph whose shapes are known. leaves: by id of an input of that graph, the tensor with rows that
    stands for it. refuse(why)"""

    def __init__(self, keras, leaves, refuse):
        self.keras, self.refuse, self.new = keras, refuse, dict(leaves)
        self.diagonals = {}  # by size, numbers and type of a matrix: the tensor

    def of(self, outputs):
        for node in in_order(self.keras, outputs):
            if not node.is_input:
                made = self.keras.tree.flatten(self.lifted(node))
                for t, now in zip(node.outputs, made):
                    if tuple(now.shape) != (None, *t.shape):
                        self.refuse(f"the shape of a {type(node.operation).__name__} is not understood")
                    self.new[id(t)] = now
        return [self.new[id(t)] for t in outputs]

    def is_tensor(self, t):
        return isinstance(t, self.keras.KerasTensor)

    def now(self, t):
        return self.new[id(t)] if self.is_tensor(t) else t

    # ---- numbers that are the same for each batch -------------------------------------------------

    def with_rows(self, a):
        """A tensor with rows in place of a number or an array, too."""
        if self.is_tensor(a):
            return a
        ops, value = self.keras.ops, self.value_of(a)
        if self.is_diagonal(value):
            return self.diagonal(value)
        dtype = "int32" if value.dtype == bool else value.dtype.name
        zeros = ops.cast(ops.zeros_like(self.first_number()), dtype)
        rows = ops.reshape(zeros, (-1,) + (1,) * value.ndim) + value[None].astype(dtype)
        return ops.cast(rows, "bool") if value.dtype == bool else rows

    def value_of(self, a):
        return np.asarray(self.keras.ops.convert_to_numpy(a))

    def is_diagonal(self, value):
        """Whether a large matrix has one number on its diagonal, and another elsewhere, as those of ops.eye."""
        if value.ndim != 2 or value.size < LARGE or value.shape[0] != value.shape[1]:
            return False
        return np.array_equal(value, np.where(np.eye(len(value), dtype=bool), value[0, 0], value[0, 1]))

    def diagonal(self, value):
        """It is made of places, for the file of the graph has each number of a constant."""
        key = len(value), value[0, 0].item(), value[0, 1].item(), value.dtype.name
        if key not in self.diagonals:
            ops, n = self.keras.ops, len(value)
            places = self.with_rows(np.arange(n, dtype="float32"))
            equal = ops.equal(ops.reshape(places, (-1, n, 1)), ops.reshape(places, (-1, 1, n)))
            number = "int32" if value.dtype == bool else value.dtype.name
            on, off = (ops.cast(x, number) for x in key[1:3])
            self.diagonals[key] = ops.cast(ops.where(equal, on, off), value.dtype.name)
        return self.diagonals[key]

    def first_number(self):
        """[rows], real: whole numbers may be too large for one."""
        real = [t for t in self.new.values() if self.keras.backend.is_float_dtype(t.dtype)]
        return a_number_of_each_row(real[0])

    def aligned(self, a, rank):
        """A tensor with rows, as it is broadcast to so many dims behind them."""
        if not self.is_tensor(a) and np.ndim(a) == 2 and self.is_diagonal(self.value_of(a)):
            a = self.diagonal(self.value_of(a))
        if not self.is_tensor(a) or len(a.shape) == rank + 1:
            return a
        return self.keras.ops.reshape(a, (-1, *(1,) * (rank + 1 - len(a.shape)), *a.shape[1:]))

    # ---- operations ------------------------------------------------------------------------------

    def lifted(self, node):
        operation, name, out = node.operation, type(node.operation).__name__, node.outputs[0]
        args, kwargs = self.keras.tree.map_structure(self.now, (node.arguments.args, node.arguments.kwargs))
        ops, shape = self.keras.ops, tuple(out.shape)
        if isinstance(operation, self.keras.layers.Layer):
            self.refuse(f"'{operation.name}' is called on the whole batch")
        if name == "ConvertToTensor":
            return ops.cast(args[0], out.dtype)
        if name in EACH:
            at = lambda a: self.aligned(a, len(shape))
            return operation(*map(at, args), **{k: at(v) for k, v in kwargs.items()})
        if name in RESHAPES:
            return ops.reshape(args[0], (-1, *shape))
        if name in PRODUCTS:
            return self.product(operation, node.arguments.args, args)
        if name in BESIDE:
            return operation(*map(self.with_rows, args), **kwargs)
        if name == "Transpose":
            axes = operation.axes or range(len(shape))[::-1]
            return ops.transpose(args[0], (0, *(a % len(shape) + 1 for a in axes)))
        if name == "BroadcastTo":
            return self.broadcast(args[0], shape)
        if name == "GetItem":
            key = tuple(args[1]) if isinstance(args[1], (list, tuple)) else (args[1],)
            return args[0][(slice(None), *key)]
        if name == "Slice":
            key = [slice(int(at), int(at) + n) for at, n in zip(args[1], shape)]
            return args[0][(slice(None), *key)]
        if name == "Tile":
            times = np.ravel(operation.repeats).tolist()
            x = self.aligned(args[0], len(shape))
            return ops.tile(x, (1, *(1,) * (len(shape) - len(times)), *times))
        if name == "Take" and self.is_tensor(args[1]):
            return self.rows_at(operation, args[0], args[1], shape)
        if name in ("Concatenate", "Stack"):
            args = ([self.with_rows(a) for a in args[0]], *args[1:])
        return self.along(operation, name, len(node.arguments.keras_tensors[0].shape), args, kwargs)

    def along(self, operation, name, rank, args, kwargs):
        """An operation along some dims of a tensor of that rank, or none."""
        config = {k: v for k, v in operation.get_config().items() if k not in ("name", "dtype")}
        for key in AXES.get(name, ("axis",) if "axis" in config else ()):
            config[key] = self.behind(name, config[key], rank)
        if name == "Norm" and config.get("axis") is None:
            self.refuse("a Norm of all numbers: say along which axis, or take the square root of a sum")
        return type(operation)(**config)(*args, **kwargs)

    def behind(self, name, axis, rank):
        """The same dims where there is one more in front."""
        if axis is None and name in OVER_ALL:
            return list(range(1, rank + 1))
        if axis is None and name != "Norm":
            self.refuse(f"a {name} of all numbers in one dim")
        if isinstance(axis, (list, tuple)):
            return [self.behind(name, a, rank) for a in axis]
        return axis if axis is None or axis < 0 else int(axis) + 1

    def broadcast(self, x, shape):
        ops, real = self.keras.ops, self.aligned(x, len(shape))
        number = ops.cast(real, "int32") if real.dtype == "bool" else real
        return ops.cast(number + np.zeros((1, *shape), number.dtype), real.dtype)

    def rows_at(self, operation, x, places, shape):
        """Elements of the first dim, at places that the batch gives."""
        if operation.axis not in (0, -len(x.shape) + 1) or len(places.shape) != 2:
            self.refuse("a Take of several dims, or along another dim than the first")
        ops, rest = self.keras.ops, (1,) * (len(shape) - 1)
        places = self.broadcast(ops.reshape(places, (-1, shape[0], *rest)), shape)
        return ops.take_along_axis(self.with_rows(x), places, axis=1)

    def product(self, operation, old, operands):
        ranks = [len(np.shape(a)) for a in old]
        name, operands = type(operation).__name__, [self.with_rows(a) for a in operands]
        if name == "Matmul" and ranks[0] == ranks[1] >= 2:
            return self.keras.ops.matmul(*operands)
        found = (["x", "y"], "xy") if name == "Outer" and ranks == [1, 1] else None
        terms, result = found or terms_of(operation, ranks) or self.refuse(f"this {name} is not understood")
        row = next(x for x in "zyxwvutsrqponmlkjihgfedcba" if x not in "".join(terms))
        return self.keras.ops.einsum(f"{','.join(row + t for t in terms)}->{row}{result}", *operands)
