#!/usr/bin/env python3
"""keel.fit of layers and models that are classes of the caller, and of functions in layers, beside Keras's
own fit; and which are refused.

python_classes.py [NAME...]      needs Keras 3 on TensorFlow, and libkeel (KEEL_LIBRARY)
"""

import sys
import warnings

from beside_keras import (
    PLAIN,
    ROWS,
    SPARSE,
    Batches,
    Seen,
    Weighs,
    beside,
    case,
    close,
    equal,
    fails,
    labels,
    rows,
    run_cases,
    traced,
)
import keras
import numpy as np
import tensorflow as tf
from keras import callbacks as kc, layers, ops

import keel


class Block(layers.Layer):
    """As in Keras's examples: attention and a network, with what is normalised and added."""

    def __init__(self, width, rate=0.0):
        super().__init__()
        self.ffn = keras.Sequential([layers.Dense(2 * width, "gelu"), layers.Dense(width, use_bias=False)])
        self.att = layers.MultiHeadAttention(2, width)
        self.norms = [layers.LayerNormalization(epsilon=1e-6), layers.BatchNormalization(momentum=0.9)]
        self.drop = layers.Dropout(rate)

    def call(self, x, training=False):
        y = self.norms[0](x + self.drop(self.att(x, x), training=training))
        return self.norms[1](y + self.ffn(y), training=training)


class Places(layers.Layer):
    def __init__(self, words, length, width):
        super().__init__()
        self.places, self.words = layers.Embedding(length, width), layers.Embedding(words, width)
        self.length = length

    def call(self, x):
        return self.words(x) + self.places(ops.arange(0, self.length))


class Patches(layers.Layer):
    def call(self, images):
        patches = ops.image.extract_patches(images, 3)
        n, h, w, c = ops.shape(patches)
        return ops.reshape(patches, (n, h * w, c))


class Encoder(layers.Layer):
    def __init__(self, count, width):
        super().__init__()
        self.count, self.project, self.place = count, layers.Dense(width), layers.Embedding(count, width)

    def call(self, x):
        return self.project(x) + self.place(ops.expand_dims(ops.arange(self.count), axis=0))


@case
def layers_of_the_caller():
    def texts_of_numbers():
        i = layers.Input((12,), dtype="int32")
        x = layers.GlobalAveragePooling1D()(Block(8)(Block(8)(Places(30, 12, 8)(i))))
        m = keras.Model(i, layers.Dense(4, "softmax")(x))
        m.compile(keras.optimizers.SGD(0.1, momentum=0.9), SPARSE, metrics=["accuracy"])
        return m

    words = np.random.default_rng(4).integers(0, 30, (ROWS, 12))
    m, k, *_ = traced(texts_of_numbers, lambda: (words, labels()), validation_split=0.2)
    close(keel.predict(m, words, verbose=0), k.predict(words, verbose=0), "predict")
    close(keel.evaluate(m, words, labels(), verbose=0), k.evaluate(words, labels(), verbose=0), "evaluate")
    keel.fit(m, words, labels(), **PLAIN)  # goes on, and so does Keras
    k.fit(words, labels(), **PLAIN)
    equal(m, k)

    def images():
        i = layers.Input((9, 12, 3))
        x = Block(8)(Encoder(12, 8)(Patches()(i)))
        m = keras.Model(i, layers.Dense(4, "softmax")(layers.Flatten()(x)))
        m.compile("sgd", SPARSE)
        return m

    traced(images, lambda: (rows(0, 9, 12, 3), labels()), per_side=lambda: {"callbacks": [Seen(False)]})


class Inner(keras.Model):
    def __init__(self):
        super().__init__()
        self.last, self.first = layers.Dense(6), layers.Dense(5, "tanh")  # not in the order of the calls
        self.norm = layers.BatchNormalization()

    def call(self, x):
        return self.last(self.norm(self.first(x)))


class Outer(keras.Model):
    def __init__(self, inner=None):
        super().__init__()
        self.head, self.inner = layers.Dense(4, "softmax", name="head"), inner or Inner()

    def call(self, x, training=None):
        return self.head(ops.relu(self.inner(x)) + 0.1)


class Still(Outer):
    def call(self, x):
        return self.head(ops.relu(self.inner(x)) + 0.1)


@case
def models_of_the_caller():
    def outer(optimizer="adam"):
        m = Outer()
        m(rows()[:1])
        m.compile(optimizer, SPARSE, metrics=["accuracy"])
        return m

    m, k, *_ = traced(outer, lambda: (rows(), labels()), validation_split=0.2)
    for go_on in (keel.fit, lambda model, *data, **named: model.fit(*data, **named)):
        go_on(m, rows(), labels(), **PLAIN)
        k.fit(rows(), labels(), **PLAIN)
        equal(m, k)
    stops = lambda: {"callbacks": [kc.EarlyStopping("val_loss", patience=1, restore_best_weights=True)]}
    beside(
        lambda: outer(keras.optimizers.SGD(0.8)),
        lambda: (rows(), labels()),
        epochs=9,
        per_side=stops,
        validation_split=0.3,
    )

    def still():
        m = Still()
        m(rows()[:1])
        m.compile("sgd", SPARSE)
        return m

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        traced(still, lambda: (rows(), labels()))
    assert any("takes no 'training'" in str(w.message) for w in said)
    for data in (Batches(), tf.data.Dataset.from_tensor_slices((rows(), labels())).batch(8)):
        unbuilt = Outer()
        unbuilt.compile("sgd", SPARSE)
        assert keel.fit(unbuilt, data, verbose=0).history["loss"]
    fails(keel.Unsupported, lambda: keel.predict(Outer(), iter([rows()]), verbose=0), "begun anew")
    unbuilt = Outer()
    unbuilt.compile("sgd", SPARSE)
    assert keel.fit(unbuilt, rows(), labels(), verbose=0).history["loss"] and len(unbuilt.weights) == 10

    def heads():
        i = layers.Input((9,))
        x = Inner()(i)
        named = {
            "size": layers.Dense(1, name="size")(x),
            "kind": Outer(keras.Sequential([layers.Dense(6)]))(x),
        }
        m = keras.Model(i, named)
        m.compile("sgd", {"kind": SPARSE, "size": "mse"}, loss_weights={"kind": 0.5, "size": 2.0})
        return m

    m, k, *_ = traced(heads, lambda: (rows(), {"kind": labels(), "size": rows(1, 1)}))
    mine, theirs = keel.predict(m, rows(), verbose=0), k.predict(rows(), verbose=0)
    for name in theirs:
        close(mine[name], theirs[name], name)


def squashed(x):
    return x * ops.sigmoid(1.5 * x)


@case
def functions_of_the_caller_in_layers():
    def make():
        i = layers.Input((6, 6, 3))
        x = layers.Lambda(lambda t: t / 2 + ops.mean(t, axis=(1, 2), keepdims=True))(i)
        x = layers.Conv2D(4, 3, activation=squashed, kernel_regularizer="l2")(x)
        x = layers.Activation(squashed)(layers.SeparableConv2D(4, 2, activation="relu")(x))
        same = layers.Dense(4, lambda t: ops.maximum(t, 0.1 * t))
        x = layers.Flatten()(same(same(x)))
        x = layers.Lambda(lambda t, scale: t * scale, arguments={"scale": 0.5})(x)
        m = keras.Model(i, layers.Dense(4, "softmax")(layers.Dense(5, tf.nn.relu)(x)))
        m.compile("adam", SPARSE)
        return m

    m, k, *_ = traced(make, lambda: (rows(0, 6, 6, 3), labels()), validation_split=0.2)
    close(keel.predict(m, rows(0, 6, 6, 3), verbose=0), k.predict(rows(0, 6, 6, 3), verbose=0), "predict")

    def recurrent():
        m = keras.Sequential([layers.Input((5, 3)), layers.LSTM(4, activation=squashed), layers.Dense(2)])
        m.compile("sgd", "mse")
        return m

    def masked():
        of = [layers.Input((5, 3)), layers.Masking(), layers.Dense(4, squashed), layers.LSTM(2)]
        m = keras.Sequential(of)
        m.compile("sgd", "mse")
        return m

    traced(masked, lambda: (ops.relu(rows(0, 5, 3)), rows(1, 2)))

    def regularized():
        return keras.Sequential([layers.Input((5, 3)), layers.Dense(2, squashed, activity_regularizer="l2")])

    for model, *parts in (recurrent(), "lstm", "activation"), (regularized(), "behind"):
        fails(keel.Unsupported, lambda: keel.predict(model, rows(0, 5, 3), verbose=0), *parts)


OF_TENSORFLOW = """
tf.tile(tf.constant([[1.,2]]),[tf.cast(tf.shape(x)[0],tf.int32),1])+x[:,0,:2]
tf.ones([tf.cast(tf.shape(x)[0],tf.int32),2])+x[:,0,:2]
tf.abs(x) tf.acos(x/9) tf.acosh(x*x+1) tf.asin(x/9) tf.asinh(x) tf.atan(x) tf.atanh(x/9)
tf.math.atan2(x,y) tf.cast(x>0,tf.float32) tf.math.ceil(x) tf.clip_by_value(x,-0.3,0.6)
tf.concat([x,y],-1) tf.cos(x) tf.cosh(x) tf.divide(x,y+9) tf.math.divide_no_nan(x,tf.nn.relu(y))
tf.einsum('bij,bkj->bik',x,y) tf.nn.elu(x) tf.cast(tf.equal(x,y),tf.float32) tf.math.erf(x)
tf.math.erfinv(x/9) tf.exp(x) tf.expand_dims(x,1) tf.math.expm1(x) tf.floor(x) tf.math.floordiv(x,0.7)
tf.math.floormod(x,0.7) tf.cast(tf.greater(x,y),tf.float32) tf.nn.leaky_relu(x)
tf.nn.leaky_relu(x,alpha=0.3) tf.math.log(x*x+1) tf.math.log1p(x*x) tf.math.log_sigmoid(x)
tf.cast(tf.math.logical_xor(x>0,y>0),tf.float32) tf.maximum(x,y) tf.multiply(x,y) tf.negative(x)
tf.ones_like(x)+x tf.pow(tf.abs(x),1.5) tf.math.reciprocal(x+9) tf.reduce_sum(x,axis=[1,2])
tf.reduce_mean(x,-1,keepdims=True) tf.reduce_max(input_tensor=x,axis=1) tf.reduce_prod(x,axis=2)
tf.math.reduce_std(x,2) tf.math.reduce_variance(x,axis=-1) tf.reduce_logsumexp(x,axis=-1)
tf.cast(tf.reduce_any(x>0,axis=-1),tf.float32) tf.nn.relu6(3*x) tf.repeat(x,2,axis=1)
tf.reshape(x,(-1,24)) tf.reshape(x,[tf.shape(x)[0],6,4]) tf.roll(x,2,axis=1) tf.round(x*3)
tf.math.rsqrt(x*x+1) tf.nn.selu(x) tf.sigmoid(x) tf.sign(x) tf.sin(x) tf.sinh(x) tf.nn.softplus(x)
tf.nn.softsign(x) tf.sqrt(tf.abs(x)) tf.square(x) tf.squeeze(x[:,:1],axis=1) tf.squeeze(x[:,:1],[1])
tf.stack([x,y],axis=1) tf.stop_gradient(x) tf.subtract(x,y) tf.tan(x/3) tf.tanh(x) tf.tile(x,[1,2,1])
tf.math.top_k(x,2)[0] tf.truediv(x,3.0) tf.unstack(x,axis=1)[2] tf.where(x>0,x,y) tf.zeros_like(x)+y
tf.cast(tf.argmax(x,axis=-1),tf.float32) tf.cast(tf.argmin(x,1),tf.float32)
tf.cast(tf.argsort(x),tf.float32) tf.linalg.band_part(x,-1,0) tf.linalg.band_part(x,1,2)
tf.nn.bias_add(x,tf.constant([1.,2,3,4,5,6])) tf.cumsum(x,axis=1) tf.cumsum(x,axis=2,exclusive=True)
tf.cumsum(x,1,reverse=True) tf.nn.embedding_lookup(tf.constant([[1.,2],[3,4]]),tf.cast(x>0,tf.int32))
tf.gather(x,[2,0],axis=1) tf.gather(x,tf.argsort(x[:,:,0])[:,:2],axis=1,batch_dims=1) tf.nn.gelu(x)
tf.nn.gelu(x,approximate=True) tf.identity(x) tf.math.l2_normalize(x,axis=-1) tf.nn.l2_normalize(x,1)
tf.nn.log_softmax(x) tf.nn.softmax(x,axis=1) tf.matmul(x,y,transpose_b=True)
tf.matmul(x,y,transpose_a=True) tf.nn.moments(x,axes=[1])[1] tf.norm(x,axis=-1) tf.norm(x,ord=1,axis=1)
tf.one_hot(tf.cast(x>0,tf.int32),3) tf.one_hot(tf.cast(x>0,tf.int32),depth=2,on_value=0.9,off_value=0.1)
tf.pad(x,[[0,0],[1,2],[0,1]]) tf.pad(x,[[0,0],[1,1],[2,2]],'REFLECT')
tf.pad(x,[[0,0],[1,0],[0,1]],constant_values=2.0) tf.reverse(x,[1]) tf.scalar_mul(2.0,x) tf.nn.silu(x)
tf.nn.swish(x) tf.nn.silu(x,beta=2.0)
tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.sigmoid(y),logits=x)
tf.nn.softmax_cross_entropy_with_logits(labels=tf.nn.softmax(y),logits=x)
tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(tf.argmax(y,-1),tf.int32),logits=x)
tf.slice(x,[0,1,2],[-1,2,3]) tf.sort(x) tf.sort(x,axis=1,direction='DESCENDING')
tf.math.squared_difference(x,y) tf.transpose(x,perm=[0,2,1]) tf.split(x,2,axis=2)[1]
tf.split(x,[1,3],axis=1)[1] tf.image.resize(x[...,None],(8,12))
tf.image.resize(x[...,None],[8,12],method='nearest')
tf.image.extract_patches(x[...,None],[1,2,2,1],[1,2,2,1],[1,1,1,1],'VALID')
tf.image.flip_left_right(x[...,None]) tf.image.flip_up_down(x[...,None])
tf.nn.conv2d(x[...,None],np.ones((2,3,1,2),'float32'),strides=1,padding='SAME')
tf.nn.conv2d(x[...,None],np.ones((2,3,1,2),'float32'),[1,2,2,1],'VALID')
tf.nn.depthwise_conv2d(x[...,None],np.ones((2,2,1,2),'float32'),[1,1,1,1],'SAME')
tf.nn.avg_pool2d(x[...,None],2,2,'VALID')
tf.nn.max_pool2d(x[...,None],ksize=[1,2,2,1],strides=[1,2,2,1],padding='SAME') np.float32(2)*x
np.arange(6,dtype='float32')-x tf.constant(3.0)*x tf.fill([tf.shape(x)[0],4],2.0)+x[:,:,0]
tf.zeros((tf.shape(x)[0],2))+x[:,0,:2] tf.broadcast_to(tf.constant([[1.,2]]),[tf.shape(x)[0],2])+x[:,0,:2]
"""


class OfTensorFlow(layers.Layer):
    """Its call is one of these texts."""

    def __init__(self, text):
        super().__init__()
        self.text = text

    def call(self, given):
        x, y = given
        return eval(self.text, {"tf": tf, "np": np}, {"x": x, "y": y})


class ByAll(keras.Model):
    def __init__(self, texts):
        super().__init__()
        self.parts = [OfTensorFlow(text) for text in texts]

    def call(self, given):
        return [part(given) for part in self.parts]


@case
def functions_of_tensorflow_in_calls():
    texts, given = OF_TENSORFLOW.split(), [rows(0, 4, 6), rows(1, 4, 6)]
    assert len(texts) > 130
    for first in range(0, len(texts), 48):
        some = texts[first : first + 48]
        m = ByAll(some)
        wanted = map(np.asarray, m([ops.convert_to_tensor(x) for x in given]))
        for text, mine, theirs in zip(some, keel.predict(m, given, verbose=0), wanted):
            assert mine.shape == theirs.shape, f"{text}: {mine.shape}, {theirs.shape}"
            close(mine, theirs, text, 2e-5)


@case
def attention_to_what_came_before():
    """A mask for each row, as in Keras's example of a small GPT."""

    class Causal(layers.Layer):
        def __init__(self):
            super().__init__()
            self.att = layers.MultiHeadAttention(2, 4)

        def call(self, x):
            n, length, _ = ops.shape(x)
            i, j = ops.arange(length)[:, None], ops.arange(length)
            mask = ops.reshape(ops.cast(i >= j, "bool"), [1, length, length])
            return x + self.att(x, x, attention_mask=ops.tile(mask, (n, 1, 1)))

    def make():
        i = layers.Input((5, 8))
        m = keras.Model(i, layers.Dense(3)(Causal()(i)))
        m.compile("sgd", "mse")
        return m

    traced(make, lambda: (rows(0, 5, 8), rows(1, 5, 3)))


@case
def code_that_is_no_graph_is_refused():
    class Own(layers.Layer):
        def __init__(self, call):
            super().__init__()
            self.dense, self.drop, self.call_of = layers.Dense(4), layers.Dropout(0.5), call
            self.norm = layers.BatchNormalization()

        def build(self, shape):
            self.dense.build(shape)
            self.norm.build(shape)

        def call(self, x, training=False):
            return self.call_of(self, x, training)

    def uses(call):
        i = layers.Input((9,))
        m = keras.Model(i, Own(call)(i))
        m.compile("sgd", "mse")
        return m

    def weighs(use, **options):
        i = layers.Input((9,))
        m = keras.Model(i, Weighs({"w": (4, 4), "v": (4,)}, use, **options)(layers.Dense(4)(i)))
        m.compile("sgd", "mse")
        return m

    def assigns(layer, x):
        layer.v.assign(layer.v * 0.9)
        return x * layer.v + ops.sum(layer.w)

    def adds(loss):
        def call(layer, x, training):
            layer.add_loss(loss(x))
            return layer.dense(x)

        return call

    class Prepares(keras.Model):
        """As the tasks of keras-hub do."""

        preprocessor = layers.Rescaling(2.0)

        def preprocess_samples(self, x, y=None, sample_weight=None):
            return self.preprocessor(x), y, sample_weight

    i = layers.Input((9,))
    prepares = Prepares(i, layers.Dense(4)(i))
    prepares.compile("sgd", "mse")
    for model, *parts in [
        (weighs(lambda l, x: x + l.v), "weighs", "/w' is not reached"),
        (weighs(lambda l, x: x * l.v + l.w), "dim 4 would be that of rows"),
        (weighs(lambda l, x: ops.transpose(ops.matmul(l.w, ops.transpose(x))) + l.v), "mix rows"),
        (weighs(lambda l, x: x @ ops.linalg.inv(l.w) + l.v), "own weights are used in Inv"),
        (weighs(lambda l, x: x @ layers.Dropout(0.5)(l.w) + l.v), "a Dropout"),
        (weighs(assigns, trainable=False), "assign"),
        (uses(lambda layer, x, training: x[:, :4] + layer.dense(np.ones((1, 9), "float32"))), "not reached"),
        (uses(lambda l, x, training: x * keras.random.uniform((1, 9)) if training else x), "all rows share"),
        (uses(lambda l, x, training: x + keras.random.gamma((-1, 9), 2.0) if training else x), "gamma"),
        (uses(lambda l, x, training: l.norm(x) if training else x), "learns twice"),
        (uses(adds(lambda x: ops.sum(ops.square(x)))), "of a loss that it adds", "Sum is no mean"),
        (uses(adds(lambda x: ops.mean(x, axis=-1))), "a loss of several numbers"),
        (uses(adds(lambda x: ops.mean(x) * ops.mean(x))), "a product with it"),
        (uses(lambda layer, x, training: layer.drop(layer.dense(x), training=True)), "training=True"),
        (uses(lambda layer, x, training: layer.dense(x) @ layer.norm.gamma[:4, None]), "reads", "gamma'"),
        (prepares, "preprocess_samples"),
    ]:
        shape = [d or 5 for d in model.input.shape[1:]]
        fails(keel.Unsupported, lambda: keel.fit(model, rows(0, *shape), rows(1, 4), verbose=0), *parts)


class Pulled(keras.constraints.Constraint):
    """Between what a weight is without its mean, and what is left of it within limits."""

    def __init__(self, by=0.5):
        self.by = by

    def __call__(self, w):
        return self.by * (w - ops.mean(w)) + (1 - self.by) * ops.clip(w, -0.3, 0.3)


class Inside(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.last = layers.Dense(6, "tanh", kernel_constraint=Pulled()), layers.Dense(4)

    def call(self, x):
        return self.last(self.first(x))


@case
def regularizers_of_the_caller_are_in_the_loss_of_an_evaluation():
    class Apart(keras.regularizers.Regularizer):
        def __call__(self, w):
            return 0.05 * ops.sum(ops.square(ops.transpose(w) @ w - ops.eye(w.shape[-1])))

    first = layers.Dense(6, "tanh", kernel_regularizer=Apart(), bias_regularizer="l2")
    last = layers.Dense(4, kernel_regularizer=lambda w: 0.1 * ops.mean(ops.abs(w)))
    m = keras.Sequential([layers.Input((9,)), first, last])
    m.compile("sgd", "mse", metrics=["mae"])
    data = rows(), rows(1, 4)
    close(keel.evaluate(m, *data, verbose=0), m.evaluate(*data, verbose=0), "evaluate")
    close(keel.predict(m, rows(), verbose=0), m.predict(rows(), verbose=0), "predict")
    assert m.layers[0].kernel_regularizer is first.kernel_regularizer
    fails(keel.Unsupported, lambda: keel.fit(m, *data, verbose=0), "/kernel' has a regularizer", "Apart")


@case
def constraints_of_the_caller():
    data = lambda: (rows(), rows(1, 4))

    def make(optimizer="adam"):
        clips = lambda w: ops.clip(w, -0.2, 0.2)
        first = layers.Dense(6, "tanh", kernel_constraint=Pulled(), bias_constraint="non_neg")
        last = layers.Dense(4, kernel_constraint=clips)
        m = keras.Sequential([layers.Input((9,)), first, layers.BatchNormalization(), last])
        m.compile(optimizer, "mse", metrics=["mae"])
        return m

    def inside():
        m = Inside()
        m(rows()[:1])
        m.compile("sgd", "mse")
        return m

    seen = lambda: {"callbacks": [Seen(True)]}
    m, k, mine, theirs = beside(make, data, per_side=seen, epochs=2, validation_split=0.2)
    close(mine["callbacks"][0].seen, theirs["callbacks"][0].seen, "what a callback sees")
    close(keel.evaluate(m, *data(), verbose=0), k.evaluate(*data(), verbose=0), "evaluate")
    close(keel.predict(m, rows(), verbose=0), k.predict(rows(), verbose=0), "predict")
    beside(inside, data, epochs=2)
    histories = []
    for devices in "cpu:0", "cpu:0-2":
        keras.utils.set_random_seed(3)
        options = dict(batch_size=8, verbose=0, devices=devices, seed=1, reproducible=True)
        histories.append(keel.fit(make(), *data(), **options).history)
    assert histories[0] == histories[1], histories
    averages = make(keras.optimizers.SGD(use_ema=True))
    fails(
        keel.Unsupported, lambda: keel.fit(averages, *data(), verbose=0), "a constraint of its own", "use_ema"
    )


sys.exit(run_cases(__file__))
