"""The operations of gaussian.1 once more, from kernels/gaussian/README.md, in plain Python.

Products, sums and quotients of Python's floats are binary64 operations; a fused multiply-add is computed in exact
rationals and rounded once. Bits go in and come out.
"""
import math
import struct
from fractions import Fraction

NAN = {"f32": 0x7FC00000, "f64": 0x7FF8000000000000}
WIDTH = {"f32": ("<I", "<f"), "f64": ("<Q", "<d")}
# dtype: (significant bits, exponent of the smallest normal number, exponent of the largest binade)
FORMAT = {"f32": (24, -126, 127), "f64": (53, -1022, 1023)}

MAX = float.fromhex("0x1.fffffffffffffp1023")
ROUNDER = float.fromhex("0x1.8p52")
SQRT_HALF_LOG2E = float.fromhex("0x1.b2da4e9808a53p-1")
LN2 = float.fromhex("0x1.62e42fefa39efp-1")
SQRT_HALF = (float.fromhex("0x1.6a09e667f3bcdp-1"), float.fromhex("-0x1.bdd3413b26456p-55"))
INVERSE_SQRT_TWO_PI = (float.fromhex("0x1.9884533d43651p-2"), float.fromhex("-0x1.cbc0d30ebfd15p-56"))
INVERSE_SQRT_PI = (float.fromhex("0x1.20dd750429b6dp-1"), float.fromhex("0x1.1ae3a914fed80p-57"))
EXP2 = [float.fromhex(c) for c in (
    "0x1.00000002614d0p+0", "0x1.62e430c7e9485p-1", "0x1.ebfbdadcb228bp-3", "0x1.c6aed4b91a7d7p-5",
    "0x1.3b2dbbc034060p-7", "0x1.5f456aa325ee1p-10", "0x1.41d333fb258f4p-13")]
Q = [float.fromhex(c) for c in (
    "0x1p-1", "0x1.555555555550dp-3", "0x1.555555555583fp-5", "0x1.1111111160379p-7", "0x1.6c16c169ac6a6p-10",
    "0x1.a019fa8548b8ep-13", "0x1.a01a188a24b58p-16", "0x1.72204c4444146p-19", "0x1.27ae8b418be14p-22")]
INVERSE_STEP = float.fromhex("0x1.71547652b82fep+1")
STEP_HIGH = float.fromhex("0x1.62e42fefa2000p-2")
STEP_LOW = float.fromhex("0x1.9ef35793c7673p-42")


def from_bits(dtype, bits):
    return struct.unpack(WIDTH[dtype][1], struct.pack(WIDTH[dtype][0], bits))[0]


def round_bits(dtype, value):
    """The bits of a positive rational number, rounded to nearest even; subnormal, zero or infinite where it must."""
    precision, smallest, largest = FORMAT[dtype]
    if value == 0:
        return 0
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if value < Fraction(2) ** exponent:
        exponent -= 1
    unit = max(exponent, smallest) - precision + 1
    scaled = value / Fraction(2) ** unit
    integer = scaled.numerator // scaled.denominator
    rest = scaled - integer
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and integer % 2):
        integer += 1
    # A significand of `precision` bits has its top bit in the exponent field's lowest place, and carries upward.
    bits = integer + ((unit - smallest + precision - 1) << (precision - 1))
    infinity = (largest - smallest + 2) << (precision - 1)
    return min(bits, infinity)


def float_bits(dtype, value):
    """The bits of a float as dtype, rounded once."""
    if value != value:
        return NAN[dtype]
    sign = (1 << (31 if dtype == "f32" else 63)) if math.copysign(1, value) < 0 else 0
    if math.isinf(value):
        precision, smallest, largest = FORMAT[dtype]
        return sign | (largest - smallest + 2) << (precision - 1)
    return sign | round_bits(dtype, abs(Fraction(value)))


def fma(a, b, c):
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c  # for the sign of zero; both summands are exact here or cancel
    return math.copysign(from_bits("f64", round_bits("f64", abs(exact))), 1 if exact > 0 else -1)


def divide(pair, b):
    high = pair[0] / b
    return high, (fma(-high, b, pair[0]) + pair[1]) / b


def bound(square):
    root = math.sqrt(max(square, 0.0))
    return from_bits("f64", float_bits("f64", root) & ~0xFFFFFFFF)


def split(stddev):
    mantissa, exponent = math.frexp(stddev)
    return 2 * mantissa, exponent - 1


def horner(coefficients, f):
    value = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = fma(value, f, c)
    return value


def evaluate_f32(x, mean, stddev):
    mantissa, exponent = split(stddev)
    shift = 600 if exponent < -512 else -600 if exponent > 512 else 0
    try:
        moved = math.ldexp(mean, shift)
    except OverflowError:
        moved = math.copysign(MAX, mean)
    inverse = math.ldexp(SQRT_HALF_LOG2E / mantissa, -exponent - shift)
    base = max(-exponent, -400)
    lowest, highest = bound(float(base - 200)), bound(float(base + 160))
    factor = INVERSE_SQRT_TWO_PI[0] / mantissa
    if x != x:
        return NAN["f32"]
    u = abs(fma(x, math.ldexp(1.0, shift), -moved) * inverse)
    u = max(u if u < highest else highest, lowest)
    total = fma(-u, u, ROUNDER + base)
    f = fma(-u, u, -(total - (ROUNDER + base)))
    value = horner([c * factor for c in EXP2], f)
    return float_bits("f32", math.ldexp(value, int(total - ROUNDER)))


def evaluate_f64(x, mean, stddev):
    mantissa, exponent = split(stddev)
    before, after = -200 if exponent > 900 else 0, 200 if exponent < -900 else 0
    plain = before == 0 and after == 0
    inverse_high, inverse_low = (math.ldexp(v, -exponent - before - after) for v in divide(SQRT_HALF, mantissa))
    rounder = ROUNDER + 2 * ((100 if plain else 0) - exponent)
    if x != x:
        return NAN["f64"]
    start, mean = x * math.ldexp(1.0, before), math.ldexp(mean, before)
    high = start - mean
    back = high - start
    low = (start - (high - back)) - (mean + back)
    high, low = high * math.ldexp(1.0, after), low * math.ldexp(1.0, after)
    u = high * inverse_high
    if not abs(u) < bound((1080 - exponent) * LN2):
        return 0
    u_low = fma(low, inverse_high, fma(high, inverse_low, fma(high, inverse_high, -u)))
    p = u * u
    p_low = fma(u + u, u_low, fma(u, u, -p))
    total = fma(p, -INVERSE_STEP, rounder)
    steps, count = total - rounder, int(total - ROUNDER)
    factor = divide(INVERSE_SQRT_PI if count % 2 else INVERSE_SQRT_TWO_PI, mantissa)
    rest = fma(steps, STEP_LOW, p_low) + -(factor[1] / factor[0])
    f = fma(steps, -STEP_HIGH, -p) - rest
    value = fma(factor[0], fma(f * f, horner(Q, f), f), factor[0])
    # Scaling in two factors of which only the last may round is one exact scaling, rounded once.
    return round_bits("f64", Fraction(value) * Fraction(2) ** (count // 2 - (100 if plain else 0)))


def evaluate(dtype, x_bits, mean, stddev):
    """The bits that gaussian.1 promises."""
    x = from_bits(dtype, x_bits)
    return evaluate_f32(x, mean, stddev) if dtype == "f32" else evaluate_f64(x, mean, stddev)
