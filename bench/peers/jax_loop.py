#!/usr/bin/env python3
"""JAX, a jitted step with donated weights over batches in memory; the median step.

    jax_loop.py WORK [...] [--devices N]

The large networks of images are Keras's on JAX (keras_fit.py --backend jax). --devices N splits
each batch over N host devices. mixed_bfloat16: rows and float32 weights are rounded to bfloat16 at
each step, logits and loss are float32. With --gpu all batches are in the GPU's memory.
"""
import os
import sys

import peer


class Peer:
    def __init__(self, args):
        self.gpu = args.gpu
        if args.gpu:
            os.environ["JAX_PLATFORMS"] = "cuda"
            os.environ["JAX_DEFAULT_MATMUL_PRECISION"] = "highest"  # no TF32
            import jax

            jax.devices()  # fails here, and not in each work
            self.jax, self.devices, self.name = jax, 1, "jax"
            return
        flag = f"--xla_force_host_platform_device_count={args.devices}"
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}"
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax

        self.jax, self.devices = jax, args.devices
        self.name = "jax" if args.devices == 1 else f"jax-{args.devices}"

    def versions(self):
        return {"jax": self.jax.__version__}

    def make(self, work, batch, dtype):
        """(weights, train): train(i) takes a step on a batch and returns its loss."""
        import jax_nets

        jax, jnp = self.jax, self.jax.numpy
        if batch % self.devices:
            raise peer.Unsupported(f"batch {batch} is not {self.devices} equal parts")
        weights, net = jax_nets.build(work)
        moments = jax.tree.map(jnp.zeros_like, weights)
        yes_or_no = peer.WORKS[work][1] == 1

        def narrow(v):
            return v.astype(jnp.bfloat16) if dtype != "float32" and v.dtype == jnp.float32 else v

        def step(w, m, x, y, key):
            def loss(w):
                logits = net(jax.tree.map(narrow, w), narrow(x), key).astype(jnp.float32)
                if yes_or_no:
                    logits = jnp.concatenate([jnp.zeros_like(logits), logits], -1)  # of a no: 0
                logs = jax.nn.log_softmax(logits)
                return -jnp.take_along_axis(logs, y[..., None], -1).mean()

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
            self.last = value
            return value if self.gpu else value.block_until_ready()

        return weights, train

    def losses(self, work, batch, dtype, steps):
        weights, train = self.make(work, batch, dtype)
        count = sum(w.size for w in self.jax.tree.leaves(weights))
        return (count, count), [float(train(0)) for _ in range(steps)]

    def prepare(self, work, batch, dtype):
        _, train = self.make(work, batch, dtype)
        if not self.gpu:
            return lambda seconds: peer.time_steps(train, seconds)
        return lambda seconds: peer.time_steps(
            train, seconds, peer.GPU_BLOCK, lambda: self.last.block_until_ready()
        )


def arguments(a):
    a.add_argument("--devices", type=int, default=1)


if __name__ == "__main__":
    sys.exit(peer.main(Peer, arguments))
