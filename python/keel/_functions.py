"""A stage of a step (_steps.py) as a function of libkeel."""

import ctypes
import json

import numpy as np

from . import _library as c
from . import _rows
from ._library import check, lib
from ._optimizers import move_state

UNUSED = UNWEIGHTED = -1


def part(name, p):
    return f"{name}_{p}".encode()


def made(function, *args):
    """The number of what a call of a trace makes."""
    out = ctypes.c_int()
    check(function(*args, ctypes.byref(out)))
    return out.value


def arguments(config):
    """A list of keel_arg of a config of Keras's."""
    pairs = [(k.encode(), json.dumps(v).encode()) for k, v in config.items() if v is not None]
    return (c.Arg * (len(pairs) + 1))(*(c.Arg(key, c.ARG_IS_JSON, text=text) for key, text in pairs))


class Stage:
    """A function of libkeel. asked: the gradients that it applies; returned: (name, group, the number of its
    output, or None: the mean of its only one)."""

    def __init__(self, network, number, asked, optimizers, seed):
        self.network, self.steps, self.number, self.asked = network, network.steps, number, asked
        self.optimizers, self.seed = optimizers, seed  # by id of a Keras optimizer: an Applied
        self.inputs, self.returned = [], []  # inputs: tensors, each with all of its parts
        self.like = self  # the stage whose function it runs
        self.inputs_of = {}  # by id of an input of that function: what this stage has in its place
        self.handle, self.raised, self.known_ways = ctypes.c_void_p(), None, {}
        self.rates, self.is_ready = [None] * len(asked), False  # rates: as libkeel knows them

    # ---- the plan --------------------------------------------------------------------------------

    def ways(self, t, all=False):
        """Which gradients of the stage flow back to this input of the graph; all: or would, if tapes recorded all."""
        key = id(t), all
        if key not in self.known_ways:
            kind, *what = self.steps.kinds[id(t)]
            if kind == "group":
                self.known_ways[key] = self.ways_of(what[0], all)
            else:
                self.known_ways[key] = set().union(*(self.ways(s, all) for s in self.steps.sources(t)))
        return self.known_ways[key]

    def moving(self, group):
        """Which gradients of the stage are for weights of this group."""
        return {i for i, a in enumerate(self.asked) if group.variables & {id(v) for v in a.variables}}

    def ways_of(self, group, all=False):
        ways = self.moving(group).union(*(self.ways(t, all) for t in group.inputs))
        return ways if all else {i for i in ways if self.asked[i].records(group)}

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
        sources = self.steps.sources(t)
        if sources:
            for given in sources:
                self.needed_input(given, found)
        elif kind == "group" and self.is_here(what[0]):
            self.needed(what[0], found)
        else:
            found[id(t)] = t

    # ---- the trace -------------------------------------------------------------------------------

    def trace(self, _, t):
        try:
            self.t, self.made, self.scalars = t, {}, {}
            for (
                group
            ) in self.steps.groups:  # as the step calls them: one may read statistics that another moves
                if id(group) in self.here:
                    self.emitted(group, self.way(self.ways_of(group), None))
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
        self.rates[i] = self.optimizers[id(asked.optimizer)].rate()
        config = {**asked.optimizer.get_config(), **asked.clip, "learning_rate": self.rates[i]}
        kept = arguments(config)
        apply = c.Apply(c.Named(type(asked.optimizer).__name__.encode(), kept))
        check(lib.keel_trace_apply(self.t, g, ctypes.byref(apply)))

    def scalar(self, group, way):
        """A number of libkeel's for each part of the rows."""
        key = id(group), self.way(self.ways_of(group), way)
        if key not in self.scalars and group.loss is not None:
            self.scalars[key] = [self.of_all_rows(group, key[1])]
        if key not in self.scalars:
            mean = lambda value: made(lib.keel_trace_mean, self.t, value, UNWEIGHTED)
            self.scalars[key] = [mean(value) for value in self.emitted(group, key[1])]
        return self.scalars[key]

    def of_all_rows(self, group, way):
        values, names = [v for t in group.inputs for v in self.value(t, way)], group.inner.names(group)
        given = (ctypes.c_char_p * len(names))(*names), (ctypes.c_int * len(values))(*values), len(values)
        loss = c.WholeLoss(*given, group.inner.step)
        return made(lib.keel_trace_whole_loss, self.t, ctypes.byref(loss))

    def way(self, ways, way):
        return way if way in ways else min(ways, default=None)

    def value(self, t, way):
        """Of an input of the graph, for gradient `way`: a value of libkeel's for each part of the rows."""
        ways = self.ways(t)
        key = id(t), self.way(ways, way)
        if key not in self.made:
            self.made[key] = self.of_kind(t, way, key[1])
        if way is None or way in ways or not self.ways(t, all=True):
            return self.made[key]
        stopped = lambda v: made(
            lib.keel_trace_call, self.t, b"ops.StopGradient", None, None, (ctypes.c_int * 1)(v), 1
        )
        return list(map(stopped, self.made[key]))  # this gradient is of other weights

    def of_kind(self, t, way, own_way):
        kind, *what = self.steps.kinds[id(t)]
        if kind == "slope":
            pairs = zip(*(self.value(s, way) for s in what))
            slopes = [made(lib.keel_trace_gradient_of, self.t, y, x) for y, x in pairs]
            return [self.share(t, slope) for slope in slopes] if id(t) in self.steps.shares else slopes
        if kind == "joined":
            return [value for given in what[0] for value in self.value(given, way)]
        if kind == "part":
            return self.value(what[0], way)[what[1] : what[1] + what[2]]
        if kind == "group" and self.is_here(what[0]):
            return self.emitted(what[0], own_way, what[1])
        parts = range(self.steps.parts_of(t))
        return [made(lib.keel_trace_input, self.t, part(t.name, p)) for p in parts]

    def share(self, t, slope):
        """Of the gradient of a mean over all rows."""
        ones = arguments({"target_shape": [1] * (len(t.shape) - 1)})
        rows = made(lib.keel_trace_fact, self.t, c.FACT_ROWS)
        call = lambda name, args, *values: made(
            lib.keel_trace_call, self.t, name, args, None, (ctypes.c_int * len(values))(*values), len(values)
        )
        return call(b"ops.Divide", None, slope, call(b"Reshape", ones, rows))

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
        first = not any(key[0] == id(group) for key in self.made)
        how = c.INFERENCE if not group.training else c.TRAINING if first else c.TRAINING_AGAIN
        return made(lib.keel_trace_outputs, self.t, network.model.handle, how, given, len(values), wanted)

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

    def run(self, strategy, values, last):
        """values: by id of an input its arrays, one for each part. last: where the states of optimizers are."""
        kept = []
        tensors = [_rows.as_tensor(a, t.name, kept) for t in self.inputs for a in values[id(t)]]
        given = strategy, self.handle, (c.Tensor * len(tensors))(*tensors), len(tensors)
        if not self.is_ready:
            self.check(lib.keel_strategy_prepare(*given))
            for k, asked in enumerate(self.asked):
                if id(asked.optimizer) not in last:
                    self.optimizers[id(asked.optimizer)].give(self.handle, k)
            self.is_ready = True
        for k, asked in enumerate(self.asked):
            stage, at = last.get(id(asked.optimizer), (self, k))
            if stage is not self:
                move_state(stage.handle, at, self.handle, k)
        for k, asked in enumerate(self.asked):
            rate = self.optimizers[id(asked.optimizer)].rate()
            if rate != self.rates[k]:
                check(lib.keel_function_set_learning_rate(self.handle, k, rate))
                self.rates[k] = rate
        self.check(lib.keel_strategy_run(*given))

    def check(self, status):
        inner = [asked.group.inner.raised for asked in self.asked if asked.group.loss is not None]
        for raised in (self.raised, *inner):
            if raised is not None:
                raise raised
        check(status)

    def scalar_of(self, name, parts):
        out, total = ctypes.c_double(), 0.0
        for p in range(parts):
            check(lib.keel_function_scalar(self.handle, part(name, p), ctypes.byref(out)))
            total += out.value
        return total / parts

    def rows_of(self, name, parts):
        return [_rows.taken(lib.keel_gather, self.handle, part(name, p)) for p in range(parts)]

    def close(self):
        lib.keel_function_destroy(self.handle)
        self.handle = ctypes.c_void_p()
