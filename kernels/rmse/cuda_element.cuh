// Device code of rmse.cu: how two elements become one difference in binary64, and where elements lie. Every
// rounding is written out; nothing is left to the compiler.
#pragma once

#include <cuda_fp16.h>

#include "kernels/rmse/rmse.h"

namespace tilewire::rmse::cuda {

template <DType D>
struct Element;

/// i8 to u16: the squares of a tile sum exactly in any order.
template <typename T>
struct Narrow {
  using Type = T;
  static constexpr bool kExact = true;
  __device__ static double Difference(T a, T b) {
    return __int2double_rn(static_cast<int>(a) - static_cast<int>(b));
  }
};
template <>
struct Element<DType::kI8> : Narrow<int8_t> {};
template <>
struct Element<DType::kU8> : Narrow<uint8_t> {};
template <>
struct Element<DType::kI16> : Narrow<int16_t> {};
template <>
struct Element<DType::kU16> : Narrow<uint16_t> {};

template <>
struct Element<DType::kI32> {
  using Type = int32_t;
  static constexpr bool kExact = false;
  __device__ static double Difference(int32_t a, int32_t b) {
    return __dsub_rn(__int2double_rn(a), __int2double_rn(b));
  }
};
template <>
struct Element<DType::kU32> {
  using Type = uint32_t;
  static constexpr bool kExact = false;
  __device__ static double Difference(uint32_t a, uint32_t b) {
    return __dsub_rn(__uint2double_rn(a), __uint2double_rn(b));
  }
};
/// |a - b| exactly in 64 bits, rounded once.
template <>
struct Element<DType::kI64> {
  using Type = int64_t;
  static constexpr bool kExact = false;
  __device__ static double Difference(int64_t a, int64_t b) {
    const auto x = static_cast<unsigned long long>(a), y = static_cast<unsigned long long>(b);
    return __ull2double_rn(a < b ? y - x : x - y);
  }
};
template <>
struct Element<DType::kU64> {
  using Type = uint64_t;
  static constexpr bool kExact = false;
  __device__ static double Difference(uint64_t a, uint64_t b) {
    return __ull2double_rn(a < b ? b - a : a - b);
  }
};
template <>
struct Element<DType::kF16> {
  using Type = uint16_t;
  static constexpr bool kExact = false;
  __device__ static double Widen(uint16_t x) {
    return static_cast<double>(__half2float(__ushort_as_half(x)));
  }
  __device__ static double Difference(uint16_t a, uint16_t b) { return __dsub_rn(Widen(a), Widen(b)); }
};
template <>
struct Element<DType::kBF16> {
  using Type = uint16_t;
  static constexpr bool kExact = false;
  __device__ static double Widen(uint16_t x) {
    return static_cast<double>(__uint_as_float(static_cast<unsigned>(x) << 16));
  }
  __device__ static double Difference(uint16_t a, uint16_t b) { return __dsub_rn(Widen(a), Widen(b)); }
};
template <>
struct Element<DType::kF32> {
  using Type = float;
  static constexpr bool kExact = false;
  __device__ static double Difference(float a, float b) {
    return __dsub_rn(static_cast<double>(a), static_cast<double>(b));
  }
};
template <>
struct Element<DType::kF64> {
  using Type = double;
  static constexpr bool kExact = false;
  __device__ static double Difference(double a, double b) { return __dsub_rn(a, b); }
};

template <typename E>
__device__ double Accumulate(typename E::Type a, typename E::Type b, double acc) {
  const double d = E::Difference(a, b);
  return __fma_rn(d, d, acc);
}

/// Quotient and remainder; 32-bit division where it suffices, which is several times cheaper.
__device__ inline int64_t DivMod(int64_t x, int64_t d, int64_t* remainder) {
  if (((x | d) >> 32) == 0) {
    const auto q = static_cast<uint32_t>(x) / static_cast<uint32_t>(d);
    *remainder = static_cast<uint32_t>(x) - q * static_cast<uint32_t>(d);
    return q;
  }
  const int64_t q = x / d;
  *remainder = x - q * d;
  return q;
}

/// What the kernels need to know of one call, by value.
struct Work {
  Layout layout;
  Range range;
  const void* a;
  const void* b;
  double* tile_sums;
  int64_t block_base;  ///< added to blockIdx.x: a grid has at most 2^31 - 1 blocks
  int64_t
      row_stride;  ///< elements from one of a segment's elements to the next; 0: the reduced axes are several
};

/// Memory offset of row-major index `index` over the axes of one kind, the innermost `skip` axes left out.
__device__ inline int64_t AxesOffset(const Layout& layout, bool reduced, int skip, int64_t index) {
  int64_t offset = 0;
  for (int axis = layout.rank - 1 - skip; axis >= 0 && index != 0; --axis) {
    if (layout.reduced[axis] != reduced) continue;
    int64_t at;
    index = DivMod(index, layout.dims[axis], &at);
    offset += at * layout.strides[axis];
  }
  return offset;
}

/// From a segment's first element to its element `i`.
__device__ inline int64_t ElementOffset(const Work& work, int64_t i) {
  return work.row_stride != 0 ? i * work.row_stride : AxesOffset(work.layout, true, 0, i);
}

}  // namespace tilewire::rmse::cuda
