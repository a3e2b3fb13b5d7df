"""A step of the caller's on the devices of a strategy: its stages as functions, and what goes between them."""

import ctypes

import numpy as np

from . import _library as c
from . import _rows
from ._assigned import Averages
from ._branches import made_of, node_of, nodes_behind, same_operations, same_values
from ._functions import Stage
from ._library import check, lib
from ._means import values_of_rows
from ._network import Network
from ._penalties import Parted
from ._penalties import check as check_penalties
from ._penalties import value_of as penalty_of
from ._steps import Group


class Applied:
    """An optimizer of Keras's that libkeel applies. count: how often it has been. variables: those that it moves, in
    the order of libkeel's weights; known: in that of the step."""

    def __init__(self, optimizer, variables, known):
        self.of, self.count = optimizer, int(optimizer._iterations)  # steps that only add up gradients, too
        if not optimizer.built:
            optimizer.build(known)
        like = type(optimizer).from_config(optimizer.get_config())
        like.build(variables)
        self.states = [self.counterpart(like, v) for v in like.variables]
        self.states = [v for v in self.states if v is not None]

    def counterpart(self, like, v):
        """The caller's variable in place of one of an optimizer that was built in libkeel's order."""
        at = {id(w): i for i, w in enumerate(self.of._trainable_variables)}
        for name, held in vars(like).items():
            if held is v:
                return None if name in ("_iterations", "_learning_rate") else getattr(self.of, name)
            if name.startswith(("_trainable_var", "_variables")) or not isinstance(held, (list, tuple)):
                continue
            for i, w in enumerate(held):
                if w is v:
                    return getattr(self.of, name)[at[id(like._trainable_variables[i])]]
        raise c.Unsupported(f"the state of the optimizer '{self.of.name}' is not understood")

    def rate(self):
        rate, of = self.of._learning_rate, self.of.gradient_accumulation_steps or 1
        return float(rate if hasattr(rate, "assign") else rate(self.count // of) if callable(rate) else rate)

    def give(self, function, k):
        """To a function of libkeel, as its k-th optimizer."""
        if lib.keel_function_state_count(function, k) != len(self.states):
            raise c.Unsupported(f"the state of the optimizer '{self.of.name}' is not understood")
        if not self.count:
            return
        check(lib.keel_function_set_iterations(function, k, self.count))
        for i, v in enumerate(self.states):
            kept, value = [], np.asarray(v.numpy())
            kind = np.float32 if np.issubdtype(value.dtype, np.floating) else np.int32
            tensor = _rows.as_tensor(np.ascontiguousarray(value, kind).reshape(value.shape), v.path, kept)
            check(lib.keel_function_set_state(function, k, i, ctypes.byref(tensor)))

    def take_back(self, function, k):
        self.of._iterations.assign(self.count)
        for i, v in enumerate(self.states):
            out = c.Tensor()
            check(lib.keel_function_state(function, k, i, ctypes.byref(out)))
            try:
                v.assign(_rows.copied(out))
            finally:
                lib.keel_tensor_free(ctypes.byref(out))


class Draws:
    """The random numbers of a step, which Keras draws."""

    def __init__(self, steps):
        self.steps, self.made = steps, {}
        self.tensors = [t for t in steps.inputs if steps.kinds[id(t)][0] == "drawn"]

    def draw(self, rows):
        return [self.steps.kinds[id(t)][1](rows * self.steps.parts_of(t)) for t in self.tensors]

    def of(self, rows):
        """By id of a tensor its parts, for this number of rows."""
        if not self.tensors:
            return {}
        if rows not in self.made:
            self.made[rows] = at_once(self.steps.keras, lambda: self.draw(rows))
        to_numpy = self.steps.keras.ops.convert_to_numpy
        parts = lambda t, drawn: np.split(np.asarray(to_numpy(drawn)), self.steps.parts_of(t))
        return {id(t): parts(t, drawn) for t, drawn in zip(self.tensors, self.made[rows]())}


def at_once(keras, draw):
    """On TensorFlow all draws are one call, as in Keras's own fit."""
    if keras.backend.backend() != "tensorflow":
        return draw
    import tensorflow as tf

    return tf.function(draw)


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
        if kind == "penalty":
            return list(map(id, what[0])) == list(map(id, b[1]))
        given = (what[0], b[1]) if kind == "joined" else (what, b[1:])
        return len(given[0]) == len(given[1]) and all(map(self.tensors, *given))


class Program:
    """All stages of a step, made for a strategy. run(data) gives what the step does with its numbers."""

    def __init__(self, steps, strategy, seed):
        self.steps, self.strategy = steps, strategy
        self.draws = Draws(steps)
        self.numbers = {}  # by id of a tensor that is made of penalties alone: a number, and those
        self.values = {}  # by id of a tensor that the step gives on: the group of it
        regularized = []  # variables whose regularizers are in losses
        for asked in steps.asked:
            asked.group = self.of_value(asked.loss) or steps.refuse("a loss is not computed of its rows")
            regularized += check_penalties(steps, asked, asked.group.penalties)
        for t in self.tensors_given():
            self.of_value(t)
        groups = [*steps.groups, *self.values.values()]
        self.network = Network(steps, [t for g in groups for t in g.outputs], regularized)
        self.optimizers = {}
        for a in steps.asked:
            moved = [v for v in self.network.variables if any(v is w for w in a.variables)]
            self.optimizers[id(a.optimizer)] = Applied(a.optimizer, moved, a.variables)
        by_id = {id(t): t for t in steps.inputs}
        for g in groups:
            heads = [self.network.head[id(t)] for t in g.outputs]
            g.inputs = [by_id[i] for i in set().union(*(self.network.needs[h] for h in heads)) if i in by_id]
        for g in groups:
            g.parts = steps.parts_of(*g.inputs)
        for g in groups:
            self.check_weights(g)
        self.averages = Averages(steps, self.network)
        self.put_late()
        count = 1 + max([a.stage for a in steps.asked] + [g.stage for g in self.values.values()])
        self.stages = [
            Stage(self.network, s, [a for a in steps.asked if a.stage == s], self.optimizers, seed)
            for s in range(count)
        ]
        self.plan()
        shown = [p for p, _ in [pair for g in self.values.values() for pair in g.penalties]]
        shown += [p for _, penalties in self.numbers.values() for p, _ in penalties]
        self.shown = list({id(p): p for p in shown}.values())
        for stage in self.stages:
            self.find_same(stage)
            if stage.like is stage:
                stage.create()

    def check_weights(self, group):
        for t in group.outputs:
            for n in nodes_behind(self.steps.keras, [t]).values():
                kind, *what = self.steps.kinds.get(id(n.outputs[0]), (None,)) if n.is_input else (None,)
                if kind == "weight":
                    self.steps.refuse(f"it reads '{what[0].path}', outside of the layer that has it")

    def tensors_given(self):
        """Those that metrics or the result take."""
        tree, is_tensor = self.steps.keras.tree, lambda t: isinstance(t, self.steps.keras.KerasTensor)
        given = [(u.args, u.kwargs) for u in self.steps.updates]
        return [t for t in tree.flatten([given, self.steps.result]) if is_tensor(t)]

    def of_value(self, t):
        """The group of a tensor: of a number of the batch, values of rows whose mean it is."""
        if id(t) not in self.values:
            parted = Parted(self.steps, t)
            penalties = [(p, parted.times[id(p)]) for p in self.steps.penalties if id(p) in parted.times]
            if isinstance(parted.rest, float):
                self.numbers[id(t)] = parted.rest, penalties
                return None
            values = values_of_rows(self.steps.keras, parted.rest, self.steps.refuse)
            if not np.shape(values):
                self.steps.refuse("a number that it gives on is not computed of its rows")
            self.values[id(t)] = Group([values], 0, True)
            self.values[id(t)].tensor = t
            self.values[id(t)].penalties = penalties
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
        values, given = self.draws.of(len(data[0])), {}
        for t in self.steps.inputs:
            kind, *what = self.steps.kinds[id(t)]
            if kind == "data":
                values[id(t)] = [data[what[0]]]
        penalties = {}
        for stage in self.stages:
            self.penalize(stage, penalties)
            of = stage.like
            of.run(self.strategy, {id(t): values[id(stage.inputs_of.get(id(t), t))] for t in of.inputs})
            for number, t in self.crossing:
                if number == stage.number:
                    values[id(t)] = of.rows_of(t.name, self.steps.parts_of(t))
            for key, g in self.values.items():
                if g.stage == stage.number:
                    read = of.scalar_of if g.is_scalar else lambda *a: np.concatenate(of.rows_of(*a))
                    given[key] = read(g.name, g.parts)
            self.averages.run(stage.number)
            for a in stage.asked:
                self.optimizers[id(a.optimizer)].count += 1
        self.penalize(None, penalties)
        for key, (number, of) in self.numbers.items():
            given[key] = number + sum(times * penalties[id(t)] for t, times in of)
        for key, g in self.values.items():
            for t, times in g.penalties:
                given[key] += times * penalties[id(t)]
        return given

    def penalize(self, stage, found):
        """What regularizers give for weights as they are before a stage; None: at the end."""
        applied = [k for k, a in enumerate(self.steps.asked) if stage and a.stage == stage.number]
        for t in self.shown:
            _, variables, at = self.steps.kinds[id(t)]
            if id(t) not in found and (not stage or (applied and at <= applied[0])):
                found[id(t)] = sum(penalty_of(v.regularizer, self.averages.value(v)) for v in variables)

    def write(self):
        """Weights and optimizers of the caller's become what libkeel's are."""
        self.network.take_back()
        self.averages.write()
        for stage in self.stages:
            stage.write()

    def close(self):
        for stage in self.stages:
            stage.close()
        self.network.close()
