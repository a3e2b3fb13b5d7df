"""A Keras model and the model of libkeel that is trained in its place. They meet in files, which have
all that either knows: weights, the optimizer's state, the seeds of dropout."""

import contextlib
import os
import shutil
import sys
import tempfile

import numpy as np

from . import _library as c
from ._model import loaded
from ._own_weights import Constraints, Penalties, refuse_regularizers, without_own
from ._package_layers import draws
from ._rates import Rates, own_schedule
from ._scores import fields_of, output_names, programs, target_shapes
from ._traced import Optimizer, functional, needs_tracing
from ._unsaved import exclude_from_weight_decay, plain_initializers, refuse, whole_losses


def is_keras(model):
    return any(t.__name__ == "Model" and t.__module__.startswith("keras.") for t in type(model).__mro__)


class Twin:
    """`keras` is the caller's model, `model` libkeel's. trains: the caller's is to become trained.
    given: x and y of the run, and whether its rows have weights. together: the processes that run it."""

    def __init__(self, keras, trains, given, say, together):
        self.keras, self.trains, self.model = keras, trains, None
        self.left_out = []  # why metrics that are functions are no programs
        self.form, self.optimizer = keras, None  # what is written and read: `keras`, or a graph of it
        self.old = False  # a step has been made since `keras` was as `model` is
        self.known = self.state = self.rate = None  # what `keras` had before a callback
        optimizer = getattr(keras, "optimizer", None)
        refuse(keras)
        own = needs_tracing(keras)
        if not own and not getattr(keras, "built", True):
            raise c.ArgumentError(
                f"model '{keras.name}' has no weights yet: give it an Input, or call it once"
            )
        if trains and optimizer is None:
            raise c.ArgumentError(f"model '{keras.name}' is not compiled: call its compile() first")
        schedule = own_schedule(inner_of(optimizer))
        self.rates = schedule and Rates(sys.modules["keras"], inner_of(optimizer), schedule)
        with contextlib.ExitStack() as at_end:
            if own:
                self.form = functional(sys.modules["keras"], keras, given[0], say, at_end)
            if trains and not optimizer.built:
                optimizer.build(keras.trainable_variables)
            together.give_variables([*keras.variables, *(optimizer.variables if trains else [])])
            if self.rates:
                at_end.enter_context(self.rates.hidden())
            self.write(own, given, say)

    def write(self, own, given, say):
        """The file of libkeel's model, and the model."""
        keras, trains, optimizer = self.keras, self.trains, getattr(self.keras, "optimizer", None)
        if own and trains:
            self.optimizer = Optimizer(keras, self.form)
        elif own and optimizer is not None:
            self.form.compile(**keras._compile_config.config)
        if trains:
            refuse_regularizers(keras)
        self.draws = draws(self.form)
        self.has_rate = trains and not has_schedule(optimizer)
        self.folder = tempfile.mkdtemp(prefix="keel-")
        try:
            path = os.path.join(self.folder, "model.keras")
            library = sys.modules["keras"]
            with whole_losses(keras), programs(library, keras, self.form, given, say, self.left_out):
                with plain_initializers(library, self.form), without_own(self.form, trains):
                    self.form.save(path)
            self.model = loaded(path, trains, path, f"model '{keras.name}'")
            os.remove(path)
            refused = c.lib.keel_model_refused(self.model.handle)
            if trains and refused:
                raise c.Unsupported(refused.decode())
            if self.rates and trains:
                self.rates.give(self.model)
            if trains:
                exclude_from_weight_decay(keras, self.model)
            self.by_keras = Constraints(keras, self.form, self.model) if trains else Penalties(keras)
        except BaseException:
            self.close()
            raise

    def build_metrics(self, rows):
        """Keras makes its metrics when it sees the first batch, and its callbacks ask them whether more is
        better. Here they are made of the shapes of `rows`, a dataset of libkeel."""
        metrics = getattr(self.keras, "_compile_metrics", None)
        form = getattr(self.form, "_functional", None) or self.form
        if metrics is None or metrics.built:
            return
        targets = target_shapes(output_names(form), fields_of(rows), None)
        if None in targets or any(kind is None for _, kind in targets):
            return
        keras = sys.modules["keras"]
        y = [keras.KerasTensor((None, *shape), kind) for shape, kind in targets]
        metrics.build(keras.tree.pack_sequence_as(form._outputs_struct, y), form._outputs_struct)

    def update(self, weights):
        """What a callback may read: what libkeel has after its last step."""
        if self.has_rate:
            self.rate = self.model.learning_rate
            if float(self.keras.optimizer.learning_rate) != self.rate:
                self.keras.optimizer.learning_rate = self.rate
                self.rate = float(self.keras.optimizer.learning_rate)  # as float32
        if weights and self.old:
            self.take_back()
        if weights and self.known is None:
            self.known = [np.array(w) for w in self.keras.get_weights()]
            self.state = [v.numpy().copy() for v in self.state_variables()]

    def state_variables(self):
        """What a callback may not change: of the optimizer all but its learning rate."""
        if not self.trains:
            return []
        rate = getattr(inner_of(self.keras.optimizer), "_learning_rate", None)
        return [v for v in self.keras.optimizer.variables if v is not rate]

    def take_back(self):
        """Weights and optimizer of libkeel's model become those of the caller's."""
        self.model.give_weights(self.form, self.folder)
        if self.optimizer:
            self.optimizer.take_back()
        self.old, self.known = False, None

    def take_changes(self, weights):
        """What a callback has set, it has set for libkeel's model."""
        if self.has_rate and float(self.keras.optimizer.learning_rate) != self.rate:
            self.rate = float(self.keras.optimizer.learning_rate)
            self.model.learning_rate = self.rate
        if not weights:
            return
        same = lambda a, b: np.array_equal(a, b, equal_nan=True)
        for v, before in zip(self.state_variables(), self.state):
            if not same(v.numpy(), before):
                raise c.Unsupported(
                    f"a callback has changed '{v.path}' of the optimizer, which stays Keel's in a fit"
                )
        now = self.keras.get_weights()
        if all(same(a, b) for a, b in zip(now, self.known)):
            return
        self.model.take_weights(self.form, self.folder)
        self.known = [np.array(w) for w in now]

    def kind_of_outputs(self):
        """dict, list or tuple, if outputs are given so; a Sequential model has only one."""
        try:
            return type(self.form.output)
        except AttributeError:
            return None

    def close(self):
        if self.model:
            self.model.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def inner_of(optimizer):
    return getattr(optimizer, "inner_optimizer", optimizer)  # of a LossScaleOptimizer


def has_schedule(optimizer):
    return not hasattr(getattr(inner_of(optimizer), "_learning_rate", None), "assign")
