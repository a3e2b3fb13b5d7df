#!/usr/bin/env python3
"""Rows per second of tables that become arrays in memory: Keel, pandas, Arrow and tf.data, one thread each.

    python bench/peers/tables.py --bench build/bench/bench_tables [--mb 100] [--rounds 5]

Two files are made: 20 columns of numbers with all their digits (as pandas writes doubles) and a
label; and 8 columns of numbers of few digits with 4 of words, of which every tenth is quoted. The
programs take turns on one core; the median of the rounds counts, in time of the processor. All end
with float32 features and a label in memory; words become whole numbers (pandas: category codes).
Numbers are rounded exactly by Keel and pandas. tf.data parses and batches rows, of which nothing is
kept; of the mixed file it leaves the words as texts.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

WORDS = [f"w{i}" for i in range(4)]
PEERS = ("keel", "pandas", "pyarrow", "csv-dataset", "make-csv-dataset")


def make(folder, mb):
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(1)
    files = {}
    for kind, row_bytes in (("numbers", 385), ("mixed", 92)):
        n = max(1000, mb * 1_000_000 // row_bytes)
        if kind == "numbers":
            table = pd.DataFrame(rng.normal(size=(n, 20)), columns=[f"c{i}" for i in range(20)])
        else:
            table = pd.DataFrame(np.round(rng.normal(size=(n, 8)) * 100, 2), columns=[f"c{i}" for i in range(8)])
            names = np.array([f"word {i:03d}" if i % 10 else f"a, b {i:03d}" for i in range(200)])
            for w in WORDS:
                table[w] = names[rng.integers(0, len(names), n)]
        table["y"] = rng.integers(0, 10, n)
        path = os.path.join(folder, kind + ".csv")
        table.to_csv(path, index=False)
        files[kind] = (path, n, os.path.getsize(path))
    return files


def by_pandas(path, words):
    import pandas as pd

    begin = time.process_time()
    dtype = {w: "category" for w in words}
    table = pd.read_csv(path, engine="c", dtype=dtype or None)
    table.pop("y").to_numpy()
    for w in words:
        table[w] = table[w].cat.codes
    table.to_numpy("float32")
    return time.process_time() - begin, len(table)


def by_pyarrow(path, words, threads=False):
    import numpy as np
    import pyarrow.csv as csv

    begin = time.process_time()
    convert = csv.ConvertOptions(auto_dict_encode=bool(words), auto_dict_max_cardinality=1000)
    table = csv.read_csv(path, csv.ReadOptions(use_threads=threads), convert_options=convert)
    columns = [table[n].combine_chunks() for n in table.column_names]
    np.stack([(c.indices if n in words else c).to_numpy(zero_copy_only=False).astype("float32")
              for n, c in zip(table.column_names, columns) if n != "y"], axis=1)  # fmt: skip
    return time.process_time() - begin, len(table)


def by_tf(path, words, make_dataset):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    n_numbers = 8 if words else 20
    types = [tf.float32] * n_numbers + [tf.string] * len(words) + [tf.int32]
    begin = time.process_time()
    if make_dataset:
        data = tf.data.experimental.make_csv_dataset(
            path, 1024, column_defaults=types, label_name="y", num_epochs=1, shuffle=False, num_parallel_reads=1,
            prefetch_buffer_size=0)  # fmt: skip
    else:
        data = tf.data.experimental.CsvDataset(path, types, header=True).batch(1024)
    for _ in data:
        pass
    return time.process_time() - begin


def one(peer, path, words):
    if peer == "pandas":
        return by_pandas(path, words)[0]
    if peer == "pyarrow":
        return by_pyarrow(path, words)[0]
    return by_tf(path, words, peer == "make-csv-dataset")


def run(peer, bench, path, kind, core):
    words = WORDS if kind == "mixed" else []
    pin = ["taskset", "-c", str(core)]
    if peer == "keel":
        command = pin + [bench, path, "y", "2"] + words
    else:
        command = pin + [sys.executable, __file__, "--serve", peer, path] + words
    environment = dict(os.environ, OMP_NUM_THREADS="1", ARROW_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3",
                       CUDA_VISIBLE_DEVICES="-1")  # fmt: skip
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[-1:]
    return min(json.loads(line)["seconds"] for line in done.stdout.splitlines() if line.startswith("{")), None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", default="build/bench/bench_tables")
    p.add_argument("--mb", type=int, default=100)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--core", type=int, default=0)
    p.add_argument("--peers", default=",".join(PEERS))
    p.add_argument("--serve", nargs="+", help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.serve:
        for _ in range(2):  # the first of a process warms up, as Keel's does
            print(json.dumps({"seconds": one(o.serve[0], o.serve[1], o.serve[2:])}), flush=True)
            if o.serve[0].endswith("dataset"):
                break
        return
    with tempfile.TemporaryDirectory() as folder:
        files = make(folder, o.mb)
        print("| file | " + " | ".join(o.peers.split(",")) + " |")
        print("|---|" + "---|" * len(o.peers.split(",")))
        for kind, (path, rows, size) in files.items():
            times = {peer: [] for peer in o.peers.split(",")}
            for _ in range(o.rounds):
                for peer in times:
                    seconds, error = run(peer, o.bench, path, kind, o.core)
                    if error is not None:
                        print(f"{peer}: {error}", file=sys.stderr)
                        continue
                    times[peer].append(seconds)
            cells = []
            for t in times.values():
                m = statistics.median(t) if t else None
                cells.append(f"{rows / m / 1000:,.0f} k rows/s, {size / m / 1e6:,.0f} MB/s" if m else "failed")
            print(f"| {kind}, {size / 1e6:.0f} MB, {rows:,} rows | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
