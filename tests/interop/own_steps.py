"""What the scripts share that compare models with a step of their own (keel.fit) with Keras's own fit."""

from beside_keras import ALLOWED, STATE_ALLOWED, close
import keras
from keras import layers

import keel


def both(make, data, epochs=2, allowed=ALLOWED, counts=True, **options):
    """Trains two models of make() from the same weights, by Keras and by Keel, and compares. counts: what
    optimizers count, too."""
    options = {"batch_size": 8, "epochs": epochs, "shuffle": False, "verbose": 0, **options}
    keras.utils.set_random_seed(3)
    theirs, mine = make(), make()
    for m in theirs, mine:
        m.built or m.build((None, 9))
    mine.set_weights(theirs.get_weights())
    h = theirs.fit(*data(), **options)
    for devices in "cpu:0", "cpu:0-2":
        again = make()
        again.built or again.build((None, 9))
        again.set_weights(mine.get_weights())
        g = keel.fit(again, *data(), devices=devices, **options)
        assert set(g.history) == set(h.history), f"{set(g.history)} and {set(h.history)}"
        for name in h.history:
            close(g.history[name], h.history[name], name, allowed)
        for a, b in zip(again.weights, theirs.weights):
            close(a, b, f"{devices}: {a.path}", allowed)
        for a, b in zip(optimizers_of(again), optimizers_of(theirs)):
            for v, w in zip(a.variables[not counts :], b.variables[not counts :]):
                close(v, w, f"{a.name}: {v.path}", max(allowed, STATE_ALLOWED))
    return again, theirs


def optimizers_of(model):
    """Each of them, whatever they are called."""
    found = [getattr(model, name, None) for name in ("optimizer", "d_optimizer", "g_optimizer")]
    return [o for o in found if o is not None and o.built]


def net(*sizes, name=None, last=None, **first):
    parts = [layers.Dense(n, "tanh") for n in sizes[1:-1]] + [layers.Dense(sizes[-1], last)]
    return keras.Sequential([layers.Input((sizes[0],), **first), *parts], name=name)


class Tracked(keras.Model):
    """With a Mean for each of its names."""

    def __init__(self, *names):
        super().__init__()
        self.means = [keras.metrics.Mean(name=n) for n in names]
        self.seeds = keras.random.SeedGenerator(5)

    def build(self, shape):
        self.built = True

    @property
    def metrics(self):
        return self.means

    def tracked(self, *values):
        for mean, value in zip(self.means, values):
            mean.update_state(value)
        return {m.name: m.result() for m in self.means}


class Heads(Tracked):
    """An encoder, and two layers behind it."""

    def __init__(self, *names):
        super().__init__(*names)
        self.encoder, self.first, self.second = net(9, 6), net(6, 4), net(6, 4)
