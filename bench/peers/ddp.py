#!/usr/bin/env python3
"""One of several processes, on machines of their own, of PyTorch's DistributedDataParallel on gloo; the
median step.

    MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 RANK=0 WORLD_SIZE=2 GLOO_SOCKET_IFNAME=eth0 ddp.py WORK
        [--batch-size N] [--seconds S]

Started once for each rank, as torchrun would; rank 0 prints a line of JSON. The batch is that of all
together; each process has one thread. bench/network.sh starts it.
"""
import argparse
import json
import os
import statistics
import sys
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
import peer
import torch
import torch.distributed
import torch_loop


def timed(loop, steps):
    took = []
    for i in range(steps):
        start = time.perf_counter()
        loop.step(i)
        took.append(time.perf_counter() - start)
    return took


def main():
    a = argparse.ArgumentParser()
    a.add_argument("work", choices=list(peer.WORKS))
    a.add_argument("--batch-size", type=int)
    a.add_argument("--seconds", type=float, default=2.0)
    args = a.parse_args()
    batch = args.batch_size or peer.WORKS[args.work][3]
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, of = torch.distributed.get_rank(), torch.distributed.get_world_size()
    loop = torch_loop.Loop(args.work, batch, "float32", lambda m: m, rank, of)
    loop.wrap = torch.nn.parallel.DistributedDataParallel
    best = None
    for form in torch_loop.forms_of(loop):  # all try the same forms and count the same steps
        loop.use_form(form)
        timed(loop, 2)
        steps = torch.tensor([args.seconds / max(timed(loop, 3))])
        torch.distributed.broadcast(steps, 0)
        took = timed(loop, int(min(max(steps.item(), peer.LEAST_STEPS), 100000)))
        ms = 1e3 * statistics.median(took)
        if best is None or ms < best["ms"]:
            best = {"ms": round(ms, 4), "steps": len(took)}
    if rank == 0:
        out = {"peer": "ddp", "work": args.work, "batch": batch, **best, "processes": of}
        print(json.dumps({**out, "versions": {"torch": torch.__version__}}), flush=True)
    torch.distributed.barrier()


if __name__ == "__main__":
    sys.exit(main())
