#!/usr/bin/env python3
"""Writes kernels/rmse/golden_table.inc: the bits that contract rmse.1 promises for known inputs.

Independent of the C++ code on purpose: plain Python, every operation in exact rational arithmetic
(fractions.Fraction) and then rounded once to binary64. Nothing but the standard library is needed.

    python3 tests/unit/golden/make_golden.py kernels/rmse/golden_table.inc
"""

import math
import struct
import sys
from fractions import Fraction

TILE, LANES = 4096, 256
SIZES = (1, 2, 3, 255, 256, 257, 4095, 4096, 4097, 12289)
MASK = (1 << 64) - 1
INF, NAN = math.inf, math.nan
CANONICAL_NAN = 0x7FF8000000000000

# name: (number on the wire, bits, kind, mantissa bits, bias)
DTYPES = {
    "i8": (2, 8, "i", 0, 0), "u8": (3, 8, "u", 0, 0), "i16": (4, 16, "i", 0, 0), "u16": (5, 16, "u", 0, 0),
    "i32": (6, 32, "i", 0, 0), "u32": (7, 32, "u", 0, 0), "i64": (8, 64, "i", 0, 0), "u64": (9, 64, "u", 0, 0),
    "f16": (10, 16, "f", 10, 15), "bf16": (11, 16, "f", 7, 127),
    "f32": (12, 32, "f", 23, 127), "f64": (13, 64, "f", 52, 1023),
}
PATTERNS = ("uniform", "nan", "inf", "inf_minus_inf", "zeros", "subnormals", "huge", "tiny", "extremes")
ENUMS = ("kUniform", "kNan", "kInf", "kInfMinusInf", "kZeros", "kSubnormals", "kHuge", "kTiny", "kExtremes")


def word(seed, i, operand):
    z = (seed + (2 * i + operand + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def element_bits(dtype, pattern, n, i, operand):
    number, bits, kind, mantissa, bias = DTYPES[dtype]
    w = word(number << 40 | PATTERNS.index(pattern) << 32 | n, i, operand)
    sign = 1 << bits - 1

    def make_float(base, spread):
        return (w >> 63) * sign | base + (w >> 56 & 15 & spread) << mantissa | w & (1 << mantissa) - 1

    if pattern == "extremes":
        low, high = (sign, sign - 1) if kind == "i" else (0, 2 * sign - 1)
        return low if (i + operand) % 2 == 0 else high
    if kind != "f":
        return w & (1 << bits) - 1
    infinity = sign - 1 & ~((1 << mantissa) - 1)
    if pattern == "nan" and operand == 0 and i == n // 2:
        return infinity | 1 << mantissa - 1 | 5
    if pattern == "inf" and operand == 1 and i == n - 1:
        return sign | infinity
    if pattern == "inf_minus_inf" and i == n // 2:
        return infinity
    if pattern == "zeros":
        return sign if (i + operand) % 2 else 0
    if pattern == "subnormals":
        return make_float(0, 0)
    if pattern == "huge":
        return infinity - 1 | (sign if operand else 0)
    if pattern == "tiny":
        return make_float(bias - 540, 15)
    return make_float(bias - 8, 15)


def decode(dtype, bits_value):
    """The exact value: a Fraction, or one of the floats inf, -inf, nan."""
    _, bits, kind, mantissa, bias = DTYPES[dtype]
    if kind == "u":
        return Fraction(bits_value)
    if kind == "i":
        return Fraction(bits_value - (1 << bits) if bits_value >> bits - 1 else bits_value)
    negative = bits_value >> bits - 1
    exponent = bits_value >> mantissa & (1 << bits - 1 - mantissa) - 1
    fraction = bits_value & (1 << mantissa) - 1
    if exponent == (1 << bits - 1 - mantissa) - 1:
        return NAN if fraction else (-INF if negative else INF)
    scaled = fraction if exponent == 0 else fraction | 1 << mantissa
    value = Fraction(scaled) * Fraction(2) ** (max(exponent, 1) - bias - mantissa)
    return -value if negative else value


def rounded(exact):
    """The nearest binary64, ties to even. Division of two ints is correctly rounded; overflow means infinity."""
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return INF if exact > 0 else -INF


def add(x, y):
    if x == 0 or y == 0:
        return x + y + 0.0  # exact in any arithmetic; no sum is -0
    if math.isfinite(x) and math.isfinite(y):
        return rounded(Fraction(x) + Fraction(y))
    return x + y


def fma_square(d, acc):
    if math.isfinite(d) and math.isfinite(acc):
        return rounded(Fraction(d) ** 2 + Fraction(acc))
    return d * d + acc


def difference(x, y):
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return rounded(abs(x - y))  # the sign vanishes in the square
    return float(x) - float(y)


def tile_sum(pairs):
    acc = [0.0] * LANES
    for i, (x, y) in enumerate(pairs):
        acc[i % LANES] = fma_square(difference(x, y), acc[i % LANES])
    step = LANES // 2
    while step:
        for i in range(step):
            acc[i] = add(acc[i], acc[i + step])
        step //= 2
    return acc[0]


def square_root(x):
    if not math.isfinite(x) or x == 0:
        return x
    exact = Fraction(x)
    shift = 60  # until the root has more than 55 bits; the last bit then says whether anything was cut off
    while exact.numerator << 2 * shift < exact.denominator << 116:
        shift += 30
    scaled, cut = divmod(exact.numerator << 2 * shift, exact.denominator)
    root = math.isqrt(scaled)
    sticky = int(cut != 0 or root * root != scaled)
    return rounded(Fraction(2 * root + sticky) / 2 ** (shift + 1))


def expected(dtype, pattern, n):
    values = [[decode(dtype, element_bits(dtype, pattern, n, i, o)) for i in range(n)] for o in (0, 1)]
    pairs = list(zip(*values))
    sums = [tile_sum(pairs[i:i + TILE]) for i in range(0, n, TILE)]
    while len(sums) > 1:
        paired = [add(sums[i], sums[i + 1]) for i in range(0, len(sums) - 1, 2)]
        sums = paired + sums[2 * len(paired):]
    total = sums[0]
    mean = rounded(Fraction(total) / n) if math.isfinite(total) else total
    return [bits_of(x) for x in (square_root(mean), mean, total)]


def bits_of(x):
    return CANONICAL_NAN if math.isnan(x) else struct.unpack("<Q", struct.pack("<d", x))[0]


def cases():
    for dtype in DTYPES:
        for n in SIZES:
            yield dtype, "uniform", n
    for dtype, (_, _, kind, _, _) in DTYPES.items():
        if kind == "f":
            for pattern in PATTERNS[1:7]:
                yield dtype, pattern, 3
                yield dtype, pattern, 4097
        else:
            yield dtype, "extremes", 3
            yield dtype, "extremes", 12289
    yield "f64", "tiny", 3
    yield "f64", "tiny", 4097


def main():
    lines = ["// Written by tests/unit/golden/make_golden.py; do not edit.",
             "// clang-format off",
             "constexpr GoldenCase kGoldenCases[] = {"]
    for dtype, pattern, n in cases():
        name = f"{dtype}/{n}" if pattern == "uniform" else f"{dtype}/{pattern}/{n}"
        enum = ENUMS[PATTERNS.index(pattern)]
        bits = ", ".join(f"0x{value:016x}" for value in expected(dtype, pattern, n))
        number = "kBF16" if dtype == "bf16" else "k" + dtype.upper()
        lines.append(f'    {{"{name}", DType::{number}, GoldenPattern::{enum}, {n}, {bits}}},')
    lines += ["};", "// clang-format on"]
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
