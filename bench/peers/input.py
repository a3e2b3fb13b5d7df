#!/usr/bin/env python3
"""The input side on one core and on two: Keel beside what else reads the same data, in turn.

    taskset -c 0,1 python bench/peers/input.py --keel build/keel --bench build/bench [--page bench/input.md]

Rows per second by the clock, so the machine must do nothing else. A program stays loaded while its part of the table
is measured; it is asked once a round, one after the other, and the median of the rounds counts. On one core a
program is bound to the first of the two and told to use one thread, on two cores two (DataLoader: two workers).
A program that is not installed is left out and named. Two processes of Keel with one thread each, at once and on
a core each, show what the machine has for two threads: cores share memory, caches and power.
"""
import argparse
import concurrent.futures
import contextlib
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
SIZE, BATCH, AHEAD = 224, 32, 6
BOTH = "two processes"  # instead of a number of threads
LAYERS = ("RandomFlip", "RandomCrop", "Resizing", "Rescaling", "RandomFlip, Rescaling", "RandomFlip, Normalization",
          "RandomBrightness", "RandomContrast", "RandomRotation")  # fmt: skip


# ---- what a program does: each returns a function of seconds that gives rows per second -----------------


def counted(elements, rows_of):
    """Rows a second of an endless iterator of elements of so many rows."""
    it = iter(elements)
    next(it)

    def run(seconds):
        for _ in range(AHEAD):  # what was read ahead since the last time
            next(it)
        begin, rows = time.perf_counter(), 0
        while True:
            next(it)
            rows += rows_of
            took = time.perf_counter() - begin
            if took > seconds:
                return rows / took

    return run


def endless(loader):
    while True:
        yield from loader


def options_of(tf, threads):
    o = tf.data.Options()
    o.threading.private_threadpool_size = threads
    o.threading.max_intra_op_parallelism = 1
    o.deterministic = True
    return o


def tensorflow(threads):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    return tf, options_of(tf, threads)


def loader_of(threads, data, **more):
    """One thread reads in the loop itself, as it is quickest there; two are two processes."""
    import torch

    torch.set_num_threads(1)
    workers = threads if threads > 1 else 0
    return torch.utils.data.DataLoader(data, num_workers=workers, persistent_workers=workers > 0, **more)


def images_torchvision(threads, paths, _):
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms.v2.functional import resize

    class Photos(torch.utils.data.Dataset):
        def __len__(self):
            return len(paths) * 40

        def __getitem__(self, i):
            image = decode_jpeg(read_file(paths[i % len(paths)]), mode=ImageReadMode.RGB)
            return resize(image.to(torch.float32), [SIZE, SIZE], antialias=False)

    return counted(endless(loader_of(threads, Photos(), batch_size=BATCH)), BATCH)


def images_pil(threads, paths, _):
    import numpy as np
    import torch
    from PIL import Image

    class Photos(torch.utils.data.Dataset):
        def __len__(self):
            return len(paths) * 40

        def __getitem__(self, i):
            image = Image.open(paths[i % len(paths)]).convert("RGB")
            return np.asarray(image.resize((SIZE, SIZE), Image.BILINEAR))

    return counted(endless(loader_of(threads, Photos(), batch_size=BATCH)), BATCH)


def images_tf(threads, paths, _):
    tf, options = tensorflow(threads)

    def load(path):
        return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), (SIZE, SIZE))

    d = tf.data.Dataset.from_tensor_slices(paths).repeat().map(load, num_parallel_calls=threads).batch(BATCH)
    return counted(d.prefetch(2).with_options(options), BATCH)


def table_run(read):
    """Rows a second of a whole file that becomes arrays; the better of two readings."""
    def run(_):
        best = 0
        for _ in range(2):
            begin = time.perf_counter()
            best = max(best, read() / (time.perf_counter() - begin))
        return best

    return run


def table_pandas(threads, path, words):
    import tables

    return None if threads > 1 else table_run(lambda: tables.by_pandas(path, words)[1])


def table_arrow(threads, path, words):
    import pyarrow
    import tables

    pyarrow.set_cpu_count(threads)
    return table_run(lambda: tables.by_pyarrow(path, words, threads > 1)[1])


def table_tf(threads, path, words):
    tf, options = tensorflow(threads)
    types = [tf.float32] * (8 if words else 20) + [tf.string] * len(words) + [tf.int32]
    if threads > 1:
        return None
    d = tf.data.experimental.CsvDataset(path, types, header=True).repeat().batch(1024)
    return counted(d.with_options(options), 1024)


def records_tf(threads, path, _):
    tf, options = tensorflow(threads)
    spec = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}

    def many(records):
        e = tf.io.parse_example(records, spec)
        return tf.reshape(tf.io.decode_raw(e["image"], tf.uint8), [-1, 28, 28, 1]), e["label"]

    d = tf.data.TFRecordDataset(path, buffer_size=1 << 20).repeat().batch(256).map(many, num_parallel_calls=threads)
    return counted(d.prefetch(2).with_options(options), 256)


def rows_in_memory():
    import numpy as np

    x = np.random.default_rng(0).normal(size=(100_000, 10)).astype("float32")
    return x, (np.arange(100_000) % 3).astype("int32")


def elements_tf(threads, kind, _):
    tf, options = tensorflow(threads)
    d = tf.data.Dataset.from_tensor_slices(rows_in_memory()).repeat()
    if kind == "batches":
        d = d.shuffle(1000).batch(64)
    if kind == "map":
        d = d.batch(64).unbatch().map(lambda x, y: (x, y), num_parallel_calls=threads)
    return counted(d.with_options(options), 64 if kind == "batches" else 1)


def elements_torch(threads, kind, _):
    import torch

    x, y = rows_in_memory()
    if kind == "map":
        return None
    data = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    how = dict(batch_size=None) if kind == "rows" else dict(batch_size=64, shuffle=True, drop_last=True)
    return counted(endless(loader_of(threads, data, **how)), 1 if kind == "rows" else 64)


def augment_tf(threads, layer, path):
    import keras
    import numpy as np

    import augment

    tf, options = tensorflow(threads)
    d = tf.data.Dataset.from_tensor_slices(np.load(path)).repeat().batch(BATCH)
    of = [getattr(keras.layers, name)(**augment.arguments(name, SIZE)) for name in layer.split(", ")]
    random = [name.startswith("Random") for name in layer.split(", ")]

    def change(x):
        for one, draws in zip(of, random):
            x = one(x, training=True) if draws else one(x)
        return x

    d = d.map(change, num_parallel_calls=threads)
    return counted(d.prefetch(2).with_options(options), BATCH)


def augment_torchvision(threads, layer, path):
    import numpy as np
    import torch
    from torchvision.transforms import v2

    import augment

    v2.torch = torch
    all_rows = torch.from_numpy(np.load(path)).permute(0, 3, 1, 2).contiguous()
    f = v2.Compose([augment.LAYERS[name][1](v2, SIZE) for name in layer.split(", ")])

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return len(all_rows) * 40

        def __getitem__(self, i):
            return f(all_rows[i % len(all_rows)])

    return counted(endless(loader_of(threads, Rows(), batch_size=BATCH)), BATCH)


# ---- Keel: a process each time, which measures itself ---------------------------------------------------


def lines_of(*command):
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def shown(a, threads, spec, *more, stages=1):
    """Rows a second of the last of the stages, which share the seconds."""
    seconds = str(a.seconds * stages)
    out = subprocess.run([a.keel, "data", spec, "--rows", "0", "--seconds", seconds, "--threads", str(threads), *more],
                         check=True, capture_output=True, text=True).stdout  # fmt: skip
    return float(re.findall(r"([\d,]+) rows a second", out)[-1].replace(",", ""))


def pipeline(a, name, source, stages):
    path = os.path.join(a.folder, f"{name}-{threading.get_ident()}.toml")
    with open(path, "w") as f:
        f.write(f"source = '{source}'\n")
        for stage in stages:
            f.write("[[stage]]\n" + "".join(f"{k} = {v!r}\n" for k, v in stage.items()))
    return path


def images_keel(a, threads, paths, _):
    return shown(a, threads, os.path.dirname(os.path.dirname(paths[0])), "--image-size", f"{SIZE},{SIZE}")


def best(spans):
    """Of readings, each with its begin, its end and its rows a second."""
    return max(rate for _, _, rate in spans)


def table_spans(a, threads, path, words, times=2):
    read = lines_of(os.path.join(a.bench, "bench_tables"), path, "y", str(times), *words)
    return [(r["begin"], r["begin"] + r["wall"], r["rows"] / r["wall"]) for r in read]


def table_keel(a, threads, path, words):
    return best(table_spans(a, threads, path, words))


def records_spans(a, threads, path, _):
    read = lines_of(os.path.join(a.bench, "bench_records"), path, "read", str(threads))[0]
    return [(begin, begin + took, read["rows"] / took) for begin, took in read["passes"]]


def records_keel(a, threads, path, more):
    return best(records_spans(a, threads, path, more))


def elements_keel(a, threads, kind, _):
    stages = {"rows": [], "batches": [dict(name="shuffle", buffer_size=1000), dict(name="batch", batch_size=64)],
              "map": [dict(name="batch", batch_size=64), dict(name="unbatch"), dict(name="Rescaling", scale=1.0)]}  # fmt: skip
    return shown(a, threads, pipeline(a, kind, f"{a.folder}/rows.npz", stages[kind]), stages=1 + len(stages[kind]))


def augment_keel(a, threads, layer, path):
    import augment

    stages = [{"name": name, **augment.arguments(name, SIZE)} for name in layer.split(", ")]
    stages += [dict(name="batch", batch_size=BATCH)]
    return shown(a, threads, pipeline(a, layer, path, stages), stages=1 + len(stages))


PROGRAMS = {
    "images": {"Keel": images_keel, "torchvision": images_torchvision, "PIL": images_pil, "tf.data": images_tf},
    "table": {"Keel": table_keel, "pandas": table_pandas, "Arrow": table_arrow, "CsvDataset": table_tf},
    "records": {"Keel": records_keel, "tf.data": records_tf},
    "elements": {"Keel": elements_keel, "tf.data": elements_tf, "DataLoader": elements_torch},
    "augment": {"Keel": augment_keel, "tf.data": augment_tf, "torchvision": augment_torchvision},
}


# ---- what it costs a step -------------------------------------------------------------------------------


def spans(a):
    """The account of waits and the gather of a batch, by bench_account; what steps of a small network wait for."""
    account = lines_of(os.path.join(a.bench, "bench_account"), str(15 * a.seconds))
    out = ["| batches of 64 rows in memory, shuffled, one thread | gathered in | the account costs | standard error |",
           "|---|---|---|---|"]  # fmt: skip
    for x in account:
        out.append(f"| {x['input']} | {x['us_per_batch']:.1f} us | {x['cost_percent']:.2f} % | {x['error_percent']:.2f} % |")
    mlp = lines_of(a.keel, "bench", "mlp", "--batch-size", "64", "--seconds", "5", "--no-profile", "--json")[0]
    most = max((x["cost_percent"] + 2 * x["error_percent"]) * x["us_per_batch"] for x in account) / (1e3 * mlp["ms"])
    between = 1 - mlp["step_share"] - mlp["wait_share"]
    epochs = epochs_of_photos(a)
    out += ["", f"A step of 784-512-512-10 at batch 64 takes {mlp['ms']:.2f} ms on both cores. It waits "
            f"{1e3 * mlp['mean_ms'] * mlp['wait_share']:.1f} us for rows, and {1e3 * mlp['mean_ms'] * between:.1f} us pass "
            "between two steps, in which the next batch is gathered: so small a batch (up to 1 MiB of rows in memory) is gathered",
            "by the thread that trains, as waking another one takes as long, and both cores train meanwhile.",
            f"So of a step of so small a network the account takes less than {max(most, 0):.2f} % (two standard errors above the larger of the two costs)."]  # fmt: skip
    shares = ", ".join(f"{x['waits_percent']:.2f}" for x in epochs)
    out += ["", f"An epoch of 2,062 JPEG of 100x100 with the small network of `keel new cnn`, batch 32, takes {epochs[-1]['seconds']:.2f} s on both cores; "
            f"of that, steps wait for rows for {shares} % in the first epochs, of which the first begins with one thread."]  # fmt: skip
    return "\n".join(out)


def epochs_of_photos(a):
    """What steps of a small network wait for, on as many images as the sign digits are, or on a folder of one's own."""
    model, folder = os.path.join(a.folder, "small.keras"), a.photos or os.path.join(a.folder, "digits")
    if not a.photos:
        import numpy as np
        from PIL import Image

        import images

        drawn = [images.draw(np.random.default_rng(i), 100, 100) for i in range(40)]
        for i in range(2062):
            os.makedirs(os.path.join(folder, str(i % 10)), exist_ok=True)
            Image.fromarray(np.roll(drawn[i % 40], i, 1)).save(os.path.join(folder, str(i % 10), f"{i}.jpg"), quality=90)
    subprocess.run([a.keel, "new", "cnn", "--input", "100,100,3", "--classes", "10", "-o", model], check=True, capture_output=True)  # fmt: skip
    return lines_of(os.path.join(a.bench, "bench_waits"), model, folder, "3")


# ---- asking them ----------------------------------------------------------------------------------------


class Peer:
    """A loaded program with a number of threads. `begin` a work: False if it has no such way."""

    def __init__(self, a, part, name, threads):
        command = ["taskset", "-c", ",".join(map(str, a.cores[:threads])), sys.executable, os.path.abspath(__file__),
                   "--serve", json.dumps([part, name, threads])]  # fmt: skip
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.PIPE, env=environment)  # fmt: skip

    def say(self, what):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(what) + "\n")
            self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def begin(self, work, more):
        return self.say([work, more]) == "ready"

    def ask(self, seconds):
        return float(self.say(seconds))

    def failure(self):
        """Why it is no longer there; None: it is."""
        if self.process.poll() is None:
            return None
        return (self.process.stderr.read().strip().splitlines() or ["it ended"])[-1]

    def end(self):
        with contextlib.suppress(BrokenPipeError):  # it ended before it had read everything
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def serve(request):
    """Lines of standard input: [work, more] makes it ready, a number of seconds measures it."""
    part, name, threads = json.loads(request)
    run = None
    for line in map(json.loads, sys.stdin):
        if isinstance(line, list):
            run = None  # the last one's workers end
            run = PROGRAMS[part][name](threads, *line)
            if run:
                run(0.1)
            print("ready" if run else "none", flush=True)
        else:
            print(run(line), flush=True)


def keel_bound(a, cores, part, work, more):
    os.sched_setaffinity(0, cores)  # of this thread, and of what it starts
    if part == "table":
        return table_spans(a, 1, work, more, times=8)
    if part == "records":
        return records_spans(a, 1, work, more)
    return PROGRAMS[part]["Keel"](a, 1, work, more)


def while_both(spans, other):
    """The best of the readings during which the other process read, too."""
    first, last = other[0][0], other[-1][1]
    return best([s for s in spans if s[0] >= first and s[1] <= last] or spans)


def at_once(a, *call):
    """The rates of two processes of Keel together, each with one thread on a core of its own."""
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        x, y = both.map(lambda core: keel_bound(a, [core], *call), a.cores)
    return while_both(x, y) + while_both(y, x) if isinstance(x, list) else x + y


def measure(a, peers, title, part, work, more):
    """A row of the table: the median rate of each program on one core and on two."""
    rates = {("Keel", 1): [], ("Keel", 2): [], ("Keel", BOTH): []}
    rates |= {key: [] for key, peer in peers.items() if peer.begin(work, more)}
    for _ in range(a.rounds):
        for (name, threads), got in rates.items():
            if threads == BOTH:
                got.append(at_once(a, part, work, more))
            elif name == "Keel":
                os.sched_setaffinity(0, a.cores[:threads])
                got.append(PROGRAMS[part][name](a, threads, work, more))
                os.sched_setaffinity(0, a.cores)
            else:
                got.append(peers[name, threads].ask(a.seconds))
    medians = {k: statistics.median(r) for k, r in rates.items()}
    print(f"{title}: " + ", ".join(f"{n} x{t} {m:,.0f}" for (n, t), m in medians.items()), file=sys.stderr, flush=True)
    return title, medians


def measure_part(a, part, works):
    peers = {(n, t): Peer(a, part, n, t) for n in PROGRAMS[part] if n != "Keel" for t in (1, 2)}
    rows = [measure(a, peers, title, part, work, more) for title, work, more in works]
    for (name, _), peer in peers.items():
        why = peer.failure()
        if why:
            a.missing[name] = why
        peer.end()
    return rows


def count(x):
    return f"{x / 1e6:.2f} M" if x >= 1e6 else f"{x / 1e3:.1f} k" if x >= 1e4 else f"{x:,.0f}"


def table(part, rows):
    names = list(PROGRAMS[part])
    out = ["| rows a second, one core / two | " + " | ".join(names) + " | Keel over the fastest | two threads over twice one | two processes over twice one |",
           "|---|" + "---|" * (len(names) + 3)]  # fmt: skip
    for title, got in rows:
        cells = [" / ".join(count(got[n, t]) if (n, t) in got else "-" for t in (1, 2)) for n in names]
        cells[0] = f"**{cells[0]}**"
        best = [max((v for (n, t), v in got.items() if n != "Keel" and t == threads), default=0) for threads in (1, 2)]
        over = " / ".join(f"{got['Keel', t + 1] / b:.2f}" if b else "-" for t, b in enumerate(best))
        two, both = (got["Keel", n] / got["Keel", 1] / 2 for n in (2, BOTH))
        out.append(f"| {title} | " + " | ".join(cells) + f" | {over} | {two:.0%} | {both:.0%} |")
    return "\n".join(out)


def make(a):
    """Writes the data; returns the parts of the table with their rows: title, work, more."""
    import numpy as np
    from PIL import Image

    import images
    import tables

    folder = os.path.join(a.folder, "photos", "one")
    os.makedirs(folder)
    paths = []
    for i in range(24):
        paths.append(os.path.join(folder, f"{i:02}.jpg"))
        Image.fromarray(images.draw(np.random.default_rng(i), 375, 500)).save(paths[-1], quality=90, subsampling="4:2:0")
    files = tables.make(a.folder, a.mb)
    records = os.path.join(a.folder, "rows.tfrecord")
    subprocess.run([os.path.join(a.bench, "bench_records"), records, "60000"], check=True, stdout=subprocess.DEVNULL)
    x, y = rows_in_memory()
    np.savez(os.path.join(a.folder, "rows.npz"), x=x, y=y)
    pixels = os.path.join(a.folder, "x.npy")
    np.save(pixels, np.random.default_rng(0).integers(0, 256, (256, SIZE, SIZE, 3), np.uint8))
    size = {k: f"{v[2] / 1e6:.0f} MB" for k, v in files.items()}
    return {
        "images": [(f"JPEG 500x375 q90, decoded, resized to {SIZE}", paths, None)],
        "table": [(f"CSV, 20 columns of doubles, {size['numbers']}", files["numbers"][0], []),
                  (f"CSV, 8 of short numbers, 4 of words, {size['mixed']}", files["mixed"][0], tables.WORDS)],
        "records": [("TFRecord, images of 28x28 bytes", records, None)],
        "elements": [("rows handed on", "rows", None), ("shuffle 1000, batch 64", "batches", None),
                     ("batches cut into rows, an empty map", "map", None)],
        "augment": [(f"{layer}, {SIZE}x{SIZE}", layer, pixels) for layer in LAYERS],
    }  # fmt: skip


TEXT = """# The input side

Made by `{command}` (see [README.md](README.md)) in {minutes:.0f} minutes: medians of {rounds} rounds of {seconds} s, in which programs took turns.
{note}
- machine: {machine}
- versions: {versions}
- commit {commit}, {date}

The last two columns are Keel's. Two processes with one thread each, at once on a core each, show what the machine has for two threads: where they do
not reach 100 %, cores share what the work needs (memory, caches, power). Of files that are read several times, only those readings count during which both processes read.

## Images
Files are in the page cache. Keel and tf.data keep the fractions of a resized pixel, as torchvision here; PIL rounds them to bytes. torchvision is its
`decode_jpeg` and `resize`; torchvision and PIL read by a DataLoader.

{images}

Of 742 us of an AMD EPYC's core for such a file (57 KB; `perf`, 9,898 samples, beside other work of less priority) 460 are the decoding of Huffman codes, 89 the inverse DCT, 56 colours, 24 the upsampling of colours and 23 the rest of libjpeg-turbo 2.1.5;
43 are the resize, 32 the system (opening and reading the file, changing threads), 15 all else. So 652 us, 88 %, are libjpeg-turbo's, which the fastest peer runs, too: with nothing else to do a core would decode 1.14 times as many files. 1.5 times the fastest peer needs another decoder of Huffman codes.
Upsampling and colours in one step (libjpeg's merged upsampling) would save less than 24 us, and repeats colours where TensorFlow interpolates them: other pixels. The row is written by the resize, so nothing is copied.

## Tables
A file that is read whole: its features become one array of float32, words whole numbers. pandas and `CsvDataset` have one thread for a file;
`CsvDataset` keeps nothing and leaves words as texts.

On an AMD EPYC two threads take 2 % more processor time for a file than one (medians in turn: 0.0796 and 0.0778 s of doubles, 0.168 and 0.164 s of numbers and words), and for some 1.5 % of it, mostly the labels at the end, there is one thread only: so they could reach 96 to 97 %
of twice one where two processes reach 100 %.

{table}

## Records
{records}

## What a pipeline costs by itself
Rows of 10 float32 and a label, in memory; nothing is done to them.

{elements}

## Augmentation
Images of bytes in memory, in batches of {batch}. tf.data maps Keras's layer over batches, torchvision its transform over single rows in a DataLoader.
A batch of {batch} rows of 224x224x3 float32 has 19 MB. What two threads write is bound by caches and memory: each has one batch ahead, and no more (src/data/window.c).

{augment}

## What it costs a step
The account of who works and what steps wait for is always kept. `bench_account` reads the same rows with it and without it in turns of 2 ms.

{steps}
"""


def page(a, parts, took):
    import importlib.metadata as meta

    from table import commit, machine

    names = ("tensorflow", "tensorflow_cpu", "keras", "torch", "torchvision", "pillow", "pandas", "pyarrow")
    found = {d.metadata["Name"].lower().replace("-", "_"): d.version for d in meta.distributions()}
    version = subprocess.run([a.keel, "--version"], capture_output=True, text=True).stdout.strip()
    missing = "".join(f"Without {n}: {why}.\n" for n, why in a.missing.items())
    return TEXT.format(
        command=f"bench/peers/input.py --rounds {a.rounds} --seconds {a.seconds:g} --mb {a.mb}", minutes=took / 60,
        rounds=a.rounds, seconds=a.seconds, machine=machine(), commit=commit(), date=datetime.date.today(), note=missing,
        steps=a.steps, versions=", ".join([version] + [f"{n} {found[n]}" for n in names if n in found]), batch=BATCH,
        **{part: table(part, rows) for part, rows in parts.items()})  # fmt: skip


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--keel", default="build/keel")
    p.add_argument("--bench", default="build/bench", help="the folder of bench_tables, bench_records, bench_account, bench_waits")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--mb", type=int, default=60, help="megabytes of a table")
    p.add_argument("--only", help="parts of the table: " + ",".join(PROGRAMS))
    p.add_argument("--photos", help="a folder of images of 100x100 in ten folders to train on (default: drawn ones)")
    p.add_argument("--page", help="write the table to this file too")
    p.add_argument("--serve", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.serve:
        return serve(a.serve)
    begin, a.missing = time.time(), {}
    a.cores = sorted(os.sched_getaffinity(0))[:2]
    a.keel, a.bench = os.path.abspath(a.keel), os.path.abspath(a.bench)
    with tempfile.TemporaryDirectory() as a.folder:
        works = make(a)
        only = a.only.split(",") if a.only else list(works)
        parts = {part: measure_part(a, part, works[part]) if part in only else [] for part in works}
        a.steps = "" if a.only else spans(a)
    text = page(a, parts, time.time() - begin)
    print(text)
    if a.page:
        with open(a.page, "w") as f:
            f.write(text)


if __name__ == "__main__":
    main()
