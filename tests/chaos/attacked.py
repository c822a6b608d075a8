"""A server to attack, and how honest calls fare there."""
import argparse
import contextlib
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

import proxied

OPTIONS = argparse.Namespace(tilewired="", tilewire="", device="cpu", report=False, scale=1, seconds=0, haproxy=False, processes=0)
ALL_CORES = os.sched_getaffinity(0)
ROWS = []  # of the table that --report prints


def on_cores_of(who):
    """What this thread starts from now on runs there: server, callers and attackers apart where --processes says so and there are eight."""
    cores = sorted(ALL_CORES)
    quarter = len(cores) // 4
    if OPTIONS.processes and quarter >= 2:
        parts = {"server": cores[:quarter], "callers": cores[quarter:2 * quarter], "attackers": cores[2 * quarter:]}
        os.sched_setaffinity(0, parts[who])


def peak(process):
    """Bytes of resident memory, at most until now."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) * 1024


def row(name, server, calls, back):
    """Keeps what an attack did: seconds of honest calls beside it, None for what failed, and until one was served after."""
    good = [call for call in calls if call is not None]
    times = f"{statistics.median(good):.2f} | {max(good):.2f}" if good else "- | -"
    proxy = f"{peak(server.proxy.process) >> 20}" if server.proxy else "-"
    ROWS.append(f"| {name} | {'HAProxy' if server.proxy else 'direct'} | {len(good)} | {len(calls) - len(good)} | {times} | "
                f"{server.peak() >> 20} | {proxy} | {back:.2f} |")


class Server:
    """A tilewired on ports of its own; with --haproxy its address is that of the proxy before it."""

    def __init__(self, *flags, files=None, device_bytes="64MiB"):
        command = [OPTIONS.tilewired, "--device", OPTIONS.device, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                   "--device-bytes", device_bytes, "--pinned-bytes", "64MiB", *flags]
        if files:
            command = ["/bin/sh", "-c", f'ulimit -n {files}; exec "$0" "$@"', *command]
        environment = dict(os.environ)
        # What is freed shall be gone, as without the sanitizer.
        environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
        on_cores_of("server")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        on_cores_of("callers")
        self.log, self.idle = [], []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        ready = self.process.stdout.readline().split()
        assert ready[:2] == ["tilewired", "ready"], (ready, self.log)
        self.address, self.proxy = ready[2], None
        self.metrics = None
        while self.metrics is None:
            found = [re.search(r"serving metrics address=(\S+)", line) for line in list(self.log)]
            self.metrics = next((match.group(1) for match in found if match), None)
        if OPTIONS.haproxy:
            self.proxy = proxied.Proxy(self.address)
            self.address = self.proxy.address

    def read(self):
        """Keeps lines of the log: those of calls only where they ended IDLE."""
        for line in self.process.stderr:
            if " call " not in line:
                self.log.append(line)
            elif " reason=IDLE " in line:
                self.idle.append(line)

    def metric(self, name):
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=30) as page:
            lines = page.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    def peak(self):
        return peak(self.process)

    def ping(self):
        """Seconds that a call took on a connection of its own; None where it failed."""
        return self.call("ping")

    def call(self, *arguments):
        """The same, of any call of the command line."""
        begin = time.monotonic()
        done = subprocess.run([OPTIONS.tilewire, "--server", self.address, "--timeout", "20", *arguments],
                              capture_output=True, check=False)
        return time.monotonic() - begin if done.returncode == 0 else None

    def served(self):
        """Whether a client gets through that tries again: gRPC drops who comes while its quota is exceeded."""
        return any(self.ping() is not None for _ in range(10))

    def back(self):
        """Seconds until somebody who comes anew is served; None where nobody is."""
        begin = time.monotonic()
        return time.monotonic() - begin if self.served() else None

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)

    def kill(self):
        if self.proxy:
            self.proxy.kill()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()


@contextlib.contextmanager
def honest_calls(server):
    """Small calls, one after the other, until the block ends: how long each took, None where it failed."""
    pings, over = [], threading.Event()

    def call():
        while not over.is_set():
            pings.append(server.ping())
    caller = threading.Thread(target=call)
    caller.start()
    try:
        yield pings
    finally:
        over.set()
        caller.join()


@contextlib.contextmanager
def serving(*flags, files=None, device_bytes="64MiB"):
    server = Server(*flags, files=files, device_bytes=device_bytes)
    try:
        yield server
    finally:
        server.kill()


def main(name):
    """Runs a program of tests: NAME TILEWIRED TILEWIRE [--device cuda] [--haproxy] [--report] [--scale N] [--seconds N] [--processes N]."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tilewired")
    parser.add_argument("tilewire")
    parser.add_argument("--haproxy", action="store_true")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--processes", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    _, rest = parser.parse_known_args(namespace=OPTIONS)
    if OPTIONS.haproxy and not proxied.program():
        sys.exit("haproxy is not installed; deploy/install-deps.sh --tests installs it")
    done = unittest.main(module="__main__", argv=[name, *rest], exit=False)
    if OPTIONS.report and ROWS:
        print("| attack | way | honest calls | failed | median, s | slowest, s | server, MiB | HAProxy, MiB | served again, s |")
        print("|---|---|---|---|---|---|---|---|---|")
        print("\n".join(ROWS))
    sys.exit(not done.result.wasSuccessful())
