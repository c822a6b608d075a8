// Tiles: both fast axes are contiguous and long. A thread block carries one tile through shared memory.
//
// Elements of 1 and 2 bytes travel in 32-bit words, kPack to a word: a thread loads the same words of kPack
// neighbouring rows and transposes them in registers, so shared memory holds words that already lie along y.
#pragma once

#include <cstdint>

#include "kernels/array/launch_cuda.h"
#include "kernels/transpose/box.h"
#include "kernels/transpose/cuda_divider.cuh"
#include "kernels/transpose/cuda_sides.cuh"

namespace tilewire::transpose {

inline constexpr int kTileThreads = 256;
inline constexpr int64_t kMaxBlocksALaunch = int64_t{1} << 30;

/// A box as a batch of matrices (see cuda_sides.cuh): element (x, y) goes from rows(y) + x to columns(x) + y.
template <typename Index>
struct TileParams {
  Index nx, ny;
  Digits<Index> rows, columns;  ///< of y in the input, of x in the output
  Divider<Index> tiles_x, tiles_y;
  int batch_rank = 0;
  Divider<Index> batch_dims[kMaxRank];  ///< fastest input axis first
  Index batch_in[kMaxRank], batch_out[kMaxRank];
};

/// Where a tile lies: its first element on both sides, and the offsets of its batch.
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

/// Row offsets for a thread block that walks rows of kWidth units with all its threads: a lane works out one
/// turn's row for all, because digits cost divisions.
template <int kWidth, typename Index>
struct TurnRows {
  static constexpr int kGroup = kWidth < 32 ? kWidth : 32;  ///< lanes in one row; also the most turns
  static constexpr int kStep = kTileThreads / kWidth;       ///< rows in a turn
  Index offset = 0;
  int behind_begin;  ///< rows from the first one inside to this thread's row in turn 0
  uint32_t inside;   ///< rows inside

  /// Of rows first, first + 1, …, `count` of them, where they are below `ny`; `first` may lie up to
  /// `overhang` before row 0.
  __device__ TurnRows(const Digits<Index>& rows, Index place, int overhang, int count, Index ny) {
    const int lane = threadIdx.x % 32;
    const int row = (static_cast<int>(threadIdx.x) - lane % kGroup + lane % kGroup * kTileThreads) / kWidth;
    const Index y = place + row - overhang;  // wraps in front of row 0, and is not below ny then
    if (y < ny) offset = rows.Offset(y);
    const int begin = place < static_cast<Index>(overhang) ? overhang - static_cast<int>(place) : 0;
    const Index left = place < ny ? ny - place : 0;
    const int end = left < static_cast<Index>(count) ? min(count, static_cast<int>(left) + overhang) : count;
    inside = end > begin ? static_cast<uint32_t>(end - begin) : 0;
    behind_begin = static_cast<int>(threadIdx.x) / kWidth - begin;
  }
  /// Whether this thread's row in turn `turn` exists.
  __device__ bool Inside(int turn) const {
    return static_cast<uint32_t>(behind_begin + turn * kStep) < inside;
  }
  /// Of this thread's row in turn `turn`; all lanes must call it.
  __device__ Index Offset(int turn) const { return __shfl_sync(0xffffffff, offset, turn, kGroup); }
};

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
  static constexpr int kOverhang = 0;  ///< elements by which tiles may begin before their place along y
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
    // kPack divides the fastest output axis, so its rows are that axis' neighbours.
    const Index row = place.from + p.rows.Offset(y) + x, step = p.rows.strides[0];
#pragma unroll
    for (int r = 0; r < kPack; ++r)
      loaded[i][r] =
          *reinterpret_cast<const Access*>(in + static_cast<uint64_t>(row + r * step) * Shape::kElementBytes);
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
    *reinterpret_cast<Access*>(out + static_cast<uint64_t>(place.to + p.columns.Offset(x) + y) *
                                         Shape::kElementBytes) = access;
  }
}

/// The launch parameters of a box that is cut into tiles of that Shape, and the number of tiles.
template <typename Shape, typename Index>
TileParams<Index> MakeTileParams(const Box& box, const Sides& sides, int64_t* tiles) {
  TileParams<Index> p;
  p.nx = static_cast<Index>(sides.x.extent);
  p.ny = static_cast<Index>(sides.y.extent);
  bool taken[kMaxRank] = {};
  for (int i = 0; i < sides.x.rank; ++i) {
    const int axis = sides.x.axes[i];
    p.columns.Add(box.dims[axis], box.out_strides[axis]);
    taken[axis] = true;
  }
  for (int i = 0; i < sides.y.rank; ++i) {
    const int axis = sides.y.axes[i];
    p.rows.Add(box.dims[axis], box.in_strides[axis]);
    taken[axis] = true;
  }
  const int64_t tiles_x = CeilDiv(sides.x.extent, Shape::kX);
  const int64_t tiles_y = CeilDiv(sides.y.extent + Shape::kOverhang, Shape::kY);
  p.tiles_x = Divider<Index>(tiles_x);
  p.tiles_y = Divider<Index>(tiles_y);
  *tiles = tiles_x * tiles_y;
  for (int a = box.rank; a-- > 0;) {
    if (taken[a]) continue;
    const int i = p.batch_rank++;
    p.batch_dims[i] = Divider<Index>(box.dims[a]);
    p.batch_in[i] = static_cast<Index>(box.in_strides[a]);
    p.batch_out[i] = static_cast<Index>(box.out_strides[a]);
    *tiles *= box.dims[a];
  }
  return p;
}

/// Launches `kernel`, of that Shape and Index, over all tiles of the box.
template <typename Shape, typename Index, typename Kernel>
cudaError_t LaunchTileKernel(Kernel kernel, const Box& box, const Sides& sides, const char* in, char* out,
                             const gpu::Launcher& launcher) {
  int64_t tiles = 0;
  const TileParams<Index> p = MakeTileParams<Shape, Index>(box, sides, &tiles);
  for (int64_t first = 0; first < tiles; first += kMaxBlocksALaunch) {
    const auto blocks = static_cast<uint32_t>(std::min(tiles - first, kMaxBlocksALaunch));
    if (cudaError_t error =
            launcher.Run(kernel, blocks, kTileThreads, 0, p, in, out, static_cast<Index>(first));
        error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

}  // namespace tilewire::transpose
