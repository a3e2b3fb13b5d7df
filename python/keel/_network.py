"""The groups of a step (_steps.py) as one model of libkeel, of which functions call parts."""

import contextlib
import os
import tempfile

from ._branches import nodes_behind
from ._folds import without_folds
from ._library import lib
from ._model import loaded
from ._penalties import only_of
from ._traced import make_names_unique
from ._unsaved import plain_initializers
from ._weights import graph_with_rows


class Network:
    """The model of libkeel that has all groups, and its outputs. heads: by id of a tensor its number among them."""

    def __init__(self, steps, heads, regularized):
        keras, self.steps = steps.keras, steps
        flat, self.head = [], {}
        for t in heads:
            if id(t) not in self.head:
                self.head[id(t)] = len(flat)
                flat.append(keras.layers.Identity()(t) if id(t) in steps.kinds else t)
        self.kept = heads
        with contextlib.ExitStack() as at_end:
            make_names_unique(keras, flat, at_end)
            flat = without_folds(keras, flat, steps.refuse)
            if steps.tracer.stand_ins.used(flat):
                flat, _ = graph_with_rows(keras, flat, steps.tracer.root, steps.tracer.stand_ins)
            make_names_unique(keras, flat, at_end)
            # what each output is computed of: inputs by id, and ids of variables
            self.needs, self.reached = [self.inputs_of(t) for t in flat], [self.variables_of(t) for t in flat]
            self.inputs = [t for t in steps.inputs if any(id(t) in needs for needs in self.needs)]
            self.form = keras.Model(self.inputs, flat, name=steps.model.name)
            self.folder = tempfile.TemporaryDirectory(prefix="keel-")
            path = os.path.join(self.folder.name, "step.keras")
            with plain_initializers(keras, self.form), only_of(self.form, regularized):
                self.form.save(path)
        try:
            self.model = loaded(path, False, f"{path}: config.json", steps.name)
        except BaseException:
            self.folder.cleanup()
            raise
        os.remove(path)
        try:
            self.names = self.weight_names()
        except BaseException:
            self.close()
            raise

    def inputs_of(self, t):
        found = nodes_behind(self.steps.keras, [t]).values()
        tensors = [n.outputs[0] for n in found if n.is_input]
        return {id(t): t for t in tensors if id(t) in self.steps.kinds}

    def variables_of(self, t):
        found = nodes_behind(self.steps.keras, [t]).values()
        return {id(v) for n in found for v in getattr(n.operation, "variables", ())}

    def weight_names(self):
        """By id of a variable its name in libkeel."""
        m = self.model.handle
        names = [lib.keel_model_weight_name(m, i).decode() for i in range(lib.keel_model_weight_count(m))]
        real = self.steps.keras.backend.is_float_dtype
        variables = [v for v in self.form.weights if real(v.dtype)]
        last = lambda path: path.rpartition("/")[2]
        same = lambda name, v: last(name) == last(v.path) or "own_" in name  # a layer that has the caller's
        if len(names) != len(variables) or not all(map(same, names, variables)):
            self.steps.refuse("the order of its weights is not understood")
        self.variables = variables
        return {id(v): name for v, name in zip(variables, names)}

    def close(self):
        self.model.close()
        self.folder.cleanup()

    def exclude_from_weight_decay(self, variables):
        if variables:
            self.model.exclude_from_weight_decay([self.names[id(v)] for v in variables])

    def take_back(self):
        """Weights of libkeel's model become those of the caller's."""
        self.model.give_weights(self.form, self.folder.name)

    def give(self):
        """And the other way round."""
        self.model.take_weights(self.form, self.folder.name)
