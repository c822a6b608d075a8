// Tiles of 1- and 2-byte elements whose rows are not aligned to words, as with odd extents.
//
// Memory is still touched in aligned 32-bit words: neighbouring lanes hold neighbouring words of a row, and a
// funnel shift makes of two of them the word that starts at the tile's edge; on the way out likewise. Only
// the ends of an output row are written element by element, because other tiles own the rest of those words.
#pragma once

#include <cstdint>

#include "kernels/transpose/cuda_tile.cuh"

namespace tilewire::transpose {

template <typename Element_>
struct ShiftShape {
  using Element = Element_;
  static constexpr int kElementBytes = sizeof(Element), kPack = 4 / kElementBytes;
  static constexpr int kX = 32 * kPack, kY = 32 * kPack;  ///< a warp's words, both ways
  static constexpr int kPitch = 33;
  static constexpr int kWarps = kTileThreads / 32;
};

/// The word at element `x` of a row of `nx`, by all lanes of a warp, x ascending by words. Words that hold no
/// element of the row are not touched.
template <int kElementBytes>
__device__ inline uint32_t LoadShifted(const char* row, uint64_t x, uint64_t nx) {
  const uint64_t address = reinterpret_cast<uint64_t>(row) + x * kElementBytes;
  const uint64_t end = reinterpret_cast<uint64_t>(row) + nx * kElementBytes, aligned = address & ~uint64_t{3};
  const uint32_t low = aligned < end ? *reinterpret_cast<const uint32_t*>(aligned) : 0;
  uint32_t high = __shfl_down_sync(0xffffffff, low, 1);
  if (threadIdx.x % 32 == 31) high = aligned + 4 < end ? *reinterpret_cast<const uint32_t*>(aligned + 4) : 0;
  return __funnelshift_r(low, high, static_cast<uint32_t>(address & 3) * 8);
}

/// Writes 32 words, one a lane, to `row`, of which the first `count` elements exist.
template <typename Element>
__device__ inline void StoreShifted(char* row, uint32_t word, int count) {
  constexpr int kBytes = sizeof(Element), kPack = 4 / kBytes;
  const int lane = threadIdx.x % 32;
  const int skew = static_cast<int>(reinterpret_cast<uint64_t>(row) & 3) / kBytes;  // elements into a word
  const uint32_t before = __shfl_up_sync(0xffffffff, word, 1);
  const uint32_t value = skew == 0 ? word : __funnelshift_r(before, word, (kPack - skew) * kBytes * 8);
  const int first = lane * kPack - skew;
  auto* to = reinterpret_cast<Element*>(row);
  if (first >= 0 && first + kPack <= count) {
    *reinterpret_cast<uint32_t*>(to + first) = value;
  } else {
    for (int k = 0; k < kPack; ++k)
      if (first + k >= 0 && first + k < count)
        to[first + k] = static_cast<Element>(value >> (k * kBytes * 8));
  }
  if (lane != 31) return;  // the last word's end, which the skew pushed behind the last lane
  for (int k = kPack - skew; k < kPack; ++k)
    if (31 * kPack + k < count) to[31 * kPack + k] = static_cast<Element>(word >> (k * kBytes * 8));
}

template <typename Shape, typename Index>
__global__ void __launch_bounds__(kTileThreads)
    ShiftKernel(const TileParams<Index> p, const char* __restrict__ in, char* __restrict__ out, Index first) {
  constexpr int kPack = Shape::kPack, kBytes = Shape::kElementBytes;
  __shared__ uint32_t tile[Shape::kX * Shape::kPitch];
  const TilePlace<Index> place = PlaceOfTile<Shape>(p, first + blockIdx.x);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint32_t loaded[32 / Shape::kWarps][kPack];
#pragma unroll
  for (int i = 0; i < 32 / Shape::kWarps; ++i) {
#pragma unroll
    for (int r = 0; r < kPack; ++r) {
      const Index y = place.y + (warp + i * Shape::kWarps) * kPack + r;
      if (y >= p.ny) continue;
      const char* row = in + static_cast<uint64_t>(place.from + y * p.in_row) * kBytes;
      loaded[i][r] = LoadShifted<kBytes>(row, place.x + lane * kPack, p.nx);
    }
  }
#pragma unroll
  for (int i = 0; i < 32 / Shape::kWarps; ++i) {
    TransposeWords<kPack>(loaded[i]);
#pragma unroll
    for (int c = 0; c < kPack; ++c)
      tile[(lane * kPack + c) * Shape::kPitch + warp + i * Shape::kWarps] = loaded[i][c];
  }
  __syncthreads();
  const Index left = p.ny - place.y;
  const int count = left < Shape::kY ? static_cast<int>(left) : Shape::kY;
#pragma unroll 4
  for (int i = 0; i < Shape::kX / Shape::kWarps; ++i) {
    const int tx = warp + i * Shape::kWarps;
    const Index x = place.x + tx;
    if (x >= p.nx) break;
    char* row = out + static_cast<uint64_t>(place.to + x * p.out_row + place.y) * kBytes;
    StoreShifted<typename Shape::Element>(row, tile[tx * Shape::kPitch + lane], count);
  }
}

template <typename Element, typename Index>
cudaError_t LaunchShifted(const Box& box, const char* in, char* out, cudaStream_t stream) {
  using Shape = ShiftShape<Element>;
  return LaunchTileKernel<Shape, Index>(ShiftKernel<Shape, Index>, box, in, out, stream);
}

}  // namespace tilewire::transpose
