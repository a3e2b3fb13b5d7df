"""What Keel alone is held to: its first step, a short last step, and that a bench number is that of
a fit."""
import json
import math
import os
import statistics
import subprocess
import tempfile
import time

from programs import CPU, label, say

FIRST_STEP = {"mlp:64": 0.05, "resnet50:16": 1.0}  # seconds from the start of the process, at most
SHORT_STEP = 1.03  # an epoch with a short last step, over what its rows ask, at most


def seconds_of(text):
    """\"38 ms\", \"1.5 s\" as keel prints them."""
    value, unit = text.split()
    return float(value) / {"ms": 1e3, "s": 1}[unit]


def first_step(args, cell):
    """Median of the time from the start of `keel fit` to its first step; files are in the cache."""
    work, batch = cell.split(":")
    times = []
    with tempfile.TemporaryDirectory() as folder:
        base = ["--batch-size", batch, "--devices", CPU.keel[CPU.default]]
        made = [args.keel, "bench", work, *base, "--export", folder]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
        fit = [args.keel, "fit", f"{folder}/model.keras", "--data", f"{folder}/x.npy,{folder}/y.npy", *base]
        fit += ["--steps-per-epoch", "1", "-o", f"{folder}/out.keras"]
        for _ in range(5):
            out = subprocess.run(fit, check=True, capture_output=True, text=True).stdout
            times.append(seconds_of(out.split("first step after ")[1].split(" (")[0]))
    return statistics.median(times)


def short_step(args):
    """[(work, times of what its rows ask)] by bench_epoch, where it was built."""
    program = os.path.join(os.path.dirname(args.keel), "bench", "bench_epoch")
    if not os.path.exists(program):
        say(f"  there is no {program}: short last steps are not measured")
        return []
    out = subprocess.run([program, CPU.keel[CPU.default]], check=True, capture_output=True, text=True).stdout
    return [(r["work"], r["of_its_rows"]) for r in map(json.loads, out.splitlines())]


def hold(args):
    rows = []
    for cell, limit in FIRST_STEP.items():
        took = first_step(args, cell)
        rows.append((f"{label(cell)}: first step after", f"{1e3 * took:.0f} ms", f"{1e3 * limit:.0f} ms"))
    for work, part in short_step(args):
        what = f"{work}: an epoch of 1,031 rows at batch 64, over 1,031/1,024 of one of 1,024"
        rows.append((what, f"{part:.3f}", f"{SHORT_STEP}"))
    for row in rows:
        say("  " + ": ".join(row[:2]))
    return rows


# ---- is a bench number that of a fit? -------------------------------------------------------------


def wall(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def check_fit(args, cells):
    """Wall time of a longer `keel fit` less that of a shorter one, against keel bench."""
    bad = 0
    for cell in cells:
        work, batch = cell.split(":")
        with tempfile.TemporaryDirectory() as folder:
            base = ["--batch-size", batch]
            made = subprocess.run(
                [args.keel, "bench", work, *base, "--export", folder],
                check=True, capture_output=True, text=True,
            ).stdout  # fmt: skip
            steps = int(made.split(" rows")[0].split()[-1].replace(",", "")) // int(batch)
            base += ["--devices", args.devices]
            bench = [args.keel, "bench", work, *base, "--json", "--no-profile", "--seconds", str(args.seconds)]
            fit = [args.keel, "fit", f"{folder}/model.keras", "--data", f"{folder}/x.npy,{folder}/y.npy"]
            fit += [*base, "-o", f"{folder}/out.keras", "--epochs"]
            inside, shorter, longer, more = [], [], [], 0
            for _ in range(args.rounds):
                r = json.loads(subprocess.run(bench, check=True, capture_output=True).stdout)
                inside.append(r["ms"])
                more = more or math.ceil(1e3 * args.seconds / (r["ms"] * steps))
                shorter.append(wall([*fit, "1"]))
                longer.append(wall([*fit, str(1 + more)]))
        # the least of each: other programs on the machine can only add
        a, b = min(inside), 1e3 * (min(longer) - min(shorter)) / (more * steps)
        ok = abs(a - b) <= 0.05 * b
        bad += not ok
        print(f"{label(cell):22} bench {a:.3f} ms, fit from outside {b:.3f} ms: "
              f"{100 * (a / b - 1):+.1f} % {'ok' if ok else 'MORE THAN 5 %'}")  # fmt: skip
    return 1 if bad else 0

