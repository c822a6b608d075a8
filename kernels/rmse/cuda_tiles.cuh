// Device code of rmse.cu: the tile sums. Three mappings of the same sum to threads: a thread per tiny
// segment, a warp per tile, a block per tile of up to 32 adjacent columns. Adding an untouched accumulator
// changes no bit (host_tiles.inc says why), so short tiles simply leave accumulators at +0.
#pragma once

#include "kernels/rmse/cuda_element.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int kBlockThreads = 256;
inline constexpr int kColumnRows = 32;  // threads of a column block along the rows

// --- a thread per segment of at most kWidth elements
// -----------------------------------------------------------------

template <typename E, int kWidth>
__global__ void __launch_bounds__(kBlockThreads) TinyKernel(const Work work) {
  const int64_t segment =
      work.range.segment_begin + (work.block_base + blockIdx.x) * kBlockThreads + threadIdx.x;
  if (segment >= work.range.segment_end) return;
  const int64_t base = AxesOffset(work.layout, false, 0, segment);
  const auto* a = static_cast<const typename E::Type*>(work.a) + base;
  const auto* b = static_cast<const typename E::Type*>(work.b) + base;
  double acc[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    acc[i] = 0;
    if (i < work.layout.elements) {
      const int64_t at = ElementOffset(work, i);
      acc[i] = Accumulate<E>(a[at], b[at], 0.0);
    }
  }
#pragma unroll
  for (int s = kWidth / 2; s >= 1; s /= 2) {
#pragma unroll
    for (int i = 0; i < s; ++i) acc[i] = __dadd_rn(acc[i], acc[i + s]);
  }
  work.tile_sums[segment] = acc[0];
}

// --- a warp per tile
// -------------------------------------------------------------------------------------------------

/// kVector consecutive elements, one 16-byte load.
template <typename T, int kVector>
struct alignas(sizeof(T) * kVector) Pack {
  T v[kVector];
};

/// Lane l holds accumulators c·32·kVector + l·kVector + v as acc[c·kVector + v].
template <int kVector>
__device__ double WarpTree(double (&acc)[8]) {
#pragma unroll
  for (int s = 4; s >= kVector; s /= 2) {
#pragma unroll
    for (int i = 0; i < s; ++i) acc[i] = __dadd_rn(acc[i], acc[i + s]);
  }
#pragma unroll
  for (int lanes = 16; lanes >= 1; lanes /= 2) {
#pragma unroll
    for (int v = 0; v < kVector; ++v)
      acc[v] = __dadd_rn(acc[v], __shfl_down_sync(0xffffffffu, acc[v], lanes));
  }
#pragma unroll
  for (int s = kVector / 2; s >= 1; s /= 2) {
#pragma unroll
    for (int v = 0; v < s; ++v) acc[v] = __dadd_rn(acc[v], acc[v + s]);
  }
  return acc[0];
}

/// Any tile: elements first to first + n of the segment at a, b, wherever they lie.
template <typename E>
__device__ double WarpTile(const Work& work, const typename E::Type* a, const typename E::Type* b,
                           int64_t first, int n, int lane) {
  double acc[8] = {};
  for (int round = 0; round < n; round += 256) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const int i = round + c * 32 + lane;
      if (i < n) {
        const int64_t at = ElementOffset(work, first + i);
        acc[c] = Accumulate<E>(a[at], b[at], acc[c]);
      }
    }
  }
  return WarpTree<1>(acc);
}

/// A whole contiguous tile at 16-byte aligned addresses.
template <typename E, int kVector>
__device__ double WarpFullTile(const typename E::Type* a, const typename E::Type* b, int lane) {
  using Vector = Pack<typename E::Type, kVector>;
  const auto* va = reinterpret_cast<const Vector*>(a) + lane;
  const auto* vb = reinterpret_cast<const Vector*>(b) + lane;
  constexpr int kChunks = 8 / kVector;  // loads of the warp that make a round of 256
  double acc[8] = {};
#pragma unroll 4
  for (int round = 0; round < kTileElements / kAccumulators; ++round) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const Vector x = va[(round * kChunks + c) * 32], y = vb[(round * kChunks + c) * 32];
#pragma unroll
      for (int v = 0; v < kVector; ++v)
        acc[c * kVector + v] = Accumulate<E>(x.v[v], y.v[v], acc[c * kVector + v]);
    }
  }
  return WarpTree<kVector>(acc);
}

/// The same for i8 to u16, whose sum is exact in any order and so may be one of integers.
template <typename E>
__device__ double WarpExactTile(const typename E::Type* a, const typename E::Type* b, int lane) {
  constexpr int kVector = 16 / sizeof(typename E::Type);
  using Vector = Pack<typename E::Type, kVector>;
  const auto* va = reinterpret_cast<const Vector*>(a) + lane;
  const auto* vb = reinterpret_cast<const Vector*>(b) + lane;
  unsigned long long sum = 0;
#pragma unroll
  for (int load = 0; load < kTileElements / (32 * kVector); ++load) {
    const Vector x = va[load * 32], y = vb[load * 32];
    uint32_t bytes = 0;  // 8-bit types: 16 squares below 2^16
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      const auto d = static_cast<uint32_t>(static_cast<int>(x.v[v]) - static_cast<int>(y.v[v]));
      if constexpr (sizeof(typename E::Type) == 1) {
        bytes += d * d;
      } else {
        sum += d * d;
      }
    }
    sum += bytes;
  }
#pragma unroll
  for (int lanes = 16; lanes >= 1; lanes /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lanes);
  return __ull2double_rn(sum);
}

/// kAligned: segments are contiguous and start at multiples of 16 bytes.
template <typename E, bool kAligned>
__global__ void __launch_bounds__(kBlockThreads) WarpKernel(const Work work) {
  const int lane = threadIdx.x % 32;
  const int64_t item = (work.block_base + blockIdx.x) * (kBlockThreads / 32) + threadIdx.x / 32;
  if (item >=
      (work.range.segment_end - work.range.segment_begin) * (work.range.tile_end - work.range.tile_begin))
    return;
  int64_t tile;
  const int64_t segment =
      work.range.segment_begin + DivMod(item, work.range.tile_end - work.range.tile_begin, &tile);
  tile += work.range.tile_begin;
  const int64_t first = tile * kTileElements;
  const int64_t rest = work.layout.elements - first;
  const int n = static_cast<int>(rest < kTileElements ? rest : kTileElements);
  const int64_t base = AxesOffset(work.layout, false, 0, segment);
  const auto* a = static_cast<const typename E::Type*>(work.a) + base;
  const auto* b = static_cast<const typename E::Type*>(work.b) + base;
  double sum;
  if (kAligned && n == kTileElements) {
    if constexpr (E::kExact) {
      sum = WarpExactTile<E>(a + first, b + first, lane);
    } else {
      sum = WarpFullTile<E, 16 / sizeof(typename E::Type)>(a + first, b + first, lane);
    }
  } else {
    sum = WarpTile<E>(work, a, b, first, n, lane);
  }
  if (lane == 0) work.tile_sums[segment * work.layout.tiles + tile] = sum;
}

// --- a block per tile of adjacent columns
// ----------------------------------------------------------------------------

/// blockDim = (columns of a group, 32). Thread (x, y) holds accumulators m·32 + y of column x.
template <typename E>
__global__ void __launch_bounds__(1024)
    ColumnKernel(const Work work, int64_t column_groups, int64_t outer_begin, int64_t outer_count) {
  __shared__ double sums[kColumnRows][33];
  const Layout& layout = work.layout;
  const int x = threadIdx.x, y = threadIdx.y;
  int64_t group, outer;
  const int64_t tile =
      work.range.tile_begin +
      DivMod(DivMod(work.block_base + blockIdx.x, column_groups, &group), outer_count, &outer);
  outer += outer_begin;
  const int64_t width = layout.dims[layout.rank - 1];
  const int64_t column = group * blockDim.x + x;
  const int64_t segment = outer * width + column;
  const bool mine = column < width && segment >= work.range.segment_begin && segment < work.range.segment_end;
  const int64_t first = tile * kTileElements;
  const int64_t rest = layout.elements - first;
  const int n = static_cast<int>(rest < kTileElements ? rest : kTileElements);
  double acc[8] = {};
  if (mine) {
    const int64_t base = AxesOffset(layout, false, 1, outer) + column;
    const auto* a = static_cast<const typename E::Type*>(work.a) + base;
    const auto* b = static_cast<const typename E::Type*>(work.b) + base;
    for (int round = y; round < n; round += 256) {
#pragma unroll
      for (int m = 0; m < 8; ++m) {
        const int i = round + m * kColumnRows;
        if (i < n) {
          const int64_t at = ElementOffset(work, first + i);
          acc[m] = Accumulate<E>(a[at], b[at], acc[m]);
        }
      }
    }
  }
#pragma unroll
  for (int s = 4; s >= 1; s /= 2) {
#pragma unroll
    for (int m = 0; m < s; ++m) acc[m] = __dadd_rn(acc[m], acc[m + s]);
  }
  sums[y][x] = acc[0];
  for (int s = kColumnRows / 2; s >= 1; s /= 2) {
    __syncthreads();
    if (y < s) sums[y][x] = __dadd_rn(sums[y][x], sums[y + s][x]);
  }
  if (y == 0 && mine) work.tile_sums[segment * layout.tiles + tile] = sums[0][x];
}

}  // namespace tilewire::rmse::cuda
