#!/usr/bin/env python3
"""Seeds of fuzz_row_file: files of rows that keel writes, of numbers, texts and batches.

    make_row_seeds.py path/to/keel
"""
import os
import subprocess
import sys
import tempfile

keel, corpus = os.path.abspath(sys.argv[1]), os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus/row_file")
os.makedirs(corpus, exist_ok=True)
batch = '[[stage]]\nname = "batch"\nbatch_size = 2\n'
pad = '[[stage]]\nname = "padded_batch"\nbatch_size = 2\n'
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    with open("names.txt", "w") as f:
        f.write("a\nbb\n\nthe last line\n")
    for name, (source, before, compression) in {
        "numbers": ("range:5", "", "NONE"),
        "deflated": ("range:40", pad.replace("2", "40"), "GZIP"),
        "batches": ("range:5", batch, "NONE"),
        "texts": ("files:*.txt", "", "NONE"),
        "batched_texts": ("files:*.txt", batch, "GZIP"),
    }.items():
        with open("p.toml", "w") as f:
            f.write(f'source = "{source}"\n{before}[[stage]]\nname = "snapshot"\npath = "{name}"\ncompression = "{compression}"\n')
        subprocess.run([keel, "data", "p.toml", "--verify"], check=True)
        os.replace(name, os.path.join(corpus, name))
