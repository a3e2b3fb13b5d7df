"""Whether the real TensorBoard reads what keel fit writes: run by hand, with tensorboard installed.

    python tensorboard_reads.py path/to/keel

A small network is trained on drawn images with the TensorBoard callback; then TensorBoard's own
reader and data provider are asked for the numbers, histograms, images and the graph."""
import csv
import os
import subprocess
import sys
import tempfile

import numpy as np
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.backend.event_processing import event_accumulator
from tensorboard import context

keel = os.path.abspath(sys.argv[1])
folder = tempfile.mkdtemp()
os.chdir(folder)
rng = np.random.default_rng(1)
np.savez("d.npz", x=rng.integers(0, 255, (50, 28, 28, 1)).astype("uint8"), y=rng.integers(0, 3, 50))
subprocess.run([keel, "new", "cnn", "--input", "28,28,1", "--classes", "3", "-o", "m.keras"], check=True)
subprocess.run([keel, "fit", "m.keras", "--data", "d.npz", "--validation-split", "0.2", "--epochs", "3",
                "--batch-size", "16", "-o", "t.keras", "--history", "h.csv", "--callbacks",
                "TensorBoard(log_dir=logs, histogram_freq=1, update_freq=2, write_inputs=3, "
                "write_steps_per_second=True)"], check=True)
with open("h.csv") as f:
    history = list(csv.DictReader(f))

# every record: its length and both checksums are checked by the reader
multiplexer = plugin_event_multiplexer.EventMultiplexer()
multiplexer.AddRunsFromDirectory("logs")
multiplexer.Reload()
provider = data_provider.MultiplexerDataProvider(multiplexer, "logs")
ctx = context.RequestContext()
runs = {r.run_name for r in provider.list_runs(ctx, experiment_id="")}
assert runs == {"train", "validation"}, runs
scalars = provider.read_scalars(ctx, experiment_id="", plugin_name="scalars", downsample=1000)
for tag, column, run in (("epoch_loss", "loss", "train"), ("epoch_accuracy", "accuracy", "train"),
                         ("epoch_loss", "val_loss", "validation")):
    points = scalars[run][tag]
    assert [p.step for p in points] == [0, 1, 2], points
    for p, row in zip(points, history):
        assert abs(p.value - float(row[column])) < 1e-5 * max(1, abs(p.value)), (tag, p, row)
assert [p.step for p in scalars["train"]["batch_loss"]] == [2, 4, 6, 8], scalars["train"]["batch_loss"]
assert [p.step for p in scalars["validation"]["evaluation_loss_vs_iterations"]] == [3, 6, 9]
assert all(p.value > 0 for p in scalars["train"]["epoch_steps_per_second"])

histograms = provider.read_tensors(ctx, experiment_id="", plugin_name="histograms", downsample=1000)["train"]
for tag, points in histograms.items():
    assert tag.endswith("/histogram") and len(points) == 3, (tag, len(points))
    for p in points:
        assert p.numpy.shape[1] == 3 and p.numpy[:, 2].sum() > 0, (tag, p.numpy)
        assert (p.numpy[:, 0] <= p.numpy[:, 1]).all()

blobs = provider.read_blob_sequences(ctx, experiment_id="", plugin_name="images", downsample=10)["train"]["inputs"]
values = blobs[0].values
assert len(values) == 5, len(values)
png = provider.read_blob(ctx, blob_key=values[2].blob_key)
assert png[:8] == b"\x89PNG\r\n\x1a\n"
try:
    import io

    from PIL import Image

    assert Image.open(io.BytesIO(png)).size == (28, 28)
    np.asarray(Image.open(io.BytesIO(png)))
except ImportError:
    print("PIL is missing: the PNG is not decoded")

accumulator = event_accumulator.EventAccumulator("logs/train")
accumulator.Reload()
graph = accumulator.Graph()
names = [n.name for n in graph.node]
assert len(names) > 3 and any(n.op == "Conv2D" for n in graph.node), names
for n in graph.node:
    assert all(i in names for i in n.input), n
print(len(histograms), "histograms,", len(names), "nodes,", sum(map(len, scalars.values())), "tags of numbers: read")
