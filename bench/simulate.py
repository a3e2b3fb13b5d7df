"""Compares what `keel simulate` predicts with what is measured: one process on one core and on two, and two
processes by each MPI. A cell is made of rounds. In each, what connects the processes is measured (`keel
network`), then a step is predicted, measured and predicted again, so that both see the same minute; ratios
are those of a round, and of all rounds the median counts. Before and after each round the machine must be
idle: else the round is made again, and where it never is, the cell is marked with ~.

On one machine the launchers are those of MPIS. With --machines 2, --launcher starts one process on each of
two machines, which may be namespaces of this one (simulate_network.sh): then two predictions run at once,
since the processes that are measured load the machine, too."""
import argparse
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MPIS = {
    "openmpi": "mpirun.openmpi --allow-run-as-root -n 2 --bind-to core",
    "mpich": "mpiexec.mpich -n 2 -bind-to core",
}
WORKS = "mlp:64,mlp:256,mnist-cnn:64,mnist-cnn:256,lstm:32,resnet18:16"
PROBE = 0.2  # seconds of looking whether the machine is idle


def start(words):
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "OMPI_MCA_btl": os.environ.get("OMPI_MCA_btl", "self,vader")})


def end(process):
    out, error = process.communicate()
    if process.returncode:
        sys.exit(f"{' '.join(process.args)}\n{error}")
    return out


def run(words):
    return end(start(words))


def busy():
    """Share of the machine that is taken while this program does nothing."""
    def seconds():
        with open("/proc/stat") as f:
            n = [int(x) for x in f.readline().split()[1:9]]
        return (sum(n) - n[3] - n[4]) / os.sysconf("SC_CLK_TCK")

    before = seconds()
    time.sleep(PROBE)
    return (seconds() - before) / PROBE / os.cpu_count()


class Setting:
    """One way to train: its name, its processes, and the devices of each."""

    def __init__(self, o, name, devices, launcher=None):
        self.keel, self.seconds, self.machines = o.keel, o.seconds, o.machines
        self.name, self.devices = name, devices
        self.launcher = shlex.split(launcher) if launcher else []
        self.network = "25Gbit,50us"

    def connect(self):
        if self.launcher:
            self.network = run([*self.launcher, self.keel, "network"]).strip()

    def measured(self, folder, batch, epochs):
        """Milliseconds a step of keel fit: the median of epochs but the first."""
        words = [*self.launcher, self.keel, "fit", f"{folder}/model.keras", "--data", f"{folder}/x.npy,{folder}/y.npy",
                 "--batch-size", str(batch), "--epochs", str(epochs), "--devices", self.devices, "-o", f"{folder}/out.keras"]
        out = run(words + ["--apart"] * bool(self.launcher))
        rates = [float(x.replace(",", "")) for x in re.findall(r"^epoch .* ([\d,]+) rows/s", out, re.M)]
        return 1e3 * batch / statistics.median(rates[1:] or rates)

    def predicted(self, folder, batch, seconds=None):
        machines = self.machines if self.launcher else 1
        per = 2 // machines if self.launcher else 1
        words = [self.keel, "simulate", f"{folder}/model.keras", "--machines", str(machines), "--processes-per-machine",
                 str(per), "--batch-size", str(batch), "--devices", self.devices, "--network", self.network,
                 "--seconds", str(seconds or self.seconds), "--json"]
        if machines == 1:
            return json.loads(run(words))["one"]["step_ms"]
        both = [start(["taskset", "-c", str(core), *words]) for core in (0, 1)]
        return [json.loads(end(p))["points"][-1]["step_ms"] for p in both][0]


def one_round(setting, folder, batch, epochs):
    setting.connect()
    before = setting.predicted(folder, batch)
    m = setting.measured(folder, batch, epochs)
    q = (before + setting.predicted(folder, batch)) / 2
    return m, q, q / m


def cell(o, setting, folder, batch, epochs):
    quiet, all_rounds = [], []
    end_at = time.time() + o.patience
    while len(quiet) < o.rounds and (len(all_rounds) < o.rounds or time.time() < end_at):
        before = busy()
        if before > o.foreign and time.time() < end_at:
            continue
        found = one_round(setting, folder, batch, epochs)
        all_rounds.append(found)
        if max(before, busy()) <= o.foreign:
            quiet.append(found)
    rounds = quiet if len(quiet) == o.rounds else all_rounds
    m, q, ratio = (statistics.median(x) for x in zip(*rounds))
    r = sorted(x[2] for x in rounds)
    return f"{m:.3g} | {q:.3g} | {'' if rounds is quiet else '~'}{ratio:.2f} ({r[0]:.2f} to {r[-1]:.2f})"


def steps_of(o, folder, batch):
    """Epochs that take about the seconds of a measurement, and at least three."""
    one = Setting(o, "", "cpu:0").predicted(folder, batch, 0.1)
    with open(f"{folder}/y.npy", "rb") as f:
        n = int(re.search(rb"'shape': \((\d+)", f.read(256)).group(1))
    return 1 + max(2, min(40, round(o.seconds / (one * 1e-3 * n / batch))))


def table(o, settings):
    rows = []

    def add(text):
        rows.append(text)
        print(text, flush=True)

    if not o.no_head:
        first = "network | ms a step" if o.title else "ms a step"
        columns = " | ".join(f"{s.name}: measured | predicted | over it" for s in settings)
        add(f"| {first} | {columns} |")
        add("|---" * (1 + bool(o.title) + 3 * len(settings)) + "|")
    with tempfile.TemporaryDirectory() as top:
        for text in o.works.split(","):
            name, batch = text.split(":")
            folder = f"{top}/{name}"
            if not os.path.isdir(folder):
                run([o.keel, "bench", name, "--batch-size", batch, "--export", folder, "--seconds", "0.01", "--no-profile"])
            epochs = steps_of(o, folder, int(batch))
            cells = " | ".join(cell(o, s, folder, int(batch), epochs) for s in settings)
            add(f"| {o.title + ' | ' if o.title else ''}{name}, batch {batch} | {cells} |")
    return rows


def conditions(o):
    cpu = next(x.split(":")[1].strip() for x in open("/proc/cpuinfo") if x.startswith("model name"))
    return [f"- machine: {cpu}, {os.cpu_count()} cores; one core for each process",
            f"- medians of {o.rounds} rounds, and the least and the most of all ratios; ~: the machine was never idle"]


def paste(page, part, lines):
    with open(page) as f:
        head, rest = f.read().split(f"<!-- {part} -->\n", 1)
    with open(page, "w") as f:
        f.write(f"{head}<!-- {part} -->\n" + "\n".join(lines) + f"\n<!-- end -->{rest.split('<!-- end -->', 1)[1]}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--keel", default="build/keel")
    p.add_argument("--works", default=WORKS, help="NAME:BATCH, separated by commas")
    p.add_argument("--mpi", default=",".join(MPIS), help="which of them start two processes here")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.5, help="of a prediction, and about those of a measurement")
    p.add_argument("--foreign", type=float, default=0.03, help="share of the machine that others may take")
    p.add_argument("--patience", type=float, default=60, help="seconds that a cell waits for an idle machine")
    p.add_argument("--machines", type=int, default=1, choices=(1, 2), help="that the two processes run on")
    p.add_argument("--launcher", action="append", default=[], metavar="NAME=COMMAND", help="in place of --mpi")
    p.add_argument("--title", default="", help="begins each row: the network")
    p.add_argument("--no-head", action="store_true", help="only rows, as a further part of a table")
    p.add_argument("--page", help="write the table into this file")
    p.add_argument("--paste", help="measure nothing: write this file's lines into the page, as its networks")
    o = p.parse_args()
    o.keel = os.path.abspath(o.keel)
    if o.paste:
        with open(o.paste) as f:
            paste(o.page, "networks", conditions(o) + [""] + f.read().splitlines())
        return
    launchers = dict(x.split("=", 1) for x in o.launcher)
    if not launchers:
        launchers = {m: MPIS[m] for m in o.mpi.split(",") if m and shutil.which(shlex.split(MPIS[m])[0])}
    settings = [] if o.machines > 1 else [Setting(o, "one core", "cpu:0"), Setting(o, "two cores", "cpu:0-1")]
    settings += [Setting(o, f"two processes, {name}", "cpu:0", words) for name, words in launchers.items()]
    rows = table(o, settings)
    if o.page:
        paste(o.page, "table", conditions(o) + [""] + rows)


if __name__ == "__main__":
    main()
