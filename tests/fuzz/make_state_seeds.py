#!/usr/bin/env python3
"""Seeds of fuzz_checkpoint: the member keel.state of checkpoints that keel writes.

    make_state_seeds.py path/to/keel
"""
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

keel, corpus = os.path.abspath(sys.argv[1]), os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus/checkpoint")
os.makedirs(corpus, exist_ok=True)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    with open("t.csv", "w") as f:
        f.write("a,b,y\n" + "".join(f"{i % 7},{i % 3},{i % 2}\n" for i in range(40)))
    subprocess.run([keel, "new", "mlp", "--input", "2", "--classes", "2", "--sizes", "3", "-o", "m.keras"], check=True)
    for name, more in {"plain": [], "stopping": ["--validation-split", "0.2", "--early-stopping", "val_loss,patience=9"]}.items():
        subprocess.run([keel, "fit", "m.keras", "--data", "t.csv", "--label", "y", "-o", "o.keras", "--epochs", "2",
                        "--checkpoint", name, *more], check=True)
        newest = sorted(glob.glob(name + "/*.keras"))[-1]
        with zipfile.ZipFile(newest) as z, open(os.path.join(corpus, name), "wb") as f:
            f.write(z.read("keel.state"))
