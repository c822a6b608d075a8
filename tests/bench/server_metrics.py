"""What a server's metrics say of calls of Kernels.Rmse, for agree.py."""
import re
import socket
import threading
import time
import urllib.request

from programs import Failure

METHOD = 'method="Kernels.Rmse"'


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Metrics:
    """The server's own figures."""

    def __init__(self, port):
        self.url = f"http://127.0.0.1:{port}/metrics"

    def read(self):
        """name{labels} -> value."""
        try:
            with urllib.request.urlopen(self.url, timeout=10) as reply:
                text = reply.read().decode()
        except OSError as error:
            raise Failure(f"{self.url}: {error}") from error
        return {name: float(value) for name, value in re.findall(r"^(\w+(?:\{.*\})?) (\S+)$", text, re.M)}

    def read_idle(self):
        """Once no call is in progress: a client has its reply before the call that gave it is counted."""
        until = time.monotonic() + 10
        while self.read().get(f"tilewire_calls_in_progress{{{METHOD}}}") != 0:
            if time.monotonic() > until:
                raise Failure(f"{self.url}: calls go on without a client")
            time.sleep(0.002)
        return self.read()

    @staticmethod
    def calls(metrics):
        return metrics.get(f"tilewire_call_wall_seconds_count{{{METHOD}}}", 0.0)


class Counting(threading.Thread):
    """Reads the counter of calls while a run lasts; `rate` is its slope from the first reading at which it had moved to the
    last one at which it still moved."""

    def __init__(self, metrics, calls):
        super().__init__(daemon=True)
        self.metrics, self.before, self.points, self.over = metrics, calls, [], threading.Event()

    def run(self):
        while not self.over.wait(0.03):
            try:
                self.points.append((time.monotonic(), Metrics.calls(self.metrics.read())))
            except Failure:
                return

    def rate(self, after):
        self.over.set()
        self.join()
        inner = [point for point in self.points if self.before < point[1] < after]
        if len(inner) < 2:
            return None
        return (inner[-1][1] - inner[0][1]) / (inner[-1][0] - inner[0][0])


def server_view(before, after, rate):
    """What the server says of the calls between two readings."""
    since = lambda name: after.get(name, 0.0) - before.get(name, 0.0)
    calls = since(f"tilewire_call_wall_seconds_count{{{METHOD}}}")
    view = {"calls": calls, "calls_per_second": rate, "bytes_in": since(f"tilewire_received_bytes_total{{{METHOD}}}"),
            "wall_us": 1e6 * since(f"tilewire_call_wall_seconds_sum{{{METHOD}}}") / max(calls, 1), "stages_us": {}}
    for stage in ("queue", "receive", "stage", "h2d", "kernel", "d2h", "send"):
        count = since(f'tilewire_stage_seconds_count{{stage="{stage}"}}')
        if count:
            view["stages_us"][stage] = 1e6 * since(f'tilewire_stage_seconds_sum{{stage="{stage}"}}') / count
    return view
