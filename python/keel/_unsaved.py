"""What a Keras model has in memory and its file has not: passed on besides, or refused."""

import contextlib

from . import _library as c
from ._library import lib
from ._traced import module_of


def refuse(keras):
    if getattr(keras, "preprocessor", None) is not None and hasattr(keras, "preprocess_samples"):
        raise c.Unsupported(
            f"model '{keras.name}' prepares its rows before it trains: give what its preprocess_samples(x, y) returns, and set its preprocessor to None"
        )
    for layer in keras._flatten_layers():
        if getattr(layer, "lora_enabled", False):
            raise c.Unsupported(
                f"layer '{layer.name}' trains LoRA matrices, which files of Keras do not hold: it would begin with others"
            )


@contextlib.contextmanager
def whole_losses(keras):
    """While the model is saved, losses give all of their arguments. Keras 3.15 leaves out delta of Huber,
    and axis of CosineSimilarity and SparseCategoricalCrossentropy, which would be trained as the default."""
    changed = []
    for loss in flat(getattr(keras, "loss", None)):
        given = getattr(loss, "_fn_kwargs", None)
        config = loss.get_config() if given else {}
        left_out = {k: v for k, v in (given or {}).items() if k not in config}
        if left_out:
            loss.get_config = lambda config=config, left_out=left_out: {**config, **left_out}
            changed.append(loss)
    try:
        yield
    finally:
        for loss in changed:
            del loss.get_config


@contextlib.contextmanager
def plain_initializers(keras, form):
    """While the model is saved, initializers of the caller's own are Keras's: the weights are there."""
    zeros = keras.initializers.Zeros()
    is_own = lambda name, value: (
        name.endswith("_initializer") and callable(value) and not module_of(value).startswith("keras.")
    )
    with replaced(form, lambda layer, name, value: is_own(name, value), zeros):
        yield


@contextlib.contextmanager
def replaced(form, is_meant, by):
    """While a model is saved, attributes of its layers with is_meant(layer, name, value) are `by`."""
    put = [
        (vars(layer), name, value)
        for layer in form._flatten_layers()
        for name, value in vars(layer).items()
        if is_meant(layer, name, value)
    ]
    for attributes, name, _ in put:
        attributes[name] = by
    try:
        yield
    finally:
        for attributes, name, value in put:
            attributes[name] = value


def flat(values):
    if isinstance(values, dict):
        values = list(values.values())
    return [x for v in values for x in flat(v)] if isinstance(values, (list, tuple)) else [values]


def exclude_from_weight_decay(keras, model):
    """The weights that the optimizer's own exclude_from_weight_decay leaves alone."""
    uses = getattr(keras.optimizer, "_use_weight_decay", lambda variable: True)
    paths = [v.path for v in keras.trainable_variables if not uses(v)]
    if not paths:
        return
    count = lib.keel_model_weight_count(model.handle)
    names = {lib.keel_model_weight_name(model.handle, i).decode() for i in range(count)}
    own = [path if path in names else path.partition("/")[2] for path in paths]  # without the model's name
    for name, path in zip(own, paths):
        if name not in names:
            raise c.Unsupported(
                f"weight '{path}' is excluded from weight decay, but Keel does not find it by its path"
            )
    model.exclude_from_weight_decay(own)
