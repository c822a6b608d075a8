// Constants of one pdf. The numbers come from tests/unit/golden/gaussian_coefficients.py.
#include "kernels/gaussian/constants.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewire::gaussian {
namespace {

struct Pair {
  double high, low;
};

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
  const double factor = kInverseSqrtTwoPi.high / parts.mantissa;
  for (int i = 0; i <= kF32Degree; ++i) constants.coefficient[i] = kExp2[i] * factor;
  constants.exponent = -parts.exponent;
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
  const Pair numerators[2] = {kInverseSqrtTwoPi, kInverseSqrtPi};
  for (int i = 0; i < 2; ++i) {
    const Pair factor = Divide(numerators[i], parts.mantissa);
    constants.factor[i] = factor.high;
    constants.defect[i] = -(factor.low / factor.high);
  }
  constants.exponent = -parts.exponent;
  constants.plain = before == 0 && after == 0;
  return constants;
}

}  // namespace tilewire::gaussian
