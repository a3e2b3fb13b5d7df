"""What a step of the caller's gives: its metrics, which get numbers from libkeel, and its logs."""

import numpy as np

from ._ops import Rows
from ._steps import Result


class Mean:
    """The running mean of a metric of Keras's that is only that, until the metric is looked at."""

    def __init__(self, metric):
        self.metric, self.total, self.count = metric, 0.0, 0.0

    def reset(self):
        self.total = self.count = 0.0

    def add(self, values, sample_weight=None):
        """As Keras's update_state, of one number."""
        weight = 1.0 if sample_weight is None else sample_weight
        self.total, self.count = self.total + values * weight, self.count + weight

    def result(self):
        return self.total / self.count if self.count else 0.0

    def write(self):
        self.metric.total.assign(self.total)
        self.metric.count.assign(self.count)


class Metrics:
    """The metrics of the caller's, which get the numbers of each step."""

    def __init__(self, keras, model, steps):
        self.keras, self.model, self.steps, self.given = keras, model, steps, {}
        self.check_result()
        self.means = {}  # by id of a metric
        others = {id(u.metric) for u in steps.updates if not self.is_mean(u)}
        for u in steps.updates:
            if id(u.metric) not in others:
                self.means[id(u.metric)] = Mean(u.metric)

    def check_result(self):
        keras, steps = self.keras, self.steps
        if not isinstance(steps.result, dict):
            steps.refuse("it returns no dict of logs")
        for r in keras.tree.flatten(steps.result):
            plain = isinstance(r, (Result, keras.KerasTensor, keras.Variable, int, float))
            if keras.ops.is_tensor(r) or not (plain or np.isscalar(r)):
                steps.refuse(f"its logs have a {type(r).__name__}, which would stay as it is")

    def is_mean(self, update):
        values = [*update.args, *update.kwargs.values()]
        numbers = not values[0].shape if isinstance(values[0], self.keras.KerasTensor) else False
        weight = values[1] if len(values) > 1 else None
        plain = weight is None or isinstance(weight, (int, float))
        return type(update.metric) is self.keras.metrics.Mean and numbers and plain and len(values) <= 2

    def reset(self):
        self.model.reset_metrics()
        for mean in self.means.values():
            mean.reset()

    def update(self, steps, given, rows):
        """steps: as they were made for so many rows."""
        self.steps, self.given, tree = steps, given, self.keras.tree

        def now(a):
            if isinstance(a, self.keras.KerasTensor):
                return given[id(a)]
            return rows if isinstance(a, Rows) else a

        for u in self.steps.updates:
            args, kwargs = tree.map_structure(now, (u.args, u.kwargs))
            mean = self.means.get(id(u.metric))
            if mean:
                mean.add(*args, **kwargs)
            else:
                u.metric.update_state(*tree.map_structure(self.tensor, args), **kwargs)

    def tensor(self, a):
        return self.keras.ops.convert_to_tensor(a) if isinstance(a, np.ndarray) else a

    def result(self):
        def of(r):
            if isinstance(r, Result):
                mean = self.means.get(id(r.metric))
                r = mean.result() if mean else r.metric.result()
            elif isinstance(r, self.keras.KerasTensor):
                r = self.given[id(r)]
            if isinstance(r, dict):
                return {k: of(v) for k, v in r.items()}
            return float(r) if np.ndim(r) == 0 else np.asarray(r)

        return flat({name: of(r) for name, r in self.steps.result.items()})

    def write(self):
        for mean in self.means.values():
            mean.write()


def flat(logs):
    """As Keras gives them to callbacks: what is in a dict within is there by its own name."""
    found = {}
    for name, value in sorted(logs.items()):
        found.update(flat(value) if isinstance(value, dict) else {name: value})
    return found
