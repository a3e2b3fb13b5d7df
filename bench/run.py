#!/usr/bin/env python3
"""make bench: Keel and its peers on the same works, in turn, on this machine.

    run.py --keel build/keel [--peers PYTHON] [--quick] [...]       the table
    run.py --keel build/keel --check-fit [--works mlp:64,...]       is a bench number that of a fit?
    run.py --keel build/keel --hold                                 first step, short last step

Within a round every program measures every work once, one after the other; the round begins with
another program each time. A cell is the median over rounds of the median step (Keras: mean step of
the best epoch). Small works stay prepared in the peers between rounds; works of 224x224 images get
a fresh process each, so that they have the memory and the machine to themselves.

The whole table goes into bench/README.md, between its two marks; --output says where else: each type
has its own, then what Keel alone is held to (first step, short last step).
Programs that PYTHON cannot import are left out, and said so; one that takes longer than --limit for
a cell is ended, and not asked for that cell again.
"""
import argparse
import datetime
import json
import math
import os
import platform
import selectors
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
README = os.path.join(HERE, "README.md")
MARKS = ("<!-- table: written by make bench -->", "<!-- end of table -->")
WORKS = "mlp:64,mlp:256,mnist-cnn:64,mnist-cnn:256,resnet18:16,resnet50:16,mobilenetv2:16"
QUICK = "mlp:64,mnist-cnn:64,mnist-cnn:256"
LARGE = ("resnet18", "resnet50", "mobilenetv2", "densenet121", "efficientnetb0", "unet")
DTYPES = ("float32", "mixed_bfloat16")

KEEL = {  # name of the column: --devices
    "1 lane": "cpu:0",
    "1 lane of 2": "cpu:0+1",
    "2 lanes": "cpu:0-1",
    "4 lanes": "cpu:0-3",
    "2 lanes fast": "cpu:0-1",  # --float32 fast: float32 only, where a processor has AMX
}
FAST = "2 lanes fast"
DEFAULT = "2 lanes"  # what keel takes on a machine of two cores
PEERS = {  # name: script, arguments, is it tried on the large works by default?
    "keras-tf": ("keras_fit.py", [], True),
    "mirrored": ("keras_fit.py", ["--devices", "2"], True),
    "keras-torch": ("keras_fit.py", ["--backend", "torch"], False),
    "keras-jax": ("keras_fit.py", ["--backend", "jax"], False),
    "torch": ("torch_loop.py", [], True),
    "compile": ("torch_loop.py", ["--mode", "compile"], False),
    "ddp": ("torch_loop.py", ["--mode", "ddp"], True),
    "jax": ("jax_loop.py", [], False),
    "jax-2": ("jax_loop.py", ["--devices", "2"], False),
}
QUICK_PEERS = "keras-tf,mirrored,torch,jax"
AIMS = {  # rows/s over the fastest peer at the same type
    "float32": {
        "mlp:64": 2.0, "mlp:256": 1.6, "mnist-cnn:64": 2.2, "mnist-cnn:256": 1.5,
        "resnet18:16": 1.8, "resnet50:16": 1.9, "mobilenetv2:16": 1.8,
    },
    "mixed_bfloat16": {
        "mlp:64": 2.2, "mlp:256": 2.2, "mnist-cnn:64": 3.0, "mnist-cnn:256": 2.0,
        "resnet18:16": 2.0, "resnet50:16": 2.5, "mobilenetv2:16": 2.0,
    },
}  # fmt: skip
FIRST_STEP = {"mlp:64": 0.05, "resnet50:16": 1.0}  # seconds from the start of the process, at most
SHORT_STEP = 1.03  # an epoch with a short last step, over what its rows ask, at most


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def is_large(cell):
    return cell.split(":")[0] in LARGE


# ---- one measurement -----------------------------------------------------------------------------


class Keel:
    def __init__(self, args, name):
        self.args, self.name = args, name

    def measure(self, cell, dtype, seconds):
        work, batch = cell.split(":")
        command = [self.args.keel, "bench", work, "--batch-size", batch, "--json"]
        command += ["--devices", KEEL[self.name], "--dtype", dtype]
        command += ["--float32", "fast"] if self.name == FAST else []
        if self.name != DEFAULT:
            command.append("--no-profile")
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            p = subprocess.Popen(command + ["--seconds", str(seconds)], stdout=out, stderr=err)
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0), err.seek(0)
            if p.returncode:
                return {"error": err.read().strip()[-200:]}
            return {**json.loads(out.read()), "peak_mib": round(usage.ru_maxrss / 1024)}

    def stop(self):
        pass


class Peer:
    def __init__(self, args, name):
        self.args, self.name, self.process, self.gone = args, name, None, None
        self.slow = {}  # what took too long: what was answered

    def start(self):
        script, more, _ = PEERS[self.name]
        self.log = open(os.path.join(self.args.logs, f"{self.name}.log"), "a")
        self.process = subprocess.Popen(
            [self.args.peers, os.path.join(HERE, "peers", script), "--serve", *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True,
        )  # fmt: skip
        hello = self.read()
        if "ready" not in hello:
            self.gone = hello.get("missing") or hello.get("error") or hello.get("slow")
            say(f"  {self.name} is left out: {self.gone}")
            self.stop()

    def read(self):
        """The next line, or what happened instead."""
        text, end = b"", time.monotonic() + self.args.limit
        with selectors.DefaultSelector() as s:
            s.register(self.process.stdout, selectors.EVENT_READ)
            while not text.endswith(b"\n"):
                if not s.select(max(0, end - time.monotonic())):
                    self.stop()
                    return {"slow": f"no answer within {self.args.limit} s"}
                piece = os.read(self.process.stdout.fileno(), 65536)
                if not piece:
                    self.stop()
                    return {"error": "it ended; see its log"}
                text += piece
        return json.loads(text)

    def measure(self, cell, dtype, seconds):
        if (cell, dtype) in self.slow:
            return self.slow[cell, dtype]
        if is_large(cell) or self.args.fresh:
            self.stop()
        if not self.process and not self.gone:
            self.start()
        if self.gone:
            return {"missing": self.gone}
        work, batch = cell.split(":")
        try:
            self.process.stdin.write(f"{work} {batch} {dtype} {seconds}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            self.stop()
            return {"error": "it ended; see its log"}
        result = self.read()
        if "slow" in result:
            self.slow[cell, dtype] = result
        if is_large(cell) or self.args.fresh:
            self.stop()
        return result

    def stop(self):
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)  # its own group, see start
            except ProcessLookupError:
                pass
            self.process.wait()
            self.process.stdin.close(), self.process.stdout.close(), self.log.close()
            self.process = None


# ---- rounds --------------------------------------------------------------------------------------


def wanted(args, name, cell, dtype):
    if name == FAST:
        return dtype == "float32" and "amx_bf16" in cpu_flags()
    if name in KEEL or not is_large(cell):
        return True
    return args.all or PEERS[name][2]


def run_round(args, programs, cells, dtype, turn, results):
    for cell in cells:
        order = [p for p in programs if wanted(args, p.name, cell, dtype)]
        k = turn % len(order) if order else 0
        for p in order[k:] + order[:k]:
            r = p.measure(cell, dtype, args.seconds)
            results.setdefault(cell, {}).setdefault(p.name, []).append(r)
            if "ms" in r:
                say(f"  round {turn + 1}  {cell:15} {p.name:12} {r['ms']:10.3f} ms")
            elif "missing" not in r:
                text = r.get("unsupported") or r.get("error") or r.get("slow")
                say(f"  round {turn + 1}  {cell:15} {p.name:12} {text}")


def run_rounds(args, programs, cells, dtype):
    say(f"{dtype}:")
    results, begin = {}, time.monotonic()
    small, large = [c for c in cells if not is_large(c)], [c for c in cells if is_large(c)]
    for turn in range(args.rounds if small else 0):
        run_round(args, programs, small, dtype, turn, results)
    for p in programs:
        p.stop()
    for turn in range(args.image_rounds if large else 0):
        start = time.monotonic()
        run_round(args, programs, large, dtype, turn, results)
        now = time.monotonic()
        if now - begin + (now - start) > 60 * args.minutes:  # another round would be too long
            break
    return results, time.monotonic() - begin


# ---- the table -----------------------------------------------------------------------------------


def ms_of(runs):
    """Median over rounds; None where no round gave a number."""
    times = [r["ms"] for r in runs or [] if "ms" in r]
    return statistics.median(times) if times else None


def number(x):
    return "-" if x is None else f"{x:.0f}" if x >= 100 else f"{x:.1f}" if x >= 20 else f"{x:.2f}"


def ratio(a, b):
    return f"{a / b:.2f}" if a and b else "-"


def markdown(columns, rows):
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return lines + ["| " + " | ".join(r) + " |" for r in rows]


def label(cell):
    work, batch = cell.split(":")
    return f"{work}, batch {batch}"


def time_table(results, names):
    rows = []
    for cell, by in results.items():
        rows.append([label(cell)] + [number(ms_of(by.get(n))) for n in names])
    return markdown(["ms per step"] + names, rows)


def ratio_table(results, dtype):
    rows = []
    for cell, by in results.items():
        ms = {n: ms_of(runs) for n, runs in by.items()}
        peers = {n: t for n, t in ms.items() if n in PEERS and t}
        best = min(peers, key=peers.get) if peers else None
        ours = ms.get(DEFAULT)
        rows.append([
            label(cell),
            f"{1e3 * int(cell.split(':')[1]) / ours:,.0f}" if ours else "-",
            best or "-",
            ratio(peers.get(best), ours),
            f"{AIMS[dtype][cell]:.1f}" if cell in AIMS[dtype] else "-",
            ratio(ms.get("mirrored"), ours),
            ratio(ms.get("1 lane"), ours),
            ratio(ours, ms.get("1 lane of 2")),
            ratio(ms.get("4 lanes"), ours),
        ])  # fmt: skip
    head = ["", "Keel, rows/s", "fastest peer", "Keel over it", "aim", "over MirroredStrategy",
            "2 lanes over 1", "time of 2 lanes / 1 lane of 2", "of 4 lanes / 2"]  # fmt: skip
    return markdown(head, rows)


def core_peak(run):
    """GFLOP/s of one core in the type that the run multiplies."""
    bf16 = run["core_peak_bf16_gflops"] if run["dtype"] == "mixed_bfloat16" else 0
    return bf16 or run["core_peak_gflops"]


def keel_table(results):
    """What only Keel says: where its time goes, its memory."""
    rows = []
    for cell, by in results.items():
        runs = [r for r in by.get(DEFAULT, []) if "ms" in r]
        if runs:
            mid = sorted(runs, key=lambda r: r["ms"])[len(runs) // 2]
            peak = core_peak(mid) * mid["workers"]
            rows.append([
                label(cell), f"{100 * mid['kernel_share']:.1f} %", f"{100 * mid['meeting_share']:.1f} %",
                f"{1e3 * mid['host_ms']:.0f} us", f"{100 * mid['wait_share']:.1f} %",
                f"{mid['gflops']:.0f} ({100 * mid['gflops'] / peak:.0f} % of {peak:.0f})",
                f"{mid['bytes_per_step'] / 1e6:,.0f} MB", f"{mid['compile_ms']:.0f} ms",
                f"{mid['memory_planned'] / 2**20:.0f}", f"{mid['memory_used'] / 2**20:.0f}",
            ])  # fmt: skip
    head = [f"Keel, {DEFAULT}", "in kernels", "workers waiting for each other", "host a step",
            "waiting for rows", "GFLOP/s (of the cores' peak)", "moved a step", "compile",
            "planned MiB", "used MiB"]  # fmt: skip
    return markdown(head, rows) if rows else []


def ops_table(results):
    """Per op class: ms a step, GFLOP/s of a core against its peak."""
    rows = []
    for cell, by in results.items():
        runs = [r for r in by.get(DEFAULT, []) if "ms" in r]
        if not runs:
            continue
        mid = sorted(runs, key=lambda r: r["ms"])[len(runs) // 2]
        total = sum(o["forward_ms"] + o["backward_ms"] for o in mid["ops"])
        for o in mid["ops"]:
            share = (o["forward_ms"] + o["backward_ms"]) / total if total else 0
            if share >= 0.01:
                speed = o["core_gflops"]
                of_peak = f" ({100 * o['of_peak']:.0f} %)"
                rows.append([
                    label(cell), o["op"], f"{o['forward_ms']:.3f}", f"{o['backward_ms']:.3f}",
                    f"{100 * share:.0f} %", f"{speed:.0f}{of_peak}" if speed else "",
                ])  # fmt: skip
    head = ["ms a step, all cores", "op", "forward", "backward", "share", "GFLOP/s a core (of its peak)"]
    return markdown(head, rows) if rows else []


def memory_table(args, results, names):
    """Peak of the whole process, where it ran nothing else."""
    cells = [c for c in results if is_large(c) or args.fresh]
    rows = []
    for cell in cells:
        row = [label(cell)]
        for n in names:
            peaks = [r["peak_mib"] for r in results[cell].get(n, []) if "ms" in r]
            row.append(f"{max(peaks)}" if peaks else "-")
        rows.append(row)
    return markdown(["peak MiB of the process"] + names, rows) if rows else []


def spread_line(results):
    worst, where = 0, ""
    for cell, by in results.items():
        for name, runs in by.items():
            times = [r["ms"] for r in runs if "ms" in r]
            if len(times) > 1:
                s = (max(times) - min(times)) / statistics.median(times)
                if s > worst:
                    worst, where = s, f"{name}, {label(cell)}"
    return f"Largest spread between rounds: {100 * worst:.0f} % ({where})." if where else ""


def output_of(command, fallback="unknown"):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return fallback


def cpu_flags():
    with open("/proc/cpuinfo") as f:
        return set(next((line for line in f if line.startswith("flags")), "").split())


def machine():
    model, memory = platform.machine(), 0
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    flags = cpu_flags()
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) / 2**20
    extra = [n for n, flag in (("AVX-512", "avx512f"), ("AMX", "amx_bf16")) if flag in flags]
    return f"{model}, {os.cpu_count()} cores ({', '.join(extra) or 'no AVX-512'}), {memory:.0f} GiB"


def versions(args, measured):
    found = {}
    for by in [by for results, _ in measured.values() for by in results.values()]:
        for runs in by.values():
            for r in runs:
                found.update(r.get("versions", {}))
    ours = output_of([args.keel, "--version"])
    return ", ".join([ours] + [f"{k} {v}" for k, v in sorted(found.items())])


def commit():
    changed = output_of(["git", "status", "--porcelain", "--untracked-files=no"], "")
    return output_of(["git", "rev-parse", "--short", "HEAD"]) + (" (changed)" if changed else "")


def table_of(args, dtype, results, took):
    names = [n for n in [*KEEL, *PEERS] if any(ms_of(by.get(n)) for by in results.values())]
    small = max((len(runs) for c, by in results.items() if not is_large(c) for runs in by.values()), default=0)
    large = max((len(runs) for c, by in results.items() if is_large(c) for runs in by.values()), default=0)
    left = {n: r["missing"] for by in results.values() for n, runs in by.items() for r in runs if "missing" in r}
    late = {f"{n}, {label(c)}" for c, by in results.items() for n, runs in by.items() for r in runs if "slow" in r}
    lines = [
        f"### {dtype}",
        "",
        f"{args.seconds:g} s a measurement, rounds: {small} of the small works, {large} of the images; "
        f"{took / 60:.0f} minutes. {spread_line(results)}",
    ]
    if left:
        lines += ["Left out: " + "; ".join(f"{n} ({why})" for n, why in left.items()) + "."]
    if late:
        lines += [f"No answer within {args.limit} s: " + "; ".join(sorted(late)) + "."]
    for part in (
        time_table(results, names),
        ratio_table(results, dtype),
        keel_table(results),
        ops_table(results),
        memory_table(args, results, names),
    ):
        if part:
            lines += ["", *part]
    return lines


def table(args, measured, held):
    lines = [
        f"- machine: {machine()}",
        f"- versions: {versions(args, measured)}",
        f"- commit {commit()}, {datetime.date.today()}",
    ]
    for dtype, (results, took) in measured.items():
        lines += ["", *table_of(args, dtype, results, took)]
    if held:
        rows = [[what, value, limit] for what, value, limit in held]
        lines += ["", "### What Keel is held to", "", *markdown(["float32, 2 lanes", "measured", "at most"], rows)]
    return "\n".join(lines) + "\n"


def read_readme(path):
    try:
        with open(path) as f:
            old = f.read()
    except OSError as e:
        sys.exit(f"--output {path}: {e.strerror}; it is a file with the lines {' and '.join(MARKS)}")
    if any(old.count(mark) != 1 for mark in MARKS):
        sys.exit(f"{path} must have the lines {' and '.join(MARKS)} once each; nothing is written")
    return old


def write_readme(path, text):
    old = read_readme(path)
    before, rest = old.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    with open(path, "w") as f:
        f.write(f"{before}{MARKS[0]}\n\n{text}\n{MARKS[1]}{after}")


# ---- what Keel alone is held to ------------------------------------------------------------------


def seconds_of(text):
    """\"38 ms\", \"1.5 s\" as keel prints them."""
    value, unit = text.split()
    return float(value) / {"ms": 1e3, "s": 1}[unit]


def first_step(args, cell):
    """Median of the time from the start of `keel fit` to its first step; files are in the cache."""
    work, batch = cell.split(":")
    times = []
    with tempfile.TemporaryDirectory() as folder:
        base = ["--batch-size", batch, "--devices", KEEL[DEFAULT]]
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
    out = subprocess.run([program, KEEL[DEFAULT]], check=True, capture_output=True, text=True).stdout
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


# ---- the command line ----------------------------------------------------------------------------


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--keel", default="build/keel", help="the command")
    a.add_argument("--peers", default="", metavar="PYTHON", help="a Python that has the peers; none: Keel alone")
    a.add_argument("--works", help=f"WORK:BATCH by comma (default: {WORKS})")
    a.add_argument("--only", help=f"of the programs only these, by comma: {','.join([*KEEL, *PEERS])}")
    a.add_argument("--all", action="store_true", help="slow peers on images too (Keras on JAX and PyTorch, ...)")
    a.add_argument("--dtype", help=f"by comma (default: {','.join(DTYPES)}; quick: float32)")
    a.add_argument("--seconds", type=float, help="of a measurement (default: 1.5; quick 0.5; check 3)")
    a.add_argument("--rounds", type=int, help="of small works (default: 3; quick 1; check 5)")
    a.add_argument("--image-rounds", type=int, default=3, help="of 224x224 works, at most (default: 3)")
    a.add_argument("--minutes", type=float, default=18, help="of a type: no further image round that ends later (18)")
    a.add_argument("--limit", type=int, default=150, help="seconds for a peer to answer, once a cell (default: 150)")
    a.add_argument("--fresh", action="store_true", help="every measurement in a process of its own (clean memory)")
    a.add_argument("--quick", action="store_true", help=f"{QUICK}; {QUICK_PEERS}; about 3 minutes; printed only")
    a.add_argument("--output", help="the Markdown file with the marks (default: bench/README.md); - prints only")
    a.add_argument("--logs", default="", help="folder of the peers' logs and bench.json (default: beside keel)")
    a.add_argument("--hold", action="store_true", help="only what Keel is held to: first step, short last step")
    a.add_argument("--check-fit", action="store_true", help="compare keel bench with keel fit from outside")
    a.add_argument("--devices", default=KEEL[DEFAULT], help="of --check-fit")
    args = a.parse_args()
    quick, check = args.quick, args.check_fit
    args.works = args.works or ("mlp:64,mnist-cnn:64" if check else QUICK if quick else WORKS)
    args.dtypes = (args.dtype or (DTYPES[0] if quick else ",".join(DTYPES))).split(",")
    args.only = args.only or (",".join([*KEEL, QUICK_PEERS]) if quick else None)
    args.seconds = args.seconds or (3 if check else 0.5 if quick else 1.5)
    args.rounds = args.rounds or (5 if check else 1 if quick else 3)
    args.output = args.output or ("-" if quick or args.works != WORKS or not args.peers else README)
    if args.output != "-" and not check:
        read_readme(args.output)  # before minutes of measuring
    args.keel = os.path.abspath(args.keel)
    args.logs = os.path.abspath(args.logs or os.path.join(os.path.dirname(args.keel), "bench"))
    for cell in args.works.split(","):
        if cell.count(":") != 1 or not cell.split(":")[1].isdigit():
            a.error(f"--works '{cell}': it is written WORK:BATCH, as mlp:64")
    for dtype in args.dtypes:
        if dtype not in DTYPES:
            a.error(f"--dtype '{dtype}': there are {', '.join(DTYPES)}")
    for name in (args.only or "").split(","):
        if name and name not in KEEL and name not in PEERS:
            a.error(f"--only '{name}': there are {', '.join([*KEEL, *PEERS])}")
    return args


def main():
    args = arguments()
    cells = args.works.split(",")
    if args.check_fit:
        return check_fit(args, cells)
    if args.hold:
        hold(args)
        return 0
    os.makedirs(args.logs, exist_ok=True)
    only = args.only.split(",") if args.only else [*KEEL, *PEERS]
    programs = [Keel(args, n) for n in KEEL if n in only]
    if args.peers:
        programs += [Peer(args, n) for n in PEERS if n in only]
    measured = {}
    try:
        for dtype in args.dtypes:
            measured[dtype] = run_rounds(args, programs, cells, dtype)
    finally:
        for p in programs:
            p.stop()
    text = table(args, measured, [] if args.quick or args.works != WORKS else hold(args))
    with open(os.path.join(args.logs, "bench.json"), "w") as f:
        json.dump({dtype: results for dtype, (results, _) in measured.items()}, f, indent=1)
    print(text)
    if args.output != "-":
        write_readme(args.output, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
