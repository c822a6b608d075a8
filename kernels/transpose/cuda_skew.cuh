// Tiles whose rows are aligned to nothing but the element, as with odd extents.
//
// Writes decide: a partly written sector costs a read. So a tile has skewed edges: its part of every output
// row begins at the last 16-byte boundary (SkewKernel) or sector (LineKernel) before the tile's place, a few
// elements earlier for one row than for the next. For that a few more rows of input are read, which the
// neighbour left in the cache. Only the ends of whole rows are written in pieces.
#pragma once

#include <cstdint>

#include "kernels/transpose/cuda_loose.cuh"
#include "kernels/transpose/cuda_tile.cuh"

namespace tilewire::transpose {

/// 1- and 2-byte elements. Shared memory holds rows of kWords words along x.
template <typename Element_, int kWords_, int kVectors_>
struct SkewShape {
  using Element = Element_;
  static constexpr int kBytes = sizeof(Element), kPack = 4 / kBytes, kGroup = 16 / kBytes;
  static constexpr int kWords = kWords_, kVectors = kVectors_;  ///< words along x, 16-byte vectors along y
  static constexpr int kX = kWords * kPack, kY = kVectors * kGroup;
  static constexpr int kOverhang = kGroup - 1, kRows = kY + kOverhang;
  static constexpr int kPitch = 4 * kWords + 4;  ///< bytes: an odd number of words
  /// How a warp's vectors lie: 16 / kLanesY rows apart their shared rows are 16 banks apart.
  static constexpr int kLanesX = kBytes == 4 ? 4 : kBytes == 2 ? 8 : 16, kLanesY = 32 / kLanesX;
  static constexpr int kGroupsY = kVectors / kLanesY, kGroupsX = kWords / kLanesX;
  static constexpr int kLoads = (kRows * kWords + kTileThreads - 1) / kTileThreads;
  static constexpr int kBatch = 9;  ///< loads in flight a thread
  static constexpr int kStores = kGroupsY * kGroupsX * kPack / (kTileThreads / 32);
  static_assert(kLoads <= kWords && kLoads <= 32 && kVectors % kLanesY == 0 && kWords % kLanesX == 0);
  static_assert(kStores >= 1 && kGroupsY * kGroupsX * kPack % (kTileThreads / 32) == 0);
};

/// LooseWord that keeps its shift: here a register is cheaper than working it out again.
struct ShiftedWord {
  uint32_t low = 0, high = 0, shift = 0;

  /// Fetches element x of `row`, below nx, and those that follow it in a word.
  template <int kElementBytes, typename Index>
  __device__ void Fetch(const char* row, Index x, Index nx) {
    constexpr uint32_t kPack = 4 / kElementBytes;
    const uint64_t address = reinterpret_cast<uint64_t>(row) + static_cast<uint64_t>(x) * kElementBytes;
    const auto* words = reinterpret_cast<const uint32_t*>(address & ~uint64_t{3});
    const auto skew = static_cast<uint32_t>(address & 3);
    shift = skew * 8;
    low = __ldg(words);
    const bool more = kElementBytes < 4 && skew != 0 && x + (kPack - skew / kElementBytes) < nx;
    if (more) high = __ldg(words + 1);
  }
  __device__ uint32_t Get() const { return __funnelshift_r(low, high, shift); }
};

/// Four words of a column of the tile: kGroup elements along y from shared row `row`.
template <typename Shape>
__device__ inline uint4 GatherColumn(const char* tile, int row, int x) {
  const char* at = tile + row * Shape::kPitch + x * Shape::kBytes;
  uint32_t word[4];
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    if constexpr (Shape::kBytes == 1) {
      const auto byte = [&](int k) {
        return uint32_t{*reinterpret_cast<const uint8_t*>(at + (4 * w + k) * Shape::kPitch)};
      };
      word[w] =
          __byte_perm(__byte_perm(byte(0), byte(1), 0x0040), __byte_perm(byte(2), byte(3), 0x0040), 0x5410);
    } else if constexpr (Shape::kBytes == 4) {
      word[w] = *reinterpret_cast<const uint32_t*>(at + w * Shape::kPitch);
    } else {
      const auto half = [&](int k) {
        return uint32_t{*reinterpret_cast<const uint16_t*>(at + (2 * w + k) * Shape::kPitch)};
      };
      word[w] = __byte_perm(half(0), half(1), 0x5410);
    }
  }
  return {word[0], word[1], word[2], word[3]};
}

template <typename Shape, typename Index>
__global__ void __launch_bounds__(kTileThreads)
    SkewKernel(const TileParams<Index> p, const char* __restrict__ in, char* __restrict__ out, Index first) {
  constexpr int kBytes = Shape::kBytes, kGroup = Shape::kGroup;
  __shared__ __align__(16) char tile[Shape::kRows * Shape::kPitch];
  const TilePlace<Index> place = PlaceOfTile<Shape>(p, first + blockIdx.x);
  const TurnRows<Shape::kWords, Index> rows(p.rows, place.y, Shape::kOverhang, Shape::kRows, p.ny);
  const Index x = place.x + threadIdx.x % Shape::kWords * Shape::kPack;
#pragma unroll
  for (int turn = 0; turn < Shape::kLoads; turn += Shape::kBatch) {
    ShiftedWord words[Shape::kBatch];
#pragma unroll
    for (int i = 0; i < Shape::kBatch && turn + i < Shape::kLoads; ++i) {
      const char* row = in + static_cast<uint64_t>(place.from + rows.Offset(turn + i)) * kBytes;
      if (rows.Inside(turn + i) && x < p.nx) words[i].Fetch<kBytes>(row, x, p.nx);
    }
#pragma unroll
    for (int i = 0; i < Shape::kBatch && turn + i < Shape::kLoads; ++i) {
      const int unit = threadIdx.x + (turn + i) * kTileThreads;
      if (unit / Shape::kWords < Shape::kRows)
        *reinterpret_cast<uint32_t*>(tile + unit / Shape::kWords * Shape::kPitch + unit % Shape::kWords * 4) =
            words[i].Get();
    }
  }
  __syncthreads();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int i = 0; i < Shape::kStores; ++i) {
    const int turn = warp + i * (kTileThreads / 32);
    const int vector = turn % Shape::kGroupsY * Shape::kLanesY + lane / Shape::kLanesX;
    const int rest = turn / Shape::kGroupsY;
    const int tx =
        (rest / Shape::kPack * Shape::kLanesX + lane % Shape::kLanesX) * Shape::kPack + rest % Shape::kPack;
    const Index column = place.x + tx;
    if (column >= p.nx) continue;
    char* row = out + static_cast<uint64_t>(place.to + p.columns.Offset(column) + place.y) * kBytes;
    const int skew = static_cast<int>(reinterpret_cast<uint64_t>(row) & 15) / kBytes;
    const int ty = vector * kGroup - skew;
    // Elements of the vector before the row's begin, and up to its end.
    const int begin = place.y == 0 && ty < 0 ? -ty : 0;
    const auto left = static_cast<int64_t>(p.ny) - static_cast<int64_t>(place.y) - ty;
    const int end = left < kGroup ? static_cast<int>(left) : kGroup;
    if (begin >= end) continue;
    const uint4 value = GatherColumn<Shape>(tile, ty + Shape::kOverhang, tx);
    StoreBytes(reinterpret_cast<uint64_t>(row) + static_cast<uint64_t>(static_cast<int64_t>(ty) * kBytes),
               value, begin * kBytes, end * kBytes);
  }
}

/// Elements of 4 bytes and more.
template <typename Element_, int kX_, int kY_>
struct LineShape {
  using Element = Element_;
  static constexpr int kBytes = sizeof(Element), kX = kX_, kY = kY_, kPitch = kX + 1;
  static constexpr int kOverhang = 32 / static_cast<int>(sizeof(Element)) - 1, kRows = kY + kOverhang;
  static constexpr int kLoads = (kRows * kX + kTileThreads - 1) / kTileThreads;
  static constexpr int kStores = kX * kY / kTileThreads;
  static_assert(kX * kY % kTileThreads == 0 && kLoads <= 32 && kStores <= 32);
};

template <typename Shape, typename Index>
__global__ void __launch_bounds__(kTileThreads)
    LineKernel(const TileParams<Index> p, const char* __restrict__ in, char* __restrict__ out, Index first) {
  using Element = typename Shape::Element;
  constexpr int kBytes = sizeof(Element);
  __shared__ Element tile[Shape::kRows * Shape::kPitch];
  const TilePlace<Index> place = PlaceOfTile<Shape>(p, first + blockIdx.x);
  const TurnRows<Shape::kX, Index> rows(p.rows, place.y, Shape::kOverhang, Shape::kRows, p.ny);
  const TurnRows<Shape::kY, Index> columns(p.columns, place.x, 0, Shape::kX, p.nx);
  const Index x = place.x + threadIdx.x % Shape::kX;
  Element loaded[Shape::kLoads];
#pragma unroll
  for (int i = 0; i < Shape::kLoads; ++i) {
    const Index row = place.from + rows.Offset(i);
    if (rows.Inside(i) && x < p.nx) loaded[i] = reinterpret_cast<const Element*>(in)[row + x];
  }
#pragma unroll
  for (int i = 0; i < Shape::kLoads; ++i) {
    const int unit = threadIdx.x + i * kTileThreads;
    if (unit / Shape::kX < Shape::kRows)
      tile[unit / Shape::kX * Shape::kPitch + unit % Shape::kX] = loaded[i];
  }
  __syncthreads();
#pragma unroll 4
  for (int i = 0; i < Shape::kStores; ++i) {
    const int unit = threadIdx.x + i * kTileThreads;
    Element* row = reinterpret_cast<Element*>(out) + (place.to + columns.Offset(i));
    const int skew = static_cast<int>(reinterpret_cast<uint64_t>(row + place.y) & 31) / kBytes;
    const int ty = unit % Shape::kY - skew;
    const Index y = place.y + ty;
    if (columns.Inside(i) && y < p.ny)
      row[y] = tile[(ty + Shape::kOverhang) * Shape::kPitch + unit / Shape::kY];
  }
}

}  // namespace tilewire::transpose
