"""The works of rows of numbers, sound and texts as functions of weights in bare JAX, layer by layer
those of cli/architectures. The large networks of images are Keras's on JAX (keras_fit.py).

build(work) gives initial weights, lists of arrays in any nesting, and net(weights, x, key) with
logits [B, .., classes]; key is for dropout."""
import jax
import jax.numpy as jnp
import numpy as np

import peer

CHANCE = np.random.default_rng(1)


def table(*shape, scale=0.02):
    return jnp.asarray(CHANCE.normal(0, scale, shape), jnp.float32)


def dense(*shape):
    """A kernel, whose last dim is that of the outputs, and a bias."""
    return [table(*shape, scale=np.sqrt(2 / np.prod(shape[:-1]))), jnp.zeros(shape[-1], jnp.float32)]


def apply(w, x):
    return x @ w[0] + w[1]


def drop(key, x, rate):
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def norm_weights(width):
    return [jnp.ones(width, jnp.float32), jnp.zeros(width, jnp.float32)]


def norm(w, x, epsilon):
    wide = x.astype(jnp.float32)
    mean, variance = wide.mean(-1, keepdims=True), wide.var(-1, keepdims=True)
    return ((wide - mean) * jax.lax.rsqrt(variance + epsilon)).astype(x.dtype) * w[0] + w[1]


# ---- numbers and images --------------------------------------------------------------------------


def mlp(classes):
    def net(w, x, key):
        return apply(w[2], jax.nn.relu(apply(w[1], jax.nn.relu(apply(w[0], x)))))

    return [dense(784, 512), dense(512, 512), dense(512, classes)], net


def mnist_cnn(classes):
    def stage(w, x):
        x = jax.lax.conv_general_dilated(
            x, w[0], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x + w[1])
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def net(w, x, key):
        x = stage(w[1], stage(w[0], x)).reshape(x.shape[0], -1)
        return apply(w[2], drop(key, x, 0.5))

    return [dense(3, 3, 1, 32), dense(3, 3, 32, 64), dense(1600, classes)], net


# ---- sound ---------------------------------------------------------------------------------------


def conv1d(classes):
    blocks, last = [], 1
    for filters, convs in ((16, 2), (32, 2), (64, 3), (128, 3), (128, 3)):
        body = [dense(3, last if i == 0 else filters, filters) for i in range(convs)]
        blocks.append([dense(1, last, filters), body])
        last = filters

    def convolve(w, x):
        return w[1] + jax.lax.conv_general_dilated(
            x, w[0], (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")
        )

    def pool(x, n, of, begin):
        return jax.lax.reduce_window(x, begin, of, (1, n, 1), (1, n, 1), "VALID")

    def net(w, x, key):
        for shortcut, body in w[0]:
            y = x
            for i, one in enumerate(body):
                y = convolve(one, jax.nn.relu(y) if i else y)
            x = pool(jax.nn.relu(y + convolve(shortcut, x)), 2, jax.lax.max, -jnp.inf)
        x = pool(x, 3, jax.lax.add, 0.0) / 3
        x = jax.nn.relu(apply(w[1], x.reshape(x.shape[0], -1)))
        return apply(w[3], jax.nn.relu(apply(w[2], x)))

    return [blocks, dense(128 * 83, 256), dense(256, 128), dense(128, classes)], net


# ---- texts ---------------------------------------------------------------------------------------


def lstm(classes, units=64):
    def cell(inputs):
        return [*dense(inputs, 4 * units), table(units, 4 * units, scale=units**-0.5)]

    def over_time(w, x, back):
        def step(state, z):
            h, c = state
            i, f, g, o = jnp.split(z + h @ w[2], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((x.shape[0], units), x.dtype)
        steps = (x @ w[0] + w[1]).swapaxes(0, 1)
        (h, _), all_h = jax.lax.scan(step, (zero, zero), steps, reverse=back)
        return h, all_h.swapaxes(0, 1)

    def net(w, x, key):
        x = w[0][x]
        x = jnp.concatenate([over_time(w[1][i], x, i == 1)[1] for i in range(2)], -1)
        h = jnp.concatenate([over_time(w[2][i], x, i == 1)[0] for i in range(2)], -1)
        return apply(w[3], h)

    vocabulary = peer.VOCABULARY["lstm"]
    cells = [[cell(128), cell(128)], [cell(2 * units), cell(2 * units)]]
    return [table(vocabulary, 128), *cells, dense(2 * units, classes)], net


def attention_weights(width, inner):
    return [dense(width, inner), dense(width, inner), dense(width, inner), dense(inner, width)]


def attend(w, x, heads, causal):
    rows, length, _ = x.shape
    q, k, v = (apply(p, x).reshape(rows, length, heads, -1) for p in w[:3])
    y = jax.nn.dot_product_attention(q, k, v, is_causal=causal)
    return apply(w[3], y.reshape(rows, length, -1))


def transformer(classes, width=32, heads=2):
    (length,), vocabulary = peer.WORKS["transformer"][0], peer.VOCABULARY["transformer"]

    def net(w, x, key):
        keys = jax.random.split(key, 4)
        x = w[0][x] + w[1]
        x = norm(w[3], x + drop(keys[0], attend(w[2], x, heads, False), 0.1), 1e-6)
        y = apply(w[5], jax.nn.relu(apply(w[4], x)))
        x = norm(w[6], x + drop(keys[1], y, 0.1), 1e-6)
        x = jax.nn.relu(apply(w[7], drop(keys[2], x.mean(1), 0.1)))
        return apply(w[8], drop(keys[3], x, 0.1))

    return [
        table(vocabulary, width), table(length, width), attention_weights(width, heads * width),
        norm_weights(width), dense(width, width), dense(width, width), norm_weights(width),
        dense(width, 20), dense(20, classes),
    ], net  # fmt: skip


def gpt(classes, width=384, heads=6, blocks=6):
    (length,), vocabulary = peer.PLACES["gpt"], peer.VOCABULARY["gpt"]

    def net(w, x, key):
        x = w[0][x] + w[1]
        for first, heads_of, second, wide, narrow in w[2]:
            x = x + attend(heads_of, norm(first, x, 1e-5), heads, True)
            y = jax.nn.gelu(apply(wide, norm(second, x, 1e-5)), approximate=False)
            x = x + apply(narrow, y)
        return apply(w[4], norm(w[3], x, 1e-5))

    each = [
        [norm_weights(width), attention_weights(width, width), norm_weights(width),
         dense(width, 4 * width), dense(4 * width, width)]
        for _ in range(blocks)
    ]  # fmt: skip
    return [table(vocabulary, width), table(length, width), each, norm_weights(width), dense(width, classes)], net


NETS = {
    "mlp": mlp,
    "mnist-cnn": mnist_cnn,
    "conv1d": conv1d,
    "lstm": lstm,
    "transformer": transformer,
    "gpt": gpt,
}


def build(work):
    if work not in NETS:
        raise peer.Unsupported(f"{work}: not written for bare JAX; see keras_fit.py --backend jax")
    return NETS[work](peer.WORKS[work][1])
