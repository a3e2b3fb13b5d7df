"""What real Keras's callbacks see and do: python make_callbacks.py > callbacks.json

A small model is trained in float32 on rows that are not shuffled, so that Keel can repeat it: its
weights are in callbacks.keras. Recorded are the order of all calls with the names and values of the
logs, the epochs and rates of EarlyStopping, ReduceLROnPlateau and LearningRateScheduler, the weights
that are restored, the files that ModelCheckpoint writes, and the text of CSVLogger."""
import json
import os
import sys
import tempfile

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

ROWS, FEATURES, BATCH = 10, 3, 4
here = os.path.dirname(os.path.abspath(__file__))
x = np.array([[np.sin(1.3 * (i * FEATURES + k)) for k in range(FEATURES)] for i in range(ROWS)], "float32")
y = np.array([[np.cos(0.7 * i) + 0.5] for i in range(ROWS)], "float32")
vx = np.array([[np.sin(0.9 * (i * FEATURES + k) + 1) for k in range(FEATURES)] for i in range(6)], "float32")
vy = np.array([[np.cos(1.1 * i) - 0.2] for i in range(6)], "float32")


def make(optimizer):
    keras.utils.set_random_seed(3)
    m = keras.Sequential([keras.Input((FEATURES,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])
    m.compile(optimizer=optimizer, loss="mse", metrics=["mae"])
    return m


class Order(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.calls = []

    def note(self, name, number, logs):
        logs = {k: float(v) for k, v in (logs or {}).items() if k != "outputs"}
        self.calls.append([name, number, list(logs), list(logs.values())])


def hook(name, numbered):
    if numbered:
        return lambda self, number, logs=None: self.note(name, number, logs)
    return lambda self, logs=None: self.note(name, -1, logs)


for n in ("train_begin", "train_end", "test_begin", "test_end", "predict_begin", "predict_end"):
    setattr(Order, "on_" + n, hook(n, False))
for n in ("epoch_begin", "epoch_end", "train_batch_begin", "train_batch_end", "test_batch_begin", "test_batch_end",
          "predict_batch_begin", "predict_batch_end"):
    setattr(Order, "on_" + n, hook(n, True))


def fit(m, callbacks, epochs, **more):
    h = m.fit(x, y, batch_size=BATCH, epochs=epochs, shuffle=False, verbose=0, validation_data=(vx, vy),
              validation_batch_size=BATCH, callbacks=callbacks, **more)
    return {k: [float(v) for v in values] for k, values in h.history.items()}


def flat(m):
    return [float(v) for w in m.get_weights() for v in np.ravel(w)]


out = {}
m = make(keras.optimizers.SGD(0.1))
m.save(os.path.join(here, "callbacks.keras"))
order = Order()
fit(m, [order], 2, validation_freq=2)
m.evaluate(vx, vy, batch_size=BATCH, verbose=0, callbacks=[order])
m.predict(vx, batch_size=BATCH, verbose=0, callbacks=[order])
out["order"] = order.calls

class Stop(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if self.model.optimizer.iterations == 4:
            self.model.stop_training = True


m = make(keras.optimizers.SGD(0.1))
order = Order()
fit(m, [Stop(), order], 5)
out["stopped"] = order.calls

cases = {
    "stops and restores": (0.4, keras.callbacks.EarlyStopping, dict(monitor="val_loss", patience=2, restore_best_weights=True)),
    "a baseline that is never reached": (0.1, keras.callbacks.EarlyStopping,
                                         dict(monitor="val_loss", patience=3, baseline=0.01, restore_best_weights=True)),
    "begins late": (0.4, keras.callbacks.EarlyStopping, dict(monitor="loss", min_delta=0.02, patience=1, start_from_epoch=3)),
    "more is better": (0.1, keras.callbacks.EarlyStopping, dict(monitor="val_mae", mode="max", patience=2)),
    "falls on a plateau": (0.4, keras.callbacks.ReduceLROnPlateau, dict(monitor="val_loss", factor=0.5, patience=2, cooldown=1)),
    "falls to its least": (0.4, keras.callbacks.ReduceLROnPlateau,
                           dict(monitor="loss", factor=0.3, patience=1, min_delta=0.05, min_lr=0.02)),
}
out["cases"] = []
for name, (rate, kind, args) in cases.items():
    m = make(keras.optimizers.SGD(rate))
    history = fit(m, [kind(**args)], 14)
    out["cases"].append(dict(name=name, rate=rate, callback=kind.__name__, args=args, history=history, weights=flat(m)))

m = make(keras.optimizers.SGD(0.4))
schedule = keras.optimizers.schedules.ExponentialDecay(0.3, 2, 0.5)
history = fit(m, [keras.callbacks.LearningRateScheduler(lambda epoch, rate: float(schedule(epoch)))], 6)
out["schedule"] = dict(history=history, weights=flat(m))

m = make(keras.optimizers.SGD(0.2, momentum=0.5, use_ema=True, ema_momentum=0.7))
history = fit(m, [keras.callbacks.SwapEMAWeights()], 4)
out["ema"] = dict(history=history, weights=flat(m))
saved = []


class Saved(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        saved.append(flat(self.model))


m = make(keras.optimizers.SGD(0.2, momentum=0.5, use_ema=True, ema_momentum=0.7))
history = fit(m, [keras.callbacks.SwapEMAWeights(swap_on_epoch=True), Saved()], 4)
out["ema_on_epoch"] = dict(history=history, weights=flat(m), saved=saved)

with tempfile.TemporaryDirectory() as folder:
    m = make(keras.optimizers.SGD(0.4))
    pattern = os.path.join(folder, "best-{epoch:02d}-{val_loss:.2f}.keras")
    fit(m, [keras.callbacks.ModelCheckpoint(pattern, save_best_only=True)], 8)
    m = make(keras.optimizers.SGD(0.4))
    pattern = os.path.join(folder, "step-{epoch}-{batch:03d}.weights.h5")
    fit(m, [keras.callbacks.ModelCheckpoint(pattern, save_freq=5, save_weights_only=True)], 4)
    out["files"] = sorted(os.listdir(folder))

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "log.csv")
    m = make(keras.optimizers.SGD(0.1))
    fit(m, [keras.callbacks.CSVLogger(path)], 3, validation_freq=2)
    with open(path, newline="") as f:
        out["csv"] = f.read()
    fit(m, [keras.callbacks.CSVLogger(path, separator=";", append=True)], 1)
    with open(path, newline="") as f:
        out["csv_appended"] = f.read()

json.dump(out, sys.stdout, separators=(",", ":"))
print()
