// Tiles: both fast axes are contiguous and long. A thread block carries one tile through shared memory.
//
// Elements of 1 and 2 bytes travel in 32-bit words, kPack to a word: a thread loads the same words of kPack
// neighbouring rows and transposes them in registers, so shared memory holds words that already lie along y.
#pragma once

#include <cstdint>

#include "kernels/transpose/box.h"
#include "kernels/transpose/cuda_divider.cuh"

namespace tilewire::transpose {

inline constexpr int kTileThreads = 256;
inline constexpr int64_t kMaxBlocksALaunch = int64_t{1} << 30;

/// out[x * out_row + y] = in[y * in_row + x], at every index of the batch axes (fastest first).
template <typename Index>
struct TileParams {
  Index nx, ny, in_row, out_row;
  Divider<Index> tiles_x, tiles_y;
  int batch_rank = 0;
  Divider<Index> batch_dims[kMaxRank];
  Index batch_in[kMaxRank], batch_out[kMaxRank];
};

/// Where a tile lies: its first element on the fast axes, and the offsets of its batch.
template <typename Index>
struct TilePlace {
  Index x, y, from = 0, to = 0;
};

template <typename Shape, typename Index>
__device__ inline TilePlace<Index> PlaceOfTile(const TileParams<Index>& p, Index tile) {
  TilePlace<Index> place;
  // Along y first: neighbours in time finish each other's output lines while those are in the cache.
  place.y = p.tiles_y.Split(tile) * Shape::kY;
  place.x = p.tiles_x.Split(tile) * Shape::kX;
  for (int i = 0; i < p.batch_rank; ++i) {
    const Index at = p.batch_dims[i].Split(tile);
    place.from += at * p.batch_in[i];
    place.to += at * p.batch_out[i];
  }
  return place;
}

template <typename Word, int kWords>
struct alignas(sizeof(Word) * kWords) WordVector {
  Word word[kWords];
};

/// rows[r] holds elements (r, 0..kPack); afterwards rows[c] holds (0..kPack, c).
template <int kPack, typename Word>
__device__ inline void TransposeWords(Word* rows) {
  if constexpr (kPack == 2) {
    const uint32_t low = __byte_perm(rows[0], rows[1], 0x5410), high = __byte_perm(rows[0], rows[1], 0x7632);
    rows[0] = low;
    rows[1] = high;
  } else if constexpr (kPack == 4) {
    const uint32_t a = __byte_perm(rows[0], rows[1], 0x5140), b = __byte_perm(rows[0], rows[1], 0x7362);
    const uint32_t c = __byte_perm(rows[2], rows[3], 0x5140), d = __byte_perm(rows[2], rows[3], 0x7362);
    rows[0] = __byte_perm(a, c, 0x5410);
    rows[1] = __byte_perm(a, c, 0x7632);
    rows[2] = __byte_perm(b, d, 0x5410);
    rows[3] = __byte_perm(b, d, 0x7632);
  }
}

/// Word: what shared memory holds. kPack: elements in it. kWords: words an access. kX, kY: the tile, in
/// elements.
template <typename Word_, int kPack_, int kWords_, int kX_, int kY_>
struct TileShape {
  using Word = Word_;
  using Access = WordVector<Word_, kWords_>;
  static constexpr int kPack = kPack_, kWords = kWords_, kX = kX_, kY = kY_;
  static constexpr int kElementBytes = sizeof(Word) / kPack;
  static constexpr int kAccessElements = kPack * kWords;
  /// One word more than a row needs, so that columns fall into different banks.
  static constexpr int kPitch = kY / kPack + 1;
  static constexpr int kLoadsX = kX / kAccessElements, kLoads = kLoadsX * (kY / kPack) / kTileThreads;
  static constexpr int kStoresY = kY / kAccessElements, kStores = kX * kStoresY / kTileThreads;
  static_assert(kLoads >= 1 && kLoadsX * (kY / kPack) % kTileThreads == 0);
  static_assert(kStores >= 1 && kX * kStoresY % kTileThreads == 0);
};

template <typename Shape, typename Index>
__global__ void __launch_bounds__(kTileThreads)
    TileKernel(const TileParams<Index> p, const char* __restrict__ in, char* __restrict__ out, Index first) {
  using Word = typename Shape::Word;
  using Access = typename Shape::Access;
  constexpr int kPack = Shape::kPack;
  __shared__ Word tile[Shape::kX * Shape::kPitch];

  const TilePlace<Index> place = PlaceOfTile<Shape>(p, first + blockIdx.x);

  Access loaded[Shape::kLoads][kPack];
#pragma unroll
  for (int i = 0; i < Shape::kLoads; ++i) {
    const int unit = threadIdx.x + i * kTileThreads;
    const Index x = place.x + unit % Shape::kLoadsX * Shape::kAccessElements,
                y = place.y + unit / Shape::kLoadsX * kPack;
    if (x >= p.nx || y >= p.ny) continue;
#pragma unroll
    for (int r = 0; r < kPack; ++r)
      loaded[i][r] = *reinterpret_cast<const Access*>(
          in + static_cast<uint64_t>(place.from + (y + r) * p.in_row + x) * Shape::kElementBytes);
  }
#pragma unroll
  for (int i = 0; i < Shape::kLoads; ++i) {
    const int unit = threadIdx.x + i * kTileThreads;
    const int x = unit % Shape::kLoadsX * Shape::kAccessElements, y = unit / Shape::kLoadsX;
#pragma unroll
    for (int w = 0; w < Shape::kWords; ++w) {
      Word block[kPack];
#pragma unroll
      for (int r = 0; r < kPack; ++r) block[r] = loaded[i][r].word[w];
      TransposeWords<kPack>(block);
#pragma unroll
      for (int c = 0; c < kPack; ++c) tile[(x + w * kPack + c) * Shape::kPitch + y] = block[c];
    }
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Shape::kStores; ++i) {
    const int unit = threadIdx.x + i * kTileThreads;
    const int tx = unit / Shape::kStoresY, ty = unit % Shape::kStoresY;
    const Index x = place.x + tx, y = place.y + ty * Shape::kAccessElements;
    if (x >= p.nx || y >= p.ny) continue;
    Access access;
#pragma unroll
    for (int w = 0; w < Shape::kWords; ++w)
      access.word[w] = tile[tx * Shape::kPitch + ty * Shape::kWords + w];
    *reinterpret_cast<Access*>(out + static_cast<uint64_t>(place.to + x * p.out_row + y) *
                                         Shape::kElementBytes) = access;
  }
}

/// Launches `kernel`, a TileKernel or its like of that Shape and Index, over all tiles of the box.
template <typename Shape, typename Index, typename Kernel>
cudaError_t LaunchTileKernel(Kernel kernel, const Box& box, const char* in, char* out, cudaStream_t stream) {
  const int x = box.rank - 1, y = box.OutputFastest();
  const int64_t tiles_x = CeilDiv(box.dims[x], Shape::kX), tiles_y = CeilDiv(box.dims[y], Shape::kY);
  TileParams<Index> p;
  p.nx = static_cast<Index>(box.dims[x]);
  p.ny = static_cast<Index>(box.dims[y]);
  p.in_row = static_cast<Index>(box.in_strides[y]);
  p.out_row = static_cast<Index>(box.out_strides[x]);
  p.tiles_x = Divider<Index>(tiles_x);
  p.tiles_y = Divider<Index>(tiles_y);
  int64_t tiles = tiles_x * tiles_y;
  for (int a = box.rank; a-- > 0;) {
    if (a == x || a == y) continue;
    const int i = p.batch_rank++;
    p.batch_dims[i] = Divider<Index>(box.dims[a]);
    p.batch_in[i] = static_cast<Index>(box.in_strides[a]);
    p.batch_out[i] = static_cast<Index>(box.out_strides[a]);
    tiles *= box.dims[a];
  }
  for (int64_t first = 0; first < tiles; first += kMaxBlocksALaunch) {
    const int64_t blocks = tiles - first < kMaxBlocksALaunch ? tiles - first : kMaxBlocksALaunch;
    kernel<<<static_cast<uint32_t>(blocks), kTileThreads, 0, stream>>>(p, in, out, static_cast<Index>(first));
  }
  return cudaGetLastError();
}

template <typename Shape, typename Index>
cudaError_t LaunchTiles(const Box& box, const char* in, char* out, cudaStream_t stream) {
  return LaunchTileKernel<Shape, Index>(TileKernel<Shape, Index>, box, in, out, stream);
}

}  // namespace tilewire::transpose
