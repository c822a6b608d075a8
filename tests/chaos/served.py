"""The server of a campaign: started, ended, started again at the same places; what it says of itself."""
import collections
import contextlib
import glob
import os
import re
import subprocess
import threading
import time
import urllib.request

from preloaded import together

# What must be 0 when nobody calls and nobody keeps anything.
GAUGES = ("tilewire_calls_in_progress", "tilewire_jobs_in_flight", "tilewire_jobs_queued", "tilewire_device_used_bytes",
          "tilewire_pinned_used_bytes", "tilewire_arrays_stored", "tilewire_array_bytes", "tilewire_regions",
          "tilewire_region_bytes", "tilewire_connections")
MIB = 1 << 20
DEVICE = 1024 * MIB
FAR_FILES = 16  # what gRPC opens for itself once a connection comes that takes long to answer, as on a busy machine


class Served:
    def __init__(self, program, folder, credentials, prefix, device, environment, heap):
        self.program, self.folder, self.credentials, self.prefix, self.device = program, folder, credentials, prefix, device
        self.heap = heap
        self.environment = dict(os.environ, **together(heap.environment, environment))
        self.tcp, self.unix = "127.0.0.1:0", "unix:" + os.path.join(folder, "socket")
        self.audit = os.path.join(folder, "audit")
        self.warned = collections.Counter()
        self.process = self.died = None  # died: when the last one was seen to
        self.starts = self.expected = 0  # expected: how often a server has told that its device is gone, as it should

    def start(self):
        """At the same port as before; another program may have it for a moment, as the far end of a connection."""
        for _ in range(100):
            if self.attempt():
                return
        raise AssertionError(("the server does not start", self.log))

    def attempt(self):
        command = [self.program, "--device", self.device, "--listen", self.tcp, "--listen", self.unix, "--metrics-listen", "127.0.0.1:0",
                   "--device-bytes", str(DEVICE), "--allow-regions", self.prefix, "--region-bytes", "1GiB", "--audit-log", self.audit,
                   "--drain-seconds", "300", "--late-ms", "0", *self.credentials.flags()]
        if self.program.endswith("_faulty"):  # what the host computes meets no fault
            command += ["--host-bytes", "0"]
        self.log, self.told = [], collections.Counter()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=self.environment)
        self.reader = threading.Thread(target=self.read, args=(self.process.stderr,), daemon=True)
        self.reader.start()
        ready = self.process.stdout.readline().split()
        if ready[:2] != ["tilewired", "ready"]:
            code = self.end_reading()
            assert code == 3, (code, self.log)
            return False
        self.tcp, self.metrics = ready[2], None
        while self.metrics is None:
            found = [re.search(r"serving metrics address=(\S+)", line) for line in list(self.log)]
            self.metrics = next((match.group(1) for match in found if match), None)
        self.starts += 1
        self.fds, self.weighed = self.metric("tilewire_process_open_fds"), ([], [])
        assert not self.heap.environment or self.heap.bytes(), "what it has from malloc cannot be told"
        return True

    def read(self, stream):
        """Keeps what is no line of a call, and counts it."""
        for line in stream:
            words = line.rstrip("\n").split(" ", 2)
            text = words[-1].strip()
            if len(words) == 3 and (text.startswith("call ") or text.startswith("calls folded")):
                continue
            self.log.append(line)
            for what in ("certificates", "tokens", "rules of the policy"):
                self.told[what] += f"new {what} are used" in text
                self.told["bad " + what] += f"{what} have changed and cannot" in text
            self.told["device"] += text.startswith("the device is told")
            if words[1:2] and words[1] in ("warn", "error", "critical"):
                self.warned[words[1] + " " + re.sub(r"[\d.]+", "N", text)[:100]] += 1

    def say(self, line):
        """To tilewired_faulty."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def unexpected(self):
        """What it has said that is worse than a warning."""
        bad = {line: count for line, count in self.warned.items() if not line.startswith("warn")}
        for line in [line for line in bad if line.startswith("critical the device has failed")]:
            if bad[line] == self.expected:
                del bad[line]
        return bad

    def page(self):
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=300) as page:
            return page.read().decode().splitlines()

    def metric(self, name, lines=None):
        lines = self.page() if lines is None else lines
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(name + r"[ {]", line))

    def busy(self):
        """Which gauges are not 0, and open files above what there were at the start."""
        lines = self.page()
        found = {name: self.metric(name, lines) for name in GAUGES}
        found["more open files"] = max(0, self.metric("tilewire_process_open_fds", lines) - self.fds - FAR_FILES)
        return {name: value for name, value in found.items() if value}

    def memory(self, field="VmRSS"):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(field + r":\s+(\d+)", status.read()).group(1)) * 1024

    def threads(self):
        """How many of each name: gRPC's own that could not be made are missed nowhere else."""
        names = collections.Counter()
        if self.process is None:
            return {}
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/comm"):
            with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
                names[file.read().strip()] += 1
        return dict(names)

    def own(self):
        """Resident memory but for mapped regions. What it once had for arrays and jobs it keeps, so it grows until all have been there."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            found = re.search(r"RssAnon:\s+(\d+)", status.read())
        return int(found.group(1)) * 1024 if found else self.memory()

    def weigh(self):
        """Its own memory as it is now, and what of that it has from malloc."""
        for points, size in zip(self.weighed, (self.own(), self.heap.bytes())):
            if size is not None:
                points.append((time.monotonic(), size))

    def alive(self):
        return self.process.poll() is None

    def end_reading(self):
        code = self.process.wait()
        self.died = time.monotonic()
        self.reader.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        return code
