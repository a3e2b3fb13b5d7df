#!/usr/bin/env python3
"""Make metric_values.json: what metrics are in the logs of Keras, and how a file has them.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.

A case is {model, metric, weighted, value}: the metric as Keras writes it into a file, and what
evaluate gives, a number or a list. Models, weights and rows are made by integer arithmetic that
test_metric_values.c repeats.
"""
import json
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
from keras import layers, losses, metrics

BATCH, ROWS = 16, 26
SHAPES = dict(vector=((6,), (4,)), image=((4, 4, 3), (4, 4, 2)), steps=((5, 3), (5, 2)), number=((6,), ()))
Wrapper = metrics.MeanMetricWrapper


def model(kind):
    i = layers.Input(SHAPES[kind][0])
    if kind == "steps":  # a step is masked where its numbers are all 0
        out = layers.Dense(2, activation="hard_sigmoid", name="out")(layers.Masking()(i))
    elif kind == "image":
        out = layers.Conv2D(2, 3, padding="same", activation="hard_sigmoid", name="out")(i)
    else:
        out = layers.Dense(1 if kind == "number" else 4, activation="hard_sigmoid", name="out")(i)
    m = keras.Model(i, out)
    for k, w in enumerate(m.weights):
        n = np.arange(np.prod(w.shape), dtype="int64")
        w.assign((((n * 7919 + 131 * k) % 1021 - 510) / 512).reshape(w.shape))
    return m


def numbers(shape, step, modulus):
    n = int(np.prod(shape))
    i, k = np.arange(ROWS, dtype="int64")[:, None], np.arange(n, dtype="int64")[None, :]
    return ((i * 131 + k * 37 + i * k * step) % modulus).reshape((ROWS, *shape))


def case(kind, metric, weighted=False):
    keras.utils.clear_session()
    m = model(kind)
    x = ((numbers(SHAPES[kind][0], 7, 256) - 128) / 128).astype("float32")
    y = (numbers(SHAPES[kind][1], 3, 3) // 2).astype("float32")
    if kind == "steps":
        for row in range(ROWS):
            x[row, 1 + row % 5 :] = 0
    w = ((np.arange(ROWS) % 4) / 2).astype("float32") if weighted else None
    m.compile("sgd", "mse", **{"weighted_metrics" if weighted else "metrics": [metric]})
    value = [v for k, v in m.evaluate(x, y, batch_size=BATCH, sample_weight=w if kind in ("vector", "number") else None,
                                      verbose=0, return_dict=True).items() if k != "loss"][0]
    config = json.loads(json.dumps(m.get_compile_config()))["weighted_metrics" if weighted else "metrics"]
    return dict(model=kind, metric=config[0], weighted=weighted,
                value=[float(f"{v:.9g}") for v in np.ravel(value)])


cases = []
for weighted in (False, True):
    for metric in (metrics.F1Score(), "f1_score", metrics.F1Score(threshold=0.25), metrics.FBetaScore(beta=2.0),
                   metrics.F1Score(average="macro"), metrics.R2Score(class_aggregation=None),
                   metrics.R2Score(class_aggregation="variance_weighted_average"),
                   metrics.Precision(thresholds=[0.75, 0.25]), metrics.Recall(thresholds=[0.125, 0.5, 0.5, 0.875]),
                   metrics.Recall(thresholds=[0.25, 0.5], class_id=2), metrics.TruePositives(thresholds=[0.5, 0.25]),
                   metrics.FalsePositives(thresholds=[0.25, 0.5]), metrics.TrueNegatives(thresholds=[0.25, 0.5]),
                   metrics.FalseNegatives(thresholds=[0.25, 0.5]), metrics.FalseNegatives(thresholds=[0.25]),
                   losses.huber, losses.cosine_similarity, "cosine_similarity", metrics.mean_squared_error,
                   Wrapper(losses.huber, name="near", delta=0.25), Wrapper(losses.cosine_similarity),
                   Wrapper(losses.log_cosh), Wrapper(losses.binary_crossentropy, label_smoothing=0.25, axis=1),
                   Wrapper(losses.binary_focal_crossentropy, gamma=1.0), Wrapper(metrics.binary_accuracy, threshold=0.25),
                   Wrapper(losses.categorical_focal_crossentropy, alpha=[0.125, 0.25, 0.5, 1.0]),
                   Wrapper(metrics.top_k_categorical_accuracy, k=2)):
        cases.append(case("vector", metric, weighted))
for metric in (metrics.CategoricalCrossentropy(axis=1), metrics.CategoricalCrossentropy(axis=2, from_logits=True),
               metrics.PearsonCorrelation(axis=1), metrics.ConcordanceCorrelation(axis=2),
               Wrapper(losses.cosine_similarity, axis=1), Wrapper(losses.binary_crossentropy, axis=2)):
    cases.append(case("image", metric))
for weighted in (False, True):
    for metric in (metrics.ConcordanceCorrelation(), metrics.ConcordanceCorrelation(axis=1), metrics.CosineSimilarity(axis=1),
                   Wrapper(losses.cosine_similarity, axis=1), metrics.BinaryAccuracy(),
                   metrics.R2Score(), metrics.MeanAbsoluteError()):
        cases.append(case("number", metric, weighted))
for metric in (metrics.RootMeanSquaredError(), metrics.MeanSquaredError(), metrics.BinaryAccuracy(), metrics.AUC(),
               metrics.Precision(thresholds=[0.25, 0.75]), metrics.Recall(), metrics.TruePositives(),
               metrics.FalsePositives(), metrics.TrueNegatives(), metrics.FalseNegatives(),
               metrics.SensitivityAtSpecificity(0.5), metrics.PrecisionAtRecall(0.5), metrics.BinaryIoU()):
    cases.append(case("steps", metric))
with open("metric_values.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
