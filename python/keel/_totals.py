"""One number for a batch that is computed of sums over all of its rows: a ratio of two sums, an overlap.

The graph of such a function is parted at its sums over rows: what is added up is a term of each row, and
what follows is a list of steps from the totals to the number (src/losses/totals.h)."""

import numpy as np

from ._branches import node_of, nodes_behind

CLASS = "KeelTotals"
STEPS = {"Add": "add", "Subtract": "subtract", "Multiply": "multiply", "Divide": "divide", "TrueDivide": "divide",
         "DivideNoNan": "divide_no_nan", "Power": "power", "Maximum": "maximum", "Minimum": "minimum",
         "Negative": "negative", "Absolute": "absolute", "Abs": "absolute", "Square": "square", "Sqrt": "sqrt",
         "Exp": "exp", "Log": "log", "Log1p": "log1p", "StopGradient": "stop_gradient"}  # fmt: skip
SAME = {"Cast", "Reshape", "Squeeze", "ExpandDims", "Ravel", "Identity"}
COMPUTED = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power,
    "divide_no_nan": lambda a, b: np.where(b == 0, 0, a / np.where(b == 0, 1, b)), "maximum": np.maximum,
    "minimum": np.minimum, "negative": np.negative, "absolute": np.abs, "square": np.square, "sqrt": np.sqrt,
    "exp": np.exp, "log": np.log, "log1p": np.log1p, "stop_gradient": lambda a: a, "sum": np.sum,
}  # fmt: skip


class Totals:
    """`steps` end in the number that the tensor `t` is, and `terms` is a tensor [rows, numbers]."""

    def __init__(self, keras, t, refuse):
        self.keras, self.refuse = keras, refuse
        self.steps, self.parts, self.known = [], [], {}  # known: by id of a tensor, its step
        self.place(t)
        if not self.parts:
            refuse("it is not computed of the rows")
        self.terms = keras.ops.concatenate(self.parts, axis=-1) if len(self.parts) > 1 else self.parts[0]

    def step(self, *step):
        self.steps.append(list(step))
        return len(self.steps) - 1

    def place(self, t):
        """The number of the step that gives `t`, which has no rows."""
        if not isinstance(t, self.keras.KerasTensor):
            if np.size(t) != 1:
                self.refuse("it has constants of several numbers behind its sums over rows")
            return self.step("number", float(np.ravel(t)[0]))
        if id(t) not in self.known:
            self.known[id(t)] = self.of_node(t, node_of(t))
        return self.known[id(t)]

    def of_node(self, t, node):
        args, operation, name = node.arguments.args, node.operation, type(node.operation).__name__
        if name in ("Sum", "Mean"):
            rank = len(args[0].shape)
            axes = range(rank) if operation.axis is None else np.ravel(operation.axis).tolist()
            axes = sorted(a % rank for a in axes)
            return (
                self.total(t, args[0], axes, name)
                if self.has_rows(args[0])
                else self.added(args[0], axes, name)
            )
        if t.shape[:1] == (None,) or node.is_input:
            self.refuse("it gives one number for a batch, but not of sums over its rows")
        if name in SAME:
            return self.place(args[0])
        if name not in STEPS:
            of_rows = any(self.has_rows(a) for a in node.arguments.keras_tensors)
            what = f"{name} over its rows" if of_rows else f"{name} of sums over its rows"
            self.refuse(f"it gives one number for a batch, and {what} is not understood")
        wide = {np.prod(a.shape) for a in args if isinstance(a, self.keras.KerasTensor)} - {1}
        if len(wide) > 1:
            self.refuse(f"sums over rows of several shapes meet in a {name}")
        return self.step(STEPS[name], *map(self.place, args))

    def has_rows(self, t):
        return t.shape[:1] == (None,)

    def total(self, t, x, axes, name):
        """A sum over rows, and other dims."""
        ops, within = self.keras.ops, axes[1:]
        if axes[0] != 0:
            self.refuse(f"a {name} keeps rows of what it gives one number for")
        for node in nodes_behind(self.keras, [x]).values():
            if not node.is_input and not self.has_rows(node.outputs[0]):
                self.refuse("it gives one number for a batch, and compares rows with sums over them")
        if name == "Mean" and any(x.shape[a] is None for a in within):
            x = ops.mean(x, axis=tuple(within))
            within = []
        terms = ops.sum(x, axis=tuple(within)) if within else x
        if any(d is None for d in terms.shape[1:]):
            self.refuse("its sums over rows are of a number that is not known")
        first = sum(p.shape[-1] for p in self.parts)
        self.parts.append(ops.reshape(terms, (-1, int(np.prod(terms.shape[1:])))))
        step = self.step("term", first, self.parts[-1].shape[-1])
        if name == "Sum":
            return step
        step = self.step("divide", step, self.step("rows"))
        return self.step("divide", step, self.step("number", float(np.prod([x.shape[a] for a in within]))))

    def added(self, x, axes, name):
        """Numbers of several sums, added up."""
        if len(axes) < len([d for d in x.shape if d != 1]):
            self.refuse(f"its sums over rows have several dims, of which a {name} adds up some")
        step = self.step("sum", self.place(x))
        if name == "Sum":
            return step
        return self.step("divide", step, self.step("number", float(np.prod(x.shape))))

    def number(self, terms):
        """Of an array of terms, as libkeel computes it."""
        totals, found = terms.sum(axis=0), []
        for name, *of in self.steps:
            if name == "term":
                found.append(totals[of[0] : of[0] + of[1]])
            elif name in ("number", "rows"):
                found.append(np.array(of if of else [len(terms)], "float64"))
            else:
                found.append(np.atleast_1d(COMPUTED[name](*(found[i] for i in of))))
        return found[-1][0]
