"""The programs of the table: Keel and its peers, and one measurement by each."""
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "peers"))
import peer

KEEL = {  # name of the column: --devices
    "1 lane": "cpu:0",
    "1 lane of 2": "cpu:0+1",
    "2 lanes": "cpu:0-1",
    "4 lanes": "cpu:0-3",
    "2 lanes fast": "cpu:0-1",  # --float32 fast: float32 only, where a processor has AMX
}
FAST = "2 lanes fast"
DEFAULT = "2 lanes"  # what keel takes on a machine of two cores
PEERS = {  # name: script, arguments, is it tried on the large works by default?
    "keras-tf": ("keras_fit.py", [], True),
    "mirrored": ("keras_fit.py", ["--devices", "2"], True),
    "keras-torch": ("keras_fit.py", ["--backend", "torch"], False),
    "keras-jax": ("keras_fit.py", ["--backend", "jax"], False),
    "torch": ("torch_loop.py", [], True),
    "compile": ("torch_loop.py", ["--mode", "compile"], False),
    "ddp": ("torch_loop.py", ["--mode", "ddp"], True),
    "jax": ("jax_loop.py", [], True),
    "jax-2": ("jax_loop.py", ["--devices", "2"], False),
}


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def is_large(cell):
    return peer.is_large(cell.split(":")[0])


def label(cell):
    work, batch = cell.split(":")
    return f"{work}, batch {batch}"


def cpu_flags():
    with open("/proc/cpuinfo") as f:
        return set(next((line for line in f if line.startswith("flags")), "").split())


class Keel:
    def __init__(self, args, name):
        self.args, self.name = args, name

    def measure(self, cell, dtype, seconds):
        work, batch = cell.split(":")
        command = [self.args.keel, "bench", work, "--batch-size", batch, "--json"]
        command += ["--devices", KEEL[self.name], "--dtype", dtype]
        command += ["--float32", "fast"] if self.name == FAST else []
        if self.name != DEFAULT:
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
        script, more, _ = PEERS[self.name]
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
