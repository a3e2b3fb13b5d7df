"""Terms that a `call` of the caller's adds to the loss, by add_loss."""

import contextlib

from ._branches import node_of, nodes_behind
from ._means import values_of_rows
from ._package_layers import added_loss


def value_of(keras, refuse, layer, term):
    """The term that `layer` adds, for each row."""
    if not isinstance(term, keras.KerasTensor):
        refuse(layer, "it adds a loss that is not computed of its inputs or weights")
    if term.shape:
        refuse(layer, "it adds a loss of several numbers, of which Keras takes the sum: add their mean")
    return values_of_rows(keras, term, lambda why: refuse(layer, f"of a loss that it adds, {why}"))


@contextlib.contextmanager
def collected(keras, tracer):
    """Terms go to the tracer, but for those of Keras's own layers."""
    layer_class, original = keras.layers.Layer, keras.layers.Layer.add_loss

    def add(layer, loss):
        if tracer.inside:
            return original(layer, loss)
        for term in keras.tree.flatten(loss):
            tracer.branches.added.append(value_of(keras, tracer.refuse, layer, term))

    layer_class.add_loss = add
    try:
        yield
    finally:
        layer_class.add_loss = original


def with_losses(keras, outputs, values, names):
    """The outputs of a graph that adds these terms, too. An output goes through a layer that adds them; if
    losses and logs know it by the layer that makes it, what that layer is called on does."""
    if not values:
        return outputs
    total, flat = sum(values[1:], values[0]), keras.tree.flatten(outputs)
    passes = added_loss(keras)
    makers = [node_of(t) for t in flat]
    free = [i for i, node in enumerate(makers) if node.operation.name not in (names or ())]
    if free:
        flat[free[0]] = passes([flat[free[0]], total])
        return keras.tree.pack_sequence_as(outputs, flat)
    apart = [i for i, n in enumerate(makers) if id(n) not in nodes_behind(keras, [total]) and not n.is_input]
    if not apart:
        raise ValueError("it adds losses that are computed of all of its outputs")
    node = makers[apart[0]]
    first = node.arguments.keras_tensors[0]
    through = lambda a: passes([a, total]) if a is first else a
    again = keras.tree.map_structure(through, (node.arguments.args, node.arguments.kwargs))
    flat[apart[0]] = keras.tree.flatten(node.operation(*again[0], **again[1]))[
        flat[apart[0]]._keras_history.tensor_index
    ]
    return keras.tree.pack_sequence_as(outputs, flat)
