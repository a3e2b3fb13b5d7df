#!/usr/bin/env python3
"""One of several workers, on machines of their own, of TensorFlow's MultiWorkerMirroredStrategy; the median
step of a bare loop, since Keras 3.15's fit refuses the batches of this strategy. The loop is one tf.function:
Keras's network, gradients that the strategy adds up, SGD with momentum.

    TF_CONFIG='{"cluster": {"worker": ["10.77.0.1:3001", "10.77.0.2:3001"]}, "task": {"type": "worker", "index": 0}}'
        mwms.py WORK [--batch-size N]

Started once for each worker; the first prints a line of JSON. The batch is that of all together; each
worker has one thread. bench/network.sh starts it.
"""
import argparse
import json
import os
import statistics
import sys
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import peer


def main():
    a = argparse.ArgumentParser()
    a.add_argument("work", choices=list(peer.WORKS))
    a.add_argument("--batch-size", type=int)
    args = a.parse_args()
    batch = args.batch_size or peer.WORKS[args.work][3]
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)  # one runs the collectives
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    import keras
    import keras_fit

    task = json.loads(os.environ["TF_CONFIG"])
    rank, of = task["task"]["index"], len(task["cluster"]["worker"])
    x, y = peer.data(args.work, batch)
    keras.utils.set_random_seed(0)  # so that all begin with the same weights
    model = keras_fit.build(keras, args.work)
    yes_or_no = peer.WORKS[args.work][1] == 1
    loss = keras.losses.BinaryCrossentropy() if yes_or_no else keras.losses.SparseCategoricalCrossentropy()
    weights = [w.value for w in model.trainable_weights]
    moments = [tf.Variable(tf.zeros_like(w)) for w in weights]

    def learn(x, y):
        with tf.GradientTape() as tape:
            value = loss(y, model(x, training=True)) / of
        gradients = tape.gradient(value, weights)
        gradients = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        for w, m, g in zip(weights, moments, gradients):
            m.assign(peer.MOMENTUM * m - peer.LEARNING_RATE * g)
            w.assign_add(m)

    @tf.function
    def step(x, y):
        strategy.run(learn, args=(x, y))

    own = slice(rank * batch // of, (rank + 1) * batch // of)
    first = range(0, len(x) - batch + 1, batch)
    batches = [(tf.constant(x[i : i + batch][own]), tf.constant(y[i : i + batch][own])) for i in first]
    steps = 20 if peer.is_large(args.work) else 300  # the same number in all workers
    took = []
    for i in range(5 + steps):
        start = time.perf_counter()
        step(*batches[i % len(batches)])
        took.append(time.perf_counter() - start)
    took = took[5:]
    if rank == 0:
        out = {"peer": "mwms", "work": args.work, "batch": batch, "ms": round(1e3 * statistics.median(took), 4)}
        out |= {"steps": len(took), "processes": of}
        out["versions"] = {"keras": keras.__version__, "tensorflow": tf.__version__}
        print(json.dumps(out), flush=True)


if __name__ == "__main__":
    sys.exit(main())
