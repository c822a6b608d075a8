#!/usr/bin/env python3
"""Writes what the tests of gaussian.1 know for sure, from the standard library alone:

    python3 tests/unit/golden/make_gaussian.py

- kernels/gaussian/golden_table.inc: the promised bits for known inputs, by gaussian_formula.py;
- tests/unit/golden/gaussian_points.table: correctly rounded values by 90 decimal digits, subnormal and infinite ones included.

Every golden value is checked against the correctly rounded one on the way: at most one unit in the last place.
"""
import decimal
import math
import os
import random
from decimal import Decimal
from fractions import Fraction

from gaussian_formula import FORMAT, evaluate, float_bits, from_bits, round_bits

decimal.getcontext().prec = 90
decimal.getcontext().Emax = decimal.MAX_EMAX
decimal.getcontext().Emin = decimal.MIN_EMIN

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
BITS = {"f32": 32, "f64": 64}
NUMBER = {"f32": 12, "f64": 13}  # of the dtype on the wire


def machin():
    """Pi to the context's precision: 16·atan(1/5) - 4·atan(1/239)."""
    def atan_inverse(n):
        total, term, k = Decimal(0), Decimal(1) / n, 0
        while abs(term) > Decimal(10) ** -95:
            total += term / (2 * k + 1) if k % 2 == 0 else -term / (2 * k + 1)
            term /= n * n
            k += 1
        return total
    return 16 * atan_inverse(5) - 4 * atan_inverse(239)


SQRT_TWO_PI = (2 * machin()).sqrt()


def to_decimal(value):
    return Decimal(value.numerator) / Decimal(value.denominator)


def exact(x, mean, stddev):
    """The pdf of finite numbers to some 88 digits, as a rational number; 0 where it is below every subnormal."""
    t = (Fraction(x) - Fraction(mean)) / Fraction(stddev)
    if abs(t) > 64:
        return Fraction(0)
    return Fraction((-to_decimal(t * t / 2)).exp() / (to_decimal(Fraction(stddev)) * SQRT_TWO_PI))


def is_special(x):
    return math.isnan(x) or math.isinf(x)


def correctly_rounded(dtype, x_bits, mean, stddev):
    x = from_bits(dtype, x_bits)
    if is_special(x):
        return evaluate(dtype, x_bits, mean, stddev)  # no arithmetic involved
    return round_bits(dtype, exact(x, mean, stddev))


def nearest(dtype, x):
    """Bits of the finite number of dtype that is nearest to a rational one."""
    top = (FORMAT[dtype][2] - FORMAT[dtype][1] + 2 << FORMAT[dtype][0] - 1) - 1
    return min(round_bits(dtype, abs(x)), top) | (1 << BITS[dtype] - 1 if x < 0 else 0)


# --- golden cases: name, mean, stddev, x
MAX64, TINY64 = float.fromhex("0x1.fffffffffffffp1023"), 5e-324
SPECIAL = {
    "f32": (0x7FC00001, 0xFF800001, 0x7F800000, 0xFF800000, 0x80000000, 0x7F7FFFFF, 0x00000001, 0x3F800000),
    "f64": (0x7FF8000000000001, 0xFFF0000000000001, 0x7FF0000000000000, 0xFFF0000000000000, 0x8000000000000000,
            0x7FEFFFFFFFFFFFFF, 0x0000000000000001, 0x3FF0000000000000),
}
CENTRE = (0.0, 0.5, -1.0, 1.25, -2.0, 3.0, -4.5, 6.0)
TAIL = {"f32": (9.0, -11.0, 12.9, 13.15, 13.5, -14.0, 14.3, 15.0),
        "f64": (12.0, -20.0, 30.0, 37.5, 37.6, -38.0, 38.5, 39.0)}
CASES = (
    ("standard", 0.0, 1.0, CENTRE), ("shifted", 0.3, 1.7, CENTRE), ("distant", 1e6, 1.3, CENTRE),
    ("narrow", -2e-9, 3e-12, CENTRE), ("wide", 1e30, 7e28, CENTRE), ("tail", 0.0, 1.0, TAIL),
    ("tail_narrow", 1e-7, 1e-9, TAIL), ("special", 1.0, 2.0, SPECIAL),
    ("special_tiny", 0.0, TINY64, SPECIAL), ("special_huge", -MAX64, MAX64, SPECIAL),
)
OWN_CASES = {
    "f32": (("overflow", 0.0, 1e-40, (0.0, 3.0, -7.5, 9.0, 12.0, 15.0, 19.0, 21.0)),
            # 38 deviations away, and still about 2^0: only x = ±0 is that close.
            ("special_deep", 1000 * TINY64, 26 * TINY64, {"f32": (
                0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000)})),
    "f64": (("overflow", 0.0, 1e-310, (0.0, 2.0, -3.5, 4.5, 10.0, -30.0, 50.0, 53.6)),
            ("huge", 1e308, 4e307, (0.0, -0.5, 1.0, -2.0, 1.9, -3.0, -4.4, -5.0))),
}


def golden_cases():
    for dtype in ("f32", "f64"):
        for name, mean, stddev, what in CASES + OWN_CASES[dtype]:
            values = what[dtype] if isinstance(what, dict) else what
            if name.startswith("special"):
                yield dtype, name, mean, stddev, values
            else:
                yield dtype, name, mean, stddev, [
                    nearest(dtype, Fraction(mean) + Fraction(stddev) * Fraction(t)) for t in values]


def write_golden(path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("// Written by tests/unit/golden/make_gaussian.py; do not edit.\n// clang-format off\n")
        file.write("constexpr GoldenCase kGoldenCases[] = {\n")
        for dtype, name, mean, stddev, values in golden_cases():
            results = [evaluate(dtype, x, mean, stddev) for x in values]
            for x, y in zip(values, results):
                assert abs(y - correctly_rounded(dtype, x, mean, stddev)) <= 1, (dtype, name, hex(x), hex(y))
            file.write(f'    {{"{dtype}/{name}", DType::k{dtype.upper()}, {mean.hex()}, {stddev.hex()},\n')
            for numbers in (values, results):
                file.write("     {" + ", ".join(f"0x{v:0{BITS[dtype] // 4}x}" for v in numbers) + "},\n")
            file.write("    },\n")
        file.write("};\n")


# --- correctly rounded points
DISTRIBUTIONS = (
    (0.0, 1.0), (0.0, 0.3989422804014327), (0.1, 1.1), (-1e-3, 1.999999), (1e6, 1.3), (-12345.678, 1e4), (0.5, 1e-3),
    (3.0, 2.0 ** -30), (1e-30, 1e-31), (1e30, 3e29), (0.0, 1e-36), (2e-38, 1.2e-38), (0.0, 3e-39), (1e-40, 7e-41),
    (0.0, 1e-100), (1e-200, 3e-201), (0.0, 2.0 ** -899), (0.0, 2.0 ** -901), (1e-305, 2e-306), (0.0, 2.3e-308),
    (1e-310, 1e-309), (2e-322, 3e-323), (0.0, TINY64), (1e37, 1e38), (0.0, 1e45), (1e150, 1e149),
    (1.0, 2.0 ** 899), (-1.0, 2.0 ** 901), (1e307, 1e306), (-MAX64, MAX64), (0.0, MAX64),
)


def x_values(dtype, mean, stddev, rng, count):
    """x from the peak to where the pdf vanishes, thickest around the ends of the formats' ranges."""
    precision, smallest, largest = FORMAT[dtype]
    peak = -math.log(SQRT_TWO_PI) - math.log(math.ldexp(stddev, 200 if stddev < 1 else 0))
    peak += 200 * math.log(2) if stddev < 1 else 0
    ends = []  # distances in stddevs at which the pdf leaves the format, its normal numbers, 0
    for exponent in (largest + 1, smallest, smallest - precision):
        over = peak - exponent * math.log(2)
        ends.append(math.sqrt(2 * over) if over > 0 else 0.0)
    values = {nearest(dtype, Fraction(mean) + Fraction(s) * Fraction(stddev)) for s in (0, 1, -1)}
    while len(values) < count * 3:
        kind, last = rng.random(), max(ends[2], 1.0) * 1.02
        if kind < 0.55:
            t = rng.uniform(ends[0] * 0.98, last)
        elif kind < 0.9:
            t = rng.choice(ends) + rng.uniform(-1, 1) * rng.choice((1e-2, 1e-4, 1e-7))
        else:
            t = 10 ** rng.uniform(-12, 0)
        values.add(nearest(dtype, Fraction(mean) + Fraction(stddev) * Fraction(rng.choice((-1, 1)) * t)))
        if rng.random() < 0.02:  # where no more numbers of the format are to be had
            count -= 1
    values = sorted(values)
    return sorted(rng.sample(values, min(len(values), max(count, 12))))


def write_points(path):
    rng = random.Random(20)
    total = 0
    with open(path, "w", encoding="utf-8") as file:
        file.write("// Written by tests/unit/golden/make_gaussian.py; do not edit. Blocks of: dtype, mean, stddev, number\n"
                   "// of points, then that many times x and the correctly rounded result, all as bits.\n")
        for dtype in ("f32", "f64"):
            for mean, stddev in DISTRIBUTIONS:
                points = [(x, correctly_rounded(dtype, x, mean, stddev))
                          for x in x_values(dtype, mean, stddev, rng, 110)]
                file.write(f"{NUMBER[dtype]}, {float_bits('f64', mean):#x}, {float_bits('f64', stddev):#x}, "
                           f"{len(points)},\n")
                for i in range(0, len(points), 3):
                    file.write(" ".join(f"{x:#x},{y:#x}," for x, y in points[i:i + 3]) + "\n")
                total += len(points)
    return total


def main():
    write_golden(os.path.join(ROOT, "kernels", "gaussian", "golden_table.inc"))
    print(write_points(os.path.join(HERE, "gaussian_points.table")), "points")


if __name__ == "__main__":
    main()
