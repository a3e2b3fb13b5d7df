"""A step of the caller's on the devices of a strategy: its stages as functions, and what goes between them."""

import numpy as np

from . import _library as c
from . import _penalties
from ._assigned import Averages
from ._branches import nodes_behind
from ._functions import Stage
from ._means import values_of_rows
from ._network import Network
from ._optimizers import Applied
from ._same import Same
from ._steps import Group

MANY_STATES = 1 << 18  # numbers of an optimizer's state that go from one function to another


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


def at_once(keras, function):
    """On TensorFlow all that a function computes is one call, as in Keras's own fit."""
    if keras.backend.backend() != "tensorflow":
        return function
    import tensorflow as tf

    return tf.function(function)


def tensors_given(steps):
    """Those that metrics or the result take."""
    tree, is_tensor = steps.keras.tree, lambda t: isinstance(t, steps.keras.KerasTensor)
    given = [(u.args, u.kwargs) for u in steps.updates]
    return [t for t in tree.flatten([given, steps.result]) if is_tensor(t)]


class Program:
    """All stages of a step, made for a strategy. run(data) gives numbers and arrays, by id of a tensor of `now`: the
    step as it was made for so many rows."""

    def __init__(self, steps, strategy, seed):
        self.now = self.steps = steps
        self.strategy, self.draws = strategy, Draws(steps)
        self.numbers = {}  # by id of a tensor that is made of penalties alone: a number, and those
        self.values = {}  # by id of a tensor that the step gives on: the group of it
        self.stages, self.optimizers, self.undecayed = [], {}, []
        self.last = {}  # by id of an optimizer: the stage that has applied it last, as its k-th
        regularized = self.find_values()
        groups = [*steps.groups, *self.values.values()]
        self.network = Network(steps, [t for g in groups for t in g.outputs], regularized)
        try:
            for g in groups:
                self.find_inputs(g)
            for a in steps.asked:
                self.open_optimizer(a)
            self.network.exclude_from_weight_decay(self.undecayed)
            self.averages = Averages(steps, self.network)
            self.put_late()
            self.open_stages(seed)
        except BaseException:
            self.close()
            raise

    def find_values(self):
        """Gives the variables whose regularizers are in losses."""
        regularized, steps = [], self.steps
        for asked in steps.asked:
            asked.group = self.of_value(asked.loss) or steps.refuse("a loss is not computed of its rows")
            regularized += _penalties.check(steps, asked, asked.group.penalties)
        for t in tensors_given(steps):
            self.of_value(t)
        shown = [pair for g in self.values.values() for pair in g.penalties]
        shown += [pair for _, penalties in self.numbers.values() for pair in penalties]
        self.shown = list({id(p): p for p, _ in shown}.values())
        return regularized

    def find_inputs(self, group):
        if group.loss is not None:
            return
        self.check_weights(group)
        needs = [self.network.needs[self.network.head[id(t)]] for t in group.outputs]
        group.inputs = list({key: t for need in needs for key, t in need.items()}.values())
        group.parts = self.steps.parts_of(*group.inputs)

    def open_optimizer(self, asked):
        known = asked.variables  # Keras builds an optimizer for all that it gets
        self.leave_unreached(asked)
        if id(asked.optimizer) not in self.optimizers:
            moved = [v for v in self.network.variables if any(v is w for w in asked.variables)]
            self.undecayed += [v for v in moved if not asked.optimizer._use_weight_decay(v)]
            self.optimizers[id(asked.optimizer)] = Applied(asked.optimizer, moved, known)

    def open_stages(self, seed):
        asked = self.steps.asked
        count = 1 + max([x.stage for x in (*asked, *self.values.values(), *self.steps.groups)])
        of = lambda number: [a for a in asked if a.stage == number]
        self.stages = [Stage(self.network, s, of(s), self.optimizers, seed) for s in range(count)]
        self.plan()
        self.check_statistics()
        for stage in self.stages:
            self.find_same(stage)
            if stage.like is stage:
                stage.create()

    def leave_unreached(self, asked):
        """Keras moves no weight that has no gradient, not even by weight decay."""
        reached, heads, todo = set(), set(), [(asked.group, 0)]
        while todo:
            group, k = todo.pop()
            if not asked.records(group):
                continue
            if group.loss is not None:
                todo += [g for t in group.inputs for g in self.groups_of(t)]
                continue
            head = self.network.head[id(group.outputs[k])]
            if head not in heads:
                heads.add(head)
                reached |= self.network.reached[head]
                todo += [g for t in self.network.needs[head].values() for g in self.groups_of(t)]
        left = [v.path for v in asked.variables if id(v) not in reached]
        if left:
            c.tell(f"a loss does not depend on {', '.join(left[:5])}, which stay as they are")
        asked.variables = [v for v in asked.variables if id(v) in reached]

    def check_weights(self, group):
        for t in group.outputs:
            for n in nodes_behind(self.steps.keras, [t]).values():
                kind, *what = self.steps.kinds.get(id(n.outputs[0]), (None,)) if n.is_input else (None,)
                if kind == "weight":
                    self.steps.refuse(f"it reads '{what[0].path}', outside of the layer that has it")

    def of_value(self, t):
        """The group of a tensor: of a number of the batch, values of rows whose mean it is."""
        if id(t) not in self.values:
            parted = _penalties.Parted(self.steps, t)
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
        return what[0].stage if kind == "group" else max(map(self.stage_of, self.steps.sources(t)), default=0)

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
            for g, _ in self.groups_of(t):
                users.setdefault(id(g), []).append(stage)

    def groups_of(self, t):
        """The groups that an input of the graph is made of, each with the number of its output."""
        kind, *what = self.steps.kinds[id(t)]
        if kind == "group":
            return [tuple(what)]
        return [g for s in self.steps.sources(t) for g in self.groups_of(s)]

    def check_statistics(self):
        """Of calls in training that move statistics: of all rows at once, and also where nobody needs the results."""
        for g in self.steps.groups:
            if g.layer is None or not g.training or not learns_by_calls(self.steps.keras, g.layer):
                continue
            if g.parts > 1:
                self.steps.refuse(
                    f"'{g.layer.name}' takes statistics of rows that were joined: call it on each"
                )
            if not any(id(g) in stage.here for stage in self.stages):
                self.steps.refuse(f"it calls '{g.layer.name}' in training, and takes nothing of it")

    def find_same(self, stage):
        """An optimizer that moves weights in several stages has one state. Stages that are alike are one function; the
        state goes from one function to another."""
        mine = {id(a.optimizer) for a in stage.asked}
        for other in self.stages[: stage.number]:
            if other.like is not other or not mine & {id(a.optimizer) for a in other.asked}:
                continue
            same = Same(self.steps, other, stage)
            if not same.found():
                self.check_shared(other, stage)
                continue
            stage.like, stage.inputs_of = other, same.inputs
            if any(number == stage.number for number, _ in self.crossing):
                self.steps.refuse("one of several steps that are alike gives something else on")
            for g in self.values.values():
                if g.stage == stage.number:
                    twins = [h for h in self.values.values() if h.stage == other.number and same.groups(h, g)]
                    if not twins:
                        self.steps.refuse("one of several steps that are alike gives something else on")
                    g.name = twins[0].name
            return

    def check_shared(self, *stages):
        """An optimizer of two functions has the state of all weights that it moves in both."""
        moved = [{id(a.optimizer): {id(v) for v in a.variables} for a in stage.asked} for stage in stages]
        for key in set(moved[0]) & set(moved[1]):
            if moved[0][key] != moved[1][key]:
                self.steps.refuse("an optimizer moves some weights by one loss, and others by another")
            numbers = sum(int(np.prod(v.shape)) for v in self.optimizers[key].states)
            if numbers > MANY_STATES:
                c.tell(
                    f"an optimizer of '{self.steps.model.name}' moves weights by several losses that are not alike: its"
                    f" state of {numbers} numbers goes from one function to the other in each step, which is slow"
                )

    def plan(self):
        """Which inputs each stage needs, and what it gives to others and to metrics."""
        for k, g in enumerate(self.values.values()):
            stage = self.stages[g.stage]
            g.name, g.is_scalar = f"value_{k}", not g.tensor.shape
            stage.returned.append((g.name, g, None if g.is_scalar else 0))
        self.crossing = self.read_back()
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

    def read_back(self):
        """What is read of groups, beside numbers: (stage, input of the graph) of each."""
        return []

    def run(self, data):
        """data: arrays, as the step gets them. Gives numbers and arrays by id of a tensor."""
        values, given = self.draws.of(len(data[0])), {}
        for t in self.steps.inputs:
            kind, *what = self.steps.kinds[id(t)]
            if kind == "data":
                values[id(t)] = [data[what[0]]]
        self.begin_run(values)
        penalties = {}
        for stage in self.stages:
            self.penalize(stage, penalties)
            of = stage.like
            given_to = {id(t): values[id(stage.inputs_of.get(id(t), t))] for t in of.inputs}
            of.run(self.strategy, given_to, self.last)
            self.last.update({id(a.optimizer): (of, k) for k, a in enumerate(of.asked)})
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
        self.end_run(values, penalties, given)
        return given

    def prepare(self, data):
        """For steps of so many rows."""

    def begin_run(self, values):
        """Into `values` what else inputs of the graph are."""

    def end_run(self, values, penalties, given):
        """Into `given` what is computed of what was read."""

    def penalize(self, stage, found):
        """What regularizers give for weights as they are before a stage; None: at the end."""
        applied = [k for k, a in enumerate(self.steps.asked) if stage and a.stage == stage.number]
        for t in self.shown:
            _, variables, at = self.steps.kinds[id(t)]
            if id(t) not in found and (not stage or (applied and at <= applied[0])):
                found[id(t)] = sum(
                    _penalties.value_of(v.regularizer, self.averages.value(v)) for v in variables
                )

    def write(self):
        """Weights and optimizers of the caller's become what libkeel's are."""
        self.network.take_back()
        self.averages.write()
        for key, (stage, k) in self.last.items():
            self.optimizers[key].take_back(stage.handle, k)

    def close(self):
        for stage in self.stages:
            stage.close()
        self.network.close()


def learns_by_calls(keras, layer):
    """Whether it has numbers that each call in training moves."""
    real = keras.backend.is_float_dtype
    parts = layer._flatten_layers()
    return any(real(v.dtype) for part in parts for v in part._non_trainable_variables)
