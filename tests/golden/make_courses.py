"""What real Keras's EarlyStopping, ReduceLROnPlateau and ModelCheckpoint decide: python make_courses.py > courses.json

Values that each epoch's `score` takes are given, so that every argument matters. A case is {callback,
args, course, epochs, rates, saved}: epochs that are trained, the learning rate that each has in the
logs, and the epochs, from 1 on, after which ModelCheckpoint saves.
"""
import json
import os
import shutil
import sys
import tempfile

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras

RATE = 0.5
COURSES = [
    [4, 3, 5, 2.75, 2.75, 2.5, 3, 3, 3, 2.4, 3, 3, 3, 3],
    [1, 2, 2, 2, 2, 0.5, 2, 2, 2, 2, 2, 2, 0.25, 1],
    [8, 7.875, 7.75, 7.625, 7.5, 7.375, 7.25, 7.125, 7, 9, 6.5, 9, 9, 6],
    [2, 3, 4, 1.5, 2, 1.25, 1.25, 1, 2, 0.75, 3, 4, 5, 6],
]


def decide(kind, args, course):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(RATE), "mse")
    folder = tempfile.mkdtemp()
    if kind is keras.callbacks.ModelCheckpoint:
        callback = kind(os.path.join(folder, "{epoch}.weights.h5"), monitor="score", **args)
    else:
        callback = kind(monitor="score", **args)
    callback.set_model(model)
    callback.on_train_begin({})
    model.stop_training = False
    rates = []
    for epoch, score in enumerate(course):
        rates.append(float(model.optimizer.learning_rate.numpy()))
        callback.on_epoch_end(epoch, {"score": -score if args["mode"] == "max" else score})
        if model.stop_training:
            break
    saved = sorted(int(name.split(".")[0]) for name in os.listdir(folder))
    shutil.rmtree(folder)
    return dict(callback=kind.__name__, args=args, course=course, epochs=len(rates), rates=rates, saved=saved)


cases = []
for course in COURSES:
    for patience in (0, 1, 2, 3):
        for cooldown in (0, 1, 2):
            args = dict(mode="min", factor=0.5, patience=patience, cooldown=cooldown)
            cases.append(decide(keras.callbacks.ReduceLROnPlateau, args, course))
        for mode in ("min", "max"):
            more = dict(mode=mode, patience=patience)
            cases.append(decide(keras.callbacks.EarlyStopping, more, course))
            cases.append(decide(keras.callbacks.EarlyStopping, dict(more, min_delta=0.125), course))
            cases.append(decide(keras.callbacks.EarlyStopping, dict(more, start_from_epoch=3), course))
            baseline = -2.5 if mode == "max" else 2.5
            cases.append(decide(keras.callbacks.EarlyStopping, dict(more, baseline=baseline), course))
            cases.append(decide(keras.callbacks.ReduceLROnPlateau,
                                dict(more, factor=0.25, min_delta=0.25, min_lr=0.01), course))
    for mode in ("min", "max"):
        best = dict(mode=mode, save_best_only=True, save_weights_only=True)
        threshold = -2.75 if mode == "max" else 2.75
        for args in (best, dict(best, initial_value_threshold=threshold)):
            cases.append(decide(keras.callbacks.ModelCheckpoint, args, course))
sys.stdout.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
