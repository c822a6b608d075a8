// Two-dimensional tiles for the host transpose: in-register blocks, gathered into whole cache lines.
#pragma once

#include <cstdint>
#include <cstring>

namespace tilewire::transpose {

/// Vectors of 16 bytes: every x86-64 and arm64 has them.
template <int kBytes>
struct Lanes;
template <>
struct Lanes<1> {
  using Element = uint8_t;
};
template <>
struct Lanes<2> {
  using Element = uint16_t;
};
template <>
struct Lanes<4> {
  using Element = uint32_t;
};
template <>
struct Lanes<8> {
  using Element = uint64_t;
};
template <int kBytes>
using Vector __attribute__((vector_size(16))) = typename Lanes<kBytes>::Element;

/// Interleaves the low (kHigh = 0) or high halves of a and b.
template <int kBytes, int kHigh>
inline Vector<kBytes> Interleave(Vector<kBytes> a, Vector<kBytes> b) {
  if constexpr (kBytes == 8) {
    return __builtin_shufflevector(a, b, kHigh, 2 + kHigh);
  } else if constexpr (kBytes == 4) {
    constexpr int h = 2 * kHigh;
    return __builtin_shufflevector(a, b, h, 4 + h, h + 1, 5 + h);
  } else if constexpr (kBytes == 2) {
    constexpr int h = 4 * kHigh;
    return __builtin_shufflevector(a, b, h, 8 + h, h + 1, 9 + h, h + 2, 10 + h, h + 3, 11 + h);
  } else {
    constexpr int h = 8 * kHigh;
    return __builtin_shufflevector(a, b, h, 16 + h, h + 1, 17 + h, h + 2, 18 + h, h + 3, 19 + h, h + 4,
                                   20 + h, h + 5, 21 + h, h + 6, 22 + h, h + 7, 23 + h);
  }
}

/// Transposes n x n elements, n = 16 / kBytes. Strides in bytes; the fast axes are contiguous on both sides.
/// log2(n) perfect shuffles of n vectors are a transpose.
template <int kBytes>
inline void TransposeBlock(const char* in, int64_t in_stride, char* out, int64_t out_stride) {
  if constexpr (kBytes == 16) {
    std::memcpy(out, in, 16);
  } else {
    constexpr int n = 16 / kBytes;
    Vector<kBytes> v[n], w[n];
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) std::memcpy(&v[i], in + i * in_stride, 16);
#pragma GCC unroll 4
    for (int step = 1; step < n; step *= 2) {
#pragma GCC unroll 8
      for (int i = 0; i < n / 2; ++i) {
        w[2 * i] = Interleave<kBytes, 0>(v[i], v[i + n / 2]);
        w[2 * i + 1] = Interleave<kBytes, 1>(v[i], v[i + n / 2]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) v[i] = w[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) std::memcpy(out + i * out_stride, &v[i], 16);
  }
}

/// Any size, element by element: what the blocks leave over.
template <int kBytes>
inline void TransposeRest(const char* in, int64_t in_stride, char* out, int64_t out_stride, int64_t nx,
                          int64_t ny) {
  for (int64_t x = 0; x < nx; ++x)
    for (int64_t y = 0; y < ny; ++y)
      std::memcpy(out + x * out_stride + y * kBytes, in + y * in_stride + x * kBytes, kBytes);
}

/// nx and ny at most 64 / kBytes: blocks, and single elements at the two edges.
template <int kBytes>
inline void TransposeSmall(const char* in, int64_t in_stride, char* out, int64_t out_stride, int64_t nx,
                           int64_t ny) {
  constexpr int64_t n = 16 / kBytes;
  const int64_t whole_x = nx / n * n, whole_y = ny / n * n;
  for (int64_t y = 0; y < whole_y; y += n)
    for (int64_t x = 0; x < whole_x; x += n)
      TransposeBlock<kBytes>(in + y * in_stride + x * kBytes, in_stride, out + x * out_stride + y * kBytes,
                             out_stride);
  if (whole_x < nx)
    TransposeRest<kBytes>(in + whole_x * kBytes, in_stride, out + whole_x * out_stride, out_stride,
                          nx - whole_x, ny);
  if (whole_y < ny)
    TransposeRest<kBytes>(in + whole_y * in_stride, in_stride, out + whole_y * kBytes, out_stride, whole_x,
                          ny - whole_y);
}

/// out[x][y] = in[y][x] for x < nx, y < ny; row strides in bytes. Tiles of 64 x 64 bytes pass through a
/// buffer, so that the output is touched a whole line at a time: with strides of a power of two its lines
/// share a cache set.
template <int kBytes>
void TransposeTiles(const char* in, int64_t in_stride, char* out, int64_t out_stride, int64_t nx,
                    int64_t ny) {
  constexpr int64_t kSide = 64 / kBytes;
  for (int64_t x = 0; x < nx; x += kSide) {
    for (int64_t y = 0; y < ny; y += kSide) {
      const char* from = in + y * in_stride + x * kBytes;
      char* to = out + x * out_stride + y * kBytes;
      const int64_t tx = nx - x < kSide ? nx - x : kSide, ty = ny - y < kSide ? ny - y : kSide;
      if (tx < kSide || ty < kSide) {
        TransposeSmall<kBytes>(from, in_stride, to, out_stride, tx, ty);
        continue;
      }
      alignas(64) char buffer[kSide * 64];
      TransposeSmall<kBytes>(from, in_stride, buffer, 64, kSide, kSide);
      for (int64_t i = 0; i < kSide; ++i) std::memcpy(to + i * out_stride, buffer + i * 64, 64);
    }
  }
}

}  // namespace tilewire::transpose
