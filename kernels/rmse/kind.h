// The kinds of element that the CUDA kernels are compiled for.
#pragma once

#include <cstdint>

#include "kernels/array/dtype.h"

namespace tilewire::rmse::cuda {

/// Signed integers are computed as unsigned ones with the sign bit flipped, which shifts both operands alike
/// and so changes no difference. That leaves eight kinds of element for twelve dtypes, and eight copies of
/// each kernel.
enum class Kind : uint8_t { kU8, kU16, kU32, kU64, kF16, kBF16, kF32, kF64 };
inline constexpr Kind kKinds[] = {Kind::kU8,  Kind::kU16,  Kind::kU32, Kind::kU64,
                                  Kind::kF16, Kind::kBF16, Kind::kF32, Kind::kF64};

/// Bytes of an element.
constexpr int SizeOf(Kind kind) {
  constexpr int kSizes[] = {1, 2, 4, 8, 2, 2, 4, 8};
  return kSizes[static_cast<int>(kind)];
}

/// 8 and 16 bits: a tile's sum is exact in any order, so it may be one of integers.
constexpr bool IsExact(Kind kind) {
  return kind <= Kind::kU16;
}

/// Floats of 16 bits: what they cost is turning them into binary64.
constexpr bool IsHalf(Kind kind) {
  return kind == Kind::kF16 || kind == Kind::kBF16;
}

/// The kind of a real dtype, and the sign bits that it flips, over all eight bytes.
struct KindOf {
  Kind kind = Kind::kF32;
  uint64_t flip = 0;
  explicit KindOf(DType dtype);
};

}  // namespace tilewire::rmse::cuda
