"""The results of all programs as tables in Markdown, and the page that they are written into."""
import datetime
import os
import platform
import re
import statistics
import subprocess
import sys

from programs import GPU, HERE, cpu_flags, gpus, is_large, label

README = os.path.join(HERE, "README.md")
NETWORKS = ("lstm:32", "transformer:32", "gpt:12", "conv1d:32", "unet:16", "densenet121:16",
            "efficientnetb0:16", "convnexttiny:16")  # fmt: skip
AIMS = {  # rows/s over the fastest peer at the same type
    "float32": {
        "mlp:64": 2.0, "mlp:256": 1.6, "mnist-cnn:64": 2.2, "mnist-cnn:256": 1.5,
        "resnet18:16": 1.8, "resnet50:16": 1.9, "mobilenetv2:16": 1.8,
        **dict.fromkeys(NETWORKS, 1.5),
    },
    "mixed_bfloat16": {
        "mlp:64": 2.2, "mlp:256": 2.2, "mnist-cnn:64": 3.0, "mnist-cnn:256": 2.0,
        "resnet18:16": 2.0, "resnet50:16": 2.5, "mobilenetv2:16": 2.0,
        **dict.fromkeys(NETWORKS, 1.5),
    },
}  # fmt: skip
MIRRORED_AIMS = dict.fromkeys(NETWORKS, 3.0)  # rows/s over MirroredStrategy


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


def time_table(results, names):
    rows = []
    for cell, by in results.items():
        rows.append([label(cell)] + [number(ms_of(by.get(n))) for n in names])
    return markdown(["ms per step"] + names, rows)


def ratio_table(results, dtype, side):
    rows, aims = [], {} if side is GPU else AIMS[dtype]
    for cell, by in results.items():
        ms = {n: ms_of(runs) for n, runs in by.items()}
        peers = {n: t for n, t in ms.items() if n in side.peers and not n.endswith("fast") and t}
        best = min(peers, key=peers.get) if peers else None
        ours = ms.get(side.default)
        row = [
            label(cell),
            f"{1e3 * int(cell.split(':')[1]) / ours:,.0f}" if ours else "-",
            best or "-",
            ratio(peers.get(best), ours),
        ]
        row += [f"{aims[cell]:.1f}" if cell in aims else "-"] if aims else []
        row += [ratio(ms.get("mirrored"), ms.get("all GPUs") if side is GPU else ours)]
        row += [f"{MIRRORED_AIMS[cell]:.1f}" if cell in MIRRORED_AIMS else "-"] if aims else []
        rows.append(row + [ratio(ms.get(a), ms.get(b)) for _, a, b in side.beside])
    aim = ["aim"] if aims else []
    head = ["", "Keel, rows/s", "fastest peer", "Keel over it", *aim, "over MirroredStrategy", *aim]
    return markdown(head + [title for title, _, _ in side.beside], rows)


def core_peak(run):
    """GFLOP/s of one core in the type that the run multiplies."""
    bf16 = run["core_peak_bf16_gflops"] if run["dtype"] == "mixed_bfloat16" else 0
    return bf16 or run["core_peak_gflops"]


def keel_table(results, side):
    """What only Keel says: where its time goes, its memory."""
    rows = []
    for cell, by in results.items():
        runs = [r for r in by.get(side.default, []) if "ms" in r]
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
    head = [f"Keel, {side.default}", "in kernels", "workers waiting for each other", "host a step",
            "waiting for rows", "GFLOP/s (of the cores' peak)", "moved a step", "compile",
            "planned MiB", "used MiB"]  # fmt: skip
    return markdown(head, rows) if rows else []


def ops_table(results, side):
    """Per op class: ms a step, GFLOP/s of a core against its peak."""
    rows = []
    for cell, by in results.items():
        runs = [r for r in by.get(side.default, []) if "ms" in r]
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


def processor():
    with open("/proc/cpuinfo") as f:
        names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return names[0] if names else platform.machine()


def kind():
    """The kind of processor, which has a table of its own on the page."""
    flags, name = cpu_flags(), processor()
    sets = (("amx_bf16", "AMX"), ("avx512_bf16", "AVX-512 and bfloat16 products"), ("avx512f", "AVX-512"), ("avx2", "AVX2"))
    maker = next((m for m in ("AMD", "Intel") if m in name), name)
    return f"{maker} with {next((text for flag, text in sets if flag in flags), 'no AVX2')}"


def machine():
    model, memory = processor(), 0
    flags = cpu_flags()
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) / 2**20
    extra = [n for n, flag in (("AVX-512", "avx512f"), ("AMX", "amx_bf16")) if flag in flags]
    return f"{model}, {os.cpu_count()} cores ({', '.join(extra) or 'no AVX-512'}), {memory:.0f} GiB"


def gpu_machine(args):
    if args.dry:
        return "none (dry run: Keel ran on processors)"
    found = [f"{name} {what}" for name, what in gpus(args.keel)]
    driver = output_of(["nvidia-smi", "--query-gpu=driver_version,clocks.max.sm", "--format=csv,noheader"])
    return f"{'; '.join(found)}; driver and most clock: {driver.splitlines()[0] if driver else 'unknown'}"


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
    side = args.side
    names = [n for n in [*side.keel, *side.peers] if any(ms_of(by.get(n)) for by in results.values())]
    small = max((len(runs) for c, by in results.items() if not is_large(c) for runs in by.values()), default=0)
    large = max((len(runs) for c, by in results.items() if is_large(c) for runs in by.values()), default=0)
    left = {n: r["missing"] for by in results.values() for n, runs in by.items() for r in runs if "missing" in r}
    late = {f"{n}, {label(c)}" for c, by in results.items() for n, runs in by.items() for r in runs if "slow" in r}
    lines = [
        f"### {dtype}",
        "",
        f"{args.seconds:g} s a measurement, rounds: {small} of the small works, {large} of the large; "
        f"{took / 60:.0f} minutes. {spread_line(results)}",
    ]
    if left:
        lines += ["Left out: " + "; ".join(f"{n} ({why})" for n, why in left.items()) + "."]
    if late:
        lines += [f"No answer within {args.limit} s: " + "; ".join(sorted(late)) + "."]
    for part in (
        time_table(results, names),
        ratio_table(results, dtype, side),
        keel_table(results, side) if side is not GPU else [],
        ops_table(results, side) if side is not GPU else [],
        memory_table(args, results, names),
    ):
        if part:
            lines += ["", *part]
    return lines


def table(args, measured, held):
    lines = [
        f"- machine: {machine()}",
        *([f"- GPUs: {gpu_machine(args)}"] if args.gpu else []),
        f"- versions: {versions(args, measured)}",
        f"- commit {commit()}, {datetime.date.today()}",
    ]
    for dtype, (results, took) in measured.items():
        lines += ["", *table_of(args, dtype, results, took)]
    if held:
        rows = [[what, value, limit] for what, value, limit in held]
        lines += ["", "### What Keel is held to", "", *markdown(["float32, 2 lanes", "measured", "at most"], rows)]
    return "\n".join(lines) + "\n"


def read_readme(path, marks):
    try:
        with open(path) as f:
            old = f.read()
    except OSError as e:
        sys.exit(f"--output {path}: {e.strerror}; it is a file with the lines {' and '.join(marks)}")
    if any(old.count(mark) != 1 for mark in marks):
        sys.exit(f"{path} must have the lines {' and '.join(marks)} once each; nothing is written")
    return old


def write_readme(path, text, marks, heading=""):
    """Between the marks; with a heading only the section that begins with it, which may be new."""
    old = read_readme(path, marks)
    before, rest = old.split(marks[0])
    inside, after = rest.split(marks[1])
    if heading:
        sections = [x for x in re.split(r"^(?=## )", inside, flags=re.M) if x.startswith("## ")]
        new = f"{heading}\n\n{text}\n"
        kept = [new if x.split("\n", 1)[0] == heading else x for x in sections]
        text = "".join(kept + ([] if new in kept else [new])).rstrip("\n") + "\n"
    with open(path, "w") as f:
        f.write(f"{before}{marks[0]}\n\n{text}\n{marks[1]}{after}")
