// The published vectors as data.
#include "kernels/gaussian/golden.h"

#include <cstring>

namespace tilewire::gaussian {
namespace {

#include "kernels/gaussian/golden_table.inc"

void Fill(DType dtype, const uint64_t (&values)[kGoldenElements], void* to) {
  const auto size = static_cast<size_t>(SizeOf(dtype));
  for (size_t i = 0; i < kGoldenElements; ++i)  // little-endian: the low bytes come first
    std::memcpy(static_cast<unsigned char*>(to) + i * size, &values[i], size);
}

}  // namespace

std::span<const GoldenCase> GoldenCases() {
  return kGoldenCases;
}

void FillGoldenInput(const GoldenCase& golden, void* x) {
  Fill(golden.dtype, golden.x, x);
}

void FillGoldenResult(const GoldenCase& golden, void* y) {
  Fill(golden.dtype, golden.y, y);
}

}  // namespace tilewire::gaussian
