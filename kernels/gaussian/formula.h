// The arithmetic of gaussian.1, once for every device and instruction set: a fixed sequence of IEEE
// operations an element, fused multiply-adds only where they are written, no branches, no tables. README.md
// derives it and bounds its error.
//
// Everything has internal linkage: host code for wide instruction sets must not be handed to others by the
// linker.
#pragma once

#include <cstdint>

#include "kernels/gaussian/constants.h"

#ifdef __CUDACC__
#define TILEWIRE_GAUSSIAN_FUNCTION static __host__ __device__ __forceinline__
#else
#define TILEWIRE_GAUSSIAN_FUNCTION static inline
#endif

namespace tilewire::gaussian {

TILEWIRE_GAUSSIAN_FUNCTION double Fma(double a, double b, double c) {
#ifdef __CUDA_ARCH__
  return __fma_rn(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}

TILEWIRE_GAUSSIAN_FUNCTION int64_t ToBits(double value) {
#ifdef __CUDA_ARCH__
  return __double_as_longlong(value);
#else
  int64_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
#endif
}

TILEWIRE_GAUSSIAN_FUNCTION double FromBits(int64_t bits) {
#ifdef __CUDA_ARCH__
  return __longlong_as_double(bits);
#else
  double value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
#endif
}

TILEWIRE_GAUSSIAN_FUNCTION float F32FromBits(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
#endif
}

/// |value| < bound for a positive bound whose low 32 bits are zero. False for NaN.
TILEWIRE_GAUSSIAN_FUNCTION bool IsBelow(double value, double bound) {
#ifdef __CUDA_ARCH__  // keeps the comparison off the binary64 unit
  return (__double2hiint(value) & 0x7fffffff) < __double2hiint(bound);
#else
  return __builtin_fabs(value) < bound;
#endif
}

/// kRounder + v has the integer nearest to v, ties to even, in its low bits, for |v| < 2^31 and more.
#define TILEWIRE_GAUSSIAN_ROUNDER 0x1.8p52

/// The integer in rounder + v, and the exponent field of a double plus an integer: 32 bits suffice where
/// 64-bit integers are slow; elsewhere one width for everything vectorises better.
#ifdef __CUDA_ARCH__
using Integer = int32_t;
#else
using Integer = int64_t;
#endif

TILEWIRE_GAUSSIAN_FUNCTION Integer RoundedInteger(double sum) {
#ifdef __CUDA_ARCH__
  return __double2loint(sum);
#else
  return ToBits(sum) - int64_t{0x4338000000000000};
#endif
}

/// value·2^(halves / 2) for even `halves`, where both are normal numbers; the lowest bit of `halves` is
/// ignored.
TILEWIRE_GAUSSIAN_FUNCTION double Scaled(double value, Integer halves) {
#ifdef __CUDA_ARCH__
  return __hiloint2double(static_cast<int>(static_cast<uint32_t>(__double2hiint(value)) +
                                           (static_cast<uint32_t>(halves & ~1) << 19)),
                          __double2loint(value));
#else
  return FromBits(static_cast<int64_t>(static_cast<uint64_t>(ToBits(value)) +
                                       (static_cast<uint64_t>(halves & ~int64_t{1}) << 51)));
#endif
}

TILEWIRE_GAUSSIAN_FUNCTION Integer Clamp(Integer value, Integer low, Integer high) {
  const Integer raised = value < low ? low : value;
  return raised > high ? high : raised;
}

/// One element, f32. The exponent is exact to 2^-39, the polynomial to 2^-29: at most 0.54 ulp.
TILEWIRE_GAUSSIAN_FUNCTION float EvaluateF32(float x, const F32Constants& c) {
  const double distance = Fma(static_cast<double>(x), c.scale, c.shift);
  const double u = distance * c.inverse;
  const double sum = Fma(-u, u, TILEWIRE_GAUSSIAN_ROUNDER);
  const double whole = sum - TILEWIRE_GAUSSIAN_ROUNDER;
  const double f = Fma(-u, u, -whole);  // -u² = whole + f, |f| <= 0.5
  double value = c.coefficient[kF32Degree];
  for (int i = kF32Degree; i-- > 0;) value = Fma(value, f, c.coefficient[i]);
  // Beyond ±300 the result is 0 or infinite, whatever the mantissa.
  const Integer exponent = Clamp(RoundedInteger(sum) + c.exponent, -300, 300);
  const auto y = static_cast<float>(Scaled(value, 2 * exponent));
  const float elsewhere = x == x ? 0.0f : F32FromBits(0x7fc00000);
  return IsBelow(u, 40) ? y : elsewhere;
}

/// One element, f64. kPlain must not be more than constants.plain says: both ways give the same bits then.
template <bool kPlain>
TILEWIRE_GAUSSIAN_FUNCTION double EvaluateF64(double x, const F64Constants& c) {
  constexpr double kInverseStep = 0x1.71547652b82fep+1;  // 2/ln(2)
  constexpr double kStepHigh = 0x1.62e42fefa2000p-2;     // ln(2)/2: 40 bits, so that products are exact
  constexpr double kStepLow = 0x1.9ef35793c7673p-42;
  // The difference, exactly: high + low.
  const double from = kPlain ? x : x * c.before;
  double high = from - c.mean;
  const double back = high - from;
  double low = (from - (high - back)) - (c.mean + back);
  if (!kPlain) {
    high *= c.after;
    low *= c.after;
  }
  // Divided by stddev·sqrt(2): u + u_low.
  const double u = high * c.inverse_high;
  const double u_low = Fma(low, c.inverse_high, Fma(high, c.inverse_low, Fma(high, c.inverse_high, -u)));
  // Its square: p + p_low. The result is exp(-square) times a factor.
  const double p = u * u;
  const double p_low = Fma(u + u, u_low, Fma(u, u, -p));
  // -square = steps·ln(2)/2 + f, |f| <= ln(2)/4; steps·kStepHigh + p is exact.
  const double sum = Fma(p, -kInverseStep, TILEWIRE_GAUSSIAN_ROUNDER);
  const double steps = sum - TILEWIRE_GAUSSIAN_ROUNDER;
  const Integer count = RoundedInteger(sum);
  const bool odd = (count & 1) != 0;
  const double rest = Fma(steps, kStepLow, p_low) + (odd ? c.defect[1] : c.defect[0]);
  const double f = Fma(steps, -kStepHigh, -p) - rest;
  // exp(f) - 1 = f + f²·q(f), minimax with relative error below 2^-62.
  double q = 0x1.27ae8b418be14p-22;
  q = Fma(q, f, 0x1.72204c4444146p-19);
  q = Fma(q, f, 0x1.a01a188a24b58p-16);
  q = Fma(q, f, 0x1.a019fa8548b8ep-13);
  q = Fma(q, f, 0x1.6c16c169ac6a6p-10);
  q = Fma(q, f, 0x1.1111111160379p-7);
  q = Fma(q, f, 0x1.555555555583fp-5);
  q = Fma(q, f, 0x1.555555555550dp-3);
  q = Fma(q, f, 0.5);
  const double grown = Fma(f * f, q, f);
  const double factor = odd ? c.factor[1] : c.factor[0];
  const double value = Fma(factor, grown, factor);
  // Times 2^(halves / 2): first to a normal number 2^64 off, then there with one rounding.
  Integer halves = count + 2 * c.exponent;
  halves = halves < -2160 ? -2160 : halves;
  const bool raise = kPlain || halves < 0;
  const double y = Scaled(value, raise ? halves + 128 : halves - 128) * (raise ? 0x1p-64 : 0x1p64);
  const double elsewhere = x == x ? 0.0 : FromBits(0x7ff8000000000000);
  return IsBelow(u, 48) ? y : elsewhere;
}

}  // namespace tilewire::gaussian
