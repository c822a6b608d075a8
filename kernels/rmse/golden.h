// Golden vectors of `rmse.1`: inputs from a documented generator, expected bits from an independent
// implementation (tests/unit/golden/make_golden.py, exact rational arithmetic). `tilewire selftest` shows
// them, tests check them.
//
// Generator, the same in C++ and Python. word(i) of an operand is splitmix64's output function of
// seed + (2·i + operand + 1) · 0x9e3779b97f4a7c15 modulo 2^64, where operand is 0 for a and 1 for b, and seed
// is dtype · 2^40 + pattern · 2^32 + n. A pattern turns word(i) and i into the bits of element i; see
// golden.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/array/dtype.h"

namespace tilewire::rmse {

enum class GoldenPattern : uint8_t {
  kUniform = 0,      ///< integers: any value; floats: either sign, exponents -8 to 7
  kNan = 1,          ///< uniform, but a NaN with a payload at n/2 of a
  kInf = 2,          ///< uniform, but -Inf at n-1 of b
  kInfMinusInf = 3,  ///< uniform, but +Inf at n/2 of both: NaN
  kZeros = 4,        ///< zeros of alternating sign, opposite in a and b
  kSubnormals = 5,   ///< either sign, exponent field 0
  kHuge = 6,         ///< a = largest finite, b = -largest finite
  kTiny = 7,         ///< f64: squares are subnormal or vanish
  kExtremes = 8,     ///< integers: smallest against largest, the order alternating
};

struct GoldenCase {
  std::string_view name;  ///< "f32/4097", "f64/huge/3"
  DType dtype;
  GoldenPattern pattern;
  int64_t n;      ///< one segment of n pairs
  uint64_t rmse;  ///< expected bits of the three outputs
  uint64_t mse;
  uint64_t sum_squares;
};

/// Every real dtype at n = 1, 2, 3, 255, 256, 257, 4095, 4096, 4097 and 12289, then the special patterns.
std::span<const GoldenCase> GoldenCases();

/// Writes both operands, `n` elements each; `a` and `b` hold at least n · SizeOf(dtype) bytes, of any
/// alignment.
void FillGolden(const GoldenCase& golden, void* a, void* b);

}  // namespace tilewire::rmse
