#!/usr/bin/env python3
"""The page of bench/network.sh: processes.py RESULTS PAGE. Results are lines of part, work, batch, rate,
delay or number of processes, ms a step, bytes a step; the last line of a cell counts. A line `note` is a
sentence about the conditions, which the page begins with."""
import os
import platform
import sys

PARAMETERS = {"mlp": 669706, "mnist-cnn": 34826, "resnet18": 11689512}
EXCHANGES = {"mlp": 5, "mnist-cnn": 5, "resnet18": 45}  # a step, if all gradients were one bucket


def read(path):
    cells, notes = {}, []
    with open(path) as f:
        for line in f:
            if line.startswith("note\t"):
                notes.append(line.split("\t", 1)[1].strip())
                continue
            part, work, batch, rate, at, ms, size = line.rstrip("\n").split("\t")
            if ms:
                cells[part, work, int(batch), rate, int(at) if at != "-" else 0] = (
                    float(ms),
                    int(size) if size != "-" else None,
                )
    return cells, notes


def number(x):
    return "-" if x is None else f"{x:.2f}" if x < 10 else f"{x:.1f}" if x < 100 else f"{x:,.0f}"


def table(head, rows):
    return "\n".join(["| " + " | ".join(r) + " |" for r in [head, ["---"] * len(head), *rows]]) + "\n"


def wires(cells):
    bits = {"1gbit": 1e9, "10gbit": 1e10, "25gbit": 2.5e10}
    works = list(dict.fromkeys((k[1], k[2]) for k in cells if k[0] == "keel"))
    ways = list(dict.fromkeys((k[3], k[4]) for k in cells if k[0] == "keel"))
    head = ["rate, delay"] + [f"{w}, batch {b}" for w, b in works]
    steps, shares = [], []
    alone = ["no network: compute alone"]
    for work, batch in works:
        alone.append(number(cells.get(("compute", work, batch, "-", 0), (None,))[0]))
    steps.append(alone)
    for rate, delay in ways:
        name = f"{rate[:-4]} Gbit/s, {delay / 1000:g} ms" if delay else f"{rate[:-4]} Gbit/s, bridge"
        row, share = [name], [name]
        for work, batch in works:
            ms, size = cells.get(("keel", work, batch, rate, delay), (None, None))
            row.append(number(ms))
            compute = cells.get(("compute", work, batch, "-", 0), (None,))[0]
            if ms is None or compute is None:
                share.append("-")
                continue
            wire = 8e3 * size / bits[rate] + EXCHANGES[work] * delay / 1000
            # a computation differs by a third from run to run: less than that cannot be told from noise
            share.append(f"{100 * (compute + wire - ms) / wire:.0f} %" if wire > compute else "-")
        steps.append(row)
        shares.append(share)
    sent = []
    for work, batch in works:
        size = max(v[1] for k, v in cells.items() if k[:3] == ("keel", work, batch) and v[1])
        least = 4 * PARAMETERS[work]
        sent.append([f"{work}, batch {batch}", f"{size:,}", f"{least:,}", f"{size / least:.3f}"])
    return steps, shares, sent, head


def peers(cells):
    ways = list(dict.fromkeys((k[3], k[4]) for k in cells if k[0] == "ddp"))
    rows = []
    for work, batch in dict.fromkeys((k[1], k[2]) for k in cells if k[0] == "ddp"):
        for rate, delay in ways:
            mine = cells.get(("keel", work, batch, rate, delay), (None,))[0]
            if rate == "-":
                mine = cells.get(("openmpi", work, batch, "-", 2), (None,))[0]
            theirs = [cells.get((p, work, batch, rate, delay), (None,))[0] for p in ("ddp", "mwms")]
            where = "this machine" if rate == "-" else f"{rate[:-4]} Gbit/s, {delay / 1000:g} ms"
            rows.append([f"{work}, batch {batch}", where] + [number(x) for x in [mine, *theirs]])
    return rows


def processes(cells):
    rows = []
    for work, batch in dict.fromkeys((k[1], k[2]) for k in cells if k[0] == "lanes"):
        row = [f"{work}, batch {batch}"]
        row += [number(cells.get(("lanes", work, batch, "-", n), (None,))[0]) for n in (1, 2, 4, 8)]
        row += [number(cells.get(("openmpi", work, batch, "-", n), (None,))[0]) for n in (2, 4, 8)]
        rows.append(row)
    return rows


def main():
    results, page = sys.argv[1:]
    cells, notes = read(results)
    steps, shares, sent, head = wires(cells)
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), platform.machine())
    text = f"""# Several processes on networks of some rate and delay

Made by `bench/network.sh`, parts wires, peers and processes, on {model}, {os.cpu_count()} cores; float32. All
machines are network namespaces of this one. Each process has one core. A cell is one run: the median of three epochs of
20 steps (resnet18 and other large works: of one step). Runs of one cell differ by a third and more on this shared machine,
so small differences mean nothing.

{"".join(f"- {n}" + chr(10) for n in notes)}
## Two machines
Milliseconds a step of Keel, two processes by Open MPI over TCP. A rate is that of `tc tbf`; a delay (one way) is
that of `tests/mpi/forwarder.c`, which takes some of the two cores for itself, most at high rates: rows with a
delay are upper bounds. `bridge` has no delay but the kernel's. Compute alone is two processes of half a batch each that
exchange nothing.

{table(head, steps)}
Share of the communication that is hidden behind the computation: (compute alone + communication alone - step) /
communication alone; `-` where the computation is longer than the communication, whose share is then lost in noise. Here communication alone is bytes / rate and a delay for each exchange, which is computed, not measured: 5 in a step, 45 of
resnet18, whose BatchNorm needs statistics of all rows. Gradients travel in buckets while backward runs. What is below 0 are
the costs of processors: copies, TCP, the forwarder, waiting for the slower process, and other programs.

{table(head, shares)}
Bytes that a process puts on the wire in a step, the most of all wires, with TCP's own and those of the beginning, over the
lower bound 2 (P - 1) / P of the gradients:

{table(["work", "sent", "bound", "sent / bound"], sent)}
## Beside PyTorch and TensorFlow
Milliseconds a step, two processes of one core and half the batch each: `DistributedDataParallel` on gloo
(`bench/peers/ddp.py`) and `MultiWorkerMirroredStrategy` (`bench/peers/mwms.py`, a bare loop, since Keras's fit refuses this
strategy). On this machine two processes of Keel act as one, the others use TCP.

{table(["work", "network", "Keel", "ddp", "mwms"], peers(cells))}
## Processes and lanes on this machine
Milliseconds a step of one process with so many lanes, and of so many processes of one core (Open MPI), which act as one.
There are {os.cpu_count()} cores, so more than {os.cpu_count()} of either share them.

{table(["work", "1 lane", "2 lanes", "4 lanes", "8 lanes", "2 processes", "4 processes", "8 processes"], processes(cells))}"""
    with open(page, "w") as f:
        f.write(text.rstrip("\n") + "\n")


if __name__ == "__main__":
    sys.exit(main())
