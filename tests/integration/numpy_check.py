#!/usr/bin/env python3
"""Compares the `tilewire` program with numpy through a running server: every dtype, order, rank and axis choice.

    numpy_check.py [--device cpu] [--large] [--seed N] TILEWIRED TILEWIRE [-- more tilewired flags]

RMSE must agree to 1e-14 relative with numpy in float64, transposes exactly. --large adds arrays up to 2 GiB.
"""
import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

REAL = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
ALL = REAL + ["b1", "c8", "c16"]


def array(rng, dtype, shape):
    """Random values of a dtype that keep squared differences finite."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def rmse_reference(a, b, axes):
    """In float64, integers up to 64 bits differing exactly; math in numpy's pairwise sums over the same axes."""
    if a.dtype.kind in "iu" and a.dtype.itemsize == 8:
        low, high = np.minimum(a, b), np.maximum(a, b)
        d = (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    else:
        d = a.astype(np.float64) - b.astype(np.float64)
    d = np.ascontiguousarray(d)
    return np.sqrt(np.mean(d * d, axis=axes, dtype=np.longdouble)).astype(np.float64)


class Server:
    def __init__(self, program, device, flags):
        self.process = subprocess.Popen([program, "--listen", "localhost:0", "--device", device, *flags],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        if " ready " not in line:
            raise SystemExit(f"server did not start: {line!r}")
        self.address = line.split(" ready ")[1].split()[0]

    def close(self):
        self.process.terminate()
        code = self.process.wait(60)
        if code != 0:
            raise SystemExit(f"server ended with code {code}")


class Checker:
    def __init__(self, client, address, folder):
        self.client, self.address, self.folder, self.count = client, address, folder, 0

    def run(self, *arguments):
        done = subprocess.run([self.client, "--server", self.address, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"tilewire {' '.join(arguments)}: code {done.returncode}\n{done.stderr}")
        return done.stdout

    def path(self, name):
        return os.path.join(self.folder, name)

    def save(self, name, value, order):
        # np.save keeps Fortran order for arrays of rank 2 and more.
        np.save(self.path(name), np.asfortranarray(value) if order == "F" and value.ndim > 1 else value)
        return self.path(name)

    def rmse(self, a, b, axes, orders):
        files = [self.save("a.npy", a, orders[0]), self.save("b.npy", b, orders[1])]
        flags = ["--axis", ",".join(map(str, axes))] if axes is not None else []
        text = self.run("rmse", *files, *flags)
        got = np.array([float(line) for line in text.split()])
        want = np.atleast_1d(rmse_reference(a, b, axes if axes is None else tuple(axes))).ravel()
        what = f"rmse {a.dtype} {a.shape} axes {axes} orders {orders}"
        if got.shape != want.shape:
            raise SystemExit(f"{what}: {got.size} values, wanted {want.size}")
        bad = ~np.isclose(got, want, rtol=1e-14, atol=0)
        if bad.any():
            raise SystemExit(f"{what}: {got[bad][0]!r}, numpy says {want[bad][0]!r}")
        self.count += 1

    def transpose(self, a, axes, order):
        source, target = self.save("in.npy", a, order), self.path("out.npy")
        flags = ["--axes", ",".join(map(str, axes))] if axes is not None else []
        self.run("transpose", source, target, *flags)
        got, want = np.load(target), np.transpose(a, axes)
        what = f"transpose {a.dtype} {a.shape} axes {axes} order {order}"
        if got.dtype != want.dtype or got.shape != want.shape or got.tobytes() != want.tobytes():
            raise SystemExit(f"{what}: differs from numpy")
        self.count += 1


def small_cases(check, rng, pick):
    shapes = [(), (1,), (7,), (257,), (3, 5), (31, 37), (2, 3, 4), (13, 1, 11, 2), (2, 1, 3, 2, 2), (2,) * 6,
              (1, 2, 3, 1, 2, 2, 3), (2, 3, 1, 2, 1, 3, 2, 2)]
    for dtype, shape in itertools.product(ALL, shapes):
        a, b = array(rng, dtype, shape), array(rng, dtype, shape)
        order = pick.choice("CF")
        axes = pick.sample(range(len(shape)), len(shape)) if shape else None
        check.transpose(a, axes if pick.random() < 0.8 else None, order)
        if dtype in REAL:
            some = pick.sample(range(len(shape)), pick.randint(1, len(shape))) if shape and pick.random() < 0.7 else None
            check.rmse(a, b, some, (order, pick.choice("CF")))


def middle_cases(check, rng, pick):
    for shape, axes in [((1009, 997), None), ((1009, 997), [0]), ((1009, 997), [1]), ((61, 67, 71), [1]),
                        ((61, 67, 71), [0, 2]), ((16, 300, 301), [1, 2]), ((300, 301, 16), [0, 1]), ((2000003,), None)]:
        for dtype in ("f4", "f8", "u1", "f2"):
            a, b = array(rng, dtype, shape), array(rng, dtype, shape)
            check.rmse(a, b, axes, (pick.choice("CF"), pick.choice("CF")))
            check.transpose(a, pick.sample(range(len(shape)), len(shape)), pick.choice("CF"))


def large_cases(check, rng):
    for dtype, shape, axes in [("f4", (1 << 28,), None), ("f4", (16411, 16381), [1]), ("f8", (64, 1024, 1031), [0])]:
        check.rmse(array(rng, dtype, shape), array(rng, dtype, shape), axes, ("C", "F"))
        print(f"  rmse {dtype} {shape} axes {axes}: right", flush=True)
    for dtype, shape, axes in [("f4", (16411, 16381), None), ("u1", (46337, 46327), None), ("f8", (64, 1024, 2048), [0, 2, 1])]:
        check.transpose(array(rng, dtype, shape), axes, "C")
        print(f"  transpose {dtype} {shape} axes {axes}: right", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tilewired")
    parser.add_argument("tilewire")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("flags", nargs="*", help="more flags for tilewired, after --")
    options = parser.parse_args()
    rng, pick = np.random.default_rng(options.seed), random.Random(options.seed)
    server = Server(options.tilewired, options.device, options.flags)
    try:
        with tempfile.TemporaryDirectory() as folder:
            check = Checker(options.tilewire, server.address, folder)
            small_cases(check, rng, pick)
            middle_cases(check, rng, pick)
            if options.large:
                large_cases(check, rng)
            info = json.loads(check.run("--json", "info"))
            left = [v for k, v in json_leaves(info) if k.endswith("in_use") or k in ("jobs_in_flight", "jobs_queued")]
            if not left or any(left):
                raise SystemExit(f"leases out after the last call: {info}")
    finally:
        server.close()
    print(f"{check.count} calls equal numpy")


def json_leaves(value, key=""):
    if isinstance(value, dict):
        for k, v in value.items():
            yield from json_leaves(v, k)
    elif isinstance(value, list):
        for v in value:
            yield from json_leaves(v, key)
    else:
        yield key, value


if __name__ == "__main__":
    sys.exit(main())
