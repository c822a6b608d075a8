#!/usr/bin/env python3
"""Compares the `tilewire` program with numpy through a running server: every dtype, order, rank and axis choice.

    numpy_check.py [--device cpu] [--large] [--seed N] TILEWIRED TILEWIRE [-- more tilewired flags]

RMSE must agree to 1e-14 relative with numpy in float64, transposes exactly, gaussian pdfs to 1 ulp with numpy in long
double (2 ulp for float64, because far from the mean the reference itself may be off by one). --large adds arrays up to
2 GiB.
"""
import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time

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


def gaussian_reference(x, mean, stddev):
    """In long double: 64 bits of mantissa where the machine has them, and float64's whole range of exponents."""
    mean, stddev = np.longdouble(mean), np.longdouble(stddev)
    with np.errstate(all="ignore"):
        z = (x.astype(np.longdouble) - mean) / stddev
        return np.exp(-z * z / 2) / (stddev * np.sqrt(2 * np.longdouble("3.14159265358979323846264338327950288")))


def ulps(got, exact):
    """Distance from the correctly rounded value in units of its last place; 0 where both are NaN."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        distance = np.abs(got.astype(np.longdouble) - rounded) / np.spacing(np.abs(rounded)).astype(np.longdouble)
    distance[(got == rounded) | (np.isnan(got) & np.isnan(rounded))] = 0  # infinities too
    return distance


class Server:
    """All of its work is the device's: --host-bytes 0."""

    def __init__(self, program, device, flags):
        self.process = subprocess.Popen([program, "--listen", "localhost:0", "--device", device, "--host-bytes", "0", *flags],
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
        done = subprocess.run([self.client, "--server", self.address, *arguments], capture_output=True, text=True, check=False)
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

    def gaussian(self, x, mean, stddev, order):
        source, target = self.save("in.npy", x, order), self.path("out.npy")
        self.run("gaussian-pdf", source, target, "--mean", repr(mean), "--stddev", repr(stddev))
        got = np.load(target)
        what = f"gaussian-pdf {x.dtype} {x.shape} mean {mean} stddev {stddev} order {order}"
        if got.dtype != x.dtype or got.shape != x.shape or not got.flags.c_contiguous:
            raise SystemExit(f"{what}: {got.dtype} {got.shape}")
        exact = np.atleast_1d(gaussian_reference(x, mean, stddev))
        off = ulps(np.atleast_1d(got), exact)
        limit = 1 if x.dtype == np.float32 else 2
        if not (off <= limit).all():
            at = np.unravel_index(np.argmax(np.where(np.isnan(off), np.inf, off)), off.shape)
            raise SystemExit(f"{what}: {np.atleast_1d(got)[at]!r} at {at}, numpy says {exact[at]!r}, {off[at]} ulp")
        self.count += 1

    def refused(self, what, *arguments):
        done = subprocess.run([self.client, "--server", self.address, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 1 or "INVALID_ARGUMENT" not in done.stderr:
            raise SystemExit(f"{what}: code {done.returncode}, {done.stderr!r}; wanted INVALID_ARGUMENT")
        self.count += 1


def gaussian_cases(check, rng, pick, shapes):
    for dtype, shape in itertools.product(("f4", "f8"), shapes):
        mean, stddev = pick.choice([(0.0, 1.0), (-1.5, 0.25), (3.0, 1e3), (1e-3, 7.0)])
        # Mostly near the mean, some far out where results are subnormal or 0.
        x = mean + stddev * rng.standard_normal(shape) * rng.choice([1.0, 1.0, 1.0, 6.0, 14.0, 39.0], shape)
        check.gaussian(np.asarray(x).astype(dtype), mean, stddev, pick.choice("CF"))
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0])
    for dtype in ("f4", "f8"):
        info = np.finfo(dtype)
        edges = np.array([info.max, info.min, info.tiny, info.smallest_subnormal], dtype)
        x = np.concatenate([special.astype(dtype), edges])
        for mean, stddev in [(0.0, 1.0), (1.0, 1e-3), (-2.0, 1e30), (0.0, 2e-310)]:
            check.gaussian(x, mean, stddev, "C")


def gaussian_refusals(check, rng):
    for dtype in [d for d in ALL if d not in ("f4", "f8")]:
        name = check.save("in.npy", array(rng, dtype, (5,)), "C")
        check.refused(f"gaussian-pdf of {dtype}", "gaussian-pdf", name, check.path("none.npy"), "--mean", "0",
                      "--stddev", "1")
    if os.path.exists(check.path("none.npy")):
        raise SystemExit("a refused call left a file")


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
    for dtype, shape in [("f4", (1 << 26,)), ("f8", (8191, 8209))]:
        check.gaussian(rng.standard_normal(shape).astype(dtype), 0.5, 0.75, "C")
        print(f"  gaussian-pdf {dtype} {shape}: right", flush=True)


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
            # 0-d, primes, streamed ones of more than a block with a remainder of a few elements.
            gaussian_cases(check, rng, pick, [(), (1,), (2,), (257,), (31, 37), (3, 1, 5, 7), (1000003,), (1 << 20,),
                                              ((1 << 20) + 5,), (997, 1009), (1021, 3, 1031)])
            gaussian_refusals(check, rng)
            if options.large:
                large_cases(check, rng)
            check_idle(check)
    finally:
        server.close()
    print(f"{check.count} calls equal numpy")


def check_idle(check):
    """A call has its reply before it gives its leases back."""
    until = time.monotonic() + 60
    while True:
        info = json.loads(check.run("--json", "info"))
        left = [v for k, v in json_leaves(info) if k.endswith("in_use") or k in ("jobs_in_flight", "jobs_queued")]
        if left and not any(left):
            return
        if not left or time.monotonic() > until:
            raise SystemExit(f"leases out after the last call: {info}")


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
