#!/usr/bin/env python3
"""Make the seeds of fuzz_config, fuzz_legacy, fuzz_extra and fuzz_keras from the golden models. Run in this
folder. Needs h5py."""
import glob
import json
import os
import zipfile

import h5py

GOLDEN = "../golden/"
LEGACY = ["legacy_numbers", "legacy_new_words"]
KERAS = ["sequential_plain", "functional_sgd", "sequential_dropout"]


def put(target, name, data):
    os.makedirs(f"corpus/{target}", exist_ok=True)
    with open(f"corpus/{target}/{name}", "wb") as f:
        f.write(data)


for case in json.load(open(GOLDEN + "models.json")):
    put("config", case["name"], json.dumps(case["config"], separators=(",", ":")).encode())

layers = []
for c in json.load(open(GOLDEN + "layers.json")):
    if len(c["in"]) == 1:
        one = {"class_name": "InputLayer", "config": {"name": "i", "batch_shape": [None, *c["in"][0]]}}
        layers.append((c, [one, {"class_name": c["class"], "config": c["config"]}]))
for k, (c, stack) in enumerate(layers):
    root = {"class_name": "Sequential", "config": {"name": "s", "layers": stack}}
    put("config", f"layer{k}", json.dumps(root, separators=(",", ":")).encode())

put("extra", "names", '{"class_names":["setosa","h\\u00e4us","\u20ac"]}'.encode())
put("extra", "none", b'{"class_names":[]}')
put("extra", "newer", b'{"cursor":3}')

for name in KERAS:
    with zipfile.ZipFile(GOLDEN + name + ".keras") as z:
        config = json.dumps(json.loads(z.read("config.json")), separators=(",", ":")).encode()
        weights = z.read("model.weights.h5")
    put("keras", name, b"\1" + len(config).to_bytes(2, "little") + config + weights)
with open(GOLDEN + "sequential_plain.keras", "rb") as f:
    put("keras", "whole", b"\0" + f.read())
for name in LEGACY:
    with open(GOLDEN + name + ".h5", "rb") as f:
        put("keras", name, b"\0" + f.read())

for path in sorted(glob.glob(GOLDEN + "legacy_*.h5")):
    with h5py.File(path) as f:
        both = {k: json.loads(f.attrs[k + "_config"]) for k in ["model", "training"] if k + "_config" in f.attrs}
    name = os.path.basename(path)[len("legacy_"):-len(".h5")]
    put("legacy", name, json.dumps(both, separators=(",", ":")).encode())
