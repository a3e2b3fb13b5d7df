"""The programs of the table: Keel and its peers, and one measurement by each."""
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "peers"))
import peer

class Side(typing.NamedTuple):
    """One of the two tables: of processors, and of GPUs."""

    keel: dict  # name of the column: --devices
    default: str  # of these columns, the one that is compared with the peers
    fast: str  # --float32 fast: float32 only
    peers: dict  # name: script, arguments, is it tried on the large works by default?
    several: tuple  # columns that need several GPUs
    beside: tuple  # title, a, b: milliseconds of column a over those of b
    works: str
    marks: tuple  # in the page


WORKS = (
    "mlp:64,mlp:256,mnist-cnn:64,mnist-cnn:256,resnet18:16,resnet50:16,mobilenetv2:16,lstm:32,"
    "transformer:32,gpt:12,conv1d:32,unet:16,densenet121:16,efficientnetb0:16,convnexttiny:16"
)
CPU = Side(
    keel={
        "1 lane": "cpu:0",
        "1 lane of 2": "cpu:0+1",
        "2 lanes": "cpu:0-1",
        "4 lanes": "cpu:0-3",
        "2 lanes fast": "cpu:0-1",  # where a processor has AMX
    },
    default="2 lanes",  # what keel takes on a machine of two cores
    fast="2 lanes fast",
    peers={
        "keras-tf": ("keras_fit.py", [], True),
        "mirrored": ("keras_fit.py", ["--devices", "2"], True),
        "keras-torch": ("keras_fit.py", ["--backend", "torch"], False),
        "keras-jax": ("keras_fit.py", ["--backend", "jax"], False),
        "torch": ("torch_loop.py", [], True),
        "compile": ("torch_loop.py", ["--mode", "compile"], False),
        "ddp": ("torch_loop.py", ["--mode", "ddp"], True),
        "jax": ("jax_loop.py", [], True),
        "jax-2": ("jax_loop.py", ["--devices", "2"], False),
    },
    several=(),
    beside=(
        ("2 lanes over 1", "1 lane", "2 lanes"),
        ("time of 2 lanes / 1 lane of 2", "2 lanes", "1 lane of 2"),
        ("of 4 lanes / 2", "4 lanes", "2 lanes"),
    ),
    works=WORKS,
    marks=("<!-- table: written by make bench -->", "<!-- end of table -->"),
)
LARGE_BATCH = ("resnet18", "resnet50", "mobilenetv2", "unet", "densenet121", "efficientnetb0", "convnexttiny", "gpt")
GPU = Side(
    keel={"1 GPU": "cuda:0", "1 GPU fast": "cuda:0", "all GPUs": "cuda"},
    default="1 GPU",
    fast="1 GPU fast",  # TF32
    peers={
        "keras-tf": ("keras_fit.py", ["--gpu"], True),
        "mirrored": ("keras_fit.py", ["--gpu", "--devices", "0"], True),
        "keras-jax": ("keras_fit.py", ["--gpu", "--backend", "jax"], True),
        "torch": ("torch_loop.py", ["--gpu"], True),
        "torch fast": ("torch_loop.py", ["--gpu", "--tf32"], True),
        "compile": ("torch_loop.py", ["--gpu", "--mode", "compile"], True),
        "compile fast": ("torch_loop.py", ["--gpu", "--tf32", "--mode", "compile"], True),
        "jax": ("jax_loop.py", ["--gpu"], True),
    },
    several=("all GPUs", "mirrored"),
    beside=(("all GPUs over 1", "1 GPU", "all GPUs"), ("fast over exact", "1 GPU", "1 GPU fast")),
    works=",".join([WORKS] + [f"{work}:256" for work in LARGE_BATCH]),
    marks=("<!-- table: written by make bench-gpu -->", "<!-- end of GPU table -->"),
)
DRY = {"cuda:0": "cpu:0", "cuda": "cpu:0-1"}  # --dry: processors stand in for GPUs


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def is_large(cell):
    return peer.is_large(cell.split(":")[0])


def label(cell):
    work, batch = cell.split(":")
    return f"{work}, batch {batch}"


def gpus(keel):
    """The GPUs of this machine, as `keel devices` lists them."""
    out = subprocess.run([keel, "devices"], capture_output=True, text=True).stdout
    return [line.split(None, 1) for line in out.splitlines() if line.startswith("cuda:")]


def why_no_gpu(keel):
    """What `keel bench` says where it cannot use one; "": it can."""
    command = [keel, "bench", "mlp", "--steps", "1", "--no-profile", "--devices", "cuda:0"]
    p = subprocess.run(command, capture_output=True, text=True)
    return p.stderr.strip().splitlines()[-1] if p.returncode else ""


def cpu_flags():
    with open("/proc/cpuinfo") as f:
        return set(next((line for line in f if line.startswith("flags")), "").split())


class Keel:
    def __init__(self, args, name):
        self.args, self.name = args, name

    def measure(self, cell, dtype, seconds):
        work, batch = cell.split(":")
        command = [self.args.keel, "bench", work, "--batch-size", batch, "--json"]
        side, devices = self.args.side, self.args.side.keel[self.name]
        command += ["--devices", DRY[devices] if self.args.dry else devices, "--dtype", dtype]
        command += ["--float32", "fast"] if self.name == side.fast else []
        if self.name != side.default or side is GPU:
            command.append("--no-profile")
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            p = subprocess.Popen(command + ["--seconds", str(seconds)], stdout=out, stderr=err)
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0), err.seek(0)
            if p.returncode:
                return {"error": err.read().strip()[-200:]}
            return {**json.loads(out.read()), "peak_mib": round(usage.ru_maxrss / 1024)}

    def stop(self):
        pass


class Peer:
    def __init__(self, args, name):
        self.args, self.name, self.process, self.gone = args, name, None, None
        self.slow = {}  # what took too long: what was answered

    def start(self):
        script, more, _ = self.args.side.peers[self.name]
        self.log = open(os.path.join(self.args.logs, f"{self.name}.log"), "a")
        self.process = subprocess.Popen(
            [self.args.peers, os.path.join(HERE, "peers", script), "--serve", *more],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True,
        )  # fmt: skip
        hello = self.read()
        if "ready" not in hello:
            self.gone = hello.get("missing") or hello.get("error") or hello.get("slow")
            say(f"  {self.name} is left out: {self.gone}")
            self.stop()

    def read(self):
        """The next line, or what happened instead."""
        text, end = b"", time.monotonic() + self.args.limit
        with selectors.DefaultSelector() as s:
            s.register(self.process.stdout, selectors.EVENT_READ)
            while not text.endswith(b"\n"):
                if not s.select(max(0, end - time.monotonic())):
                    self.stop()
                    return {"slow": f"no answer within {self.args.limit} s"}
                piece = os.read(self.process.stdout.fileno(), 65536)
                if not piece:
                    self.stop()
                    return {"error": "it ended; see its log"}
                text += piece
        return json.loads(text)

    def measure(self, cell, dtype, seconds):
        if (cell, dtype) in self.slow:
            return self.slow[cell, dtype]
        if is_large(cell) or self.args.fresh:
            self.stop()
        if not self.process and not self.gone:
            self.start()
        if self.gone:
            return {"missing": self.gone}
        work, batch = cell.split(":")
        try:
            self.process.stdin.write(f"{work} {batch} {dtype} {seconds}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            self.stop()
            return {"error": "it ended; see its log"}
        result = self.read()
        if "slow" in result:
            self.slow[cell, dtype] = result
        if is_large(cell) or self.args.fresh:
            self.stop()
        return result

    def stop(self):
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)  # its own group, see start
            except ProcessLookupError:
                pass
            self.process.wait()
            self.process.stdin.close(), self.process.stdout.close(), self.log.close()
            self.process = None
