// Words and vectors that start at any byte, from the aligned ones around them.
#pragma once

#include <cstdint>

namespace tilewire::transpose {

/// A word that starts anywhere, as the two aligned words around it.
template <int kElementBytes>
struct LooseWord {
  uint32_t low = 0, high = 0;

  /// Fetches `count` elements, 1 or more, of a word at `address`. Aligned words that hold none of them are
  /// not touched.
  __device__ void Fetch(uint64_t address, uint32_t count) {
    const auto* words = reinterpret_cast<const uint32_t*>(address & ~uint64_t{3});
    low = __ldg(words);
    if constexpr (kElementBytes == 4) return;
    const auto skew = static_cast<uint32_t>(address & 3);
    if (skew + count * kElementBytes > 4) high = __ldg(words + 1);
  }
  /// The word, given what Fetch() was given.
  __device__ uint32_t Get(uint64_t address) const {
    if constexpr (kElementBytes == 4) return low;
    return __funnelshift_r(low, high, static_cast<uint32_t>(address) * 8);  // modulo 32
  }
};

/// Bytes [skew, skew + 16) of two vectors.
__device__ inline uint4 ShiftVectors(uint4 low, uint4 high, int skew) {
  uint32_t a[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  // By two words, by one, then by the bytes that are left.
#pragma unroll
  for (int i = 0; i < 6; ++i) a[i] = (skew & 8) != 0 ? a[i + 2] : a[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) a[i] = (skew & 4) != 0 ? a[i + 1] : a[i];
  const int bits = (skew & 3) * 8;
  return {__funnelshift_r(a[0], a[1], bits), __funnelshift_r(a[1], a[2], bits),
          __funnelshift_r(a[2], a[3], bits), __funnelshift_r(a[3], a[4], bits)};
}

/// 16 bytes of shared memory from any byte on; up to 31 bytes from the last boundary on are read.
__device__ inline uint4 SharedVector(const char* from) {
  const auto skew = static_cast<int>(reinterpret_cast<uint64_t>(from) & 15);
  const auto* vectors = reinterpret_cast<const uint4*>(from - skew);
  return ShiftVectors(vectors[0], vectors[1], skew);
}

/// Writes bytes [begin, end) of a vector to `to`, a multiple of 16, in the largest aligned pieces.
__device__ inline void StoreBytes(uint64_t to, uint4 vector, int begin, int end) {
  if (begin == 0 && end == 16) {
    *reinterpret_cast<uint4*>(to) = vector;
    return;
  }
  const uint32_t words[4] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    const bool whole = begin <= 4 * w && 4 * w + 4 <= end;
    if (whole) reinterpret_cast<uint32_t*>(to)[w] = words[w];
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (!whole && begin <= 4 * w + k && 4 * w + k < end)
        reinterpret_cast<uint8_t*>(to)[4 * w + k] = static_cast<uint8_t>(words[w] >> (8 * k));
  }
}

}  // namespace tilewire::transpose
