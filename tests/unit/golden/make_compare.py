#!/usr/bin/env python3
"""Writes kernels/compare/golden_table.inc: the bits that contract compare.1 promises for the inputs of rmse.1.

Independent of the C++ code on purpose: plain Python, every operation in exact rational arithmetic
(fractions.Fraction) and then rounded once to binary64. Nothing but the standard library is needed.

    python3 tests/unit/golden/make_compare.py kernels/compare/golden_table.inc
"""

import math
import sys
from fractions import Fraction

from make_golden import (DTYPES, ENUMS, LANES, PATTERNS, TILE, add, bits_of, cases, decode, element_bits,
                         fma_square, rounded, square_root)

MASK = (1 << 64) - 1


def difference(x, y):
    """double(a) - double(b); for integers sign and rounded magnitude, which is the same for those of up to 32 bits."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        exact = x - y
        if exact == 0:
            # The sign of a zero difference changes no sum: it is added to what is +0 or not zero.
            return 0.0
        return rounded(exact)
    return float(x) - float(y)


def tree(values, step):
    """One tile: 256 accumulators, then eight levels; all from +0."""
    acc = [0.0] * LANES
    for i, d in enumerate(values):
        acc[i % LANES] = step(d, acc[i % LANES])
    half = LANES // 2
    while half:
        for i in range(half):
            acc[i] = add(acc[i], acc[i + half])
        half //= 2
    return acc[0]


def total(values, step):
    sums = [tree(values[i:i + TILE], step) for i in range(0, len(values), TILE)]
    while len(sums) > 1:
        paired = [add(sums[i], sums[i + 1]) for i in range(0, len(sums) - 1, 2)]
        sums = paired + sums[2 * len(paired):]
    return sums[0]


def mean(value, n):
    return rounded(Fraction(value) / n) if math.isfinite(value) else value


def expected(dtype, pattern, n):
    return metrics_of(dtype, *[[element_bits(dtype, pattern, n, i, o) for i in range(n)] for o in (0, 1)])


def metrics_of(dtype, a, b):
    """Bits of all metrics, by their numbers, of two lists of elements' bits."""
    n = len(a)
    pairs = [(decode(dtype, x), decode(dtype, y)) for x, y in zip(a, b)]
    ds = [difference(x, y) for x, y in pairs]
    squares = total(ds, fma_square)
    magnitudes = total([abs(d) for d in ds], add)
    differences = total(ds, add)
    kind, bits = DTYPES[dtype][2], DTYPES[dtype][1]
    # 64-bit integers are compared exactly, before rounding.
    keys = [abs(x - y) for x, y in pairs] if kind != "f" and bits == 64 else [abs(d) for d in ds]
    valid = [i for i in range(n) if not math.isnan(ds[i])]
    index = max(valid, key=lambda i: (keys[i], -i)) if valid else -1
    largest = abs(ds[index]) if valid else math.nan
    values = [square_root(mean(squares, n)), mean(squares, n), squares, mean(magnitudes, n), magnitudes,
              mean(differences, n), differences, largest]
    return [bits_of(v) for v in values] + [index & MASK, n - len(valid), sum(1 for x, y in pairs if x != y)]


def main():
    lines = ["// Written by tests/unit/golden/make_compare.py; do not edit.",
             "// clang-format off",
             "constexpr GoldenCase kGoldenCases[] = {"]
    for dtype, pattern, n in cases():
        name = f"{dtype}/{n}" if pattern == "uniform" else f"{dtype}/{pattern}/{n}"
        enum = ENUMS[PATTERNS.index(pattern)]
        bits = ", ".join(f"0x{value:x}" for value in expected(dtype, pattern, n))
        number = "kBF16" if dtype == "bf16" else "k" + dtype.upper()
        lines.append(f'    {{"{name}", DType::{number}, GoldenPattern::{enum}, {n}, {{{bits}}}}},')
    lines += ["};", "// clang-format on"]
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
