"""Programs of others that compare.py runs beside Tilewire: a script of peers, a program of ceilings. They are given by path,
run by their own command lines, and what they print is read line by line."""
import os
import re
import shutil
import statistics
import sys
import tempfile

from programs import Failure, run


class Beside:
    """One such program: every run adds to `found`; the first failure is kept as `missing` and ends its runs."""

    def __init__(self, timeout):
        self.timeout = timeout
        self.found = {}      # name -> value of each round
        self.missing = None  # why the rest of its values is not there

    def round(self):
        if self.missing:
            return
        try:
            text = self.output()
        except Failure as failure:
            self.missing = str(failure)
            text = getattr(failure, "partial", "")
        for name, value in self.read(text).items():
            self.found.setdefault(name, []).append(value)

    def value(self, name):
        """(median, None) or (None, why there is none)."""
        if name in self.found:
            return statistics.median(self.found[name]), None
        return None, self.missing or "it printed no such line"


class Peers(Beside):
    """A script with the command `rpc`, that prints lines like
         flight+cupy rmse grpc://12 batch 512 KiB 2.05 GB/s result 1.0
         grpcio+cupy unary rmse 8 KiB 0.01 GB/s 1240 us
    The names here: `NAME` is a peer's best rate of bulk RMSE, `NAME small` its microseconds for 8 KiB."""

    LINE = re.compile(r"^(?P<what>\S+ .*?rmse.*?) ?(?P<size>\d+) KiB (?P<rate>[\d.]+) GB/s(?: (?P<us>[\d.]+) us)?")
    BULK_KIB, SMALL_KIB = 256, 8

    def __init__(self, script, timeout):
        super().__init__(timeout)
        self.script = script
        self.names = {}  # peers in the order they were first seen

    def output(self):
        if not os.path.isfile(self.script):
            raise Failure(f"no file {self.script}")
        try:
            return run([sys.executable, "-B", self.script, "rpc"], self.timeout)
        except Failure as failure:
            named = Failure(str(failure).replace(os.path.basename(sys.executable), os.path.basename(self.script), 1))
            named.partial = getattr(failure, "partial", "")
            raise named from failure

    @staticmethod
    def peer_name(what):
        name = what.split()[0]
        place = next((word for word in ("unix", "grpc://") if word in what), "")
        return name + {"unix": " (unix)", "grpc://": " (TCP)", "": ""}[place]

    def read(self, text):
        best = {}
        for line in text.splitlines():
            match = self.LINE.match(line)
            if not match:
                continue
            name = self.names.setdefault(self.peer_name(match["what"]), self.peer_name(match["what"]))
            kib = int(match["size"])
            if match["us"] and kib == self.SMALL_KIB:
                best[name + " small"] = float(match["us"])
            elif kib >= self.BULK_KIB:
                best[name] = max(best.get(name, 0.0), float(match["rate"]))
        return best


class Ceilings(Beside):
    """A program, or its CUDA source, that prints the machine's limits:
         chunk     4096 KiB  H2D 53.5  D2H 54.9  both(each) 50.1 GB/s
         rmse op 4 KiB x2: copy path 21.0 us, zero-copy path 12.0 us
         launch+sync 7.7 us
    The names here: `h2d`, `both` (GB/s at chunks of 4 MiB), `rmse 4 KiB`, `launch` (us)."""

    LINES = {"h2d": re.compile(r"^chunk +4096 KiB +H2D ([\d.]+)", re.M),
             "both": re.compile(r"^chunk +4096 KiB .*both\(each\) ([\d.]+)", re.M),
             "rmse 4 KiB": re.compile(r"^rmse op 4 KiB x2: copy path ([\d.]+)", re.M),
             "launch": re.compile(r"^launch\+sync ([\d.]+)", re.M)}

    def __init__(self, path, timeout):
        super().__init__(timeout)
        self.path = path
        self.folder = None

    def program(self):
        if not os.path.isfile(self.path):
            raise Failure(f"no file {self.path}")
        if not self.path.endswith(".cu"):
            return os.path.abspath(self.path)
        if self.folder is None:
            nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
            if not nvcc:
                raise Failure("no nvcc to compile it with")
            self.folder = tempfile.TemporaryDirectory(prefix="tilewire-")
            run([nvcc, "-O3", "-std=c++17", "-arch=native", "-o", os.path.join(self.folder.name, "ceilings"), self.path],
                self.timeout)
        return os.path.join(self.folder.name, "ceilings")

    def output(self):
        return run([self.program()], self.timeout)

    def read(self, text):
        matches = {name: line.search(text) for name, line in self.LINES.items()}
        return {name: float(match[1]) for name, match in matches.items() if match}

    def close(self):
        if self.folder is not None:
            self.folder.cleanup()
