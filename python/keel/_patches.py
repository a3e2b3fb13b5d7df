"""What is replaced while a step of the caller's runs: tapes, optimizers and metrics only note what is asked of them.

A *recorder* takes the notes: apply(optimizer, gradients, variables), updated(metric, *args, **kwargs),
result(metric), losses(layer, original), set(call, what), drawn(function, shape, args, kwargs, the same within a layer); of tapes gradient(target, sources, tape), watch(tape, tensors), backward(loss), and in
`tapes` those that record now."""

import contextlib

DRAWS = ("normal", "uniform", "truncated_normal", "randint")


class Patches(contextlib.ExitStack):
    def put(self, where, name, value):
        self.callback(setattr, where, name, vars(where)[name])
        setattr(where, name, value)


def kinds_of_metrics(kind):
    """The classes of metrics, but for those of Keras that only hold others."""
    found = [] if kind.__module__.endswith("compile_utils") else [kind]
    for k in kind.__subclasses__():
        found += kinds_of_metrics(k)
    return list(dict.fromkeys(found))


def open_patches(keras, recorder):
    """Until the Patches that it gives are closed."""
    patches = Patches()
    try:
        optimizer = next(k for k in keras.optimizers.Optimizer.__mro__ if "apply" in vars(k))
        patches.put(optimizer, "apply", lambda o, grads, variables=None: recorder.apply(o, grads, variables))
        pairs = lambda o, pairs: recorder.apply(o, *zip(*pairs))
        patches.put(optimizer, "apply_gradients", pairs)
        for kind in kinds_of_metrics(keras.metrics.Metric):
            functions = {
                "update_state": lambda metric, *args, **kwargs: recorder.updated(metric, *args, **kwargs),
                "result": lambda metric: recorder.result(metric),
            }
            for name, function in functions.items():
                if name in vars(kind):
                    patches.put(kind, name, function)
        trainable = keras.layers.Layer.trainable
        fixed = property(
            trainable.fget,
            lambda layer, value: recorder.set(lambda: trainable.fset(layer, value), "trainable of a layer"),
        )
        patches.put(keras.layers.Layer, "trainable", fixed)
        losses = keras.layers.Layer.losses.fget
        patches.put(keras.layers.Layer, "losses", property(lambda layer: recorder.losses(layer, losses)))
        of_backend = {"tensorflow": of_tensorflow, "torch": of_torch}.get(keras.backend.backend())
        if of_backend:
            of_backend(keras, recorder, patches)
        return patches
    except BaseException:
        patches.close()
        raise


# ---- TensorFlow -----------------------------------------------------------------------------------


class Tape:
    """In place of tf.GradientTape, with one of its own for tensors that have numbers."""

    recorder = of_numbers = None

    def __init__(self, persistent=False, watch_accessed_variables=True):
        self.tape = self.of_numbers(persistent=True)

    def __enter__(self):
        self.tape.__enter__()
        self.recorder.tapes.append(self)
        return self

    def __exit__(self, *error):
        self.recorder.tapes.remove(self)
        return self.tape.__exit__(*error)

    def watch(self, tensors):
        self.recorder.watch(self.tape, tensors)

    @contextlib.contextmanager
    def stop_recording(self):
        kept = [t for t in self.recorder.tapes if t is self]
        self.recorder.tapes = [t for t in self.recorder.tapes if t is not self]
        with self.tape.stop_recording():
            yield
        self.recorder.tapes += kept

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients=None):
        if output_gradients is not None:
            raise ValueError("a tape gets output_gradients")
        return self.recorder.gradient(target, sources, self)


def is_slope(x):
    return hasattr(x, "clipped")


class Norm:
    """What else tf.clip_by_global_norm gives."""

    def __array__(self, *_, **__):
        raise ValueError("it computes with the norm of gradients")


def clips(original_of_value, original_of_norm, original_of_all):
    """Functions of TensorFlow that clip gradients, which optimizers then do."""

    def by_value(x, least, most, name=None):
        if not is_slope(x):
            return original_of_value(x, least, most)
        if float(least) != -float(most):
            raise ValueError("gradients are clipped to other numbers than -x and x")
        return x.clipped("clipvalue", most)

    def by_norm(x, most, axes=None, name=None):
        return (
            x.clipped("clipnorm", most) if is_slope(x) and axes is None else original_of_norm(x, most, axes)
        )

    def by_global_norm(xs, most, use_norm=None, name=None):
        if not all(map(is_slope, xs)) or use_norm is not None:
            return original_of_all(xs, most, use_norm)
        return [x.clipped("global_clipnorm", most, len(xs)) for x in xs], Norm()

    return {"clip_by_value": by_value, "clip_by_norm": by_norm, "clip_by_global_norm": by_global_norm}


def of_tensorflow(keras, recorder, patches):
    import tensorflow as tf

    patches.put(
        tf,
        "GradientTape",
        type("GradientTape", (Tape,), {"recorder": recorder, "of_numbers": tf.GradientTape}),
    )
    of_slopes = clips(tf.clip_by_value, tf.clip_by_norm, tf.clip_by_global_norm)
    for name, function in of_slopes.items():
        patches.put(tf, name, function)
    patches.put(keras.ops, "clip", clips(keras.ops.clip, None, None)["clip_by_value"])
    variable = type(tf.Variable(0.0))
    for name in ("assign", "assign_add", "assign_sub"):
        original = getattr(variable, name)
        patches.put(
            variable,
            name,
            lambda v, *a, original=original, **k: recorder.set(
                lambda: original(v, *a, **k), "a variable of TensorFlow: use those of Keras"
            ),
        )
    for name in ("normal", "uniform"):
        within = getattr(tf.random, name)  # of layers, which are traced
        original = getattr(within, "original", within)
        drawn = lambda shape, *a, f=(original, within), **k: recorder.drawn(f[0], shape, a, k, f[1])
        patches.put(tf.random, name, drawn)


# ---- PyTorch --------------------------------------------------------------------------------------


def of_torch(keras, recorder, patches):
    import torch

    patches.put(torch.Tensor, "backward", lambda loss, *_, **__: recorder.backward(loss))
    keras.KerasTensor.backward = lambda loss, *_, **__: recorder.backward(loss)
    patches.callback(delattr, keras.KerasTensor, "backward")
