#!/usr/bin/env python3
"""Keras's own fit on arrays; the mean step of its best epoch.

    keras_fit.py WORK [...] [--backend tensorflow|jax|torch] [--devices N]

--devices N (TensorFlow only): MirroredStrategy over N logical CPU devices; with --gpu over all GPUs.
"""
import os
import sys
import time

import peer

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def resnet18(keras, shape, classes):
    from keras import layers

    def norm(x):
        return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)

    def conv(x, filters, kernel, stride):
        if stride == 2 and kernel > 1:
            x = layers.ZeroPadding2D(kernel // 2)(x)
        padding = "valid" if stride == 2 else "same"
        return layers.Conv2D(filters, kernel, stride, padding, use_bias=False)(x)

    inputs = layers.Input(shape)
    x = layers.ReLU()(norm(conv(inputs, 64, 7, 2)))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for filters in (64, 128, 256, 512):
        for i in range(2):
            stride = 2 if filters > 64 and i == 0 else 1
            shortcut = norm(conv(x, filters, 1, stride)) if stride == 2 else x
            x = layers.ReLU()(norm(conv(x, filters, 3, stride)))
            x = norm(conv(x, filters, 3, 1))
            x = layers.ReLU()(layers.Add()([shortcut, x]))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(classes, "softmax", dtype="float32")(x))


def lstm(keras, shape, classes):
    from keras import layers

    return keras.Sequential(
        [
            layers.Input(shape, dtype="int32"),
            layers.Embedding(peer.VOCABULARY["lstm"], 128),
            layers.Bidirectional(layers.LSTM(64, return_sequences=True)),
            layers.Bidirectional(layers.LSTM(64)),
            layers.Dense(classes, "sigmoid", dtype="float32"),
        ]
    )


def token_and_position(keras, tokens, vocabulary, width):
    from keras import layers, ops

    places = ops.cumsum(ops.ones_like(tokens), axis=1) - 1
    embedded = layers.Embedding(vocabulary, width)(tokens)
    return layers.Add()([embedded, layers.Embedding(tokens.shape[1], width)(places)])


def gpt(keras, shape, classes):
    from keras import layers

    tokens = layers.Input(shape, dtype="int32")
    x = token_and_position(keras, tokens, peer.VOCABULARY["gpt"], 384)
    for _ in range(6):
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        x = layers.Add()([x, layers.MultiHeadAttention(6, 64)(y, y, use_causal_mask=True)])
        y = layers.LayerNormalization(epsilon=1e-5)(x)
        y = layers.Dense(384)(layers.Dense(4 * 384, "gelu")(y))
        x = layers.Add()([x, y])
    x = layers.LayerNormalization(epsilon=1e-5)(x)
    return keras.Model(tokens, layers.Dense(classes, "softmax", dtype="float32")(x))


def transformer(keras, shape, classes):
    from keras import layers

    tokens = layers.Input(shape, dtype="int32")
    x = token_and_position(keras, tokens, peer.VOCABULARY["transformer"], 32)
    y = layers.Dropout(0.1)(layers.MultiHeadAttention(2, 32)(x, x))
    x = layers.LayerNormalization(epsilon=1e-6)(layers.Add()([x, y]))
    y = layers.Dropout(0.1)(layers.Dense(32)(layers.Dense(32, "relu")(x)))
    x = layers.LayerNormalization(epsilon=1e-6)(layers.Add()([x, y]))
    x = layers.Dropout(0.1)(layers.GlobalAveragePooling1D()(x))
    x = layers.Dropout(0.1)(layers.Dense(20, "relu")(x))
    return keras.Model(tokens, layers.Dense(classes, "softmax", dtype="float32")(x))


def unet(keras, shape, classes):
    from keras import layers

    def unit(x, layer):
        return layers.BatchNormalization()(layer(layers.Activation("relu")(x)))

    inputs = layers.Input(shape)
    x = layers.BatchNormalization()(layers.Conv2D(32, 3, 2, "same")(inputs))
    x = layers.Activation("relu")(x)
    for filters in (64, 128, 256):
        beside = layers.Conv2D(filters, 1, 2, "same")(x)
        x = unit(x, layers.SeparableConv2D(filters, 3, padding="same"))
        x = unit(x, layers.SeparableConv2D(filters, 3, padding="same"))
        x = layers.Add()([layers.MaxPooling2D(3, 2, "same")(x), beside])
    for filters in (256, 128, 64, 32):
        beside = layers.Conv2D(filters, 1, padding="same")(layers.UpSampling2D(2)(x))
        x = unit(x, layers.Conv2DTranspose(filters, 3, padding="same"))
        x = unit(x, layers.Conv2DTranspose(filters, 3, padding="same"))
        x = layers.Add()([layers.UpSampling2D(2)(x), beside])
    last = layers.Conv2D(classes, 3, padding="same", activation="softmax", dtype="float32")
    return keras.Model(inputs, last(x))


def conv1d(keras, shape, classes):
    from keras import layers

    x = inputs = layers.Input(shape)
    for filters, convs in ((16, 2), (32, 2), (64, 3), (128, 3), (128, 3)):
        beside = layers.Conv1D(filters, 1, padding="same")(x)
        for i in range(convs):
            x = layers.Conv1D(filters, 3, padding="same")(x)
            x = layers.Activation("relu")(x) if i + 1 < convs else x
        x = layers.Activation("relu")(layers.Add()([x, beside]))
        x = layers.MaxPooling1D(2, 2)(x)
    x = layers.Flatten()(layers.AveragePooling1D(3, 3)(x))
    x = layers.Dense(128, "relu")(layers.Dense(256, "relu")(x))
    return keras.Model(inputs, layers.Dense(classes, "softmax", dtype="float32")(x))


NETS = {
    "resnet18": resnet18,
    "lstm": lstm,
    "gpt": gpt,
    "transformer": transformer,
    "unet": unet,
    "conv1d": conv1d,
}


APPLICATIONS = {
    "resnet50": "ResNet50",
    "mobilenetv2": "MobileNetV2",
    "efficientnetb0": "EfficientNetB0",
    "densenet121": "DenseNet121",
    "convnexttiny": "ConvNeXtTiny",
}


def build(keras, work):
    from keras import layers

    shape, classes, _, _ = peer.WORKS[work]
    if work in APPLICATIONS:
        make = getattr(keras.applications, APPLICATIONS[work])
        return make(weights=None, input_shape=shape, classes=classes)
    if work in NETS:
        return NETS[work](keras, shape, classes)
    last = layers.Dense(classes, "softmax", dtype="float32")
    if work == "mlp":
        hidden = [layers.Dense(512, "relu"), layers.Dense(512, "relu")]
        return keras.Sequential([layers.Input(shape), *hidden, last])
    return keras.Sequential(
        [
            layers.Input(shape),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.5),
            last,
        ]
    )


class Peer:
    def __init__(self, args):
        self.strategy = None
        os.environ["KERAS_BACKEND"] = args.backend
        short = {"tensorflow": "tf"}.get(args.backend, args.backend)
        self.name = f"keras-{short}"
        if args.backend == "tensorflow":
            import tensorflow as tf

            self.library = tf
            if args.gpu:
                if not tf.config.list_physical_devices("GPU"):
                    raise ImportError("this TensorFlow sees no GPU")
                tf.config.experimental.enable_tensor_float_32_execution(False)
                if args.devices != 1:
                    self.name += "-mirrored"
                    self.strategy = tf.distribute.MirroredStrategy()
            elif args.devices > 1:
                self.name += f"-mirrored-{args.devices}"
                cpu = tf.config.list_physical_devices("CPU")[0]
                one = tf.config.LogicalDeviceConfiguration()
                tf.config.set_logical_device_configuration(cpu, [one] * args.devices)
                names = [f"CPU:{i}" for i in range(args.devices)]
                self.strategy = tf.distribute.MirroredStrategy(names)
        else:
            if args.gpu:
                os.environ["JAX_PLATFORMS"] = "cuda"
                os.environ["JAX_DEFAULT_MATMUL_PRECISION"] = "highest"  # no TF32
            self.library = __import__(args.backend)
        import keras

        self.keras = keras

    def versions(self):
        return {"keras": self.keras.__version__, self.library.__name__: self.library.__version__}

    def make(self, work, dtype):
        keras = self.keras
        keras.config.set_dtype_policy(dtype)
        model = build(keras, work)
        sgd = keras.optimizers.SGD(peer.LEARNING_RATE, peer.MOMENTUM)
        yes_or_no = peer.WORKS[work][1] == 1
        model.compile(sgd, "binary_crossentropy" if yes_or_no else "sparse_categorical_crossentropy")
        return model

    def losses(self, work, batch, dtype, steps):
        model = self.make(work, dtype)
        x, y = (a[:batch] for a in peer.data(work, batch))
        losses = []
        for _ in range(steps):
            model.reset_metrics()  # else a mean over all steps
            losses.append(float(model.train_on_batch(x, y)))
        real = [w for w in model.weights if "float" in w.dtype]  # Normalization counts in integers
        sizes = [int(w.numpy().size) for w in real]
        return (sum(n for n, w in zip(sizes, real) if w.trainable), sum(sizes)), losses

    def prepare(self, work, batch, dtype):
        keras = self.keras
        x, y = peer.data(work, batch)
        if self.strategy:
            with self.strategy.scope():
                model = self.make(work, dtype)
        else:
            model = self.make(work, dtype)
        model.fit(x[: 2 * batch], y[: 2 * batch], batch_size=batch, verbose=0)  # traces, compiles

        class Clock(keras.callbacks.Callback):
            def __init__(self, seconds):
                super().__init__()
                self.seconds, self.took, self.start = seconds, [], time.perf_counter()

            def on_epoch_begin(self, epoch, logs=None):
                self.began = time.perf_counter()

            def on_epoch_end(self, epoch, logs=None):
                now = time.perf_counter()
                self.took.append(now - self.began)
                if now - self.start >= self.seconds:
                    self.model.stop_training = True

        def measure(seconds):
            clock = Clock(seconds)
            model.fit(x, y, batch_size=batch, epochs=100000, verbose=0, callbacks=[clock])
            steps = len(x) // batch
            return {"ms": 1e3 * min(clock.took) / steps, "steps": steps * len(clock.took)}

        return measure


def arguments(a):
    a.add_argument("--backend", default="tensorflow", choices=["tensorflow", "jax", "torch"])
    a.add_argument("--devices", type=int, default=1)


if __name__ == "__main__":
    sys.exit(peer.main(Peer, arguments))
