#!/usr/bin/env python3
"""JAX, a jitted step with donated weights over batches in memory; the median step.

    jax_loop.py WORK [...] [--devices N]

Only mlp and mnist-cnn: the networks of images are Keras's on JAX (keras_fit.py --backend jax).
--devices N splits each batch over N host devices. mixed_bfloat16: rows and float32 weights are
rounded to bfloat16 at each step, logits and loss are float32.
"""
import os
import sys

import peer


def build(work):
    """Initial weights and the function of (weights, x, key) that gives logits."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    chance = np.random.default_rng(1)

    def weights(*shape):
        scale = np.sqrt(2 / np.prod(shape[:-1]))
        return [
            jnp.asarray(chance.normal(0, scale, shape), jnp.float32),
            jnp.zeros(shape[-1], jnp.float32),
        ]

    def mlp(w, x, key):
        x = jax.nn.relu(x @ w[0][0] + w[0][1])
        x = jax.nn.relu(x @ w[1][0] + w[1][1])
        return x @ w[2][0] + w[2][1]

    def stage(w, x):
        x = jax.lax.conv_general_dilated(
            x, w[0], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x + w[1])
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def cnn(w, x, key):
        x = stage(w[1], stage(w[0], x)).reshape(x.shape[0], -1)
        x = jnp.where(jax.random.bernoulli(key, 0.5, x.shape), 2 * x, 0)
        return x @ w[2][0] + w[2][1]

    if work == "mlp":
        return [weights(784, 512), weights(512, 512), weights(512, 10)], mlp
    if work == "mnist-cnn":
        return [weights(3, 3, 1, 32), weights(3, 3, 32, 64), weights(1600, 10)], cnn
    raise peer.Unsupported(f"{work}: only mlp and mnist-cnn are written for bare JAX")


class Peer:
    def __init__(self, args):
        flag = f"--xla_force_host_platform_device_count={args.devices}"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}"
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax

        self.jax, self.devices = jax, args.devices
        self.name = "jax" if args.devices == 1 else f"jax-{args.devices}"

    def versions(self):
        return {"jax": self.jax.__version__}

    def prepare(self, work, batch, dtype):
        jax, jnp = self.jax, self.jax.numpy
        if batch % self.devices:
            raise peer.Unsupported(f"batch {batch} is not {self.devices} equal parts")
        weights, net = build(work)
        narrow = (lambda v: v.astype(jnp.bfloat16)) if dtype != "float32" else (lambda v: v)
        moments = jax.tree.map(jnp.zeros_like, weights)

        def step(w, m, x, y, key):
            def loss(w):
                logits = net(jax.tree.map(narrow, w), narrow(x), key).astype(jnp.float32)
                logs = jax.nn.log_softmax(logits)
                return -jnp.take_along_axis(logs, y[:, None], 1).mean()

            value, g = jax.value_and_grad(loss)(w)
            m = jax.tree.map(lambda m, g: peer.MOMENTUM * m - peer.LEARNING_RATE * g, m, g)
            return jax.tree.map(jnp.add, w, m), m, value

        x, y = peer.data(work, batch)
        if self.devices > 1:
            from jax.sharding import Mesh, NamedSharding, PartitionSpec

            mesh = Mesh(jax.devices(), ("rows",))
            cut = NamedSharding(mesh, PartitionSpec("rows"))
            whole = NamedSharding(mesh, PartitionSpec())
            weights, moments = jax.device_put((weights, moments), whole)
            step = jax.jit(step, donate_argnums=(0, 1), out_shardings=whole)
        else:
            cut = jax.devices()[0]
            step = jax.jit(step, donate_argnums=(0, 1))
        batches = [
            jax.device_put((x[i : i + batch], y[i : i + batch]), cut)
            for i in range(0, len(x), batch)
        ]
        keys = list(jax.random.split(jax.random.key(0), 64))
        state = [weights, moments]

        def train(i):
            x, y = batches[i % len(batches)]
            state[0], state[1], value = step(*state, x, y, keys[i % len(keys)])
            value.block_until_ready()

        return lambda seconds: peer.time_steps(train, seconds)


def arguments(a):
    a.add_argument("--devices", type=int, default=1)


if __name__ == "__main__":
    sys.exit(peer.main(Peer, arguments))
