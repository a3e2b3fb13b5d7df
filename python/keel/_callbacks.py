"""Callbacks: Keel's own by their text, and objects with the functions of keras.callbacks.Callback."""

import ctypes
import itertools
import signal
import sys
import threading
import time

from . import _library as c


def logs_of(moment):
    return c.dict_of(moment.logs.contents) if moment.logs else {}


def arguments(hook, moment, logs):
    """What Keras gives to a function of this name."""
    if "epoch" in hook:
        return moment.epoch, logs
    if "batch" in hook:
        return moment.step - (hook.endswith("end")), logs
    return (logs,)


def hook_of(callback, hook):
    """The function, or None if the object has none, or only the empty one of Keras's base class. That
    of a training batch calls on_batch_begin or on_batch_end there."""
    for base in type(callback).__mro__:
        if base.__name__ == "Callback" and base.__module__.startswith("keras."):
            names = [hook, hook.replace("_train_", "_")] if hook.startswith("on_train_batch") else [hook]
            found = [
                getattr(getattr(callback, n, None), "__func__", None) is not getattr(base, n, None)
                for n in names
            ]
            return getattr(callback, hook, None) if any(found) else None
    return getattr(callback, hook, None)


class Bridge:
    """Neighbouring Python callbacks as one keel_callback."""

    def __init__(self, run, callbacks):
        self.run, self.callbacks = run, callbacks
        names = ", ".join(type(x).__name__ for x in callbacks)
        self.c = c.Callback(ctypes.sizeof(c.Callback), names.encode())
        self.functions = {}
        for hook in c.HOOKS:
            found = [
                (x, f) for x in callbacks if (f := hook_of(x, hook)) and (run.writes or not writes_files(x))
            ]
            if not found:
                continue
            self.functions[hook] = found
            setattr(self.c, hook, c.On(lambda _, at, hook=hook: run.guard(self.call, hook, at.contents)))

    def call(self, hook, moment):
        found = self.functions[hook]
        looking = [type(x).__name__ for x, _ in found if not sees_logs_only(x, hook)]
        twin = self.run.twin if moment.fits else None
        given = self.run.last if hook == "on_train_end" else {} if hook.endswith("begin") else logs_of(moment)
        logs = dict(given)
        if self.run.made or hook in ("on_train_batch_end", "on_train_end"):
            self.run.twin_is_old()  # by a step, by averages that became weights, by a callback of Keel's own
        if twin:
            twin.update(weights=bool(looking))
            if looking and "batch" in hook:
                self.run.say(
                    f"{', '.join(looking)} may look at the weights in {hook}, so they are copied each time: slow"
                )
        for _, function in found:
            function(*arguments(hook, moment, logs))
        if twin:
            twin.take_changes(weights=bool(looking))
        if hook == "on_epoch_end":
            changed = {k: v for k, v in logs.items() if k not in given or v is not given[k]}
            self.run.added.setdefault(moment.epoch, {}).update(changed)
        return c.END if self.run.stops() else c.OK


# Keras's callbacks that never read or set weights, and those that do so only between epochs.
LOGS_ONLY = "CSVLogger History LearningRateScheduler ProgbarLogger ReduceLROnPlateau RemoteMonitor TerminateOnNaN".split()
BETWEEN_EPOCHS = "EarlyStopping ModelCheckpoint TensorBoard".split()


# Those that write files, which one of several processes does for all.
WRITERS = "CSVLogger ModelCheckpoint RemoteMonitor TensorBoard".split()


def writes_files(callback):
    kind = type(callback)
    return kind.__module__.startswith("keras.") and kind.__name__ in WRITERS


def sees_logs_only(callback, hook):
    kind = type(callback)
    if not kind.__module__.startswith("keras."):
        return False
    if "batch" in hook and kind.__name__ in BETWEEN_EPOCHS:
        return getattr(callback, "save_freq", "epoch") == "epoch"
    return kind.__name__ in LOGS_ONLY


class Progress:
    """A line for each epoch or pass, which grows on a terminal while it runs."""

    def __init__(self, live, what=None):
        self.live, self.what, self.drawn = live, what, 0.0

    def text(self, at, logs):
        head = self.what or f"Epoch {at.epoch + 1}/{at.epochs}"
        steps = f"{at.step}/{at.steps}" if at.steps > 0 else f"{at.step}"
        values = "".join(f" - {name}: {value:.4g}" for name, value in logs.items())
        return f"{head}: {steps} - {at.seconds:.1f}s{values}"

    def batch(self, at):
        if self.live and time.monotonic() - self.drawn > 0.1:
            self.drawn = time.monotonic()
            sys.stdout.write("\r\033[K" + self.text(at, logs_of(at)))
            sys.stdout.flush()

    def end(self, at, logs):
        print(("\r\033[K" if self.live else "") + self.text(at, logs), flush=True)


def listen(callback, run, functions):
    """Sets functions of a keel_callback by the names of their hooks. One that gives no status has gone well."""
    for hook, function in functions.items():
        call = lambda at, function=function: function(at) or c.OK
        setattr(callback, f"on_{hook}", c.On(lambda _, at, call=call: run.guard(call, at.contents)))


class Watch:
    """The last callback of each run: progress, and Ctrl-C, which ends the run after its step."""

    def __init__(self, run, progress):
        self.c = c.Callback(ctypes.sizeof(c.Callback), b"progress")
        self.run, self.progress = run, progress
        batches = {f"{pass_}_batch_end": self.batch for pass_ in ("train", "test", "predict")}
        listen(self.c, run, {**batches, "epoch_end": self.end, "test_end": self.end, "predict_end": self.end})

    def batch(self, at):
        if at.training:
            self.run.twin_is_old()
        if self.progress and at.training == at.fits:
            self.progress.batch(at)
        return c.END if self.run.interrupted else c.OK

    def end(self, at):
        if at.training == at.fits:  # not a validation
            logs = self.run.last = {**logs_of(at), **self.run.added.get(at.epoch, {})}
            if self.progress:
                self.progress.end(at, logs)
        return c.OK


def own_for(callback):
    """Callbacks of Keras's that must be Keel's own, which know where a run is, or the optimizer's averages."""
    kind = type(callback)
    if not kind.__module__.startswith("keras."):
        return callback
    if kind.__name__ == "SwapEMAWeights":
        return f"SwapEMAWeights(swap_on_epoch={bool(callback.swap_on_epoch)})"
    if kind.__name__ == "BackupAndRestore":
        raise c.Unsupported(
            "BackupAndRestore of Keras cannot place Keel in an epoch; callbacks=[\"BackupAndRestore('FOLDER')\"] is"
            " Keel's own, which goes on at the step where a run ended"
        )
    return callback


def hears_batches(callback):
    """Whether it is told the logs of each step."""
    ends = "on_train_batch_end", "on_test_batch_end"
    return isinstance(callback, str) or any(hook_of(callback, hook) for hook in ends)


class Run:
    """The callbacks of one fit, evaluate or predict, and what becomes of an exception in them."""

    def __init__(self, callbacks, shown, twin, progress, say, writes=True, metrics=None):
        self.shown, self.twin, self.say = shown, twin, say  # the model that callbacks see
        self.raised, self.interrupted = None, False
        self.added = {}  # epoch: what Python callbacks have added to its logs
        self.last = {}  # the logs of the last epoch
        self.writes = writes  # files: of several processes the first one does
        self.made, self.list = [], []
        callbacks = [own_for(x) for x in callbacks]
        self.python = [x for x in callbacks if not isinstance(x, str)]
        for x in self.python:
            if not any(hasattr(x, hook) for hook in c.HOOKS):
                raise c.ArgumentError(
                    f"{x!r} is no callback: it has no on_epoch_end, nor any other function of one"
                )
        try:
            for own, group in itertools.groupby(callbacks, lambda x: isinstance(x, str)):
                self.list += [self.own(x) for x in group] if own else [Bridge(self, list(group))]
        except BaseException:
            self.close()
            raise
        self.list.append(Watch(self, progress))
        if twin and twin.by_keras.variables:
            twin.by_keras.open(self)
            self.list.insert(0, twin.by_keras)
        if metrics:  # they come first: all others see what they add to logs
            metrics.open(self, bool(progress and progress.live) or any(map(hears_batches, callbacks)))
            self.list.insert(0, metrics)
        pointers = [x if isinstance(x, int) else ctypes.addressof(x.c) for x in self.list]
        self.array = (ctypes.c_void_p * (len(pointers) + 1))(*pointers)

    def own(self, text):
        made = ctypes.c_void_p()
        c.check(c.lib.keel_callback_parse(ctypes.byref(made), text.encode()))
        self.made.append(made)
        return made.value

    def guard(self, function, *args):
        """Calls Python for libkeel: an exception becomes a status, and is raised after the run."""
        try:
            return function(*args)
        except BaseException as error:
            self.raised = error if self.raised is None else self.raised
            return c.lib.keel_error_set(c.ECALLBACK, f"{type(error).__name__}: {error}".encode())

    def stops(self):
        return self.interrupted or bool(self.shown.stop_training)

    def twin_is_old(self):
        if self.twin:
            self.twin.old = True

    def close(self):
        for made in self.made:
            c.lib.keel_callback_destroy(made)
        self.made = []

    def __enter__(self):
        """While libkeel runs, Ctrl-C is seen between two steps: the run ends as if stopped."""
        now = signal.getsignal(signal.SIGINT)
        mine = threading.current_thread() is threading.main_thread() and now is signal.default_int_handler
        self.handler = now if mine else None  # else the caller has its own
        if mine:
            signal.signal(signal.SIGINT, self.interrupt)
        return self

    def interrupt(self, *_):
        self.interrupted = True

    def __exit__(self, *_):
        if self.handler:
            signal.signal(signal.SIGINT, self.handler)
        self.close()
