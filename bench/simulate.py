"""Compares what `keel simulate` predicts with what is measured: one process and two, on this machine,
by each MPI that is there. Predictions and measurements take turns; a cell is the median over rounds, and
within a run the median over epochs but the first. Foreign work on the machine is counted by /proc/stat and
printed: where it is more than a few percent, run it again."""
import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MPIS = {
    "openmpi": ("mpirun.openmpi", ["--allow-run-as-root", "-n", "2", "--bind-to", "core"]),
    "mpich": ("mpiexec.mpich", ["-n", "2", "-bind-to", "core"]),
}
WORKS = "mlp:64,mlp:256,mnist-cnn:64,mnist-cnn:256,lstm:32,resnet18:16"


def own_seconds():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def busy_seconds():
    with open("/proc/stat") as f:
        n = [int(x) for x in f.readline().split()[1:9]]
    return (sum(n) - n[3] - n[4]) / os.sysconf("SC_CLK_TCK")


class Watch:
    """Foreign processor time while commands run, as a share of the machine."""

    def __init__(self):
        self.foreign = self.all = 0.0

    def run(self, words):
        begin, own, busy = time.time(), own_seconds(), busy_seconds()
        r = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "OMPI_MCA_btl": "self,vader"})
        if r.returncode:
            sys.exit(f"{' '.join(words)}\n{r.stderr}")
        self.foreign += max(0.0, busy_seconds() - busy - (own_seconds() - own))
        self.all += (time.time() - begin) * os.cpu_count()
        return r.stdout


def measured(watch, keel, folder, batch, epochs, mpi):
    """Milliseconds a step of keel fit, in one process or in two."""
    words = [keel, "fit", f"{folder}/model.keras", "--data", f"{folder}/x.npy,{folder}/y.npy", "--batch-size",
             str(batch), "--epochs", str(epochs), "--devices", "cpu:0", "-o", f"{folder}/out.keras"]
    if mpi:
        words = [MPIS[mpi][0], *MPIS[mpi][1], *words, "--apart"]
    out = watch.run(words)
    rates = [float(x.replace(",", "")) for x in re.findall(r"^epoch .* ([\d,]+) rows/s", out, re.M)]
    return 1e3 * batch / statistics.median(rates[1:] or rates)


def predicted(watch, keel, folder, batch, processes, network, seconds):
    out = watch.run([keel, "simulate", f"{folder}/model.keras", "--machines", "1", "--processes-per-machine",
                     str(processes), "--batch-size", str(batch), "--devices", "cpu:0", "--network", network,
                     "--seconds", str(seconds), "--json"])
    return json.loads(out)["one"]


def row(o, folder, work, epochs, mpis, networks):
    """One line of the table: measurements and predictions in turn."""
    name, batch = work
    watch, found = Watch(), {k: [] for k in [None, *mpis]}
    for _ in range(o.rounds):
        for mpi in found:
            text = networks.get(mpi, "25Gbit,50us")
            m = measured(watch, o.keel, folder, batch, epochs, mpi)
            q = predicted(watch, o.keel, folder, batch, 2 if mpi else 1, text, o.seconds)["step_ms"]
            found[mpi].append((m, q))
    cells = []
    for pairs in found.values():
        m, q, ratio = (statistics.median(x) for x in ([a for a, _ in pairs], [b for _, b in pairs], [b / a for a, b in pairs]))
        cells.append(f"{m:.3g} | {q:.3g} | {ratio:.2f}")
    return f"| {name}, batch {batch} | " + " | ".join(cells) + f" | {100 * watch.foreign / watch.all:.0f} % |"


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--keel", default="build/keel")
    p.add_argument("--works", default=WORKS, help="NAME:BATCH, separated by commas")
    p.add_argument("--mpi", default=",".join(MPIS))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=0.5, help="of a prediction, and about those of a measurement")
    p.add_argument("--network", action="append", default=[], metavar="MPI=TEXT",
                   help="what --network is for an MPI: openmpi=25Gbit,50us,local=6GB")
    p.add_argument("--page", help="write the table to this file")
    o = p.parse_args()
    networks = dict(x.split("=", 1) for x in o.network)
    mpis = [m for m in o.mpi.split(",") if shutil.which(MPIS[m][0])]
    watch, rows = Watch(), []
    with tempfile.TemporaryDirectory() as top:
        works = [(w.split(":")[0], int(w.split(":")[1])) for w in o.works.split(",")]
        epochs = {}
        for name, batch in works:
            folder = f"{top}/{name}"
            if not os.path.isdir(folder):
                subprocess.run([o.keel, "bench", name, "--batch-size", str(batch), "--export", folder], check=True,
                               stdout=subprocess.DEVNULL)
            one = predicted(watch, o.keel, folder, batch, 1, "1Gbit,1ms", 0.1)
            with open(f"{folder}/y.npy", "rb") as f:
                n = int(re.search(rb"'shape': \((\d+)", f.read(256)).group(1))
            epochs[name, batch] = 1 + max(2, min(40, round(o.seconds / (one["step_ms"] * 1e-3 * n / batch))))
        heads = ["one process", *[f"two, {m}" for m in mpis]]
        rows.append("| ms a step | " + " | ".join(f"{h}: measured | predicted | over it" for h in heads) + " | foreign |")
        rows.append("|---" * (2 + 3 * len(heads)) + "|")
        print("\n".join(rows), flush=True)
        for w in works:
            rows.append(row(o, f"{top}/{w[0]}", w, epochs[w], mpis, networks))
            print(rows[-1], flush=True)
    cpu = next(x.split(":")[1].strip() for x in open("/proc/cpuinfo") if x.startswith("model name"))
    words = [f"- machine: {cpu}, {os.cpu_count()} cores; one core for each process",
             f"- {o.rounds} rounds; the last column is the share of the machine that other programs took meanwhile",
             *[f"- `--network {networks[m]}` for {m}" for m in mpis if m in networks]]
    table = "\n".join([*words, "", *rows])
    if o.page:
        with open(o.page) as f:
            page = f.read()
        head, rest = page.split("<!-- table -->\n", 1)
        with open(o.page, "w") as f:
            f.write(f"{head}<!-- table -->\n{table}\n<!-- end -->\n{rest.split('<!-- end -->', 1)[1].lstrip(chr(10))}")


if __name__ == "__main__":
    main()
