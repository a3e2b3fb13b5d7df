"""What every peer shares: the works and their data, the command line, the line of JSON.

    PEER.py WORK [--batch-size N] [--dtype float32|mixed_bfloat16] [--seconds S]
    PEER.py WORK --check STEPS
    PEER.py --serve

The first form prints one line of JSON: median (Keras: best epoch) ms of a training step, rows/s,
versions; the second the number of parameters and the losses of some steps (see check.py). With
--serve a peer starts once and answers lines of "WORK BATCH DTYPE SECONDS" on standard
input, each with such a line, so that bench/run.py can take turns between peers without paying for
their start every time; what it has prepared for a small work it keeps.

Works and rows are those of `keel bench`: SGD(0.001, momentum 0.9), sparse categorical cross-entropy,
no metric, numbers of [0, 1) or tokens in memory, every batch full. One class: a yes or a no, with
binary cross-entropy.
"""
import argparse
import gc
import json
import os
import statistics
import sys
import time
import traceback

WORKS = {  # shape of a row, classes, rows, batch size
    "mlp": ((784,), 10, 16384, 64),
    "mnist-cnn": ((28, 28, 1), 10, 8192, 64),
    "resnet18": ((224, 224, 3), 1000, 64, 16),
    "resnet50": ((224, 224, 3), 1000, 64, 16),
    "mobilenetv2": ((224, 224, 3), 1000, 64, 16),
    "lstm": ((200,), 1, 1024, 32),
    "gpt": ((256,), 65, 192, 12),
    "transformer": ((200,), 2, 1024, 32),
    "unet": ((128, 128, 3), 3, 64, 16),
    "efficientnetb0": ((224, 224, 3), 1000, 64, 16),
    "densenet121": ((224, 224, 3), 1000, 64, 16),
    "convnexttiny": ((224, 224, 3), 1000, 64, 16),
    "conv1d": ((8000, 1), 5, 128, 32),
}
VOCABULARY = {"lstm": 20000, "gpt": 65, "transformer": 20000}  # works whose rows are tokens, and how many there are
PLACES = {"gpt": (256,), "unet": (128, 128)}  # works with a label for each place, and their shape
LEARNING_RATE, MOMENTUM = 0.001, 0.9
LEAST_STEPS, WARM_STEPS, WARM_SECONDS = 5, 10, 0.5
GPU_BLOCK = 10  # steps of a GPU between two waits


class Unsupported(Exception):
    """This peer does not have the work or the type; the text says which."""


def is_large(work):
    """Does a step take so long that it has a process to itself, and few tries?"""
    return work == "gpt" or len(WORKS[work][0]) == 3 and WORKS[work][0][0] > 100


def data(work, batch):
    """x [rows, ...] float32, or int32 tokens, and y [rows, ...] int32, channels last; rows as keel
    bench counts them."""
    import numpy as np

    shape, classes, rows, _ = WORKS[work]
    rows = max(rows // batch * batch, 4 * batch)
    chance = np.random.default_rng(0)
    if work in VOCABULARY:
        x = chance.integers(0, VOCABULARY[work], (rows, *shape), dtype=np.int32)
    else:
        x = chance.random((rows, *shape), dtype=np.float32)
    places = (rows, *PLACES.get(work, ()))
    return x, chance.integers(0, max(classes, 2), places).astype(np.int32)


def time_steps(step, seconds, block=1, wait=lambda: None):
    """Seconds of each call of step(i), after a warm-up; at least LEAST_STEPS however slow. Steps that
    only enqueue (on a GPU) are timed `block` at a time, with a wait behind each block."""
    begin = time.perf_counter()
    i = 0
    while i < WARM_STEPS and (i < 2 or time.perf_counter() - begin < WARM_SECONDS):
        step(i)
        i += 1
    wait()
    took = []
    begin = last = time.perf_counter()
    while len(took) < LEAST_STEPS or last - begin < seconds:
        for _ in range(block):
            step(i)
            i += 1
        wait()
        now = time.perf_counter()
        took.append((now - last) / block)
        last = now
    return took


def peak_mib():
    """Peak memory of this process so far."""
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024)
    return None


def run_one(peer, prepared, work, batch, dtype, seconds):
    if work not in WORKS:
        raise Unsupported(f"no work '{work}'; there are {', '.join(WORKS)}")
    key = (work, batch, dtype)
    if key not in prepared:
        if is_large(work):
            prepared.clear()
            gc.collect()
        prepared[key] = peer.prepare(work, batch, dtype)
    took = prepared[key](seconds)  # seconds of steps, or {"ms": ..} and more
    out = {"peer": peer.name, "work": work, "batch": batch, "dtype": dtype}
    if isinstance(took, dict):
        out.update(took)
    else:
        out.update(ms=1e3 * statistics.median(took), least_ms=1e3 * min(took), steps=len(took))
    out["rows_per_s"] = round(1e3 * batch / out["ms"], 1)
    for k in ("ms", "least_ms"):
        if k in out:
            out[k] = round(out[k], 4)
    out["peak_mib"] = peak_mib() + (peer.more_mib() if hasattr(peer, "more_mib") else 0)
    out["versions"] = peer.versions()
    return out


def reply(f, value):
    f.write(json.dumps(value) + "\n")
    f.flush()


def run_caught(peer, prepared, *job):
    try:
        return run_one(peer, prepared, *job)
    except Unsupported as e:
        return {"peer": peer.name, "unsupported": str(e)}
    except Exception as e:  # a peer that crashes is a result, not the end of the table
        traceback.print_exc()
        return {"peer": peer.name, "error": f"{type(e).__name__}: {e}".split("\n")[0][:200]}


def check_one(peer, work, batch, dtype, steps):
    """[trained, all] numbers of the model, and the loss of each step."""
    try:
        counts, losses = peer.losses(work, batch, dtype, steps)
    except Unsupported as e:
        return {"peer": peer.name, "unsupported": str(e)}
    return {"peer": peer.name, "work": work, "dtype": dtype, "counts": list(counts), "losses": losses}


def main(make, add_arguments=None):
    """make(args) gives a peer: .name, .versions(), .prepare(work, batch, dtype) -> f(seconds) and, for
    --check, .losses(work, batch, dtype, steps) -> (counts, losses) on one batch again and again."""
    a = argparse.ArgumentParser()
    a.add_argument("work", nargs="?", choices=list(WORKS))
    a.add_argument("--batch-size", type=int)
    a.add_argument("--dtype", default="float32", choices=["float32", "mixed_bfloat16"])
    a.add_argument("--seconds", type=float, default=2.0)
    a.add_argument("--check", type=int, metavar="STEPS", help="counts and losses instead of the time")
    a.add_argument("--serve", action="store_true")
    a.add_argument("--gpu", action="store_true", help="on GPUs; float32 without TF32")
    if add_arguments:
        add_arguments(a)
    args = a.parse_args()
    if not args.work and not args.serve:
        a.error("WORK or --serve is needed")

    if not args.gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    out = os.fdopen(os.dup(1), "w")  # only JSON goes there; what libraries print goes to stderr
    os.dup2(2, 1)
    try:
        peer = make(args)
    except ImportError as e:
        reply(out, {"missing": str(e)})
        return 3
    prepared = {}
    if not args.serve:
        batch = args.batch_size or WORKS[args.work][3]
        if args.check:
            result = check_one(peer, args.work, batch, args.dtype, args.check)
        else:
            result = run_caught(peer, prepared, args.work, batch, args.dtype, args.seconds)
        reply(out, result)
        return 0 if "ms" in result or "losses" in result else 1
    reply(out, {"ready": peer.name, "versions": peer.versions()})
    for line in sys.stdin:
        work, batch, dtype, seconds = line.split()
        reply(out, run_caught(peer, prepared, work, int(batch), dtype, float(seconds)))
    return 0
