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

/// |value|, but not below `lowest` and not beyond `highest`, which NaN becomes. The low 32 bits of both are
/// zero. The GPU keeps those of the value: results are the same on and beyond a bound.
TILEWIRE_GAUSSIAN_FUNCTION double ClampedMagnitude(double value, double lowest, double highest) {
#ifdef __CUDA_ARCH__
  const int high = min(__double2hiint(value) & 0x7fffffff, __double2hiint(highest));
  return __hiloint2double(max(high, __double2hiint(lowest)), __double2loint(value));
#else
  const double magnitude = __builtin_fabs(value);
  const double bounded = magnitude < highest ? magnitude : highest;
  return bounded > lowest ? bounded : lowest;
#endif
}

/// value·2^k, where `sum` is 1.5·2^52 + 2k or + 2k + 1; both are normal numbers.
TILEWIRE_GAUSSIAN_FUNCTION double ScaledByHalves(double value, double sum) {
#ifdef __CUDA_ARCH__
  const uint32_t high = static_cast<uint32_t>(__double2hiint(value));
  const uint32_t steps = static_cast<uint32_t>(__double2loint(sum));
  return __hiloint2double(static_cast<int>(high + ((steps & ~1u) << 19)), __double2loint(value));
#else
  const auto steps = static_cast<uint64_t>(ToBits(sum));
  return FromBits(
      static_cast<int64_t>(static_cast<uint64_t>(ToBits(value)) + ((steps & ~uint64_t{1}) << 51)));
#endif
}

/// value·2^k, where `sum` is 1.5·2^52 + k; both are normal numbers.
TILEWIRE_GAUSSIAN_FUNCTION double Scaled(double value, double sum) {
#ifdef __CUDA_ARCH__
  const uint32_t high = static_cast<uint32_t>(__double2hiint(value));
  const uint32_t steps = static_cast<uint32_t>(__double2loint(sum));
  return __hiloint2double(static_cast<int>(high + (steps << 20)), __double2loint(value));
#else
  const auto steps = static_cast<uint64_t>(ToBits(sum));
  return FromBits(static_cast<int64_t>(static_cast<uint64_t>(ToBits(value)) + (steps << 52)));
#endif
}

/// The one of two numbers that the lowest bit of 1.5·2^52 + n names, without a branch or a comparison.
TILEWIRE_GAUSSIAN_FUNCTION double Choose(double sum, const Either& numbers) {
  return FromBits(numbers.even ^ (-(ToBits(sum) & 1) & numbers.flip));
}

/// One element, f32. The exponent is exact to 2^-39, the polynomial to 2^-29: at most 0.54 ulp.
TILEWIRE_GAUSSIAN_FUNCTION float EvaluateF32(float x, const F32Constants& c) {
  const double distance = Fma(static_cast<double>(x), c.scale, c.shift);
  const double u = ClampedMagnitude(distance * c.inverse, c.lowest, c.highest);
  const double sum = Fma(-u, u, c.rounder);
  const double whole = sum - c.rounder;
  const double f = Fma(-u, u, -whole);  // -u² = whole + f, |f| <= 0.5
  static_assert(kF32Degree == 6);
  double value = c.coefficient[6];
  value = Fma(value, f, c.coefficient[5]);
  value = Fma(value, f, c.coefficient[4]);
  value = Fma(value, f, c.coefficient[3]);
  value = Fma(value, f, c.coefficient[2]);
  value = Fma(value, f, c.coefficient[1]);
  value = Fma(value, f, c.coefficient[0]);
  const auto y = static_cast<float>(Scaled(value, sum));
  return x == x ? y : F32FromBits(0x7fc00000);
}

/// One element, f64. kPlain is constants.plain.
template <bool kPlain>
TILEWIRE_GAUSSIAN_FUNCTION double EvaluateF64(double x, const F64Constants& c) {
  constexpr double kInverseStep = 0x1.71547652b82fep+1;  // 2/ln(2)
  constexpr double kStepHigh = 0x1.62e42fefa2000p-2;     // ln(2)/2: 40 bits, so that products are exact
  constexpr double kStepLow = 0x1.9ef35793c7673p-42;
  constexpr double kLowered = 0x1p-100;
  static_assert(kF64Raise == 100);
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
  const double sum = Fma(p, -kInverseStep, c.rounder);
  const double steps = sum - c.rounder;
  const double rest = Fma(steps, kStepLow, p_low) + Choose(sum, c.defect);
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
  const double factor = Choose(sum, c.factor);
  const double value = Fma(factor, grown, factor);
  // Exponents of results go from -1075 to 1074, beyond those of normal numbers: some way there now, the rest
  // by an operation that rounds.
  double y;
  if (kPlain) {
    y = ScaledByHalves(value, sum) * kLowered;
  } else {
    const bool small = sum < 0x1.8p52;
    y = ScaledByHalves(value, small ? sum + 2 * kF64Raise : sum - 2 * kF64Raise) *
        (small ? kLowered : 1 / kLowered);
  }
  const double elsewhere = x == x ? 0.0 : FromBits(0x7ff8000000000000);
  return IsBelow(u, c.highest) ? y : elsewhere;
}

}  // namespace tilewire::gaussian
