#!/usr/bin/env python3
"""Make losses.json and metrics.json: values and gradients of Keras's losses, results of its metrics.

Run with Keras 3 on TensorFlow, KERAS_BACKEND=tensorflow, in this folder.

losses.json: a list of {loss, config, real, prediction, target (shapes of a row), rows, y_pred, y_true,
  weight (or null), value, grad}; value is the reduced loss, grad its gradient by y_pred.
metrics.json: a list of {metric, config, prediction, target, rows, y_pred, y_true, weight, result}.
"""
import json
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(3)
ROWS = 5


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rounded(x):
    return np.round(x, 4)


def predictions(kind, shape):
    z = rounded(rng.normal(size=(ROWS, *shape)) * 2)
    if kind == "logits":
        return z
    if kind == "huge":
        return z * 1e4
    if kind == "probabilities":
        return rounded(softmax(z) if shape[-1] > 1 else 1 / (1 + np.exp(-z)))
    if kind == "rough":  # do not sum to one, and touch 0 and 1
        p = rounded(rng.uniform(size=z.shape))
        p.flat[0], p.flat[3], p.flat[-1] = 0.0, 1.0, 1e-8
        return p
    raise ValueError(kind)


def onehot(shape):
    return np.eye(shape[-1])[rng.integers(0, shape[-1], size=(ROWS, *shape[:-1]))]


def labels(shape):
    return rng.integers(0, shape[-1], size=(ROWS, *shape[:-1])).astype(float)


def soft(shape):
    return rounded(rng.uniform(size=(ROWS, *shape)))


WEIGHT = np.array([1.0, 0.5, 0.0, 2.0, 0.25])
cases = []


def loss_case(name, config, real, p, t, weight):
    loss = getattr(keras.losses, name)(dtype=real, **config)
    x = tf.constant(p, real)
    # weights of rows: Keras multiplies element by element, so spread them over the loss's shape
    w = None
    if weight is not None:
        inner = np.ones(p.shape[1:-1])
        w = (weight.reshape((-1,) + (1,) * inner.ndim) * inner).astype(real)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(tf.constant(t, real), x, sample_weight=w)
    grad = tape.gradient(value, x)
    cases.append(
        dict(
            loss=name, config=config, real=real, prediction=p.shape[1:], target=t.shape[1:], rows=ROWS,
            y_pred=p.ravel().tolist(), y_true=t.ravel().tolist(),
            weight=None if weight is None else weight.tolist(),
            value=float(value), grad=[float(f"{g:.9g}" if real == "float32" else g) for g in grad.numpy().ravel()],
        )
    )


def both(name, config, p, t, weight):
    for real in ("float32", "float64"):
        loss_case(name, config, real, p, t, weight)


reductions = [dict(), dict(reduction="sum"), dict(reduction="mean_with_sample_weight")]
for r in reductions:
    for weight in (None, WEIGHT):
        both("MeanSquaredError", r, predictions("logits", (3,)), soft((3,)), weight)
        both("SparseCategoricalCrossentropy", r, predictions("probabilities", (4,)), labels((4,)), weight)
        both("CategoricalCrossentropy", r, predictions("probabilities", (4,)), onehot((4,)), weight)
        both("BinaryCrossentropy", r, predictions("probabilities", (1,)), labels((2,))[:, None], weight)
for kind in ("logits", "huge", "probabilities", "rough"):
    logits = dict(from_logits=kind in ("logits", "huge"))
    for shape in ((4,), (2, 3)):
        p = predictions(kind, shape)
        both("SparseCategoricalCrossentropy", logits, p, labels(shape), WEIGHT)
        for smoothing in (0.0, 0.2):
            more = dict(logits, label_smoothing=smoothing)
            both("CategoricalCrossentropy", more, p, onehot(shape), WEIGHT)
            both("BinaryCrossentropy", more, p, np.round(soft(shape)), WEIGHT)
p = predictions("logits", (4,))
both("CategoricalCrossentropy", dict(from_logits=True), p, soft((4,)), None)  # not of sum one
both("CategoricalCrossentropy", dict(), softmax(p), soft((4,)), None)
both("SparseCategoricalCrossentropy", dict(from_logits=True), p, labels((4,))[:, None], WEIGHT)
both("MeanSquaredError", dict(), predictions("logits", (2, 3)), soft((2, 3)), WEIGHT)
both("MeanSquaredError", dict(), predictions("logits", (1,)), soft((1,))[:, 0], WEIGHT)
both("BinaryCrossentropy", dict(), predictions("probabilities", (1,)), labels((2,)), WEIGHT)
with_ignored = labels((2, 3))
with_ignored[0, 0] = with_ignored[3, 1] = -1
for r in reductions[:2]:
    c = dict(r, from_logits=True, ignore_class=-1)
    both("SparseCategoricalCrossentropy", c, predictions("logits", (2, 3)), with_ignored, None)
# ---- losses of a prediction and its target, and of all along the last axis ----
# numbers of their own: those of the cases around stay as they are
others, rng = rng, np.random.default_rng(11)


def hinges(shape):  # -1 and 1; 0 and 1 stand for them
    return np.where(rng.uniform(size=(ROWS, *shape)) < 0.5, -1.0, 1.0)


EACH = {
    "MeanAbsoluteError": ("logits", soft, [{}]),
    "MeanAbsolutePercentageError": ("logits", soft, [{}]),
    "MeanSquaredLogarithmicError": ("rough", soft, [{}]),
    "Huber": ("logits", soft, [{}, dict(delta=0.3)]),
    "LogCosh": ("logits", soft, [{}]),
    "Poisson": ("rough", soft, [{}]),
    "Hinge": ("logits", hinges, [{}]),
    "SquaredHinge": ("logits", hinges, [{}]),
    "CategoricalHinge": ("logits", onehot, [{}]),
    "KLDivergence": ("rough", soft, [{}]),
    "CosineSimilarity": ("logits", soft, [{}]),
    "BinaryFocalCrossentropy": ("rough", lambda s: np.round(soft(s)),
                                [{}, dict(apply_class_balancing=True, alpha=0.4, gamma=1.5),
                                 dict(label_smoothing=0.2)]),
    "CategoricalFocalCrossentropy": ("rough", onehot,
                                     [{}, dict(alpha=0.7, gamma=1.5), dict(label_smoothing=0.2)]),
    "CategoricalGeneralizedCrossEntropy": ("probabilities", labels, [{}, dict(q=0.8)]),
}
for name, (kind, targets, configs) in EACH.items():
    for config in configs:
        for shape in ((4,), (2, 3)):
            both(name, config, predictions(kind, shape), targets(shape), WEIGHT)
    both(name, dict(reduction="mean_with_sample_weight"), predictions(kind, (4,)), targets((4,)), WEIGHT)
# (where a prediction is exactly right Keras has no slope for gamma of 0)
both("BinaryFocalCrossentropy", dict(gamma=0.0), predictions("probabilities", (4,)), np.round(soft((4,))), None)
for name in ("Hinge", "SquaredHinge"):
    both(name, {}, predictions("logits", (4,)), np.round(soft((4,))), None)
p, t = predictions("logits", (4,)), hinges((4,))
p[0, 0], t[0, 0], p[1] = 1.0, 1.0, 0.0  # on the margin, where the slope jumps
both("Hinge", {}, p, t, None)
both("SquaredHinge", {}, p, t, None)
p, t = predictions("logits", (4,)), soft((4,))
p[0], t[1], p[2, 1] = t[0], 0.0, 0.0
for name in ("MeanAbsoluteError", "MeanAbsolutePercentageError", "Huber", "LogCosh"):
    both(name, {}, p, t, None)
p[1] = 1e-9
both("CosineSimilarity", {}, p, t, None)
p = predictions("logits", (4,))
p[0, 1] = p[0, 2] = p[1, 1] = p[1, 3] = 9.0  # the largest of the others, twice
both("CategoricalHinge", {}, p, np.eye(4)[[0, 0, 3, 1, 2]], None)
for kind in ("logits", "huge"):
    for config in (dict(from_logits=True), dict(from_logits=True, label_smoothing=0.1, gamma=1.5)):
        both("BinaryFocalCrossentropy", config, predictions(kind, (4,)), np.round(soft((4,))), WEIGHT)
        both("CategoricalFocalCrossentropy", config, predictions(kind, (4,)), onehot((4,)), WEIGHT)
both("MeanAbsoluteError", {}, predictions("logits", (1,)), soft((1,))[:, 0], WEIGHT)
for config in (dict(alpha=[0.125, 0.5, 0.25, 1.0]), dict(alpha=[2.0, 0.5, 0.25, 1.0], from_logits=True)):
    both("CategoricalFocalCrossentropy", config, predictions("rough", (2, 4)), onehot((2, 4)), WEIGHT)
rng = others
beyond = np.array([[1.5, -0.25, 0.5, 1.0], [0.0, 2.0, 0.75, 0.25], [1.25, 0.5, -1.0, 0.5], [0.5, 1.75, 1.0, 0.0],
                   [0.25, 0.25, 3.0, -2.0]])  # what is no probability
for name in ("KLDivergence", "MeanSquaredLogarithmicError"):
    both(name, {}, beyond, beyond[::-1] * 0.75, None)
with open("losses.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")

metrics = []


def metric_case(name, config, p, t, weight):
    m = getattr(keras.metrics, name)(**config)
    m.update_state(t.astype("float32"), p.astype("float32"), sample_weight=weight)
    m.update_state(t[:2].astype("float32"), p[:2].astype("float32"),
                   sample_weight=None if weight is None else weight[:2])
    metrics.append(
        dict(
            metric=name, config=config, prediction=p.shape[1:], target=t.shape[1:], rows=ROWS,
            y_pred=p.ravel().tolist(), y_true=t.ravel().tolist(),
            weight=None if weight is None else weight.tolist(), result=float(m.result()),
        )
    )


for weight in (None, WEIGHT):
    for shape in ((4,), (2, 6)):
        p, z = predictions("probabilities", shape), predictions("logits", shape)
        n = shape[-1]
        for name in ("MeanSquaredError", "MeanAbsoluteError", "RootMeanSquaredError"):
            metric_case(name, {}, z, soft(shape), weight)
        metric_case("Accuracy", {}, np.round(p), np.round(soft(shape)), weight)
        metric_case("BinaryAccuracy", {}, p, np.round(soft(shape)), weight)
        metric_case("BinaryAccuracy", dict(threshold=0.2), p, np.round(soft(shape)), weight)
        metric_case("CategoricalAccuracy", {}, p, onehot(shape), weight)
        metric_case("SparseCategoricalAccuracy", {}, p, labels(shape), weight)
        for k in (1, 2, 3, 9):
            metric_case("TopKCategoricalAccuracy", dict(k=k), p, onehot(shape), weight)
            metric_case("SparseTopKCategoricalAccuracy", dict(k=k), p, labels(shape), weight)
            tied = np.round(p, 1)
            metric_case("SparseTopKCategoricalAccuracy", dict(k=k), tied, labels(shape), weight)
        if len(shape) == 1:
            smooth = dict(label_smoothing=0.1)
            metric_case("BinaryCrossentropy", smooth, p, np.round(soft(shape)), weight)
            metric_case("CategoricalCrossentropy", smooth, p, onehot(shape), weight)
            metric_case("SparseCategoricalCrossentropy", {}, p, labels(shape), weight)
            metric_case("SparseCategoricalCrossentropy", dict(from_logits=True), z, labels(shape), weight)
    p = predictions("probabilities", (4,))
    metric_case("SparseCategoricalAccuracy", {}, p, labels((4,))[:, None], weight)
    p = predictions("probabilities", (1,))
    metric_case("BinaryAccuracy", {}, p, labels((2,))[:, None], weight)
    metric_case("BinaryAccuracy", {}, p, labels((2,)), weight)
rng = np.random.default_rng(12)
for weight in (None, WEIGHT):
    for shape in ((4,), (2, 6)):
        z, p = predictions("logits", shape), predictions("probabilities", shape)
        for name in ("MeanAbsolutePercentageError", "MeanSquaredLogarithmicError", "LogCoshError",
                     "CosineSimilarity"):
            metric_case(name, {}, z, soft(shape), weight)
        metric_case("Poisson", {}, p, soft(shape), weight)
        metric_case("KLDivergence", {}, p, soft(shape), weight)
        metric_case("Hinge", {}, z, hinges(shape), weight)
        metric_case("SquaredHinge", {}, z, hinges(shape), weight)
        metric_case("CategoricalHinge", {}, z, onehot(shape), weight)
rng = np.random.default_rng(13)
COUNTED = [("TruePositives", {}), ("FalsePositives", {}), ("TrueNegatives", {}), ("FalseNegatives", {}),
           ("TruePositives", dict(thresholds=0.2)), ("FalsePositives", dict(thresholds=[0.7])),
           ("Precision", {}), ("Precision", dict(thresholds=0.3)), ("Recall", {}), ("Recall", dict(thresholds=[0.7]))]
AT = [("PrecisionAtRecall", "recall"), ("RecallAtPrecision", "precision"),
      ("SensitivityAtSpecificity", "specificity"), ("SpecificityAtSensitivity", "sensitivity")]
for weight in (None, WEIGHT):
    for shape in ((1,), (4,), (2, 6)):
        if weight is not None and len(shape) == 2:
            continue  # Keras takes weights of rows only where rows are flat
        p, t = predictions("probabilities", shape), np.round(soft(shape))
        p.flat[0], p.flat[1 % p.size] = 0.5, 1.0
        for name, config in COUNTED:
            metric_case(name, config, p, t, weight)
        for name, key in AT:
            metric_case(name, {key: 0.4}, p, t, weight)
            metric_case(name, {key: 0.6, "num_thresholds": 11}, p, t, weight)
        metric_case("PrecisionAtRecall", dict(recall=0.5, num_thresholds=1), p, t, weight)
        for curve in ("ROC", "PR", "PRGAIN"):
            for method in ("interpolation", "minoring", "majoring"):
                metric_case("AUC", dict(curve=curve, summation_method=method), p, t, weight)
        metric_case("AUC", dict(num_thresholds=7), p, t, weight)
        metric_case("AUC", dict(thresholds=[0.9, 0.25, 0.5]), p, t, weight)
        metric_case("AUC", dict(from_logits=True), predictions("logits", shape), t, weight)
        if len(shape) == 1:
            metric_case("R2Score", {}, p, soft(shape), weight)
            metric_case("R2Score", dict(class_aggregation="variance_weighted_average"), p, soft(shape), weight)
    p, t = predictions("probabilities", (4,)), np.round(soft((4,)))
    for config in (dict(top_k=2), dict(class_id=1), dict(top_k=1, class_id=2), dict(top_k=3, thresholds=0.2)):
        metric_case("Precision", config, p, t, weight)
        metric_case("Recall", config, p, t, weight)
    metric_case("PrecisionAtRecall", dict(recall=0.4, class_id=0), p, t, weight)
    metric_case("R2Score", dict(num_regressors=3), p, soft((4,)), weight)
    for average in ("micro", "macro", "weighted"):
        for threshold in (None, 0.3):
            config = dict(average=average, threshold=threshold)
            metric_case("F1Score", config, p, onehot((4,)), weight)
            metric_case("FBetaScore", dict(config, beta=2.0), p, t, weight)
    z = predictions("logits", (6,))
    metric_case("PearsonCorrelation", {}, z, soft((6,)), weight)
    metric_case("ConcordanceCorrelation", {}, z, soft((6,)), weight)
metric_case("AUC", dict(multi_label=True), predictions("probabilities", (4,)), np.eye(5)[:, :4], None)
rng = np.random.default_rng(14)
for weight in (None, np.array([1.0, 2.5, 0.0, 3.0, 0.25])):
    p, t = predictions("probabilities", (4,)), onehot((4,))
    for more in (dict(), dict(ignore_class=2), dict(dtype="float32")):
        metric_case("OneHotMeanIoU", dict(num_classes=4, **more), p, t, weight)
        metric_case("OneHotIoU", dict(num_classes=4, target_class_ids=[0, 3], **more), p, t, weight)
        metric_case("MeanIoU", dict(num_classes=4, sparse_y_pred=False, **more), p, labels((4,)), weight)
        metric_case("IoU", dict(num_classes=5, target_class_ids=[1, 4], sparse_y_pred=False, **more), p,
                    labels((4,)), weight)
        # with weights of rows Keras takes one number for each row
        shape = (3, 2) if weight is None else (1,)
        numbers, classes = rng.integers(-1, 5, (ROWS, *shape)).astype(float), labels((*shape, 4))
        metric_case("MeanIoU", dict(num_classes=4, **more), numbers, classes, weight)
        metric_case("IoU", dict(num_classes=3, target_class_ids=[2], **more), numbers, classes, weight)
    shape = (4,) if weight is None else (1,)
    for config in (dict(), dict(threshold=0.25), dict(target_class_ids=[1]), dict(target_class_ids=[0], dtype="float32")):
        metric_case("BinaryIoU", config, predictions("rough", shape), np.round(soft(shape)), weight)
rng = np.random.default_rng(15)
for weight in (None, WEIGHT):  # only where there are weights is the count without what is left out
    shape = (2, 4) if weight is None else (4,)
    for config in (dict(ignore_class=2), dict(ignore_class=2, from_logits=True)):
        metric_case("SparseCategoricalCrossentropy", config, predictions("probabilities", shape), labels(shape),
                    weight)
rng = np.random.default_rng(16)
for weight in (None, WEIGHT):
    for shape in ((4,), (2, 3)) if weight is None else ((4,),):
        for labels_of in (dict(), dict(multi_label=True)):
            if labels_of and len(shape) > 1:
                continue  # Keras takes flat rows
            of = dict(label_weights=[0.5, 2.0, 0.0, 1.25][: shape[-1]], **labels_of)
            p, t = predictions("probabilities", shape), np.round(soft(shape))
            t[0], t[1] = 0, 1
            metric_case("AUC", of, p, t, weight)
            if len(shape) == 1:
                metric_case("AUC", dict(**of, curve="PR"), p, t, weight)
                metric_case("AUC", dict(**of, curve="PR", summation_method="minoring", num_thresholds=9), p, t, weight)
for weight in (None, WEIGHT):  # the best classes first
    ids = np.array([[3, 1, 9], [0, 2, 2], [5, 5, 1], [7, 0, 4], [1, 2, 3]], float)
    for k in (1, 2, 5):
        metric_case("SparseTopKCategoricalAccuracy", dict(k=k, from_sorted_ids=True), ids,
                    np.array([9.0, 2.0, 5.0, 0.0, 4.0]), weight)
# The next row's first class is above this row's; one regressor; predictions outside of [0, 1].
steep = np.array([[0.1, 0.2, 0.4, 0.3], [0.9, 0.05, 0.02, 0.03], [0.95, 0.03, 0.02, 0], [0.3, 0.4, 0.2, 0.1],
                  [0.97, 0.01, 0.01, 0.01]])
for k in (1, 2):
    metric_case("Recall", dict(top_k=k), steep, np.eye(4)[[2, 0, 0, 1, 0]], None)
metric_case("R2Score", dict(num_regressors=1), steep, soft((4,)), WEIGHT)
wide = np.array([[1.5], [-0.25], [0.75], [1.0], [0.0]])
for thresholds in ([0.5], [0.25, 0.7], [0.25, 0.5, 0.75], [0.5, 1.0]):  # even, not, even, not
    for curve in ("ROC", "PR"):
        metric_case("AUC", dict(thresholds=thresholds, curve=curve), wide,
                    np.array([[1.0], [1.0], [0.0], [0.0], [1.0]]), None)
for thresholds in ([0.5], [0.25, 0.7]):  # the highest threshold that any row passes has gained recall already
    metric_case("AUC", dict(thresholds=thresholds, curve="PRGAIN"), wide,
                np.array([[1.0], [0.0], [1.0], [1.0], [0.0]]), None)
with open("metrics.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in metrics) + "\n]\n")
