#!/usr/bin/env python3
"""What a row costs in layers of preprocessing: Keel's stages, Keras's layers in tf.data, torchvision.

    augment.py [--keel KEEL] [--size 224] [--rows N] [--only NAMES]

Rows are images of bytes in memory. A cell is microseconds of processor time for a row, less what the same
rows cost without the layer; the smallest of three runs. tf.data maps row by row and batches of 32, each
program on one thread. A program that is not installed is left out.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", OMP_NUM_THREADS="1")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import numpy as np

LAYERS = {  # arguments of Keras, and torchvision's transform
    "RandomFlip": (dict(mode="horizontal"), lambda v, n: v.RandomHorizontalFlip()),
    "Rescaling": (dict(scale=1 / 255), lambda v, n: v.ToDtype(v.torch.float32, scale=True)),
    "Normalization": (
        dict(mean=[1.0, 2.0, 3.0], variance=[4.0, 1.0, 2.0]),
        lambda v, n: v.Compose([v.ToDtype(v.torch.float32), v.Normalize([1.0, 2.0, 3.0], [2.0, 1.0, 2.0**0.5])]),
    ),
    "RandomCrop": (dict(height=0.875, width=0.875), lambda v, n: v.RandomCrop(int(n * 0.875))),
    "CenterCrop": (dict(height=0.875, width=0.875), lambda v, n: v.CenterCrop(int(n * 0.875))),
    "Resizing": (dict(height=0.5, width=0.5), lambda v, n: v.Resize((n // 2, n // 2), antialias=False)),
    "RandomBrightness": (dict(factor=0.2), lambda v, n: v.ColorJitter(brightness=0.2)),
    "RandomContrast": (dict(factor=0.2), lambda v, n: v.ColorJitter(contrast=0.2)),
    "RandomRotation": (
        dict(factor=0.1),
        lambda v, n: v.RandomRotation(36, interpolation=v.InterpolationMode.BILINEAR),
    ),
    "RandomTranslation": (
        dict(height_factor=0.2, width_factor=0.2),
        lambda v, n: v.RandomAffine(0, (0.2, 0.2), interpolation=v.InterpolationMode.BILINEAR),
    ),
    "RandomErasing": (dict(), lambda v, n: v.RandomErasing(p=1)),
}


def arguments(name, size):
    args = dict(LAYERS[name][0])
    for key in ("height", "width"):
        if key in args:
            args[key] = int(args[key] * size)
    return args


def keel(program, images, rows, layer, args):
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", images)
        with open(f"{folder}/p.toml", "w") as f:
            f.write(f"source = '{folder}/x.npy'\n[[stage]]\nname = 'repeat'\ncount = {rows // len(images)}\n")
            if layer:
                f.write(f"[[stage]]\nname = '{layer}'\n")
                for key, value in args.items():
                    f.write(f"{key} = {value!r}\n")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, "data", f"{folder}/p.toml", "--verify", "--threads", "1"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def keras(images, rows, layer, args, batch):
    import keras
    import tensorflow as tf

    data = tf.data.Dataset.from_tensor_slices(images).repeat(rows // len(images) + 2)
    data = data.batch(batch) if batch else data
    if layer:
        of = getattr(keras.layers, layer)(**args)
        random = layer.startswith("Random")
        data = data.map((lambda x: of(x, training=True)) if random else of)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    it = iter(data.with_options(options))
    for _ in range(2):
        next(it)
    begin = time.process_time()
    for _ in range(rows // (batch or 1)):
        next(it)
    return time.process_time() - begin


def torchvision(images, rows, layer, size):
    import torch
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    v2.torch = torch
    all_rows = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    f = LAYERS[layer][1](v2, size)
    f(all_rows[0])
    begin = time.process_time()
    for i in range(rows):
        f(all_rows[i % len(images)])
    return time.process_time() - begin


def least(f, *args):
    return min(f(*args) for _ in range(3))


def measure(program, o):
    """Microseconds a row of each layer; libraries may not share a process, so each has its own."""
    images = np.random.default_rng(0).integers(0, 256, (64, o.size, o.size, 3), np.uint8)
    names = o.only.split(",") if o.only else list(LAYERS)
    if program == "torchvision":
        return {n: least(torchvision, images, o.rows, n, o.size) / o.rows * 1e6 for n in names if LAYERS[n][1]}
    if program == "keel":
        o.rows *= 10  # the time of a whole process, with its start
        f = lambda *a: least(keel, o.keel, images, o.rows, *a)
    else:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        f = lambda *a: least(keras, images, o.rows, *a, 32 if program.endswith("batches") else 0)
    base = f(None, {})
    return {n: (f(n, arguments(n, o.size)) - base) / o.rows * 1e6 for n in names}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--keel", default="build/keel")
    p.add_argument("--size", type=int, default=224)
    p.add_argument("--rows", type=int, default=640)
    p.add_argument("--only")
    p.add_argument("--program", help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.program:
        print(json.dumps(measure(o.program, o)))
        return
    columns = {}
    for program in ("keel", "tf.data rows", "tf.data batches", "torchvision"):
        more = ["--program", program]
        r = subprocess.run([sys.executable, *sys.argv, *more], capture_output=True, text=True)
        if r.returncode == 0:
            columns[program] = json.loads(r.stdout.splitlines()[-1])
        else:
            print(f"{program} is left out: {r.stderr.strip().splitlines()[-1]}")
    print(f"{'us a row':18}" + "".join(f"{k:>18}" for k in columns))
    for name in columns["keel"]:
        print(f"{name:18}" + "".join(f"{c.get(name, float('nan')):18.1f}" for c in columns.values()))


if __name__ == "__main__":
    main()
