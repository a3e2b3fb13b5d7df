#!/usr/bin/env python3
"""What a pipeline costs by itself: elements a second of one that only hands rows on, of Keel, tf.data
and PyTorch's DataLoader, in turn, one thread each. Rows are 10 float32 and a label, in memory.

    elements.py --keel build/keel [--rounds 5]
"""
import argparse
import os
import re
import statistics
import subprocess
import tempfile
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import torch  # noqa: E402

ROWS = 100_000
x = np.random.default_rng(0).normal(size=(ROWS, 10)).astype("float32")
y = (np.arange(ROWS) % 3).astype("int32")


def rate(elements, rows_of, seconds=2.0):
    begin, rows = time.perf_counter(), 0
    while True:
        for e in elements():
            rows += rows_of
            if rows % 64 == 0 and time.perf_counter() - begin > seconds:
                return rows / (time.perf_counter() - begin)


def tensorflow(kind):
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    d = tf.data.Dataset.from_tensor_slices((x, y))
    if kind != "rows":
        d = d.shuffle(1000).batch(64, drop_remainder=True)
    d = d.with_options(options)
    return rate(lambda: d, 1 if kind == "rows" else 64)


def pytorch(kind):
    torch.set_num_threads(1)
    data = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    if kind == "rows":
        loader = torch.utils.data.DataLoader(data, batch_size=None)
        return rate(lambda: loader, 1)
    loader = torch.utils.data.DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
    return rate(lambda: loader, 64)


def keel(command, kind, folder):
    stages = "" if kind == "rows" else (
        '[[stage]]\nname = "shuffle"\nbuffer_size = 1000\n'
        '[[stage]]\nname = "batch"\nbatch_size = 64\nend = "drop"\n')
    path = os.path.join(folder, f"{kind}.toml")
    with open(path, "w") as f:
        f.write(f'source = "{folder}/data.npz"\n{stages}')
    out = subprocess.run([command, "data", path, "--rows", "0", "--seconds", "2", "--threads", "1"],
                         check=True, capture_output=True, text=True).stdout
    return float(re.findall(r"([\d,]+) rows a second", out)[-1].replace(",", ""))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--keel", default="build/keel")
    p.add_argument("--rounds", type=int, default=5)
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        np.savez(os.path.join(folder, "data.npz"), x=x, y=y)
        for kind in ("rows", "shuffle 1000, batch 64"):
            key = "rows" if kind == "rows" else "batches"
            got = {"Keel": [], "tf.data": [], "DataLoader": []}
            for _ in range(o.rounds):
                got["Keel"].append(keel(o.keel, key, folder))
                got["tf.data"].append(tensorflow(key))
                got["DataLoader"].append(pytorch(key))
            median = {k: statistics.median(v) for k, v in got.items()}
            best = max(v for k, v in median.items() if k != "Keel")
            line = ", ".join(f"{k} {v:,.0f}" for k, v in median.items())
            print(f"{kind}: rows a second: {line}; over the fastest peer {median['Keel'] / best:.2f}")


if __name__ == "__main__":
    main()
