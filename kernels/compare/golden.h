// Golden vectors of `compare.1`: the inputs of `rmse.1`'s (kernels/rmse/golden.h), expected bits of every
// metric from an independent implementation (tests/unit/golden/make_compare.py, exact rational arithmetic).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/compare/compare.h"
#include "kernels/rmse/golden.h"

namespace tilewire::compare {

struct GoldenCase {
  std::string_view name;  ///< "f32/4097", "f64/huge/3"
  DType dtype;
  rmse::GoldenPattern pattern;
  int64_t n;                    ///< one segment of n pairs
  uint64_t expected[kMetrics];  ///< by metric
};

/// Every real dtype at n = 1, 2, 3, 255, 256, 257, 4095, 4096, 4097 and 12289, then the special patterns.
std::span<const GoldenCase> GoldenCases();

/// Writes both operands, `n` elements each; `a` and `b` hold at least n · SizeOf(dtype) bytes, of any
/// alignment.
void FillGolden(const GoldenCase& golden, void* a, void* b);

}  // namespace tilewire::compare
