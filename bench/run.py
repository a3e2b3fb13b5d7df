#!/usr/bin/env python3
"""make bench: Keel and its peers on the same works, in turn, on this machine.

    run.py --keel build/keel [--peers PYTHON] [--quick] [...]       the table
    run.py --keel build/keel --check-fit [--works mlp:64,...]       is a bench number that of a fit?
    run.py --keel build/keel --hold                                 first step, short last step

Within a round every program measures every work once, one after the other; the round begins with
another program each time. A cell is the median over rounds of the median step (Keras: mean step of
the best epoch). Small works stay prepared in the peers between rounds; large ones (of
images, and gpt) get a fresh process each, so that they have the memory and the machine to themselves.

The whole table goes into bench/README.md, between its two marks; --output says where else: each type
has its own, then what Keel alone is held to (first step, short last step).
Programs that PYTHON cannot import are left out, and said so; one that takes longer than --limit for
a cell is ended, and not asked for that cell again.
"""
import argparse
import json
import os
import sys
import time

from keel_alone import check_fit, hold
from programs import DEFAULT, FAST, KEEL, PEERS, Keel, Peer, cpu_flags, is_large, peer, say
from table import README, read_readme, table, write_readme

WORKS = (
    "mlp:64,mlp:256,mnist-cnn:64,mnist-cnn:256,resnet18:16,resnet50:16,mobilenetv2:16,lstm:32,"
    "transformer:32,gpt:12,conv1d:32,unet:16,densenet121:16,efficientnetb0:16,convnexttiny:16"
)
QUICK = "mlp:64,mnist-cnn:64,mnist-cnn:256"
DTYPES = ("float32", "mixed_bfloat16")
QUICK_PEERS = "keras-tf,mirrored,torch,jax"


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
    a.add_argument("--works", help=f"WORK:BATCH by comma (default: {WORKS})")
    a.add_argument("--only", help=f"of the programs only these, by comma: {','.join([*KEEL, *PEERS])}")
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
        if cell.split(":")[0] not in peer.WORKS:
            a.error(f"--works '{cell}': there are {', '.join(peer.WORKS)}")
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
