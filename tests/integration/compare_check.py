#!/usr/bin/env python3
"""Holds `tilewire compare` against numpy and against exact rational arithmetic, in thousands of random cases.

    compare_check.py [--device cpu] [--seed N] [--times N] TILEWIRED TILEWIRE [-- more tilewired flags]

A case is a segment, whose values are eleven; a call has many of them, because calls cost more than cases do. Against exact
arithmetic (tests/unit/golden/make_compare.py) all bits must be right: every dtype, random bits, special values, lengths on
either side of 256 and 4096. Against numpy shapes and axes are random: largest differences, indices and counts must be
equal, sums agree to 1e-13 of the sum of magnitudes. --times N: N times as many cases.
"""
import argparse
import json
import os
import random
import struct
import sys
import tempfile

import numpy as np

from numpy_check import REAL, Checker, Server, array

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "unit", "golden"))
from make_compare import metrics_of
from make_golden import DTYPES

METRICS = ["rmse", "mse", "sum_squares", "mean_abs", "sum_abs", "mean", "sum", "max_abs", "max_abs_index", "nan_pairs",
           "unequal_pairs"]
COUNTED = METRICS[8:]


def compare(check, a, b, axes, orders=("C", "C")):
    """Values by metric, in order of the segments, which are as many as the axes that are left make."""
    files = [check.save("a.npy", a, orders[0]), check.save("b.npy", b, orders[1])]
    flags = ["--axis=" + ",".join(map(str, axes))] if axes is not None else []
    got = json.loads(check.run("--json", "compare", *files, *flags))["metrics"]
    if list(got) != METRICS:
        raise SystemExit(f"compare has {list(got)}")
    return {name: np.atleast_1d(np.array(values, object)).ravel() for name, values in got.items()}


def bits(name, value):
    """Of a value as JSON has it: whole numbers, or doubles, of which three are words."""
    if name in COUNTED:
        return int(value) % 2**64
    value = float(value)
    return 0x7FF8000000000000 if value != value else struct.unpack("<Q", struct.pack("<d", value))[0]


def random_bits(rng, dtype, shape):
    """Elements as whole numbers of their size: all bits random; near each other; a few that are special."""
    _, width, kind, mantissa, bias = DTYPES[dtype]
    unsigned = np.dtype(f"u{width // 8}")
    values = rng.integers(0, np.iinfo(unsigned).max, shape, unsigned, endpoint=True)
    if kind != "f":
        low = np.array([0, 1, 2**(width - 1) - 1, 2**(width - 1), 2**width - 1], unsigned)
        near = rng.integers(0, 4, shape, unsigned)
        values = np.where(rng.random(shape) < 0.3, near, values)
    else:
        one, sign, fraction = bias << mantissa, 1 << (width - 1), (1 << mantissa) - 1
        infinity = (sign - 1) & ~fraction
        low = np.array([0, sign, one, infinity, sign | infinity, infinity | 1 << (mantissa - 1), 1, infinity - 1], unsigned)
        near = values & np.array(sign | fraction, unsigned) | np.array(one, unsigned)
        # Most of a segment's numbers are of one size, or nothing but the largest would count.
        values = np.where(rng.random(shape) < 0.98, near, values)
    return np.where(rng.random(shape) < rng.choice([0, 0.01, 0.2]), rng.choice(low, shape), values)


def exact_cases(check, rng, times):
    """Segments of an array, and one array that is a segment of more than a tile, of every dtype."""
    cases = 0
    for dtype in DTYPES:
        kind, width = DTYPES[dtype][2], DTYPES[dtype][1] // 8
        stored = np.dtype("V2" if dtype == "bf16" else f"{kind}{width}")
        for segments, n in [(60, 1), (60, 2), (50, 7), (20, 33)] * times + [(3, 255), (2, 300), (1, 4100)]:
            a, b = random_bits(rng, dtype, (segments, n)), random_bits(rng, dtype, (segments, n))
            b = np.where(rng.random((segments, n)) < 0.1, a, b)
            got = compare(check, a.view(stored), b.view(stored), [1])
            for s in range(segments):
                want = metrics_of(dtype, a[s].tolist(), b[s].tolist())
                for name, bits_wanted in zip(METRICS, want):
                    if bits(name, got[name][s]) != bits_wanted:
                        raise SystemExit(f"compare {dtype} of {a[s].tolist()} and {b[s].tolist()}: {name} is {got[name][s]!r}, "
                                         f"bits 0x{bits(name, got[name][s]):x}, wanted 0x{bits_wanted:x}")
            cases += segments
    return cases


def numpy_reference(a, b, axes):
    """The same of every segment, and the sum of magnitudes that sums are held against."""
    axes = tuple(range(a.ndim)) if axes is None else tuple(sorted(axes))
    rest = tuple(i for i in range(a.ndim) if i not in axes)
    n = int(np.prod([a.shape[i] for i in axes], dtype=np.int64))
    a, b = (np.transpose(x, rest + axes).reshape(-1, n) for x in (a, b))
    with np.errstate(all="ignore"):
        if a.dtype.kind in "iu" and a.dtype.itemsize == 8:
            key = np.maximum(a, b).astype(np.uint64) - np.minimum(a, b).astype(np.uint64)
            d = np.where(a < b, -1.0, 1.0) * key.astype(np.float64)
        else:
            d = a.astype(np.float64) - b.astype(np.float64)
            key = np.abs(d)
        nan = np.isnan(d)
        wide = d.astype(np.longdouble)
        squares, magnitudes, sums = (wide * wide).sum(1), np.abs(wide).sum(1), wide.sum(1)
        if key.dtype.kind == "f":
            key = np.where(nan, -1.0, key)  # of no pair of integers
        index = np.where(nan.all(1), -1, np.argmax(key, 1))
        largest = np.where(nan.all(1), np.nan, np.abs(d)[np.arange(len(d)), index])
        want = {"rmse": np.sqrt(squares / n), "mse": squares / n, "sum_squares": squares, "mean_abs": magnitudes / n,
                "sum_abs": magnitudes, "mean": sums / n, "sum": sums, "max_abs": largest, "max_abs_index": index,
                "nan_pairs": nan.sum(1), "unequal_pairs": (a != b).sum(1)}
    return want, magnitudes


def numpy_cases(check, rng, pick, times):
    cases = 0
    for turn in range(120 * times):
        rank = pick.randint(1, 5)
        shape = [pick.choice([1, 2, 3, 5, 8, 16, 31, 33, 64]) for _ in range(rank)]
        while np.prod(shape) > 30000:
            shape[shape.index(max(shape))] = pick.choice([1, 2, 3])
        if turn % 10 == 0:
            shape[pick.randrange(rank)] *= pick.choice([50, 257, 900]) if np.prod(shape) < 300 else 1
        axes = pick.sample(range(rank), pick.randint(1, rank)) if pick.random() < 0.9 else None
        dtype = REAL[turn % len(REAL)]
        a, b = array(rng, dtype, shape), array(rng, dtype, shape)
        b = np.where(rng.random(shape) < 0.2, a, b)
        if a.dtype.kind == "f" and turn % 3 == 0:
            a[rng.random(shape) < 0.05] = np.nan
        got = compare(check, a, b, axes, (pick.choice("CF"), pick.choice("CF")))
        want, magnitudes = numpy_reference(a, b, axes)
        for name in METRICS:
            what = f"compare {dtype} {tuple(shape)} axes {axes}: {name}"
            if len(got[name]) != len(want[name]):
                raise SystemExit(f"{what} has {len(got[name])} values, wanted {len(want[name])}")
            mine = got[name].astype(np.int64 if name in COUNTED else np.float64)
            if name in ("mean", "sum"):  # what cancels leaves no more than that of magnitudes
                slack = 1e-13 * (magnitudes if name == "sum" else magnitudes / np.prod(a.shape) * len(magnitudes))
                right = (np.abs(mine - want[name]) <= slack) | (np.isnan(mine) & np.isnan(want[name]))
            elif name in ("max_abs", *COUNTED):
                right = (mine == want[name]) | (np.isnan(mine.astype(float)) & np.isnan(want[name].astype(float)))
            else:
                right = np.isclose(mine, want[name].astype(np.float64), rtol=1e-13, atol=0, equal_nan=True)
            if not np.all(right):
                at = np.argmin(right)
                raise SystemExit(f"{what} of segment {at} is {mine[at]!r}, numpy says {want[name][at]!r}")
        cases += len(magnitudes)
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tilewired")
    parser.add_argument("tilewire")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("flags", nargs="*", help="more flags for tilewired, after --")
    options = parser.parse_args()
    rng, pick = np.random.default_rng(options.seed), random.Random(options.seed)
    server = Server(options.tilewired, options.device, options.flags)
    try:
        with tempfile.TemporaryDirectory() as folder:
            check = Checker(options.tilewire, server.address, folder)
            exact = exact_cases(check, rng, options.times)
            near = numpy_cases(check, rng, pick, options.times)
    finally:
        server.close()
    print(f"{exact} segments have the bits of exact arithmetic, {near} equal numpy")


if __name__ == "__main__":
    sys.exit(main())
