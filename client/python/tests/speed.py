#!/usr/bin/env python3
"""How fast the package is beside the C++ client, on one server, in turns: by hand. Usage: speed.py [SECONDS]

The C++ client is tilewire-load of the same wheel; grpcio is the client of one file, pure/tilewire_pure.py: numpy and unary calls,
streams for what is no single message. Rounds alternate, medians of the rounds are shown, in a table of Markdown.
"""

import asyncio
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import tilewire as tw
import tilewire.aio
from tilewire import _programs

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "pure"))
import tilewire_pure as pure

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
ROUNDS = 3


def cpp(address, shape, callers=1, connections=0):
    """Of the C++ client's closed loop: (calls a second, median in µs)."""
    operation = {"name": "x", "operation": "rmse", "dtype": "f32", "shape": shape}
    if connections > 1:
        operation |= {"access": "striped", "connections": connections}
    else:
        operation["access"] = "stream" if connections else "unary"
    scenario = {"name": "x", "about": "", "seed": 1, "mode": {"type": "closed", "callers": callers}, "warmup_seconds": 0.5,
                "seconds": SECONDS, "inputs": 1, "operations": [operation]}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path, result = pathlib.Path(folder, "s.json"), pathlib.Path(folder, "r.json")
        path.write_text(json.dumps(scenario))
        command = [_programs.path("tilewire-load"), "run", path, "--server", address, "--json", result]
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
        found = json.loads(result.read_text())["operations"][0]
        return found["calls"] / SECONDS, found["latency_us"]["p50"]


def sync(client, a, b, **how):
    """Of one thread: (calls a second, median in µs)."""
    times, end = [], time.perf_counter() + SECONDS
    while (start := time.perf_counter()) < end:
        client.rmse(a, b, **how)
        times.append(time.perf_counter() - start)
    return len(times) / sum(times), statistics.median(times) * 1e6


def loop(address, a, b, in_flight):
    """Of one event loop: calls a second."""

    async def caller(client, end):
        count = 0
        while time.perf_counter() < end:
            await client.rmse(a, b)
            count += 1
        return count

    async def main():
        async with tw.aio.connect(address) as client:
            await asyncio.gather(*(client.rmse(a, b) for _ in range(in_flight)))
            end = time.perf_counter() + SECONDS
            return sum(await asyncio.gather(*(caller(client, end) for _ in range(in_flight)))) / SECONDS

    return asyncio.run(main())


def rounds(work):
    """The medians of what several rounds gave, for each of the things measured in turn."""
    results = [[measure() for measure in work] for _ in range(ROUNDS)]
    return [tuple(statistics.median(column) for column in zip(*of_one)) for of_one in zip(*results)]


def main():
    rng = np.random.default_rng(0)
    with tw.local() as client, pure.Client(client.address) as grpcio:
        print(f"{client.server.device}, medians of {ROUNDS} rounds of {SECONDS:g} s\n")
        print("| | C++ | Python | | grpcio |\n|---|---|---|---|---|")
        a, b = rng.random((2, 1024), dtype="f4")
        one, mine, theirs = rounds([lambda: cpp(client.address, [1024]), lambda: sync(client, a, b), lambda: sync(grpcio, a, b)])
        print(f"| 2 x 4 KiB, one caller, median | {one[1]:.0f} us | {mine[1]:.0f} us | {mine[1] - one[1]:+.0f} us | {theirs[1]:.0f} us |")
        many, await_ = rounds([lambda: cpp(client.address, [1024], 64), lambda: (loop(client.address, a, b, 64),)])
        print(f"| 2 x 4 KiB, 64 in flight, asyncio | {many[0]:.0f}/s | {await_[0]:.0f}/s | {await_[0] / many[0]:.0%} | |")
        a, b = rng.random((2, 4096, 4096), dtype="f4")
        for connections in (1, 8):
            work = [lambda n=connections: cpp(client.address, [4096, 4096], 1, n), lambda n=connections: sync(client, a, b, connections=n)]
            if connections == 1:
                work.append(lambda: sync(grpcio, a, b))
            rates = [2 * a.nbytes / found[1] / 1e3 for found in rounds(work)]
            theirs = f"{rates[2]:.2f} GB/s" if len(rates) > 2 else ""
            print(f"| 2 x 64 MiB, {connections} connection{'s' * (connections > 1)} | {rates[0]:.2f} GB/s | {rates[1]:.2f} GB/s "
                  f"| {rates[1] / rates[0]:.0%} | {theirs} |")  # fmt: skip


if __name__ == "__main__":
    main()
