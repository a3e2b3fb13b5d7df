"""The processes that a launcher started (mpirun, mpiexec, srun), which run each fit, evaluate and predict together."""

import atexit
import contextlib
import ctypes
import functools
import hashlib
import inspect
import os
import sys

import numpy as np

from . import _library as c
from ._library import check, lib

WORDS = 512  # bytes of what a process says of itself


class Launched:
    """All processes of this launch, connected until the program ends."""

    def __init__(self, launch):
        self.handle, self.lost = ctypes.c_void_p(), False
        check(lib.keel_launched_open(ctypes.byref(self.handle), ctypes.byref(launch), 0.0))
        self.count = lib.keel_launched_count(self.handle)
        self.rank = lib.keel_launched_rank(self.handle)
        self.hosts = [
            lib.keel_launched_host(self.handle, q).decode(errors="replace") for q in range(self.count)
        ]
        self.limited = False  # to the instructions that all processors have
        atexit.register(self.close)
        self.warn_of_shared_cores()

    def gather(self, text):
        """What each process says, in their order."""
        own = text.encode()[:WORDS].ljust(WORDS, b"\0")
        all_ = ctypes.create_string_buffer(WORDS * self.count)
        check(lib.keel_launched_gather(self.handle, own, all_, WORDS))
        return [all_.raw[i * WORDS : (i + 1) * WORDS].rstrip(b"\0").decode() for i in range(self.count)]

    def warn_of_shared_cores(self):
        hosts, own = self.hosts, sum(1 << core for core in os.sched_getaffinity(0))
        cores = [int(said, 16) for said in self.gather(f"{own:x}")]
        of = [q for q in range(self.count) if hosts[q] == hosts[0]]
        if self.rank == 0 and any(cores[p] & cores[q] for p in of for q in of if p < q):
            c.tell(
                f"{len(of)} processes on {hosts[0]} may use the same cores, so each takes them from the others: start"
                " one process a machine, with all its cores, or bind each to its own (mpirun --bind-to core)"
            )

    def strategy(self, handle, devices):
        """A keel_strategy of the devices of all processes."""
        group = c.ProcessGroup()
        check(lib.keel_launched_group(self.handle, ctypes.byref(group)))
        if not self.limited:
            self.limit(group)
        check(lib.keel_strategy_create_group(ctypes.byref(handle), devices, ctypes.byref(group)))

    def limit(self, group):
        """Processors that differ would not round alike."""
        own = lib.keel_instructions()
        status = lib.keel_instructions_common(ctypes.byref(group))
        if status < 0:
            error = c.failure(status)
            group.close(group.context, True)
            raise error
        self.limited = True
        if lib.keel_instructions() != own:
            c.tell(
                f"this machine has {own.decode()}, but all processes compute with {lib.keel_instructions().decode()},"
                " which all of their processors have"
            )

    def close(self):
        lib.keel_launched_close(self.handle, self.lost or hasattr(sys, "last_value"))


class Together:
    """A run in all processes. What one of them fails with before it begins is raised in all."""

    def __init__(self, launched):
        self.all, self.settled = launched, False
        self.first = launched.rank == 0

    def agree(self, error=None):
        """All have come so far."""
        status = lib.keel_launched_agree(self.all.handle, c.OK if error is None else set_error(error))
        if status < 0:
            self.settled = True
            failed = c.failure(status)
            self.all.lost = self.all.lost or failed.status == "KEEL_EREMOTE"
            raise failed

    def of_first(self, number):
        """The number that process 0 has."""
        self.agree()
        array = np.array([number], np.int64)
        self.broadcast(array)
        return int(array[0])

    def broadcast(self, array):
        check(lib.keel_launched_broadcast(self.all.handle, array.ctypes.data, array.nbytes))

    def give_variables(self, variables):
        """Those of process 0 become those of all, if they differ."""
        arrays = [np.asarray(v, order="C") for v in variables]
        self.agree()
        shapes, values = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
        for a in arrays:
            shapes.update(f"{a.shape} {a.dtype};".encode())
            values.update(a.view(np.uint8).data if a.size and a.ndim else a.tobytes())
        said = [text.split() for text in self.all.gather(f"{shapes.hexdigest()} {values.hexdigest()}")]
        for q, (of_shapes, _) in enumerate(said):
            if of_shapes != said[0][0]:
                self.settled = True  # all see it
                raise c.ArgumentError(
                    f"process {q} has a model of other weights than process 0; all must make the same model"
                )
        if all(of_values == said[0][1] for _, of_values in said):
            return
        for v, a in zip(variables, arrays):
            a = a.copy()
            self.broadcast(a)
            if not self.first:
                v.assign(a)

    def open_strategy(self, handle, devices):
        self.all.strategy(handle, devices)

    def begin(self):
        """Nothing is left to prepare: from here on libkeel tells all processes what one of them fails with."""
        self.agree()
        self.settled = True

    def leave(self, strategy, error):
        """Code of the caller's has failed between two runs of libkeel's, in which the others do not wait for it."""
        if self.settled and not is_of_library(error):
            lib.keel_strategy_leave(strategy, set_error(error))

    def __enter__(self):
        if self.all.lost:
            raise c.Error("another process was lost in a run before; processes=1 goes on in this one alone")
        return self

    def __exit__(self, kind, error, _):
        self.all.lost = self.all.lost or getattr(error, "status", None) == "KEEL_EREMOTE"
        if error is not None and not self.settled:
            with contextlib.suppress(c.Error):  # the others are told; the caller is told by `error`
                self.agree(error)


class Alone:
    """A run in this process alone: the same calls."""

    first = True

    def agree(self, error=None):
        pass

    def of_first(self, number):
        return number

    def give_variables(self, variables):
        pass

    def open_strategy(self, handle, devices):
        check(lib.keel_strategy_create(ctypes.byref(handle), devices))

    def begin(self):
        pass

    def leave(self, strategy, error):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def set_error(error):
    """As libkeel's error, for the other processes."""
    return lib.keel_error_set(c.ECALLBACK, f"{type(error).__name__}: {error}".encode())


def is_of_library(error):
    """Whether all processes know of it."""
    return isinstance(error, c.Error) and "status" in vars(error)


launched = None


def all_processes():
    """The Launched of this program; None: no launcher has started several processes."""
    global launched
    if launched is None:
        launch = lib.keel_launch_find()
        if not launch.name:
            refuse_others()
        elif launch.size != 1:
            try:
                launched = Launched(launch)
            except c.ArgumentError as error:
                error.args = (f"{error}; with processes=1 each of them trains alone",)
                raise
    return launched if launched and launched.count > 1 else None


# Launchers whose processes Keel cannot connect, by what they put into the environment: rank, size, and so on.
OTHERS = {
    "torchrun": ("RANK", "WORLD_SIZE", "MASTER_ADDR"),
    "horovodrun": ("HOROVOD_RANK", "HOROVOD_SIZE"),
}


def refuse_others():
    """Processes that another launcher has started, or that TF_CONFIG names, would each train for itself."""
    text = ctypes.create_string_buffer(2048)
    command = f"python {os.path.basename(sys.argv[0] or 'PROGRAM')}"
    for name, variables in OTHERS.items():
        count = os.environ.get(variables[1], "")
        if all(v in os.environ for v in variables) and count.isdigit() and int(count) > 1:
            raise c.ArgumentError(
                f"{name} started {count} processes, which Keel does not connect: type mpirun -n {count} {command}; with"
                " processes=1 each of them trains alone"
            )
    if lib.keel_launch_refuses_tensorflow(text, len(text), command.encode()):
        raise c.ArgumentError(text.value.decode(errors="replace"))


def rank():
    """Which process this is of those that mpirun, mpiexec or srun started: 0 is the first, and one that is alone."""
    group = all_processes()
    return group.rank if group else 0


def processes():
    """How many processes mpirun, mpiexec or srun started; 1 without them."""
    group = all_processes()
    return group.count if group else 1


def together(count):
    """A run in all processes, or, if `count` is 1, in this one alone."""
    if count not in (None, 1):
        raise c.ArgumentError(f"processes is {count!r}; it is None, for all that the launcher started, or 1")
    group = all_processes() if count is None else None
    c.quiet = bool(group and group.rank)  # process 0 speaks for all
    return Together(group) if group else Alone()


def in_processes(function):
    """A function of the package's with one more argument, `processes`. It gets the run as its first one."""

    @functools.wraps(function)
    def call(*args, processes=None, **named):
        with together(processes) as run:
            return function(run, *args, **named)

    s = inspect.signature(function)
    more = inspect.Parameter("processes", inspect.Parameter.KEYWORD_ONLY, default=None)
    call.__signature__ = s.replace(parameters=[*list(s.parameters.values())[1:], more])
    return call
