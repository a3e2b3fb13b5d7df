#!/usr/bin/env python3
"""Do Keel and its peers train the same networks? And do the peers learn at all?

    check.py --keel build/keel [--works lstm,gpt] [--batch-size 2] [--steps 12]

For each work: how many numbers Keel and each peer train, and how many there are with moving
statistics; then the loss of a peer before and after so many steps on one batch, in each type. Counts
must be equal and losses must fall. Peers that this Python cannot import are left out, and named.
The last line is 'N passed, N failed'.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import peer

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = {"keras": "keras_fit.py", "torch": "torch_loop.py", "jax": "jax_loop.py"}
DTYPES = ("float32", "mixed_bfloat16")


def count_of_keel(keel, work):
    """[trained, all] from keel inspect."""
    with tempfile.TemporaryDirectory() as folder:
        command = [keel, "bench", work, "--batch-size", "1", "--export", folder]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        command = [keel, "inspect", os.path.join(folder, "model.keras")]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {k: int(v.replace(",", "")) for k, v in re.findall(r"(\w+) parameters: ([\d,]+)", text)}
    return [found["Trainable"], found["Total"]]


def ask(script, work, batch, dtype, steps):
    command = [sys.executable, os.path.join(HERE, script), work, "--dtype", dtype]
    command += ["--batch-size", str(batch), "--check", str(steps)]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else {"error": done.stderr.strip()[-300:]}


def falls(losses):
    """The mean of the last quarter is below that of the first: dropout makes single ones unsteady."""
    n = max(len(losses) // 4, 1)
    return sum(losses[-n:]) < sum(losses[:n])  # also false for NaN


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--keel", default="build/keel")
    a.add_argument("--works", default=",".join(peer.WORKS))
    a.add_argument("--batch-size", type=int, default=2)
    a.add_argument("--steps", type=int, default=12)
    a.add_argument("--only", default=",".join(SCRIPTS), help="peers, by comma")
    args = a.parse_args()
    passed = failed = 0
    gone = {}
    for work in args.works.split(","):
        own = count_of_keel(args.keel, work)
        print(f"{work:15} {'keel':6} {own[0]:>11,} trained, {own[1]:>11,} in all", flush=True)
        for name in args.only.split(","):
            for dtype in DTYPES if name not in gone else ():
                r = ask(SCRIPTS[name], work, args.batch_size, dtype, args.steps)
                if "missing" in r:
                    gone[name] = r["missing"]
                    break
                if "unsupported" in r:
                    break
                if "losses" not in r:
                    failed += 1
                    print(f"{work:15} {name:6} {dtype}: FAILED: {r}", flush=True)
                    continue
                ok = r["counts"] == own and falls(r["losses"])
                passed, failed = passed + ok, failed + (not ok)
                text = f"loss {r['losses'][0]:.4f} to {r['losses'][-1]:.4f} {'' if ok else 'FAILED'}"
                print(f"{'':15} {name:6} {r['counts'][0]:>11,} trained, {r['counts'][1]:>11,} in all, {dtype}: {text}", flush=True)
    for name, why in gone.items():
        print(f"{name} is left out: {why}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
