#!/usr/bin/env python3
"""make bench: Keel and its peers on the same works, in turn, on this machine.

    run.py --keel build/keel [--peers PYTHON] [--quick] [...]       the table
    run.py --keel build/keel --check-fit [--works mlp:64,...]       is a bench number that of a fit?
    run.py --keel build/keel --hold                                 first step, short last step
    run.py --keel build/keel --gpu [--peers PYTHON]                 the table of GPUs: make bench-gpu

Within a round every program measures every work once, one after the other; the round begins with
another program each time. A cell is the median over rounds of the median step (Keras: mean step of
the best epoch). Small works stay prepared in the peers between rounds; large ones (of
images, and gpt) get a fresh process each, so that they have the memory and the machine to themselves.

The whole table goes into bench/README.md, between its two marks, in place of the one of this kind of
processor; --output says where else. Each type has its own, then what Keel alone is held to (first
step, short last step).
Programs that PYTHON cannot import are left out, and said so; one that takes longer than --limit for
a cell is ended, and not asked for that cell again.
"""
import argparse
import json
import os
import sys
import time

from keel_alone import check_fit, hold
from programs import CPU, GPU, WORKS, Keel, Peer, cpu_flags, gpus, is_large, peer, say, why_no_gpu
from table import README, kind, read_readme, table, write_readme

QUICK = "mlp:64,mnist-cnn:64,mnist-cnn:256"
DTYPES = ("float32", "mixed_bfloat16")
QUICK_PEERS = "keras-tf,mirrored,torch,jax"


def wanted(args, name, cell, dtype):
    side = args.side
    if name in side.several and not args.several:
        return False
    if name == side.fast:
        return dtype == "float32" and (side is GPU or "amx_bf16" in cpu_flags())
    if name.endswith("fast"):
        return dtype == "float32"
    if name in side.keel or not is_large(cell):
        return True
    return args.all or side.peers[name][2]


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
    for turn in range(args.large_rounds if large else 0):
        start = time.monotonic()
        run_round(args, programs, large, dtype, turn, results)
        now = time.monotonic()
        if now - begin + (now - start) > 60 * args.minutes:  # another round would be too long
            break
    return results, time.monotonic() - begin


# ---- the command line ----------------------------------------------------------------------------


def arguments():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--keel", default="build/keel", help="the command")
    a.add_argument("--peers", default="", metavar="PYTHON", help="a Python that has the peers; none: Keel alone")
    a.add_argument("--works", help=f"WORK:BATCH by comma (default: {WORKS}; on GPUs more)")
    a.add_argument("--only", help=f"of the programs only these, by comma: {','.join([*CPU.keel, *CPU.peers])}")
    a.add_argument("--gpu", action="store_true", help=f"on GPUs: {', '.join([*GPU.keel, *GPU.peers])}")
    a.add_argument("--dry", action="store_true", help="with --gpu: Keel on processors, to try this program")
    a.add_argument("--all", action="store_true", help="slow peers on large works too (Keras on JAX and PyTorch, ...)")
    a.add_argument("--dtype", help=f"by comma (default: {','.join(DTYPES)}; quick: float32)")
    a.add_argument("--seconds", type=float, help="of a measurement (default: 1.5; quick 0.5; check 3)")
    a.add_argument("--rounds", type=int, help="of small works (default: 3; quick 1; check 5)")
    a.add_argument("--large-rounds", type=int, default=3, help="of large works, at most (default: 3)")
    a.add_argument("--minutes", type=float, default=18, help="of a type: no further round of large works that ends later (18)")
    a.add_argument("--limit", type=int, default=150, help="seconds for a peer to answer, once a cell (default: 150)")
    a.add_argument("--fresh", action="store_true", help="every measurement in a process of its own (clean memory)")
    a.add_argument("--quick", action="store_true", help=f"{QUICK}; {QUICK_PEERS}; about 3 minutes; printed only")
    a.add_argument("--output", help="the Markdown file with the marks (default: bench/README.md); - prints only")
    a.add_argument("--logs", default="", help="folder of the peers' logs and bench.json (default: beside keel)")
    a.add_argument("--hold", action="store_true", help="only what Keel is held to: first step, short last step")
    a.add_argument("--check-fit", action="store_true", help="compare keel bench with keel fit from outside")
    a.add_argument("--devices", default=CPU.keel[CPU.default], help="of --check-fit")
    args = a.parse_args()
    quick, check = args.quick, args.check_fit
    args.side = GPU if args.gpu else CPU
    names = [*args.side.keel, *args.side.peers]
    if args.dry and not args.gpu or args.gpu and (args.hold or check):
        a.error("--dry is for --gpu, and --hold and --check-fit are not")
    args.works = args.works or ("mlp:64,mnist-cnn:64" if check else QUICK if quick else args.side.works)
    args.dtypes = (args.dtype or (DTYPES[0] if quick else ",".join(DTYPES))).split(",")
    args.only = args.only or (",".join([*args.side.keel, QUICK_PEERS]) if quick else None)
    args.seconds = args.seconds or (3 if check else 0.5 if quick else 1.5)
    args.rounds = args.rounds or (5 if check else 1 if quick else 3)
    args.output = args.output or (
        "-" if quick or args.works != args.side.works or not args.peers or args.dry else README
    )
    if args.output != "-" and not check:
        read_readme(args.output, args.side.marks)  # before minutes of measuring
    args.keel = os.path.abspath(args.keel)
    args.logs = os.path.abspath(args.logs or os.path.join(os.path.dirname(args.keel), "bench"))
    for cell in args.works.split(","):
        if cell.count(":") != 1 or not cell.split(":")[1].isdigit():
            a.error(f"--works '{cell}': it is written WORK:BATCH, as mlp:64")
        if cell.split(":")[0] not in peer.WORKS:
            a.error(f"--works '{cell}': there are {', '.join(peer.WORKS)}")
    for dtype in args.dtypes:
        if dtype not in DTYPES:
            a.error(f"--dtype '{dtype}': there are {', '.join(DTYPES)}")
    for name in (args.only or "").split(","):
        if name and name not in names:
            a.error(f"--only '{name}': there are {', '.join(names)}")
    return args


def main():
    args = arguments()
    cells = args.works.split(",")
    if args.check_fit:
        return check_fit(args, cells)
    if args.hold:
        hold(args)
        return 0
    why = args.gpu and not args.dry and why_no_gpu(args.keel)
    if why:
        say(f"no GPU was measured: {why}")
        return 1
    args.several = args.dry or len(gpus(args.keel)) > 1
    os.makedirs(args.logs, exist_ok=True)
    side = args.side
    only = args.only.split(",") if args.only else [*side.keel, *side.peers]
    programs = [Keel(args, n) for n in side.keel if n in only]
    if args.peers:
        programs += [Peer(args, n) for n in side.peers if n in only]
    measured = {}
    try:
        for dtype in args.dtypes:
            measured[dtype] = run_rounds(args, programs, cells, dtype)
    finally:
        for p in programs:
            p.stop()
    text = table(args, measured, [] if args.quick or args.gpu or args.works != WORKS else hold(args))
    with open(os.path.join(args.logs, "bench-gpu.json" if args.gpu else "bench.json"), "w") as f:
        json.dump({dtype: results for dtype, (results, _) in measured.items()}, f, indent=1)
    print(text)
    if args.output != "-":
        write_readme(args.output, text, side.marks, "" if args.gpu else f"## On {kind()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
