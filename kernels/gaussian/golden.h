// Golden vectors of `gaussian.1`: for known inputs the bits that every device and instruction set must give,
// from an independent implementation in exact rational arithmetic (tests/unit/golden/make_gaussian.py, which
// also holds them against the correctly rounded values). `tilewire selftest` shows them, tests check them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/array/dtype.h"

namespace tilewire::gaussian {

inline constexpr int kGoldenElements = 8;  ///< of every case

struct GoldenCase {
  std::string_view name;  ///< "f32/standard", "f64/tail"
  DType dtype;            ///< f32 or f64
  double mean, stddev;
  uint64_t x[kGoldenElements];  ///< bits of the inputs; f32 uses the low half
  uint64_t y[kGoldenElements];  ///< bits of the results
};

/// For both dtypes: the middle and the tails of several distributions, results that are subnormal, vanish or
/// overflow, special values of x, and the most extreme means and deviations.
std::span<const GoldenCase> GoldenCases();

/// Writes x, or the expected y, as an array of kGoldenElements elements: kGoldenElements · SizeOf(dtype)
/// bytes, of any alignment.
void FillGoldenInput(const GoldenCase& golden, void* x);
void FillGoldenResult(const GoldenCase& golden, void* y);

}  // namespace tilewire::gaussian
