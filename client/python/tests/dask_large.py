#!/usr/bin/env python3
"""Large arrays on several servers by Dask, by hand. Usage: dask_large.py [--servers N] [--device D] [--chunkings N] [--mib N] [--gib N] [--whole]

Random chunkings of arrays up to --mib, and one array of --gib that no process ever has as a whole: the bits of one server
each time, and the rate beside one server's, in a table of Markdown. Workers of `distributed` are processes.
"""

import argparse
import contextlib
import math
import time
import warnings

import dask.array as da
import distributed
import numpy as np

import tilewire as tw
import tilewire.dask as several


def cut(extent, rng):
    places = np.unique(rng.integers(1, extent + 1, rng.integers(0, 6)))
    return tuple(int(n) for n in np.diff([0, *places[places < extent], extent]))


def chunkings(count, most, servers, rng):
    """Random shapes, axes and chunks: how many bytes were compared."""
    compared = 0
    for number in range(count):
        dtype = np.dtype(rng.choice(["f4", "f8", "i4", "f2"]))
        elements = int(most ** rng.uniform(0.6, 1) / dtype.itemsize)
        rank = int(rng.integers(1, 4))
        shape = tuple(max(1, round(elements ** (1 / rank) * rng.uniform(0.7, 1.3))) for _ in range(rank - 1))
        shape += (max(1, elements // math.prod(shape)),)
        a, b = (rng.integers(-99, 99, shape).astype(dtype) for _ in "ab")
        axis = tuple(n for n in range(rank) if rng.random() < 0.5) or None
        output = str(rng.choice(["rmse", "mse", "sum_squares"]))
        x, y = (da.from_array(array, tuple(cut(extent, rng) for extent in shape)) for array in (a, b))
        with tw.connect(servers[0]) as one:
            whole = np.asarray(one.rmse(a, b, axis, output))
        value = np.asarray(several.rmse(x, y, axis, output, servers=servers).compute())
        if value.tobytes() != whole.tobytes():
            raise SystemExit(f"chunking {number}: other bits: {shape} {dtype} axis {axis} {output}, {x.chunks}, {y.chunks}")
        compared += 2 * a.nbytes
    return compared


def ramp(start, stop):
    """Elements start to stop of one array, the same however it is cut (arange in float32 is not: its step is rounded where it starts)."""
    return (np.arange(start, stop) % 99_991).astype("f4") * np.float32(1e-3)


def wave(block_info=None, step=0.0):
    """A chunk, made from where it lies."""
    ((start, stop),) = block_info[None]["array-location"]
    return ramp(start, stop) + np.float32(step)


def lazily(gib, servers):
    """Seconds of an array that is made chunk by chunk, and its RMSE."""
    elements, chunk = int(gib * 2**28), 1 << 24
    how = {"dtype": "f4", "chunks": ((chunk,) * (elements // chunk),), "meta": np.empty(0, "f4")}
    x, y = da.map_blocks(wave, **how), da.map_blocks(wave, step=0.25, **how)
    lazy = several.rmse(x, y, servers=servers)
    start = time.perf_counter()
    value = lazy.compute()
    return time.perf_counter() - start, value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--chunkings", type=int, default=100)
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--gib", type=float, default=8)
    parser.add_argument("--whole", action="store_true", help="also in one call, which takes three times --gib of memory")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(tw.local(given.device)).address for _ in range(given.servers)]
        how = {"n_workers": given.workers, "threads_per_worker": 2, "processes": True, "dashboard_address": None}
        cluster = stack.enter_context(distributed.LocalCluster(**how))
        stack.enter_context(distributed.Client(cluster))
        start = time.perf_counter()
        compared = chunkings(given.chunkings, given.mib << 20, servers, np.random.default_rng(20))
        print(f"{given.chunkings} chunkings, {compared / 2**30:.1f} GiB: the bits of one server ({time.perf_counter() - start:.0f} s)")
        lazily(0.25, servers)
        print(f"\n| servers | 2 x {given.gib:g} GiB, made lazily | |\n|---|---|---|")
        values = set()
        for some in (servers[:1], servers) * 3:
            seconds, value = lazily(given.gib, some)
            values.add(float(value).hex())
            print(f"| {len(some)} | {seconds:.1f} s | {2 * given.gib * 1.073741824 / seconds:.2f} GB/s |", flush=True)
        if given.whole:
            line = np.concatenate([ramp(at, at + 2**24) for at in range(0, int(given.gib * 2**28), 2**24)])
            with tw.connect(servers[0]) as one:
                values.add(one.rmse(line, line + np.float32(0.25)).hex())
        if len(values) > 1:
            raise SystemExit(f"other bits: {values}")


if __name__ == "__main__":
    main()
