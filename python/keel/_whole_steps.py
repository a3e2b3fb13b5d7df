"""A step of the caller's that sees its batch whole, because it compares rows with each other, or reads weights.

It gets symbolic tensors with a known number of rows. Layers that it calls are groups of rows as in any step
(_steps.py): for each tensor that it has of them there is one without that number. What it computes itself is of
the whole batch: losses are those of all rows together, which libkeel computes once for all devices."""

import numpy as np

from ._branches import in_order, made_of, node_of, nodes_behind
from ._folds import has_rows
from ._masks import mask_of
from ._means import values_of_rows
from ._steps import GRAD, Group, Steps
from ._weights import shown_as

# Operations along a dim that give each place something of others.
MIXING = set("""All Any Argmax Argmin Argsort Cumprod Cumsum Flip Logsumexp LogSoftmax Max Mean Min Norm Normalize
Prod Repeat Roll Softmax Sort Split Std Sum Take TakeAlongAxis Unstack Var""".split())  # fmt: skip


COPIES = 1 << 24  # numbers of a weight in all rows


def mixes_rows(node):
    """Whether an operation on tensors of a whole batch may give a row something of others."""
    operation, name = node.operation, type(node.operation).__name__
    if name == "GetItem":
        return first_key(node) != slice(None)
    if node.is_input or name not in MIXING:
        return name in ("Diagonal", "Einsum", "Matmul", "Slice", "Tensordot", "Transpose", "Trace")
    axis, rank = getattr(operation, "axis", None), len(node.arguments.keras_tensors[0].shape)
    return axis is None or any(a % rank == 0 for a in np.ravel(axis))


def first_key(node):
    """Of t[key], what is taken of the rows."""
    key = node.arguments.args[1]
    return key[0] if isinstance(key, (list, tuple)) else key


def number_of(a):
    """A constant of a graph, to be compared."""
    if a is None or isinstance(a, (str, int, float, slice)):
        return repr(a)
    value = np.asarray(a)
    return value.shape, value.dtype.name, value.tobytes()


class WholeLoss(Group):
    """A number that a step computes of tensors of the whole batch, which are `leaves`. tensor: as the step has it;
    loss: without what regularizers give."""

    def __init__(self, steps, tensor, loss, penalties):
        super().__init__([], 0, False)
        self.steps, self.tensor, self.loss, self.penalties = steps, tensor, loss, penalties
        self.leaves = steps.leaves_of([loss])
        self.inputs = [steps.input_of(t) for t in self.leaves]


class WholeSteps(Steps):
    def __init__(self, keras, model, function, data):
        self.rows = len(keras.tree.flatten(data)[0])
        self.batch = {}  # by id of an input of the graph: what the step has in its place
        self.of_batch = {}  # and by id of that the input
        self.made = []  # inputs that Keras computes of the data, before a step
        super().__init__(keras, model, function, data)

    def record(self, data):
        real, numbers = self.keras.backend.is_float_dtype, self.keras.ops.convert_to_tensor
        of = lambda v: self.weight_now(v) if real(v.dtype) else numbers(v)
        with shown_as(self.model, of) as self.show_own:
            return super().record(data)

    # ---- what the step has -------------------------------------------------------------------------

    def shown(self, t):
        if id(t) not in self.kinds:  # as of_group gives what layers compute in a narrow type
            return self.keras.ops.cast(self.shown(node_of(t).arguments.args[0]), t.dtype)
        if id(t) not in self.batch:
            rows = self.rows * self.parts_of(t)
            seen = self.keras.Input(batch_shape=(rows, *t.shape[1:]), dtype=t.dtype)
            self.batch[id(t)], self.of_batch[id(seen)] = seen, t
            self.kinds[id(seen)] = self.kinds[id(t)]
        return self.batch[id(t)]

    def parts_of(self, *tensors):
        return super().parts_of(*(self.of_batch.get(id(t), t) for t in tensors))

    def of_loss(self, target, variables=None, tape=None):
        """A tape of TensorFlow gives the gradient of the sum of several numbers."""
        if isinstance(target, self.keras.KerasTensor) and target.shape and tape not in (None, GRAD):
            target = self.keras.ops.sum(target)
        return super().of_loss(target, variables, tape)

    def gradient(self, target, sources, tape):
        """That of a mean over rows, too, with respect to what rows have: each gets its share of it."""
        flat = self.keras.tree.flatten(sources)
        of_rows = all(isinstance(s, self.keras.KerasTensor) for s in flat)
        if not of_rows or not isinstance(target, self.keras.KerasTensor) or target.shape:
            return super().gradient(target, sources, tape)
        means = values_of_rows(self.keras, self.in_rows(target), self.refuse)
        values = super().cut(self.keras.ops.sum(means, axis=tuple(range(1, len(means.shape)))))
        return self.keras.tree.map_structure(lambda x: self.shown(self.share(values, self.cut(x))), sources)

    def share(self, values, x):
        t = self.slope(values, x)
        self.shares.add(id(t))
        return t

    def apply(self, optimizer, gradients, variables):
        super().apply(optimizer, gradients, variables)
        self.show_own()

    def input_of(self, t):
        """The input of the graph for what the step has in its place. A weight is there for each row, of which the
        batch takes the first: so its gradient comes through rows."""
        if id(t) not in self.of_batch:
            _, v, at = self.kinds[id(t)]
            if self.rows * np.prod(v.shape) > COPIES:
                self.refuse(
                    f"it reads '{v.path}', of which there would be {self.rows} copies of {tuple(v.shape)}"
                )
            zeros = self.tracer.zeros(len(v.shape) + 1, v.dtype)
            group = self.group([zeros + self.tracer.stand_ins.tensor(self.model, v)], False)
            moved = [a.stage for a in self.asked[:at] if any(w is v for w in a.variables)]
            group.stage, group.variables = max(moved, default=-1) + 1, {id(v)}
            self.of_batch[id(t)] = self.of_group(group, 0)
        return self.of_batch[id(t)]

    # ---- what layers get -----------------------------------------------------------------------------

    def cut(self, t):
        if not isinstance(t, self.keras.KerasTensor) or has_rows(t):
            return super().cut(t)
        rows = self.cut_rows(t)
        if mask_of(t) is not None and mask_of(rows) is None:
            rows._keras_mask = self.in_rows(mask_of(t))
        return rows

    def cut_rows(self, t):
        if id(t) in self.kinds and self.kinds[id(t)][0] not in ("weight", "penalty"):
            return self.input_of(t)
        if id(t) not in self.cuts:
            self.cuts[id(t)] = t, self.by_rows(t)
        return self.cuts[id(t)][1]

    def by_rows(self, t):
        """The input that stands for a tensor which the step has computed: of rows, each for itself, or of the data
        alone, which Keras then does."""
        nodes = in_order(self.keras, [t])
        leaves = [self.kinds.get(id(n.outputs[0]), ("weight",))[0] for n in nodes if n.is_input]
        if any(mixes_rows(n) for n in nodes) and set(leaves) <= {"data", "drawn"} and len(t.shape):
            parts = self.parts_in(t.shape[0]) or self.refuse("a layer is called on another number of rows")
            self.made.append(self.input(t.shape, t.dtype, "made", t, parts=parts))
            return self.made[-1]
        if set(leaves) & {"weight", "penalty"}:
            self.refuse("a layer is called on what is computed of weights")
        rows = self.in_rows(t)
        if tuple(rows.shape) != (None, *t.shape[1:]):
            self.refuse("a layer is called on what rows do not give each for itself")
        return super().cut(rows)

    def in_rows(self, t):
        """A tensor that the step has computed, for any number of rows."""
        new = {}
        for n in in_order(self.keras, [t]):
            now = lambda a: new.get(id(a)) if isinstance(a, self.keras.KerasTensor) else a
            if n.is_input:
                new[id(n.outputs[0])] = self.input_of(n.outputs[0])
                continue
            args, kwargs = self.keras.tree.map_structure(now, (n.arguments.args, n.arguments.kwargs))
            made = self.again(n, args, kwargs)
            new.update(zip(map(id, n.outputs), self.keras.tree.flatten(made)))
        return new[id(t)]

    def again(self, node, args, kwargs):
        """An operation on any number of rows."""
        name, shape = type(node.operation).__name__, node.outputs[0].shape
        if name == "Concatenate" and node.operation.axis % len(shape) == 0:
            return self.joined(args[0])
        if name == "GetItem" and mixes_rows(node):
            return self.part_of(node, args[0])
        if name == "Split" and mixes_rows(node):
            count = len(node.outputs)
            each = self.parts_of(args[0]) // count
            return [self.parted(args[0], k * each, each) for k in range(count)]
        if name == "Reshape" and (shape[:1] == args[0].shape[:1] or has_rows(args[0])):
            return self.keras.ops.reshape(args[0], (-1, *shape[1:]))
        return node.operation(*args, **kwargs)

    def part_of(self, node, t):
        """t[first:end] of rows that were joined."""
        key, total = first_key(node), self.parts_of(t) * self.rows
        if (
            not isinstance(key, slice)
            or key.step not in (None, 1)
            or len(t.shape) != len(node.outputs[0].shape)
        ):
            self.refuse("a layer is called on rows in another order")
        first, end, _ = key.indices(total)
        if first % self.rows or end % self.rows or node.outputs[0].shape[1:] != t.shape[1:]:
            self.refuse("it takes rows apart elsewhere than where they were joined")
        return self.parted(t, first // self.rows, (end - first) // self.rows)

    def parts_in(self, dim):
        whole = isinstance(dim, int) and dim > 0 and dim % self.rows == 0
        return dim // self.rows if whole else None

    # ---- what it gives -------------------------------------------------------------------------------

    def said(self):
        """What it does, which is the same for any number of rows."""
        return (
            [(self.kinds[id(t)][0], tuple(t.shape), t.dtype) for t in self.inputs],
            [
                (self.said_of_layer(g.layer), g.stage, g.training, self.said_of(g.outputs))
                for g in self.groups
            ],
            [(id(a.optimizer), a.stage, list(map(id, a.variables))) for a in self.asked],
            [(id(u.metric), len(self.keras.tree.flatten((u.args, u.kwargs)))) for u in self.updates],
        )

    def said_of_layer(self, layer):
        """One without weights may be made in the step, and so anew."""
        return id(layer) if getattr(layer, "variables", None) else type(layer)

    def said_of(self, tensors):
        """What a graph of rows computes."""
        places, said = {id(t): ("input", k) for k, t in enumerate(self.inputs)}, []
        now = lambda a: places.get(id(a), "root") if isinstance(a, self.keras.KerasTensor) else number_of(a)
        for n in in_order(self.keras, tensors):
            if n.is_input:
                continue
            if type(n.operation).__name__ == "ConvertToTensor":  # a layer may do so the first time, or not
                places[id(n.outputs[0])] = now(n.arguments.args[0])
                continue
            what = id(n.operation) if getattr(n.operation, "weights", None) else self.config_of(n.operation)
            args = self.keras.tree.flatten(made_of(n))
            said.append((type(n.operation).__name__, what, [now(a) for a in args]))
            places.update({id(t): ("made", len(said), k) for k, t in enumerate(n.outputs)})
        return said

    def config_of(self, operation):
        is_layer = isinstance(operation, self.keras.layers.Layer)
        config = operation.get_config() if is_layer else vars(operation)
        kept = {k: v for k, v in config.items() if not k.startswith("_") and k not in ("name", "seed")}
        return sorted((k, repr(v)) for k, v in kept.items())

    def leaves_of(self, tensors):
        """The inputs behind what the step gives, as it has them: in the same order for any number of rows."""
        found = {id(n.outputs[0]) for n in nodes_behind(self.keras, tensors).values() if n.is_input}
        of_rows = [self.batch[id(t)] for t in self.inputs if id(t) in self.batch]
        return [t for t in (*of_rows, *self.weights.values(), *self.penalties) if id(t) in found]
