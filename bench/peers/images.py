#!/usr/bin/env python3
"""Images decoded and resized, by Keel and by others, on one thread each.

    images.py --make DIR [--from PHOTOS]     write the sets of photos into folders of DIR
    images.py DIR [--keel BENCH_IMAGES] [--size 224] [--seconds S] [--rounds N] [--only NAMES]

A set is 24 JPEG files, 4:2:0. Photos are cut out of those in PHOTOS if that is given, else they
are drawn: discs that cover each other, with sizes and textures whose spectrum falls like that of
photographs. Programs take turns: in each round each program reads all files of the set, from memory,
for S seconds of processor time; a cell is the median over the rounds. A program that is not installed is left out
and named.
"""
import argparse
import glob
import io
import json
import os
import statistics
import subprocess
import sys
import time

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", OMP_NUM_THREADS="1")
import numpy as np

COUNT = 24
SETS = {  # height, width, quality, how many
    "500x375-q90": (375, 500, 90, COUNT),
    "500x375-q95": (375, 500, 95, COUNT),
    "2000x1500-q90": (1500, 2000, 90, 6),
}


# ---- photos ------------------------------------------------------------------------------------


def texture(chance, height, width, power):
    """[height, width, 3] with mean 0 and spread 1, whose amplitudes fall like frequency**-power."""
    fy, fx = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]
    fall = np.maximum(np.hypot(fy, fx), 1 / max(height, width)) ** -power
    waves = chance.normal(size=(3, *fall.shape)) + 1j * chance.normal(size=(3, *fall.shape))
    waves[1:] = 0.85 * waves[:1] + 0.5 * waves[1:]  # colours go together
    out = np.fft.irfft2(waves * fall, s=(height, width)).transpose(1, 2, 0)
    return out / out.std()


def draw(chance, height, width):
    fine, coarse = texture(chance, height, width, 1.0), texture(chance, height, width, 1.6)
    light = texture(chance, height, width, 2.0)
    colour = np.zeros((height, width, 3))
    rough = np.full((height, width, 1), 0.3)
    for _ in range(220):  # the sizes of discs fall like their cube
        radius = min(height, width) * 0.015 / np.sqrt(chance.uniform(0.0015, 1))
        cy, cx = chance.uniform(0, height), chance.uniform(0, width)
        y0, y1, x0, x1 = max(int(cy - radius), 0), int(cy + radius) + 1, max(int(cx - radius), 0), int(cx + radius) + 1
        part = colour[y0:y1, x0:x1]
        y, x = np.mgrid[y0 : y0 + part.shape[0], x0 : x0 + part.shape[1]]
        inside = np.hypot(y - cy, x - cx) < radius
        part[inside] = chance.normal(0, 0.35, 3) + chance.normal(0, 0.9)
        rough[y0:y1, x0:x1][inside] = chance.choice([0.05, 0.2, 0.5, 0.9])
    image = 115 + 38 * colour + 24 * rough * fine + 12 * coarse + 16 * light
    return np.clip(image + chance.normal(0, 1.2, image.shape), 0, 255).astype(np.uint8)


def cut(chance, photos, height, width):
    """A piece of a photo, made smaller as cameras' pictures are for a collection."""
    from PIL import Image

    image = Image.open(photos[chance.integers(len(photos))]).convert("RGB")
    share = chance.uniform(0.6, 1) * min(image.width / width, image.height / height)
    w, h = int(width * share), int(height * share)
    x, y = chance.integers(image.width - w + 1), chance.integers(image.height - h + 1)
    return np.asarray(image.resize((width, height), Image.LANCZOS, (x, y, x + w, y + h)))


def make(folder, source):
    from PIL import Image

    photos = sorted(p for p in glob.glob(f"{source}/**/*", recursive=True) if os.path.isfile(p)) if source else None
    for name, (height, width, quality, count) in SETS.items():
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        size = 0
        for i in range(count):
            chance = np.random.default_rng(i)
            image = cut(chance, photos, height, width) if photos else draw(chance, height, width)
            path = os.path.join(folder, name, f"{i:02}.jpg")
            Image.fromarray(image).save(path, quality=quality, subsampling="4:2:0")
            size += os.path.getsize(path)
        print(f"{name}: {count} files, {8 * size / count / height / width:.2f} bits a pixel")


# ---- programs: each returns a function of a file's bytes -----------------------------------------


def torchvision(size):
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms.v2.functional import resize

    torch.set_num_threads(1)

    def run(data):
        image = decode_jpeg(torch.frombuffer(data, dtype=torch.uint8), mode=ImageReadMode.RGB)
        return resize(image, [size, size], antialias=False)

    return run


def torchvision_float(size):
    """As Keel and tf.data: resized to float32, whose fractions are kept."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    from torchvision.transforms.v2.functional import resize

    torch.set_num_threads(1)

    def run(data):
        image = decode_jpeg(torch.frombuffer(data, dtype=torch.uint8), mode=ImageReadMode.RGB)
        return resize(image.to(torch.float32), [size, size], antialias=False)

    return run


def pil(size):
    from PIL import Image

    def run(data):
        image = Image.open(io.BytesIO(data)).convert("RGB")
        return np.asarray(image.resize((size, size), Image.BILINEAR, reducing_gap=None))

    return run


def tf_data(size):
    """A dataset of the set's files, mapped on one thread; called with all of them."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1

    def load(data):
        return tf.image.resize(tf.io.decode_jpeg(data, channels=3), (size, size), method="bilinear")

    def run(files):
        if not hasattr(run, "set"):
            d = tf.data.Dataset.from_tensor_slices([bytes(f) for f in files]).repeat().map(load)
            run.set = iter(d.with_options(options))
        for _ in files:
            next(run.set)

    run.all_files = True
    return run


def simplejpeg(size):
    import cv2
    import simplejpeg

    cv2.setNumThreads(1)

    def run(data):
        return cv2.resize(simplejpeg.decode_jpeg(data), (size, size), interpolation=cv2.INTER_LINEAR)

    return run


def opencv(size):
    import cv2

    cv2.setNumThreads(1)

    def run(data):
        image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
        return cv2.resize(image, (size, size), interpolation=cv2.INTER_LINEAR)

    return run


PEERS = {
    "torchvision": torchvision,
    "torchvision float32": torchvision_float,
    "PIL": pil,
    "tf.data": tf_data,
    "simplejpeg + cv2": simplejpeg,
    "cv2": opencv,
}


def rate(run, files, seconds):
    """Images per second of the processor, of all threads that the program has."""
    begin, count = time.process_time(), 0
    while time.process_time() - begin < seconds or not count:
        if getattr(run, "all_files", False):
            run(files)
        else:
            for f in files:
                run(f)
        count += len(files)
    return count / (time.process_time() - begin)


def keel(bench, paths, size, seconds):
    """Images per second of one thread and of two, of all stages."""
    line = subprocess.run(
        [bench, "--json", "--size", f"{size}x{size}", "--seconds", str(seconds), *paths],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return json.loads(line)


def measure(folder, a):
    paths = sorted(glob.glob(os.path.join(folder, "**", "*.jp*g"), recursive=True))
    files = [bytearray(open(p, "rb").read()) for p in paths]
    runs, took, scaling = {}, {}, []
    for name, make_run in PEERS.items():
        if a.only and name not in a.only:
            continue
        try:
            runs[name] = make_run(a.size)
            rate(runs[name], files, 0.2)
        except ImportError as e:
            print(f"without {name}: {e}", file=sys.stderr)
            runs.pop(name, None)
    for _ in range(a.rounds):
        if a.keel:
            got = keel(a.keel, paths, a.size, a.seconds)
            took.setdefault("Keel", []).append(got["row"][0])
            scaling.append(got["row"][1] / got["row"][0] / 2)
        for name, run in runs.items():
            took.setdefault(name, []).append(rate(run, files, a.seconds))
    median = {name: statistics.median(t) for name, t in took.items()}
    print(f"\n{folder}, {len(files)} files, to {a.size}x{a.size}, {a.rounds} rounds")
    print("| | images/s a core | spread | Keel over it |\n|---|---|---|---|")
    for name, m in median.items():
        spread = (max(took[name]) - min(took[name])) / m
        over = f"{median['Keel'] / m:.2f}" if "Keel" in median else ""
        print(f"| {name} | {m:.0f} | {spread:.0%} | {over} |")
    if scaling:
        print(f"Keel, two threads over twice one: {statistics.median(scaling):.1%}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder")
    p.add_argument("--make", action="store_true")
    p.add_argument("--from", dest="source", metavar="PHOTOS")
    p.add_argument("--keel", metavar="BENCH_IMAGES", help="build/bench/bench_images")
    p.add_argument("--size", type=int, default=224)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", type=lambda t: t.split(","), metavar="NAMES")
    a = p.parse_args()
    if a.make:
        return make(a.folder, a.source)
    measure(a.folder, a)


if __name__ == "__main__":
    main()
