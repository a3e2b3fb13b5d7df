"""Weights that layers of the caller's own classes have by add_weight, as weights of Keras's layers.

While such a `call` is traced, a symbolic tensor stands for each of them, so the graph has tensors without
rows, which no Functional model has. Then the graph is made anew: a product of rows by a weight becomes a
Dense, an EinsumDense, a convolution or an Embedding that has the caller's variable. For any other use the
weight is there once for each row, from a layer of ones, and what is computed of weights alone is computed
for each row."""

import contextlib
from string import ascii_lowercase as LETTERS

import numpy as np

from . import _masks
from ._branches import in_order, node_of, nodes_behind

MANY = 1 << 16  # numbers of a weight: a product by as many in each row is slow

# Operations that take each number for itself; several tensors are broadcast.
EACH = set("""Absolute Add Cast Ceil Clip Cos Divide DivideNoNan Elu Equal Erf Exp Expm1 Floor FloorDivide
Gelu Greater GreaterEqual HardSigmoid HardSilu HardTanh LeakyRelu Less LessEqual Log Log10 Log1p Log2
LogSigmoid LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Multiply Negative NotEqual Power Reciprocal
Relu Relu6 Round Rsqrt Selu Sigmoid Sign Silu Sin Softplus Softsign Sqrt Square StopGradient Subtract Tan
Tanh TrueDivide Where""".split())
PRODUCTS = {"Matmul", "Dot", "Einsum", "Tensordot"}
RESHAPES = {"Reshape", "Squeeze", "ExpandDims", "Ravel"}
ALONG = {"Softmax", "LogSoftmax", "Sum", "Mean", "Max", "Min", "Prod", "Std", "Var", "Logsumexp", "Norm"}
# Layers that compute the same for each row, of one tensor, and of several.
OF_ONE = {"Activation", "Dense", "Identity", "LayerNormalization", "ReLU", "RMSNormalization"}
OF_SEVERAL = set("""Add Attention Average Concatenate GroupedQueryAttention Maximum Minimum
MultiHeadAttention Multiply Subtract""".split())


class TwoUses(Exception):
    """No layer of its own can hold this variable for a product: it is used otherwise, too."""

    def __init__(self, variable, *uses):
        self.variable, self.uses = variable, set(uses)


class Alone:
    """What is computed of weights alone: a tensor of `shape`. rows(): the same for each row. variable: the
    weight that it is, whose dims are in the order of `axes`; None if it is no weight as it stands."""

    def __init__(self, layer, shape, make, variable=None, axes=None):
        self.layer, self.shape, self.make = layer, tuple(shape), make
        self.variable, self.axes, self.made = variable, axes, None

    def rows(self):
        if self.made is None:
            self.made = self.make()
        return self.made


@contextlib.contextmanager
def shown_as(layer, tensor):
    """tensor(v) in place of each variable that a layer has as an attribute, or in a list or dict that is one. Gives
    a function that puts tensors there anew."""
    own = {id(v) for v in (*layer._trainable_variables, *layer._non_trainable_variables)}
    lists = [v for k, v in vars(layer).items() if isinstance(v, (list, dict)) and not k.startswith("_")]
    places = []
    for holder in (vars(layer), *lists):
        items = list(holder.items() if isinstance(holder, dict) else enumerate(holder))
        places += [(holder, key, v) for key, v in items if id(v) in own]

    def put(of):
        for holder, key, v in places:
            (dict if isinstance(holder, dict) else list).__setitem__(holder, key, of(v))

    put(tensor)
    try:
        yield lambda: put(tensor)
    finally:
        put(lambda v: v)


class StandIns:
    """Symbolic tensors that stand for variables of the caller's own layers while their `call` runs. Whole numbers
    and truth values are constants of the graph."""

    def __init__(self, keras, refuse):
        self.keras, self.refuse = keras, refuse
        self.known = {}  # by id of the variable: the tensor, the variable, its layer
        self.embeddings = []  # of Keras's Embeddings: the tensor, the variable, the layer
        self.lookups = {}  # by id of an Embedding whose variable is known: the variable

    @contextlib.contextmanager
    def of(self, layer):
        real = self.keras.backend.is_float_dtype
        numbers = self.keras.ops.convert_to_tensor
        with shown_as(layer, lambda v: self.tensor(layer, v) if real(v.dtype) else numbers(v)):
            yield

    @contextlib.contextmanager
    def of_embeddings(self, model):
        """Where a `call` takes the table of an Embedding for itself, as for logits, it gets a tensor."""
        for layer in model._flatten_layers():
            v = vars(layer).get("_embeddings")
            if type(layer) is self.keras.layers.Embedding and isinstance(v, self.keras.Variable):
                self.embeddings.append((self.input(layer, v), v, layer))
        self.put_tensors(True)
        try:
            yield
        finally:
            self.put_tensors(False)

    def put_tensors(self, there):
        """There, or the tables themselves, as while a layer of Keras is called."""
        for tensor, v, layer in self.embeddings:
            vars(layer)["_embeddings"] = tensor if there else v

    def used(self, outputs):
        """Whether a stand-in is in the graph of these outputs."""
        nodes = nodes_behind(self.keras, self.keras.tree.flatten(outputs))
        for tensor, v, layer in self.embeddings:
            if id(node_of(tensor)) in nodes:
                self.known[id(v)] = tensor, v, layer
                self.lookups[id(layer)] = v
        return bool(self.known)

    def input(self, layer, v):
        dtype = layer.compute_dtype if getattr(v, "_autocast", True) else v.dtype
        name = f"weight_{len(self.known) + len(self.embeddings)}"
        return self.keras.Input(batch_shape=v.shape, dtype=dtype, name=name)

    def tensor(self, layer, v):
        if id(v) not in self.known:
            self.known[id(v)] = self.input(layer, v), v, layer
        return self.known[id(v)][0]


def give(layer, attribute, variable):
    """A built layer gets this variable in place of the one it has made."""
    layer._untrack_variable(getattr(layer, attribute))
    layer._tracker.unlock()
    setattr(layer, attribute, variable)
    layer._tracker.lock()


def give_all(keras, made, layer):
    """A built layer of the same class gets all variables of `layer`."""
    for name, v in list(vars(layer).items()):
        if isinstance(v, keras.Variable):
            give(made, name, v)
    made.trainable = layer.trainable


def a_number_of_each_row(t):
    while len(t.shape) > 1:
        t = t[:, 0]
    return t


def terms_of(operation, ranks):
    """The product of tensors of these ranks in the letters of einsum: a term for each, and the result's.
    None: it cannot be said so."""
    name = type(operation).__name__
    if name == "Einsum":
        return einsum_terms(operation.subscripts.replace(" ", ""), ranks)
    first, second = ranks
    if name == "Tensordot":
        axes = operation.axes
        if isinstance(axes, int):
            axes = range(first - axes, first), range(axes)
        a, b = LETTERS[:first], list(LETTERS[first : first + second])
        summed = list(zip(*(np.ravel(x).tolist() for x in axes)))
        for i, j in summed:
            b[j] = a[i]
        out = [x for x in (*a, *b) if (*a, *b).count(x) == 1]
        return [a, "".join(b)], "".join(out)
    if not first or not second or (name == "Dot" and second > 2):
        return None
    stacks = LETTERS[: max(first, second, 2) - 2]
    a = stacks[len(stacks) - max(first - 2, 0) :] + "xz"[first < 2 :]
    b = stacks[len(stacks) - max(second - 2, 0) :] + "zy"[: min(second, 2)]
    return [a, b], stacks + "x" * (first > 1) + "y" * (second > 1)


def einsum_terms(subscripts, ranks):
    left, arrow, out = subscripts.partition("->")
    terms = left.split(",")
    if not arrow or len(terms) != len(ranks):
        return None
    spare = [x for x in LETTERS if x not in subscripts]
    for i, term in enumerate(terms):
        more = ranks[i] - len(term.replace("...", ""))
        terms[i] = term.replace("...", "".join(spare[len(spare) - more :]) if more else "")
    more = max((ranks[i] - len(t.replace("...", "")) for i, t in enumerate(left.split(","))), default=0)
    return terms, out.replace("...", "".join(spare[len(spare) - more :]) if more else "")


class Graph:
    """The graph made anew. by_rows: ids of variables that no layer may hold for a product. tied: ids of tables
    that are looked up, and multiply rows for logits."""

    def __init__(self, keras, root, stand_ins, by_rows, tied):
        self.keras, self.root, self.stand_ins, self.by_rows = keras, root, stand_ins, by_rows
        self.tied = tied
        self.refuse = stand_ins.refuse
        self.new = {}  # by id of a tensor of the old graph: a tensor with rows, or Alone
        self.of_variable = {}  # by its id: Alone
        self.holders = {}  # by id of a variable: what its layer is for, and the layer
        self.biases = {}  # by id of a product: the weight that is added to it, and the sum
        self.many = set()  # paths of weights that are slow as they are used
        for tensor, v, layer in stand_ins.known.values():
            weight = Alone(layer, v.shape, lambda v=v: self.in_each_row(v), v, list(range(len(v.shape))))
            self.new[id(tensor)] = self.of_variable[id(v)] = weight

    def outputs(self, outputs):
        tree = self.keras.tree
        nodes = [n for n in in_order(self.keras, tree.flatten(outputs)) if not n.is_input]
        self.find_biases(nodes, tree.flatten(outputs))
        for node in nodes:
            self.renew(node)
        return tree.map_structure(self.with_rows, outputs)

    def with_rows(self, t):
        t = self.now(t)
        if isinstance(t, Alone):
            self.refuse(t.layer, "an output is computed of its weights alone")
        return t

    def now(self, t):
        if isinstance(t, self.keras.Variable):
            return self.of_variable.get(id(t), t)
        return self.new.get(id(t), t) if self.is_tensor(t) else t

    def is_tensor(self, t):
        return isinstance(t, self.keras.KerasTensor)

    def find_biases(self, nodes, outputs):
        uses, products = {}, {}
        for t in outputs:
            uses[id(t)] = uses.get(id(t), 0) + 1
        for node in nodes:
            for t in node.arguments.keras_tensors:
                uses[id(t)] = uses.get(id(t), 0) + 1
            if type(node.operation).__name__ in PRODUCTS | {"Conv"}:
                products[id(node.outputs[0])] = node.outputs[0]
        for node in nodes:
            args = node.arguments.args
            if type(node.operation).__name__ == "Add" and len(args) == 2:
                for t, b in (args, args[::-1]):
                    b = self.now(b)
                    found = isinstance(b, Alone) and b.variable is not None and id(t) in products
                    if found and uses[id(t)] == 1 and b.shape == (t.shape[-1],):
                        self.biases[id(t)] = b.variable, node.outputs[0]

    def renew(self, node):
        tree = self.keras.tree
        if id(node.outputs[0]) in self.new:  # a product has added this bias already
            return
        old = node.arguments.args, node.arguments.kwargs
        args, kwargs = tree.map_structure(self.now, old)
        values = tree.flatten((args, kwargs))
        if id(node.operation) in self.stand_ins.lookups:
            self.new[id(node.outputs[0])] = self.lookup(node.operation, *args, **kwargs)
            return
        if all(a is b for a, b in zip(values, tree.flatten(old))):
            return
        if any(isinstance(a, Alone) for a in values):
            out = self.of_weights(node, args, kwargs, values)
        else:
            out = node.operation(*args, **kwargs)
        for t, now in zip(node.outputs, tree.flatten(out)):
            self.new[id(t)] = now

    def of_weights(self, node, args, kwargs, values):
        operation, name, out = node.operation, type(node.operation).__name__, node.outputs[0]
        weights = [a for a in values if isinstance(a, Alone)]
        alone = not any(self.is_tensor(a) for a in values)
        layer = weights[0].layer
        if isinstance(operation, self.keras.layers.Layer):
            return self.of_layer(operation, args, kwargs, weights, alone, out)
        if name in EACH:
            # a result with rows has as many dims as it had
            at = lambda a: self.aligned(a, len(out.shape) + alone)
            new = operation(
                *self.keras.tree.map_structure(at, args), **self.keras.tree.map_structure(at, kwargs)
            )
            return Alone(layer, out.shape, lambda: new) if alone else new
        if name in PRODUCTS:
            return self.product(operation, args, alone, out)
        if name == "Conv" and self.is_free(args[1]) and self.is_tensor(args[0]):
            return self.convolution(operation, *args, out)
        if name == "Take" and operation.axis == 0 and self.is_free(args[0]) and self.is_tensor(args[1]):
            if len(args[0].shape) == 2:
                return self.embedding(args[0].variable)(args[1])
        if name == "ConvertToTensor" and operation.dtype in (None, out.dtype) and alone:
            return args[0]
        if alone:
            order = self.order_of(operation, name, len(args[0].shape)) if isinstance(args[0], Alone) else None
            make = self.maker(operation, name, args, order, out.shape)
            if make and order and args[0].variable is not None:
                return Alone(layer, out.shape, make, args[0].variable, [args[0].axes[a] for a in order])
            if make:
                return Alone(layer, out.shape, make)
        self.refuse(layer, f"its own weights are used in {name}")

    # ---- weights alone ---------------------------------------------------------------------------

    def order_of(self, operation, name, rank):
        """How an operation turns dims, or None."""
        dims = np.broadcast_to(0, range(2, 2 + rank))  # told apart by their sizes
        if name == "Transpose":
            dims = np.transpose(dims, operation.axes)
        elif name == "Swapaxes":
            dims = np.swapaxes(dims, operation.axis1, operation.axis2)
        elif name == "Moveaxis":
            dims = np.moveaxis(dims, operation.source, operation.destination)
        else:
            return None
        return [size - 2 for size in dims.shape]

    def maker(self, operation, name, args, order, shape):
        """What makes the result of weights alone for each row, or None."""
        ops, x = self.keras.ops, args[0]
        if order:
            return lambda: ops.transpose(x.rows(), (0, *(1 + a for a in order)))
        if name in ("Concatenate", "Stack") and all(isinstance(a, Alone) for a in x):
            function, axis = getattr(ops, name.lower()), operation.axis
            return lambda: function([a.rows() for a in x], axis=axis if axis < 0 else axis + 1)
        if not isinstance(x, Alone):
            return None
        if name == "Slice":
            key = [slice(int(at), int(at) + n) for at, n in zip(args[1], shape)]
            return lambda: x.rows()[(slice(None), *key)]
        if name in RESHAPES:
            return lambda: ops.reshape(x.rows(), (-1, *shape))
        if name == "BroadcastTo":
            return lambda: self.aligned(x, len(shape) + 1) * np.ones((1, *shape), x.rows().dtype)
        if name == "GetItem":
            key = tuple(args[1]) if isinstance(args[1], (list, tuple)) else (args[1],)
            return lambda: x.rows()[(slice(None), *key)]
        if name == "Take" and operation.axis is not None:
            return lambda: ops.take(x.rows(), args[1], axis=operation.axis % len(x.shape) + 1)
        if name == "Repeat" and operation.axis is not None:
            return lambda: ops.repeat(x.rows(), operation.repeats, axis=operation.axis % len(x.shape) + 1)
        if name == "Tile" and np.size(operation.repeats) == len(x.shape):
            return lambda: ops.tile(x.rows(), (1, *np.ravel(operation.repeats).tolist()))
        if name in ("Triu", "Tril"):
            return lambda: operation(x.rows())
        if name in ALONG and x.shape and getattr(operation, "initial", None) is None:
            return lambda: self.along(operation, name, x)
        return None

    def along(self, operation, name, x):
        function = getattr(self.keras.ops, {"LogSoftmax": "log_softmax"}.get(name, name.lower()))
        axis = range(len(x.shape)) if operation.axis is None else np.ravel(operation.axis).tolist()
        axis = [a % len(x.shape) + 1 for a in axis]
        options = {k: getattr(operation, k) for k in ("keepdims", "ord") if hasattr(operation, k)}
        return function(x.rows(), axis=axis[0] if len(axis) == 1 else tuple(axis), **options)

    def aligned(self, a, rank):
        """With rows, and as many dims as the tensors that it is computed with."""
        if self.is_tensor(a) and len(a.shape) not in (0, rank):
            self.refuse(a._keras_history.operation, "rows are beside another dim than rows")
        if not isinstance(a, Alone):
            return a
        shape = a.shape[1:] if len(a.shape) == rank and a.shape[0] == 1 else a.shape
        if len(shape) >= rank:
            self.refuse(a.layer, f"of its weights, dim {a.shape[0]} would be that of rows")
        if len(a.shape) == rank - 1:
            return a.rows()
        return self.keras.ops.reshape(a.rows(), (-1, *(1,) * (rank - 1 - len(shape)), *shape))

    # ---- with rows -------------------------------------------------------------------------------

    def product(self, operation, operands, alone, out):
        layer = next(a.layer for a in operands if isinstance(a, Alone))
        name, ops = type(operation).__name__, self.keras.ops
        found = terms_of(operation, [len(np.shape(a)) for a in operands])
        if not found:
            self.refuse(layer, f"this {name} of its weights is not understood")
        terms, result = found
        rows = {t[:1] for t, a in zip(terms, operands) if self.is_tensor(a)} or {
            next(x for x in LETTERS if x not in "".join(terms))
        }
        row = rows.pop()
        operands = list(operands)
        for i, (a, t) in enumerate(zip(operands, terms)):
            if isinstance(a, Alone) and t[:1] == row and a.shape[0] == 1:
                operands[i], terms[i] = self.without_first(a), t[1:]
        wrong = row in "".join(t[1:] if self.is_tensor(a) else t for t, a in zip(terms, operands))
        if rows or wrong or (not alone and result[:1] != row):
            self.refuse(layer, f"its weights mix rows in a {name}")
        sizes = {}
        for a, t in zip(operands, terms):
            for letter, size in zip(t, np.shape(a)):
                if sizes.setdefault(letter, size) != size:
                    self.refuse(layer, f"a {name} of its weights broadcasts a dim")
        if not alone and len(operands) == 2:
            x, w = (0, 1) if self.is_tensor(operands[0]) else (1, 0)
            if self.is_free(operands[w]) and is_held(terms[x], terms[w], result):
                return self.dense(operands[x], operands[w], terms[x], terms[w], result, out)
        for a in operands:
            if isinstance(a, Alone) and np.prod(a.shape) > MANY:
                self.many.add(a.layer.name)
        terms = [row + t if isinstance(a, Alone) else t for t, a in zip(terms, operands)]
        equation = f"{','.join(terms)}->{row * alone}{result}"
        new = ops.einsum(equation, *(a.rows() if isinstance(a, Alone) else a for a in operands))
        return Alone(layer, out.shape, lambda: new) if alone else new

    def embedding(self, v):
        layers, tied = self.keras.layers, id(v) in self.tied
        form = layers.ReversibleEmbedding if tied else layers.Embedding
        make = lambda v: self.layer_of(form, v, (None,), *v.shape, role="embeddings")
        return self.held(v, "both ways" if tied else "Embedding", make)

    def lookup(self, layer, ids):
        """The call of an Embedding whose table is used otherwise, too."""
        if layer.activity_regularizer is not None:
            self.refuse(layer, "its table is used otherwise, too, and it has an activity_regularizer")
        v = self.stand_ins.lookups[id(layer)]
        if id(v) in self.by_rows:
            self.refuse(layer, "its table is used otherwise, too, and not for logits of the same ids")
        mask = self.keras.ops.not_equal(ids, 0) if layer.mask_zero else None
        return _masks.marked(self.keras, self.embedding(v)(ids), mask)

    def without_first(self, a):
        shape = a.shape[1:]
        return Alone(a.layer, shape, lambda: self.keras.ops.reshape(a.rows(), (-1, *shape)))

    def is_free(self, a):
        """Whether a layer may hold it."""
        return isinstance(a, Alone) and a.variable is not None and id(a.variable) not in self.by_rows

    def dense(self, x, weight, term, weight_term, result, out):
        own = "".join(letter for _, letter in sorted(zip(weight.axes, weight_term)))
        layers = self.keras.layers
        x = _masks.unmarked(self.keras, x)
        if id(weight.variable) in self.tied and own == result[-1] + term[-1] and term[:-1] == result[:-1]:
            return self.embedding(weight.variable)(x, reverse=True)
        if own == term[-1] + result[-1] and term[:-1] == result[:-1]:
            make = lambda v, **bias: self.layer_of(layers.Dense, v, x.shape, v.shape[1], **bias)
            return self.biased(weight.variable, "Dense", make, x, out)
        shape = [d if d else None for d in out.shape[1:]]
        equation = f"{term},{own}->{result}"
        make = lambda v: self.layer_of(layers.EinsumDense, v, x.shape, equation, output_shape=shape)
        return self.held(weight.variable, equation, make)(x)

    def convolution(self, operation, x, kernel, out):
        v, x = kernel.variable, _masks.unmarked(self.keras, x)
        form = self.keras.layers, f"Conv{len(v.shape) - 2}D"
        names = "strides", "padding", "data_format", "dilation_rate"
        options = {name: getattr(operation, name) for name in names}
        first = options["data_format"] == "channels_first"
        groups = x.shape[1 if first else -1] // v.shape[-2]
        if not hasattr(*form) or (first and id(out) in self.biases):
            self.refuse(kernel.layer, "this Conv of its weights is not understood")
        make = lambda v, **bias: self.layer_of(
            getattr(*form), v, x.shape, v.shape[-1], v.shape[:-2], groups=groups, **options, **bias
        )
        return self.biased(v, f"{form[1]} {options}", make, x, out)

    def biased(self, variable, use, make, x, out):
        """A layer of this weight, which adds the one that the graph adds behind."""
        bias, total = self.biases.get(id(out), (None, None))
        like = lambda v: (v.trainable, self.policy(v).name)
        if bias is None or id(bias) in self.by_rows or like(bias) != like(variable):
            return self.held(variable, use, lambda v: make(v, use_bias=False))(x)
        layer = self.held(variable, f"{use} and {id(bias)}", lambda v: make(v, bias=bias))
        self.held(bias, f"of {id(variable)}", lambda v: layer)
        self.new[id(total)] = layer(x)
        return self.new[id(total)]

    def held(self, variable, use, make):
        """The only layer that has this variable."""
        if id(variable) not in self.holders:
            self.holders[id(variable)] = use, make(variable)
        if self.holders[id(variable)][0] != use:
            raise TwoUses(variable, use, self.holders[id(variable)][0])
        return self.holders[id(variable)][1]

    def policy(self, v):
        tensor, _, layer = self.stand_ins.known[id(v)]
        same = tensor.dtype == v.dtype
        return self.keras.DTypePolicy(tensor.dtype) if same else layer.dtype_policy

    def layer_of(self, layer_class, v, input_shape, *args, role="kernel", bias=None, **options):
        """A layer whose weight is the caller's variable."""

        def of(v, role):
            options[f"{role}_regularizer"], options[f"{role}_constraint"] = v.regularizer, v.constraint
            options[f"{role}_initializer"] = "zeros"

        of(v, role)
        if bias is not None:
            of(bias, "bias")
        name = f"own_{len(self.holders)}_{v.name}".replace("/", "_")
        layer = layer_class(*args, **options, dtype=self.policy(v), name=name)
        layer.build(input_shape)
        give(layer, role if role == "alpha" else f"_{role}", v)
        if bias is not None:
            give(layer, "bias", bias)
        layer.trainable = v.trainable
        return layer

    def in_each_row(self, v):
        """[rows, *shape of the weight]"""
        ops, layers = self.keras.ops, self.keras.layers
        ones = ops.cast(ops.ones_like(a_number_of_each_row(self.root)), "float32")
        if len(v.shape) == 0:  # no EinsumDense has a weight without dims
            minus = lambda v: self.layer_of(layers.PReLU, v, ones.shape, role="alpha")
            return -self.held(v, "rows", minus)(-ones)
        letters = LETTERS[1 : 1 + len(v.shape)]
        equation = f"a,{letters}->a{letters}"
        make = lambda v: self.layer_of(layers.EinsumDense, v, ones.shape, equation, output_shape=v.shape)
        return self.held(v, "rows", make)(ones)

    def of_layer(self, layer, args, kwargs, weights, alone, out):
        name = type(layer).__name__
        owner = weights[0].layer
        drops = getattr(layer, "dropout", 0) or getattr(layer, "_dropout", 0)
        if name not in OF_ONE | OF_SEVERAL or drops:
            self.refuse(owner, f"its own weights go through '{layer.name}', a {name}")
        tree = self.keras.tree
        if alone and name in OF_ONE and weights[0].shape[:1] != (1,):
            new = layer(weights[0].rows())
            return Alone(owner, out.shape, lambda: new)
        at = lambda a: self.aligned(a, len(a.shape)) if isinstance(a, Alone) else a
        return layer(*tree.map_structure(at, args), **tree.map_structure(at, kwargs))


def is_held(term, weight, result):
    """Whether an EinsumDense computes it: each letter once in a term, none summed in one term alone."""
    both, once = set(term) & set(weight), all(len(set(t)) == len(t) for t in (term, weight, result))
    return once and all(x in both or x in result for x in term + weight)


def graph_with_rows(keras, outputs, root, stand_ins):
    """The outputs of a graph that computes the same, and the names of layers which are slow in it."""
    tables = [v for v in stand_ins.lookups.values() if hasattr(keras.layers, "ReversibleEmbedding")]
    by_rows, tied = set(), {id(v) for v in tables}
    while True:
        graph = Graph(keras, root, stand_ins, by_rows, tied)
        try:
            return graph.outputs(outputs), graph.many
        except TwoUses as error:
            table = error.uses & {"Embedding"} and hasattr(keras.layers, "ReversibleEmbedding")
            (tied if table else by_rows).add(id(error.variable))
