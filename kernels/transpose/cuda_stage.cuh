// Packed boxes of small elements: one axis is needed by the runs of both sides, as in (N, 3).
//
// A thread block takes chunks (see MakeChunks) through shared memory twice. It reads a chunk's input runs in
// aligned words, shifted into place; gathers elements into a second image, in the order of the output, four
// bytes to a word; and writes that image in aligned 16-byte vectors. Where an element comes from never
// changes, so threads keep the places in registers and only add each chunk's offset.
#pragma once

#include <cstdint>

#include "kernels/array/launch_cuda.h"
#include "kernels/transpose/box.h"
#include "kernels/transpose/cuda_loose.cuh"
#include "kernels/transpose/cuda_stage_plan.cuh"

namespace tilewire::transpose {

/// A chunk's offsets and extents.
template <typename Index>
struct StagePlace {
  Index from = 0, to = 0;
  StageExtents extents;
  bool full = true;  ///< not shortened
};

template <typename Index>
__device__ inline StagePlace<Index> PlaceOfChunk(const StageParams<Index>& p, Index chunk) {
  StagePlace<Index> place;
  place.extents = p.full;
  for (int i = 0; i < p.grid_rank; ++i) {
    const Index at = p.grid_counts[i].Split(chunk);
    place.from += at * p.grid_in[i];
    place.to += at * p.grid_out[i];
    if (at + 1 != p.grid_counts[i].divisor) continue;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if (i != p.cut_axis[k]) continue;
      place.full = false;
      place.extents.in_run = min(place.extents.in_run, p.last[k].in_run);
      place.extents.in_runs = min(place.extents.in_runs, p.last[k].in_runs);
      place.extents.out_run = min(place.extents.out_run, p.last[k].out_run);
      place.extents.out_runs = min(place.extents.out_runs, p.last[k].out_runs);
    }
  }
  return place;
}

/// Offsets of all runs of a full chunk, by all threads of the block.
template <typename Index>
__device__ inline void FillTable(Index* table, uint32_t count, const Digits<uint32_t>& axes,
                                 const Index* strides) {
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    uint32_t rest = i;
    Index offset = 0;
    for (int a = 0; a < axes.rank; ++a) offset += axes.extents[a].Split(rest) * strides[a];
    table[i] = offset;
  }
}

/// A word of elements from their places, two of which lie in a register.
template <typename Element>
__device__ inline uint32_t GatherWord(const char* rows, const uint32_t* places) {
  const auto at = [&](int k) -> uint32_t {
    return *reinterpret_cast<const Element*>(rows + (places[k / 2] >> (k % 2 * 16) & 0xffff));
  };
  if constexpr (sizeof(Element) == 1)
    return __byte_perm(__byte_perm(at(0), at(1), 0x0040), __byte_perm(at(2), at(3), 0x0040), 0x5410);
  else if constexpr (sizeof(Element) == 2)
    return __byte_perm(at(0), at(1), 0x5410);
  else
    return at(0);
}

/// The words of a chunk that one thread brings in: the same of every chunk.
template <typename Element, int kThreads, typename Index>
struct StageReader {
  static constexpr int kBytes = sizeof(Element);
  static constexpr uint32_t kPack = 4 / kBytes;
  Index offset[kStageWords];    ///< in elements
  uint32_t place[kStageWords];  ///< in shared memory; in the high half the word's elements, 0 for no word
  LooseWord<kBytes> words[kStageWords];

  __device__ StageReader(const StageParams<Index>& p, const Index* row_table) {
#pragma unroll
    for (int i = 0; i < kStageWords; ++i) {
      uint32_t row = threadIdx.x + i * kThreads;
      const uint32_t x = p.in_words.Split(row) * kPack;
      offset[i] = row < p.full.in_runs ? row_table[row] + x : 0;
      const uint32_t count = Elements(p, p.full, i);
      place[i] = count > 0 ? RowPlace(p.pitch, p.pad_shift, row, x * kBytes) | count << 16 : 0;
    }
  }
  __device__ static uint32_t Elements(const StageParams<Index>& p, const StageExtents& extents, int i) {
    uint32_t row = threadIdx.x + i * kThreads;
    const uint32_t x = p.in_words.Split(row) * kPack;
    return row < extents.in_runs && x < extents.in_run ? min(kPack, extents.in_run - x) : 0;
  }
  __device__ uint64_t Address(Index from, const char* in, int i) const {
    return reinterpret_cast<uint64_t>(in) + static_cast<uint64_t>(from + offset[i]) * kBytes;
  }
  __device__ void Fetch(const StageParams<Index>& p, const StagePlace<Index>& chunk, const char* in) {
#pragma unroll
    for (int i = 0; i < kStageWords; ++i) {
      const uint32_t count = chunk.full ? place[i] >> 16 : Elements(p, chunk.extents, i);
      if (count > 0) words[i].Fetch(Address(chunk.from, in, i), count);
    }
  }
  __device__ void Put(Index from, const char* in, char* rows) const {
#pragma unroll
    for (int i = 0; i < kStageWords; ++i)
      if (place[i] >> 16 != 0)
        *reinterpret_cast<uint32_t*>(rows + (place[i] & 0xffff)) = words[i].Get(Address(from, in, i));
  }
};

/// Writes the image of a chunk's output runs.
template <typename Index>
__device__ inline void WriteImage(const StageParams<Index>& p, const StagePlace<Index>& chunk,
                                  int element_bytes, const char* image, const Index* column_table,
                                  char* out) {
  const uint32_t units = chunk.extents.out_runs * p.out_vectors.divisor;
  const int run_bytes = static_cast<int>(chunk.extents.out_run) * element_bytes;
  for (uint32_t unit = threadIdx.x; unit < units; unit += blockDim.x) {
    uint32_t run = unit;
    const auto vector = static_cast<int>(p.out_vectors.Split(run));
    const uint64_t to =
        reinterpret_cast<uint64_t>(out) +
        static_cast<uint64_t>(chunk.to + column_table[run]) * static_cast<uint64_t>(element_bytes);
    const int at = vector * 16 - static_cast<int>(to & 15), left = run_bytes - at;
    const int begin = at < 0 ? -at : 0, end = left < 16 ? left : 16;
    if (begin >= end) continue;
    const char* source = image + static_cast<int>(run * p.full.out_run) * element_bytes + at;
    StoreBytes(to + static_cast<uint64_t>(static_cast<int64_t>(at)), SharedVector(source), begin, end);
  }
}

template <typename Element, int kThreads, int kBlocks, typename Index>
__global__ void __launch_bounds__(kThreads, sizeof(Index) == 4 ? kBlocks : 1)
    StageKernel(const StageParams<Index> p, const char* __restrict__ in, char* __restrict__ out) {
  constexpr int kBytes = sizeof(Element), kPack = 4 / kBytes, kPairs = (kPack + 1) / 2;
  extern __shared__ __align__(16) char rows[];
  char* image = rows + p.image_at;
  auto* row_table = reinterpret_cast<Index*>(rows + p.tables_at);
  Index* column_table = row_table + p.full.in_runs;
  FillTable(row_table, p.full.in_runs, p.rows, p.row_strides);
  FillTable(column_table, p.full.out_runs, p.columns, p.column_strides);
  __syncthreads();
  StageReader<Element, kThreads, Index> reader(p, row_table);
  uint32_t places[kStageWords * kPairs];
  const uint32_t elements = p.full.out_run * p.full.out_runs;
#pragma unroll
  for (int i = 0; i < kStageWords * kPairs; ++i) {
    const uint32_t element = (threadIdx.x + i / kPairs * kThreads) * kPack + i % kPairs * 2;
    places[i] = element < elements ? SharedPlace(p, element) : 0;
    if (kPack > 1 && element + 1 < elements) places[i] |= SharedPlace(p, element + 1) << 16;
  }
  Index chunk = blockIdx.x;
  StagePlace<Index> place = PlaceOfChunk(p, chunk);
  reader.Fetch(p, place, in);
  for (;;) {
    reader.Put(place.from, in, rows);
    __syncthreads();
    chunk += gridDim.x;
    StagePlace<Index> next;
    if (chunk < p.chunks) {  // under way while this chunk is gathered and written
      next = PlaceOfChunk(p, chunk);
      reader.Fetch(p, next, in);
    }
#pragma unroll
    for (int i = 0; i < kStageWords; ++i)
      *reinterpret_cast<uint32_t*>(image + (threadIdx.x + i * kThreads) * 4) =
          GatherWord<Element>(rows, places + i * kPairs);
    __syncthreads();
    WriteImage(p, place, kBytes, image, column_table, out);
    if (chunk >= p.chunks) break;
    place = next;
  }
}

/// Blocks that stay and take several chunks each, all the same number.
inline cudaError_t ResidentBlocks(int64_t chunks, int a_processor, uint32_t* blocks) {
  int device = 0, processors = 1;
  if (cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  if (cudaError_t error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
      error != cudaSuccess)
    return error;
  const int64_t turns = CeilDiv(chunks, int64_t{a_processor} * processors);
  *blocks = static_cast<uint32_t>(CeilDiv(chunks, turns));
  return cudaSuccess;
}

template <typename Element>
inline constexpr int kStageBlocks = sizeof(Element) == 1 ? 2 : 3;  ///< a multiprocessor: as registers allow

/// False in `*suits`, and nothing launched, where the box's runs are not contiguous.
template <typename Element, typename Index>
cudaError_t LaunchStaged(const Box& box, const char* in, char* out, const gpu::Launcher& launcher,
                         bool* suits) {
  constexpr int kBlocks = kStageBlocks<Element>;
  uint32_t shared = 0, blocks = 0;
  *suits = false;
  if (box.in_strides[box.rank - 1] != 1 || box.out_strides[box.OutputFastest()] != 1) return cudaSuccess;
  for (int64_t most = kStageChunkBytes / box.element_bytes; most >= 1024 && !*suits; most -= most / 16) {
    StageParams<Index> p;
    const Chunks chunks = ChooseStageChunks(box, most);
    *suits = MakeStageParams(box, chunks, p, &shared);
    if (!*suits) continue;
    if (cudaError_t error = ResidentBlocks(chunks.total, kBlocks, &blocks); error != cudaSuccess)
      return error;
    return launcher.Run(StageKernel<Element, kStageThreads, kBlocks, Index>, blocks, kStageThreads, shared, p,
                        in, out);
  }
  return cudaSuccess;
}

}  // namespace tilewire::transpose
