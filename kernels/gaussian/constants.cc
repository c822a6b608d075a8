// Constants of one pdf. The numbers come from tests/unit/golden/gaussian_coefficients.py.
#include "kernels/gaussian/constants.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tilewire::gaussian {
namespace {

struct Pair {
  double high, low;
};

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kSqrtHalfLog2E = 0x1.b2da4e9808a53p-1;
constexpr Pair kSqrtHalf = {0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55};
constexpr Pair kInverseSqrtTwoPi = {0x1.9884533d43651p-2, -0x1.cbc0d30ebfd15p-56};
constexpr Pair kInverseSqrtPi = {0x1.20dd750429b6dp-1, 0x1.1ae3a914fed80p-57};

// Minimax for 2^f, |f| <= 0.5, relative error below 2^-29.
constexpr double kExp2[kF32Degree + 1] = {0x1.00000002614d0p+0, 0x1.62e430c7e9485p-1, 0x1.ebfbdadcb228bp-3,
                                          0x1.c6aed4b91a7d7p-5, 0x1.3b2dbbc034060p-7, 0x1.5f456aa325ee1p-10,
                                          0x1.41d333fb258f4p-13};

/// stddev = mantissa·2^exponent, 1 <= mantissa < 2.
struct Parts {
  double mantissa;
  int exponent;
};

Parts Split(double stddev) {
  int exponent;
  const double half = std::frexp(stddev, &exponent);
  return {2 * half, exponent - 1};
}

/// a / b with a relative error below 2^-103.
Pair Divide(Pair a, double b) {
  const double high = a.high / b;
  const double rest = std::fma(-high, b, a.high);  // exact
  return {high, (rest + a.low) / b};
}

/// The root of a square, 0 where that is negative, to 20 bits.
double Bound(double square) {
  const auto bits = std::bit_cast<uint64_t>(std::sqrt(std::max(square, 0.0)));
  return std::bit_cast<double>(bits & ~uint64_t{0xffffffff});
}

Either MakeEither(double even, double odd) {
  const auto bits = std::bit_cast<int64_t>(even);
  return {bits, bits ^ std::bit_cast<int64_t>(odd)};
}

}  // namespace

F32Constants MakeF32Constants(double mean, double stddev) {
  const Parts parts = Split(stddev);
  const int shift = parts.exponent < -512 ? 600 : parts.exponent > 512 ? -600 : 0;
  constexpr double kMax = std::numeric_limits<double>::max();
  F32Constants constants;
  constants.scale = std::ldexp(1.0, shift);
  // A mean that overflows here is far from every f32: any other number as large serves as well.
  constants.shift = std::clamp(-std::ldexp(mean, shift), -kMax, kMax);
  constants.inverse = std::ldexp(kSqrtHalfLog2E / parts.mantissa, -parts.exponent - shift);
  // Results lie below 2^exponent and, at `u`, above 2^(exponent - u² - 4). f32 ends at 2^-150 and 2^128, so
  // that clamping changes nothing but keeps every exponent in a double's range.
  const int exponent = std::max(-parts.exponent, -400);
  constants.lowest = Bound(exponent - 200);
  constants.highest = Bound(exponent + 160);
  constants.rounder = 0x1.8p52 + exponent;
  const double factor = kInverseSqrtTwoPi.high / parts.mantissa;
  for (int i = 0; i <= kF32Degree; ++i) constants.coefficient[i] = kExp2[i] * factor;
  return constants;
}

F64Constants MakeF64Constants(double mean, double stddev) {
  constexpr int kPlain = 900;  // results below 2^900, and nothing that matters overflows or underflows
  const Parts parts = Split(stddev);
  const int before = parts.exponent > kPlain ? -200 : 0;
  const int after = parts.exponent < -kPlain ? 200 : 0;
  F64Constants constants;
  constants.before = std::ldexp(1.0, before);
  constants.after = std::ldexp(1.0, after);
  constants.mean = std::ldexp(mean, before);
  const Pair inverse = Divide(kSqrtHalf, parts.mantissa);
  const int exponent = -parts.exponent - before - after;
  constants.inverse_high = std::ldexp(inverse.high, exponent);
  constants.inverse_low = std::ldexp(inverse.low, exponent);
  constants.plain = before == 0 && after == 0;
  // Results lie below 2^(-e - u²/ln(2)), and f64 ends at 2^-1075.
  constants.highest = Bound((1080 - parts.exponent) * kLn2);
  constants.rounder = 0x1.8p52 + 2 * ((constants.plain ? kF64Raise : 0) - parts.exponent);
  const Pair even = Divide(kInverseSqrtTwoPi, parts.mantissa);
  const Pair odd = Divide(kInverseSqrtPi, parts.mantissa);
  constants.factor = MakeEither(even.high, odd.high);
  constants.defect = MakeEither(-(even.low / even.high), -(odd.low / odd.high));
  return constants;
}

}  // namespace tilewire::gaussian
