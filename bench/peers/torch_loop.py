#!/usr/bin/env python3
"""PyTorch, a bare loop over batches in memory; the median step.

    torch_loop.py WORK [...] [--mode eager|compile|ddp]

eager and compile use all cores; ddp is DistributedDataParallel on gloo, a process a core with one
thread and half of the batch. Images are tried in both memory formats, mixed_bfloat16 by autocast and
as a bfloat16 model whose master weights are float32; the fastest is kept. With --gpu (eager, compile)
rows come from page-locked memory in each step, as from a loader; --tf32 allows TF32 for float32.
"""
import copy
import itertools
import multiprocessing
import os
import socket
import statistics
import sys
import time

import peer

PROCESSES = 2


class Loop:
    """A model and its batches; step(i) trains on one of them."""

    def __init__(self, work, batch, dtype, wrap, rank=0, of=1, device="cpu"):
        import torch
        import torch_nets

        self.torch, self.bfloat16, self.device = torch, dtype == "mixed_bfloat16", device
        torch.manual_seed(0)
        x, y = peer.data(work, batch)
        x, y = torch.from_numpy(x), torch.from_numpy(y).long()
        self.image = x.ndim == 4
        if x.is_floating_point():
            x = x.movedim(-1, 1).contiguous()  # channels come first
        own = slice(rank * batch // of, (rank + 1) * batch // of)
        self.batches = [(x[i : i + batch][own], y[i : i + batch][own]) for i in range(0, len(x), batch)]
        self.bare = torch_nets.build(work).to(device)
        self.loss = torch_nets.loss(work)
        self.wrap = wrap
        self.use_form((False, False))

    def use_form(self, form):
        """form: channels last? A bfloat16 model beside float32 masters (else autocast)?"""
        torch = self.torch
        channels_last, self.narrow = form
        memory = torch.channels_last if channels_last else torch.contiguous_format
        if self.image:
            self.bare = self.bare.to(memory_format=memory)
            self.batches = [(x.contiguous(memory_format=memory), y) for x, y in self.batches]
        if self.device != "cpu":
            self.batches = [(x.pin_memory(), y.pin_memory()) for x, y in self.batches]
        bare = self.narrowed() if self.narrow else self.bare
        self.model = self.wrap(bare)
        self.weights = [w for w in self.model.parameters() if w.requires_grad]
        self.masters = self.weights
        if self.narrow:
            self.masters = [w.detach().float() for w in self.weights]
            for m in self.masters:
                m.grad = torch.empty_like(m)
        self.sgd = torch.optim.SGD(self.masters, peer.LEARNING_RATE, peer.MOMENTUM, fused=True)

    def narrowed(self):
        """The model in bfloat16; statistics of batches stay in float32."""
        model = copy.deepcopy(self.bare).to(self.torch.bfloat16)
        for m in model.modules():
            if isinstance(m, self.torch.nn.BatchNorm2d):
                m.float()
        return model

    def step(self, i):
        x, y = (v.to(self.device, non_blocking=True) for v in self.batches[i % len(self.batches)])
        if self.narrow:
            return self.step_narrow(x, y)
        with self.torch.autocast(self.device, self.torch.bfloat16, enabled=self.bfloat16):
            loss = self.loss(self.model(x), y)
        self.sgd.zero_grad()
        loss.backward()
        self.sgd.step()
        return loss

    def step_narrow(self, x, y):
        loss = self.loss(self.model(x.to(self.torch.bfloat16) if x.is_floating_point() else x).float(), y)
        self.model.zero_grad()
        loss.backward()
        with self.torch.no_grad():
            self.torch._foreach_copy_([m.grad for m in self.masters], [w.grad for w in self.weights])
            self.sgd.step()
            self.torch._foreach_copy_(self.weights, self.masters)
        return loss

    def wait(self):
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def time_of(self, form):
        """Seconds of a step; the first steps also make what later ones find made."""
        self.use_form(form)
        self.step(0)
        self.step(1)
        self.wait()
        took = []
        while len(took) < 2 or len(took) < 100 and sum(took) < 1:
            start = time.perf_counter()
            self.step(len(took))
            self.wait()
            took.append(time.perf_counter() - start)
        return statistics.median(took)


def forms_of(loop):
    return list(itertools.product((False, True)[: 1 + loop.image], (False, True)[: 1 + loop.bfloat16]))


def fastest_form(loop, work):
    forms = forms_of(loop)
    if len(forms) == 1:
        return forms[0]
    tries = 1 if peer.is_large(work) else 2
    best = {form: min(loop.time_of(form) for _ in range(tries)) for form in forms}
    return min(best, key=best.get)


# ---- several processes ---------------------------------------------------------------------------


def join_group(rank, port):
    import torch
    import torch.distributed

    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=PROCESSES
    )


def parallel_loop(work, batch, dtype, form, rank):
    from torch.nn.parallel import DistributedDataParallel

    loop = Loop(work, batch, dtype, lambda m: m, rank, PROCESSES)
    loop.wrap = DistributedDataParallel
    loop.use_form(form)
    return loop


def follow(rank, port, pipe):
    """A process other than the first: do what rank 0 says, until its pipe closes."""
    join_group(rank, port)
    loops = {}
    while True:
        try:
            what, *rest = pipe.recv()
        except EOFError:
            return
        if what == "prepare":
            work, batch, dtype, form = rest
            if peer.is_large(work):
                loops.clear()
            loops[work, batch, dtype] = parallel_loop(work, batch, dtype, form, rank)
        elif what == "run":
            key, steps = rest
            for i in range(steps):
                loops[key].step(i)
        pipe.send(peer.peak_mib())


# ---- the peer ------------------------------------------------------------------------------------


class Peer:
    def __init__(self, args):
        import torch

        self.torch, self.mode = torch, args.mode
        self.name = "torch" if args.mode == "eager" else f"torch-{args.mode}"
        self.followers, self.follower_mib = [], []
        self.device = "cuda" if args.gpu else "cpu"
        if args.gpu:
            if args.mode == "ddp":
                raise ImportError("--mode ddp is for processors here")
            if not torch.cuda.is_available():
                raise ImportError("this PyTorch sees no GPU")
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.tf32
            torch.backends.cudnn.benchmark = True
        if args.mode != "ddp":
            torch.set_num_threads(len(os.sched_getaffinity(0)))
            return
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        for rank in range(1, PROCESSES):
            mine, its = context.Pipe()
            context.Process(target=follow, args=(rank, port, its), daemon=True).start()
            its.close()
            self.followers.append(mine)
        join_group(0, port)

    def versions(self):
        return {"torch": self.torch.__version__}

    def more_mib(self):
        return sum(self.follower_mib)

    def tell(self, *what):
        for f in self.followers:
            f.send(what)

    def wait(self):
        self.follower_mib = [f.recv() for f in self.followers]

    def losses(self, work, batch, dtype, steps):
        """Of the form that learns least."""
        import torch_nets

        runs = []
        for form in forms_of(Loop(work, batch, dtype, lambda m: m)):
            loop = Loop(work, batch, dtype, lambda m: m)
            loop.use_form(form)
            runs.append([float(loop.step(0)) for _ in range(steps)])
        return torch_nets.count(loop.bare), max(runs, key=lambda losses: losses[-1])

    def prepare(self, work, batch, dtype):
        loop = Loop(work, batch, dtype, lambda m: m, device=self.device)
        form = fastest_form(loop, work)
        if self.mode == "ddp":
            if batch % PROCESSES:
                raise peer.Unsupported(f"batch {batch} is not {PROCESSES} equal parts")
            del loop
            self.tell("prepare", work, batch, dtype, form)
            loop = parallel_loop(work, batch, dtype, form, 0)
            self.wait()
            return lambda seconds: self.measure_parallel(loop, (work, batch, dtype), seconds)
        if self.mode == "compile":
            loop.wrap = self.torch.compile
        loop.use_form(form)
        block = peer.GPU_BLOCK if self.device != "cpu" else 1
        return lambda seconds: peer.time_steps(loop.step, seconds, block, loop.wait)

    def measure_parallel(self, loop, key, seconds):
        """All processes must take the same number of steps: two pieces, the first to learn it."""
        took = []
        steps = 3
        for _ in range(2):
            took = []
            self.tell("run", key, steps)
            for i in range(steps):
                start = time.perf_counter()
                loop.step(i)
                took.append(time.perf_counter() - start)
            self.wait()
            steps = max(peer.LEAST_STEPS, min(100000, int(seconds / min(took))))
        return took


def arguments(a):
    a.add_argument("--mode", default="eager", choices=["eager", "compile", "ddp"])
    a.add_argument("--tf32", action="store_true", help="with --gpu: allow TF32")


if __name__ == "__main__":
    sys.exit(peer.main(Peer, arguments))
