// Row copies: the fastest axis is shared, and its rows are long enough to be read one by one.
//
// The output decides: a thread makes one aligned 16-byte vector of it, wherever rows begin and end. The bytes
// come from the two aligned vectors of the input around them, put together by funnel shifts; where a row ends
// inside the vector, the next row's beginning is fetched in the same way.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/array/launch_cuda.h"
#include "kernels/transpose/box.h"
#include "kernels/transpose/cuda_loose.cuh"
#include "kernels/transpose/cuda_sides.cuh"

namespace tilewire::transpose {

inline constexpr int kRowThreads = 256;
/// Vectors of a thread. More of them where nothing has to be put together keep more bytes in flight; where
/// both halves and the next row have to be fetched, registers say one.
inline constexpr int kAlignedRowVectors = 4, kLooseRowVectors = 1;

/// A segment is a contiguous run of output rows. Offsets in bytes.
struct RowParams {
  int64_t row_bytes, segment_bytes;
  uint32_t rows;               ///< of a segment
  Divider<uint32_t> row_size;  ///< row_bytes where a block may hold several rows
  int rank = 0;                ///< of the rows in a segment, fastest output axis first
  Divider<uint32_t> extents[kMaxRank];
  int64_t strides[kMaxRank] = {};
  Divider<uint32_t> blocks;  ///< of a segment
  int batch_rank = 0;
  Divider<uint32_t> batch_dims[kMaxRank];
  int64_t batch_in[kMaxRank] = {}, batch_out[kMaxRank] = {};
};

/// 16 bytes that start anywhere, as the two aligned vectors around them.
struct LooseVector {
  uint4 low, high;
  int skew;

  /// Fetches bytes [begin, end); the others are anything. Vectors that hold none of them are not touched.
  __device__ void Fetch(uint64_t address, int begin, int end) {
    skew = static_cast<int>(address & 15);
    const auto* vectors = reinterpret_cast<const uint4*>(address - static_cast<uint64_t>(skew));
    if (skew + begin < 16) low = __ldg(vectors);
    if (skew + end > 16) high = __ldg(vectors + 1);
  }
  __device__ uint4 Get() const { return ShiftVectors(low, high, skew); }
};

/// Rows from here on are not counted within a block.
inline constexpr int64_t kMaxSmallRow = kAlignedRowVectors * kRowThreads * 16;

/// Bytes below `count` from a, the others from b.
__device__ inline uint32_t JoinWords(uint32_t a, uint32_t b, int count) {
  const uint32_t mask = count <= 0 ? 0 : count >= 4 ? 0xffffffffu : (1u << 8 * count) - 1;
  return (a & mask) | (b & ~mask);
}

__device__ inline uint64_t RowAddress(const RowParams& p, uint64_t from, uint32_t row) {
  for (int i = 0; i + 1 < p.rank; ++i) from += p.extents[i].Split(row) * p.strides[i];
  return p.rank > 0 ? from + row * p.strides[p.rank - 1] : from;
}

/// What one thread makes: bytes [begin, end) of an output vector, of which those up to `own` are of row
/// `row`. kLoose: rows may begin anywhere; else at multiples of 16 bytes on both sides.
template <bool kLoose>
struct RowVector {
  LooseVector loose, next_row;
  uint32_t row;
  int begin, own, end;

  /// `at`: where in the row the vector starts; negative in front of a segment's first row.
  __device__ void Fetch(const RowParams& p, uint64_t from, int64_t at) {
    if constexpr (!kLoose) {
      loose.low = __ldg(reinterpret_cast<const uint4*>(RowAddress(p, from, row) + static_cast<uint64_t>(at)));
      return;
    }
    const int64_t left = p.row_bytes - at;
    own = left < end ? static_cast<int>(left) : end;
    loose.Fetch(RowAddress(p, from, row) + static_cast<uint64_t>(at), begin, own);
    if (own < end) next_row.Fetch(RowAddress(p, from, row + 1) - static_cast<uint64_t>(own), own, end);
  }
  __device__ void Store(uint64_t to) const {
    if constexpr (!kLoose) {
      *reinterpret_cast<uint4*>(to) = loose.low;
      return;
    }
    uint4 value = loose.Get();
    if (own < end) {
      const uint4 next = next_row.Get();
      value = {JoinWords(value.x, next.x, own), JoinWords(value.y, next.y, own - 4),
               JoinWords(value.z, next.z, own - 8), JoinWords(value.w, next.w, own - 12)};
    }
    StoreBytes(to, value, begin, end);
  }
};

/// The row in which byte `at`, counted from row `first` on, lies; `at` becomes its place in that row.
__device__ inline uint32_t RowOf(const RowParams& p, uint32_t first, int64_t& at) {
  if (at < p.row_bytes) return first;
  if (p.row_bytes >= kMaxSmallRow) {  // only one row ends in a block
    at -= p.row_bytes;
    return first + 1;
  }
  auto rows = static_cast<uint32_t>(at);
  at = p.row_size.Split(rows);
  return first + rows;
}

template <bool kLoose>
__global__ void __launch_bounds__(kRowThreads)
    RowKernel(const RowParams p, const char* __restrict__ in, char* __restrict__ out, uint32_t first) {
  constexpr int kVectors = kLoose ? kLooseRowVectors : kAlignedRowVectors;
  constexpr int kBlockBytes = kVectors * kRowThreads * 16;
  uint32_t index = first + blockIdx.x;
  const int64_t block = p.blocks.Split(index);
  auto from = reinterpret_cast<uint64_t>(in), to = reinterpret_cast<uint64_t>(out);
  for (int i = 0; i < p.batch_rank; ++i) {
    const uint32_t at = p.batch_dims[i].Split(index);
    from += static_cast<uint64_t>(at * p.batch_in[i]);
    to += static_cast<uint64_t>(at * p.batch_out[i]);
  }
  // Blocks begin at aligned addresses, the first one up to 15 bytes before the segment.
  const int64_t start = block * kBlockBytes - static_cast<int64_t>(to & 15);
  const int front = start < 0 ? static_cast<int>(-start) : 0;
  const int64_t first_row = (start + front) / p.row_bytes;
  const int64_t first_at = start - first_row * p.row_bytes;
  RowVector<kLoose> vectors[kVectors];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    RowVector<kLoose>& v = vectors[i];
    const int offset = (static_cast<int>(threadIdx.x) + i * kRowThreads) * 16;
    const int64_t left = p.segment_bytes - start - offset;
    v.begin = offset == 0 ? front : 0;
    v.end = left < 16 ? static_cast<int>(left < 0 ? 0 : left) : 16;
    int64_t at = first_at + offset;
    v.row = RowOf(p, static_cast<uint32_t>(first_row), at);
    if (v.begin < v.end) v.Fetch(p, from, at);
  }
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int offset = (static_cast<int>(threadIdx.x) + i * kRowThreads) * 16;
    if (vectors[i].begin < vectors[i].end) vectors[i].Store(to + static_cast<uint64_t>(start + offset));
  }
}

/// Whether RowKernel suits: rows that fill a few sectors, and few enough for 32-bit arithmetic.
inline bool SuitsRows(const Box& box, int64_t min_row_bytes) {
  if (!box.CopiesRows()) return false;
  const int64_t row_bytes = box.dims[box.rank - 1] * box.element_bytes;
  return row_bytes >= min_row_bytes && box.elements() / box.dims[box.rank - 1] < (int64_t{1} << 31) - 1;
}

inline RowParams MakeRowParams(const Box& box, int64_t block_bytes, int64_t* blocks) {
  RowParams p{};
  const int64_t size = box.element_bytes;
  int order[kMaxRank];
  OutputOrder(box, order);
  int64_t run = box.dims[box.rank - 1];
  int used = 1;
  for (; used < box.rank && box.out_strides[order[used]] == run; ++used) {
    const int axis = order[used];
    p.extents[p.rank] = Divider<uint32_t>(box.dims[axis]);
    p.strides[p.rank++] = box.in_strides[axis] * size;
    run *= box.dims[axis];
  }
  p.row_bytes = box.dims[box.rank - 1] * size;
  p.segment_bytes = run * size;
  p.rows = static_cast<uint32_t>(run / box.dims[box.rank - 1]);
  if (p.row_bytes < kMaxSmallRow) p.row_size = Divider<uint32_t>(p.row_bytes);
  *blocks = CeilDiv(p.segment_bytes + 15, block_bytes);
  p.blocks = Divider<uint32_t>(*blocks);
  for (; used < box.rank; ++used) {
    const int axis = order[used];
    p.batch_dims[p.batch_rank] = Divider<uint32_t>(box.dims[axis]);
    p.batch_in[p.batch_rank] = box.in_strides[axis] * size;
    p.batch_out[p.batch_rank++] = box.out_strides[axis] * size;
    *blocks *= box.dims[axis];
  }
  return p;
}

template <bool kLoose>
cudaError_t LaunchRowKernel(const Box& box, const char* in, char* out, const gpu::Launcher& launcher) {
  constexpr int64_t kBlockBytes = (kLoose ? kLooseRowVectors : kAlignedRowVectors) * kRowThreads * 16;
  constexpr int64_t kMost = int64_t{1} << 30;
  int64_t blocks = 0;
  const RowParams p = MakeRowParams(box, kBlockBytes, &blocks);
  for (int64_t first = 0; first < blocks; first += kMost)
    if (cudaError_t error =
            launcher.Run(RowKernel<kLoose>, static_cast<uint32_t>(std::min(blocks - first, kMost)),
                         kRowThreads, 0, p, in, out, static_cast<uint32_t>(first));
        error != cudaSuccess)
      return error;
  return cudaSuccess;
}

inline cudaError_t LaunchRows(const Box& box, const char* in, char* out, const gpu::Launcher& launcher) {
  // A row of 16-byte elements that starts at a multiple of 16 bytes has all of them there.
  const bool aligned = box.element_bytes == 16 && reinterpret_cast<uint64_t>(in) % 16 == 0 &&
                       reinterpret_cast<uint64_t>(out) % 16 == 0;
  return aligned ? LaunchRowKernel<false>(box, in, out, launcher)
                 : LaunchRowKernel<true>(box, in, out, launcher);
}

}  // namespace tilewire::transpose
