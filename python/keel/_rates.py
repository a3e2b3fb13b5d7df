"""Learning rates of the caller's own schedules, subclasses of LearningRateSchedule."""

import contextlib

import numpy as np

from . import _library as c

AHEAD = 1024  # steps whose rates are asked for together: one alone takes TensorFlow half a millisecond


def own_schedule(optimizer):
    """The schedule of an optimizer, if its class is the caller's; else None."""
    rate = getattr(optimizer, "_learning_rate", None)
    is_schedule = any(t.__name__ == "LearningRateSchedule" for t in type(rate).__mro__)
    return rate if is_schedule and not type(rate).__module__.startswith("keras.") else None


class Rates:
    """libkeel's model asks the schedule for the rate of each step. What that raises is in `raised`."""

    def __init__(self, keras, optimizer, schedule):
        self.keras, self.optimizer, self.schedule, self.raised = keras, optimizer, schedule, None
        self.function = c.Rate(self.at)
        self.first, self.known = 0, []  # the rates of steps from `first` on
        self.ahead = AHEAD  # 1: the schedule takes one step at a time

    def at(self, _, step):
        try:
            if not self.first <= step < self.first + len(self.known):
                self.first, self.known = step, [self.of(step)]
                self.known = self.look_ahead(step) or self.known
            return float(self.known[step - self.first])
        except BaseException as error:  # no exception passes through libkeel
            self.raised = self.raised or error
            return float("nan")

    def of(self, steps):
        steps = self.keras.ops.convert_to_tensor(steps, self.optimizer.iterations.dtype)
        return self.keras.ops.convert_to_numpy(self.schedule(steps))

    def look_ahead(self, step):
        """Rates from this step on, if the schedule gives those of many steps as it gives each; else None."""
        if self.ahead == 1:
            return None
        try:
            rates = self.of(np.arange(step, step + self.ahead))
            some = (0, self.ahead // 3, self.ahead - 1)
            if rates.shape == (self.ahead,) and all(rates[i] == self.of(step + i) for i in some):
                return list(rates)
        except Exception:  # as of `if step < warmup`, or of a step that will not come
            pass
        self.ahead = 1
        return None

    @contextlib.contextmanager
    def hidden(self):
        """While the model is saved, a schedule of Keras's is in its place."""
        constant = self.keras.optimizers.schedules.ExponentialDecay(1.0, 1, 1.0)
        vars(self.optimizer)["_learning_rate"] = constant
        try:
            yield
        finally:
            vars(self.optimizer)["_learning_rate"] = self.schedule

    def give(self, model):
        c.check(c.lib.keel_model_set_rate(model.handle, self.function, None))
