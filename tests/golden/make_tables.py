#!/usr/bin/env python3
"""Make tables.json: what pandas makes of a table with missing values and words. Needs pandas."""
import io
import json
import os

import numpy as np
import pandas as pd

rng = np.random.default_rng(7)
words = ["red", "Red", "blue green", "é", "10", "9"]
lines = ["a,b,c,word,y"]
for i in range(24):
    row = [repr(float(v)) for v in rng.normal(size=2) * 10.0 ** rng.integers(-3, 4, 2)]
    row.append(str(rng.integers(0, 99)))
    for k in range(3):
        if rng.random() < 0.15:
            row[k] = ["", "NA", "nan", "null", "-1.#IND"][rng.integers(5)]
    lines.append(",".join(row + [words[rng.integers(len(words))], str(rng.integers(3))]))
text = "\n".join(lines) + "\n"

table = pd.read_csv(io.StringIO(text), dtype={"word": "category"})
table["word"] = table["word"].cat.set_categories(sorted(table["word"].cat.categories, key=str.encode)).cat.codes


def numbers(t):
    return [float(v) for v in t[["a", "b", "c", "word"]].to_numpy("float32").ravel()]


values = table[["a", "b", "c"]]
filled = {}
for name, with_what in (("mean", values.mean()), ("constant", -2.5)):
    t = table.copy()
    t[["a", "b", "c"]] = values.fillna(with_what)
    filled[name] = numbers(t)
kept = table.dropna()
out = {"text": text, **filled, "drop": numbers(kept), "drop_y": [int(v) for v in kept["y"]]}
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tables.json"), "w") as f:
    json.dump(out, f, indent=None)
    f.write("\n")
