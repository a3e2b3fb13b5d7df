#!/usr/bin/env python3
"""Make directions.json: for each metric of Keras whether more of it is better (1), less (-1), or
neither is known (0), as callbacks with mode "auto" take it.

Run with Keras 3, any backend, in this folder.
"""
import inspect
import json

from keras import metrics

NEEDED = dict(num_classes=3, target_class_ids=[0], recall=0.5, precision=0.5, sensitivity=0.5, specificity=0.5)
SIGN = {"up": 1, "down": -1, None: 0}


def made(kind):
    arguments = inspect.signature(kind.__init__).parameters
    return kind(**{k: v for k, v in NEEDED.items()
                   if k in arguments and arguments[k].default is inspect.Parameter.empty})


directions = {}
for name, kind in sorted(vars(metrics).items()):
    if not inspect.isclass(kind) or kind in (metrics.Metric, metrics.MeanMetricWrapper):
        continue
    directions[name] = SIGN[getattr(made(kind), "_direction", None)]
with open("directions.json", "w") as f:
    f.write("{\n" + ",\n".join(f'"{k}": {v}' for k, v in directions.items()) + "\n}\n")
