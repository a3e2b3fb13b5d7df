"""The stages of a step (_steps.py) as functions of libkeel, over one model that has all of its groups."""

import contextlib
import ctypes
import json
import os
import shutil
import tempfile

import numpy as np

from . import _library as c
from . import _rows
from ._branches import made_of, node_of, nodes_behind, same_operations, same_values
from ._folds import without_folds
from ._library import check, lib
from ._means import values_of_rows
from ._model import Model
from ._steps import Group
from ._traced import make_names_unique
from ._unsaved import plain_initializers
from ._weights import graph_with_rows

UNUSED = UNWEIGHTED = -1


def part(name, p):
    return f"{name}_{p}".encode()


def made(function, *args):
    """The number of what a call of a trace makes."""
    out = ctypes.c_int()
    check(function(*args, ctypes.byref(out)))
    return out.value


def arguments(config):
    """A keel_arg list of a config of Keras's, and what must live as long."""
    pairs = [(k.encode(), json.dumps(v).encode()) for k, v in config.items() if v is not None]
    array = (c.Arg * (len(pairs) + 1))(*(c.Arg(key, c.ARG_IS_JSON, text=text) for key, text in pairs))
    return array


class Network:
    """The model of libkeel that has all groups, and its outputs. heads: by id of a tensor its number among them."""

    def __init__(self, steps, heads):
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
            behind = [self.inputs_of(t) for t in flat]
            self.needs = behind
            self.inputs = [t for t in steps.inputs if any(id(t) in b for b in behind)]
            self.form = keras.Model(self.inputs, flat, name=steps.model.name)
            self.folder = tempfile.mkdtemp(prefix="keel-")
            path = os.path.join(self.folder, "step.keras")
            with plain_initializers(keras, self.form):
                self.form.save(path)
        try:
            self.model = Model(path, False)
        except c.Error as error:
            error.args = (str(error).replace(f"{path}: config.json", f"the step of '{steps.model.name}'"),)
            raise
        finally:
            os.remove(path)
        self.names = self.weight_names()

    def inputs_of(self, t):
        found = nodes_behind(self.steps.keras, [t]).values()
        return {id(n.outputs[0]) for n in found if n.is_input}

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
        return {id(v): name for v, name in zip(variables, names)}

    def close(self):
        self.model.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Stage:
    """A function of libkeel. asked: the gradients that it applies; returned: (name, group, the number of its
    output, or None: the mean of its only one)."""

    def __init__(self, network, number, asked, seed):
        self.network, self.steps, self.number, self.asked, self.seed = (
            network,
            network.steps,
            number,
            asked,
            seed,
        )
        self.inputs, self.returned = [], []  # inputs: tensors, each with all of its parts
        self.like, self.inputs_of = (
            self,
            {},
        )  # the stage whose function it runs, and by id of its inputs the own
        self.handle, self.raised, self.known_ways = ctypes.c_void_p(), None, {}

    # ---- the plan --------------------------------------------------------------------------------

    def ways(self, t):
        """Which gradients of the stage flow back to this input of the graph."""
        if id(t) not in self.known_ways:
            kind, *what = self.steps.kinds[id(t)]
            given = (
                what[0].inputs
                if kind == "group"
                else what[0] if kind == "joined" else what if kind == "slope" else []
            )
            own = self.moving(what[0]) if kind == "group" else set()
            self.known_ways[id(t)] = own.union(*map(self.ways, given))
        return self.known_ways[id(t)]

    def moving(self, group):
        """Which gradients of the stage are for weights of this group."""
        return {i for i, a in enumerate(self.asked) if group.variables & {id(v) for v in a.variables}}

    def ways_of(self, group):
        return self.moving(group).union(*map(self.ways, group.inputs))

    def is_here(self, group):
        """Whether this stage computes it, and not an earlier one, which gives its values on."""
        if group.stage == self.number or not self.ways_of(group):
            return group.stage == self.number
        for a in self.steps.asked:
            if group.stage <= a.stage < self.number and group.variables & {id(v) for v in a.variables}:
                self.steps.refuse("a gradient goes through what was computed before its weights were moved")
        return True

    def needed(self, group, found):
        """Into `found`, by id: inputs of the function that a group needs, those of an earlier stage included."""
        self.here[id(group)] = group
        for t in group.inputs:
            self.needed_input(t, found)

    def needed_input(self, t, found):
        kind, *what = self.steps.kinds[id(t)]
        if kind in ("slope", "joined"):
            for given in what if kind == "slope" else what[0]:
                self.needed_input(given, found)
        elif kind == "group" and self.is_here(what[0]):
            self.needed(what[0], found)
        else:
            found[id(t)] = t

    # ---- the trace -------------------------------------------------------------------------------

    def trace(self, _, t):
        try:
            self.t, self.made, self.scalars = t, {}, {}
            for i, asked in enumerate(self.asked):
                self.learn(i, asked)
            for name, group, k in self.returned:
                if k is None:
                    for p, scalar in enumerate(self.scalar(group, None)):
                        check(lib.keel_trace_return_scalar(t, part(name, p), scalar))
                else:
                    way = self.way(self.ways_of(group), None)
                    for p, value in enumerate(self.emitted(group, way, k)):
                        check(lib.keel_trace_return(t, part(name, p), value))
            return c.OK
        except BaseException as error:
            self.raised = error
            return lib.keel_error_set(c.ECALLBACK, f"{type(error).__name__}: {error}".encode())

    def learn(self, i, asked):
        names, m, g = self.network.names, self.network.model.handle, ctypes.c_int()
        watched = [(m, names[id(v)].encode()) for v in asked.variables if id(v) in names]
        scalars = self.scalar(asked.group, i)
        terms = [(scalar, 1 / len(scalars)) for scalar in scalars]
        lists = (c.Term * len(terms))(*terms), len(terms), (c.Watched * len(watched))(*watched), len(watched)
        check(lib.keel_trace_gradients(self.t, *lists, ctypes.byref(g)))
        self.rates[i] = rate_of(asked.optimizer)
        config = {**asked.optimizer.get_config(), "learning_rate": self.rates[i]}
        kept = arguments(config)
        apply = c.Apply(c.Named(type(asked.optimizer).__name__.encode(), kept))
        check(lib.keel_trace_apply(self.t, g, ctypes.byref(apply)))

    def scalar(self, group, way):
        """A number of libkeel's for each part of the rows."""
        key = id(group), self.way(self.ways_of(group), way)
        if key not in self.scalars:
            mean = lambda value: made(lib.keel_trace_mean, self.t, value, UNWEIGHTED)
            self.scalars[key] = [mean(value) for value in self.emitted(group, key[1])]
        return self.scalars[key]

    def way(self, ways, way):
        return way if way in ways else min(ways, default=None)

    def value(self, t, way):
        """Of an input of the graph, for gradient `way`: a value of libkeel's for each part of the rows."""
        ways = self.ways(t)
        key = id(t), self.way(ways, way)
        if key not in self.made:
            self.made[key] = self.of_kind(t, way, key[1])
        if way is None or way in ways or not ways:
            return self.made[key]
        stopped = lambda v: made(
            lib.keel_trace_call, self.t, b"ops.StopGradient", None, None, (ctypes.c_int * 1)(v), 1
        )
        return list(map(stopped, self.made[key]))  # this gradient is of other weights

    def of_kind(self, t, way, own_way):
        kind, *what = self.steps.kinds[id(t)]
        if kind == "slope":
            pairs = zip(*(self.value(s, way) for s in what))
            return [made(lib.keel_trace_gradient_of, self.t, y, x) for y, x in pairs]
        if kind == "joined":
            return [value for given in what[0] for value in self.value(given, way)]
        if kind == "group" and self.is_here(what[0]):
            return self.emitted(what[0], own_way, what[1])
        parts = range(self.steps.parts_of(t))
        return [made(lib.keel_trace_input, self.t, part(t.name, p)) for p in parts]

    def emitted(self, group, way, k=0):
        key = id(group), way
        if key not in self.made:
            needed = {id(t): self.value(t, way) for t in group.inputs}
            self.made[key] = [self.called(group, needed, p) for p in range(group.parts)]
        return [values + self.network.head[id(group.outputs[k])] for values in self.made[key]]

    def called(self, group, needed, p):
        """The group on part p of the rows: the first output of the model."""
        network = self.network
        of = lambda values: values[p] if len(values) > 1 else values[0]
        values = [of(needed[id(t)]) if id(t) in needed else UNUSED for t in network.inputs]
        heads, count = {network.head[id(t)] for t in group.outputs}, len(network.model.outputs)
        wanted = (ctypes.c_bool * count)(*(i in heads for i in range(count)))
        given = (ctypes.c_int * len(values))(*values)
        return made(
            lib.keel_trace_outputs, self.t, network.model.handle, group.training, given, len(values), wanted
        )

    # ---- running ---------------------------------------------------------------------------------

    def create(self):
        each = [(t, p) for t in self.inputs for p in range(self.steps.parts_of(t))]
        fields = (c.DataField * len(each))()
        for f, (t, p) in zip(fields, each):
            f.path, f.dtype = part(t.name, p), _rows.DTYPES[np.dtype(t.dtype)]
            f.shape = _rows.as_shape([d or c.DIM_OPEN for d in t.shape[1:]], t.name)
        self.step = c.Step(self.trace)
        o = c.FunctionOptions(
            ctypes.sizeof(c.FunctionOptions), f"stage {self.number + 1}".encode(), self.step
        )
        o.input, o.n_input, o.seed = fields, len(each), self.seed
        check(lib.keel_function_create(ctypes.byref(self.handle), ctypes.byref(o)))
        self.rates = [None] * len(self.asked)  # as the trace is told

    def run(self, strategy, values):
        """values: by id of an input its arrays, one for each part."""
        kept = []
        tensors = [_rows.as_tensor(a, t.name, kept) for t in self.inputs for a in values[id(t)]]
        for k, asked in enumerate(self.asked):
            rate = rate_of(asked.optimizer)
            if self.rates[k] is not None and rate != self.rates[k]:
                check(lib.keel_function_set_learning_rate(self.handle, k, rate))
                self.rates[k] = rate
        array = (c.Tensor * len(tensors))(*tensors)
        status = lib.keel_strategy_run(strategy, self.handle, array, len(tensors))
        if self.raised is not None:
            raise self.raised
        check(status)

    def scalar_of(self, name, parts):
        out, total = ctypes.c_double(), 0.0
        for p in range(parts):
            check(lib.keel_function_scalar(self.handle, part(name, p), ctypes.byref(out)))
            total += out.value
        return total / parts

    def rows_of(self, name, parts):
        return [self.gathered(part(name, p)) for p in range(parts)]

    def gathered(self, name):
        out = c.Tensor()
        check(lib.keel_gather(self.handle, name, ctypes.byref(out)))
        try:
            return _rows.copied(out)
        finally:
            lib.keel_tensor_free(ctypes.byref(out))

    def close(self):
        lib.keel_function_destroy(self.handle)
        self.handle = ctypes.c_void_p()


def rate_of(optimizer):
    rate = optimizer._learning_rate
    return float(rate(optimizer.iterations) if callable(rate) and not hasattr(rate, "assign") else rate)


class Same:
    """Whether two stages do the same, of other draws. inputs: by id of an input of the first, that of the second."""

    def __init__(self, steps, first, second):
        self.steps, self.keras, self.first, self.second = steps, steps.keras, first, second
        self.inputs, self.known = {}, {}

    def found(self):
        of = lambda stage: [(id(a.optimizer), list(map(id, a.variables))) for a in stage.asked]
        pairs = zip(self.first.asked, self.second.asked)
        return of(self.first) == of(self.second) and all(self.groups(a.group, b.group) for a, b in pairs)

    def groups(self, a, b):
        return (
            a.layer is b.layer and a.training == b.training and all(map(self.tensors, a.outputs, b.outputs))
        )

    def tensors(self, s, t):
        if (id(s), id(t)) not in self.known:
            self.known[id(s), id(t)] = self.are_same(s, t)
        return self.known[id(s), id(t)]

    def are_same(self, s, t):
        tree, is_tensor = self.keras.tree, lambda a: isinstance(a, self.keras.KerasTensor)
        if not is_tensor(s) or not is_tensor(t):
            return same_values(s, t)
        kinds = [self.steps.kinds.get(id(a)) for a in (s, t)]
        if all(kinds):
            return self.inputs.setdefault(id(s), t) is t and self.are_same_kinds(*kinds)
        if any(kinds) or s._keras_history.tensor_index != t._keras_history.tensor_index:
            return False
        n, m = node_of(s), node_of(t)
        if n.is_input or m.is_input:
            return s is t
        args = [tree.flatten(made_of(node)) for node in (n, m)]
        same = same_operations(self.keras, n.operation, m.operation) and len(args[0]) == len(args[1])
        return same and all(map(self.tensors, *args))

    def are_same_kinds(self, a, b):
        kind, *what = a
        if kind != b[0]:
            return False
        if kind == "drawn":
            of = lambda draw: (draw.function, draw.shape, draw.args, draw.kwargs)
            return all(map(same_values, *(self.keras.tree.flatten(of(d)) for d in (what[0], b[1]))))
        if kind == "group":
            return what[1] == b[2] and self.groups(what[0], b[1])
        if kind == "data":
            return what[0] == b[1]
        given = (what[0], b[1]) if kind == "joined" else (what, b[1:])
        return len(given[0]) == len(given[1]) and all(map(self.tensors, *given))


class Program:
    """All stages of a step, made for a strategy. run(data) gives what the step does with its numbers."""

    def __init__(self, steps, strategy, seed):
        self.steps, self.strategy = steps, strategy
        self.values = {}  # by id of a tensor that the step gives on: the group of it
        for asked in steps.asked:
            asked.group = self.of_value(asked.loss)
        for t in self.tensors_given():
            self.of_value(t)
        groups = [*steps.groups, *self.values.values()]
        self.network = Network(steps, [t for g in groups for t in g.outputs])
        by_id = {id(t): t for t in steps.inputs}
        for g in groups:
            heads = [self.network.head[id(t)] for t in g.outputs]
            g.inputs = [by_id[i] for i in set().union(*(self.network.needs[h] for h in heads)) if i in by_id]
        for g in groups:
            g.parts = steps.parts_of(*g.inputs)
        self.put_late()
        count = 1 + max([a.stage for a in steps.asked] + [g.stage for g in self.values.values()])
        self.stages = [
            Stage(self.network, s, [a for a in steps.asked if a.stage == s], seed) for s in range(count)
        ]
        self.plan()
        for stage in self.stages:
            self.find_same(stage)
            if stage.like is stage:
                stage.create()

    def tensors_given(self):
        """Those that metrics or the result take."""
        tree, is_tensor = self.steps.keras.tree, lambda t: isinstance(t, self.steps.keras.KerasTensor)
        given = [(u.args, u.kwargs) for u in self.steps.updates]
        return [t for t in tree.flatten([given, self.steps.result]) if is_tensor(t)]

    def of_value(self, t):
        """The group of a tensor: of a number of the batch, values of rows whose mean it is."""
        if id(t) not in self.values:
            values = values_of_rows(self.steps.keras, t, self.steps.refuse)
            if not values.shape:
                self.steps.refuse("a number that it gives on is not computed of its rows")
            self.values[id(t)] = Group([values], 0, True)
            self.values[id(t)].tensor = t
        return self.values[id(t)]

    def stage_of(self, t):
        kind, *what = self.steps.kinds[id(t)]
        given = what[0] if kind == "joined" else what if kind == "slope" else []
        return what[0].stage if kind == "group" else max(map(self.stage_of, given), default=0)

    def put_late(self):
        """Groups are computed where they are first needed, if their weights stay the same until then."""
        users = {}
        for asked in self.steps.asked:
            self.used(asked.group, asked.stage, users)
        for g in self.values.values():
            if id(g) not in users:
                self.used(g, max([self.stage_of(t) for t in g.inputs], default=0), users)
        for g in self.steps.groups[::-1]:
            last = min(users.get(id(g), [g.stage]))
            moves = [a.stage for a in self.steps.asked if g.variables & {id(v) for v in a.variables}]
            self.used(g, min([last, *(m for m in moves if m >= g.stage)]), users)

    def used(self, group, stage, users):
        """A group is computed in this stage, and what it needs must be there."""
        if any(self.stage_of(t) > stage for t in group.inputs):
            self.steps.refuse("an optimizer gets the gradient of a loss that is computed later")
        group.stage = stage
        users.setdefault(id(group), []).append(stage)
        for t in group.inputs:
            for g in self.groups_of(t):
                users.setdefault(id(g), []).append(stage)

    def groups_of(self, t):
        kind, *what = self.steps.kinds[id(t)]
        given = what[0] if kind == "joined" else what if kind == "slope" else []
        return [what[0]] if kind == "group" else [g for s in given for g in self.groups_of(s)]

    def find_same(self, stage):
        """An optimizer that moves weights in several stages has one state: they are one function."""
        mine = {id(a.optimizer) for a in stage.asked}
        for other in self.stages[: stage.number]:
            if other.like is not other or not mine & {id(a.optimizer) for a in other.asked}:
                continue
            same = Same(self.steps, other, stage)
            if not same.found():
                self.steps.refuse("an optimizer moves weights several times, by losses that are not alike")
            stage.like, stage.inputs_of = other, same.inputs
            for g in self.values.values():
                if g.stage == stage.number:
                    twins = [h for h in self.values.values() if h.stage == other.number and same.groups(h, g)]
                    if not twins:
                        self.steps.refuse("one of several steps that are alike gives something else on")
                    g.name = twins[0].name

    def plan(self):
        """Which inputs each stage needs, and what it gives to others and to metrics."""
        for k, g in enumerate(self.values.values()):
            stage = self.stages[g.stage]
            g.name, g.is_scalar = f"value_{k}", not g.tensor.shape
            stage.returned.append((g.name, g, None if g.is_scalar else 0))
        self.crossing = []  # (from stage, name, input)
        for stage in self.stages[::-1]:
            found, stage.here = {}, {}
            for a in stage.asked:
                stage.needed(a.group, found)
            for _, g, _ in stage.returned:
                stage.needed(g, found)
            stage.inputs = list(found.values())
            for t in stage.inputs:
                kind, *what = self.steps.kinds[id(t)]
                if kind == "group" and all(t is not other for _, other in self.crossing):
                    self.stages[what[0].stage].returned.append((t.name, *what))
                    self.crossing.append((what[0].stage, t))

    def run(self, data):
        """data: arrays, as the step gets them. Gives numbers and arrays by id of a tensor."""
        values, numbers = {}, self.steps.keras.ops.convert_to_numpy
        for t in self.steps.inputs:
            kind, *what = self.steps.kinds[id(t)]
            if kind == "data":
                values[id(t)] = [data[what[0]]]
            elif kind == "drawn":
                parts = self.steps.parts_of(t)
                values[id(t)] = np.split(np.asarray(numbers(what[0](len(data[0]) * parts))), parts)
        given = {}
        for stage in self.stages:
            of = stage.like
            of.run(self.strategy, {id(t): values[id(stage.inputs_of.get(id(t), t))] for t in of.inputs})
            for number, t in self.crossing:
                if number == stage.number:
                    values[id(t)] = of.rows_of(t.name, self.steps.parts_of(t))
            for key, g in self.values.items():
                if g.stage == stage.number:
                    read = of.scalar_of if g.is_scalar else lambda *a: np.concatenate(of.rows_of(*a))
                    given[key] = read(g.name, g.parts)
        return given

    def take_back(self):
        """Weights of libkeel's model become those of the caller's."""
        path = os.path.join(self.network.folder, "now.weights.h5")
        self.network.model.save_weights(path)
        self.network.form.load_weights(path)
        os.remove(path)

    def give(self):
        """And the other way round."""
        path = os.path.join(self.network.folder, "set.weights.h5")
        self.network.form.save_weights(path)
        self.network.model.load_weights(path)
        os.remove(path)

    def close(self):
        for stage in self.stages:
            stage.close()
        self.network.close()
