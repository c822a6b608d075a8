// Packed boxes: short fast axes. A chunk (see MakeChunks) is made of long runs on both sides, whatever its
// axes.
//
// A thread block reads chunks in the order of the input and writes them in the order of the output; shared
// memory lies between. Which elements a thread handles never changes, so it works out their places once and
// then only adds each chunk's offset. Where rows are contiguous on both sides, both orders are good and
// nothing lies between.
#pragma once

#include <cstdint>

#include "kernels/array/launch_cuda.h"
#include "kernels/transpose/box.h"
#include "kernels/transpose/cuda_divider.cuh"

namespace tilewire::transpose {

inline constexpr int kPackThreads = 256;

/// Elements of a chunk that one thread handles.
template <typename Element>
inline constexpr int kPackElements = sizeof(Element) == 16 ? 8 : 16;

/// One axis inside a chunk.
template <typename Index>
struct PackAxis {
  Divider<uint32_t> extent;
  Index stride;       ///< in the input or output
  uint32_t shared;    ///< in the chunk
  uint32_t cut_unit;  ///< its indices in PackPlace::cut; 0 for axes that are not cut
};

template <typename Index>
struct PackParams {
  uint32_t elements;                                      ///< of a full chunk
  int rank = 0;                                           ///< of a chunk
  PackAxis<Index> in_axes[kMaxRank], out_axes[kMaxRank];  ///< each fastest first
  Index chunks;
  int grid_rank = 0;
  Divider<Index> grid_counts[kMaxRank];
  Index grid_in[kMaxRank], grid_out[kMaxRank];
  /// At most two axes end in shorter chunks: which of the grid, and the extents of a full and of the last
  /// chunk.
  int cut_axis[2] = {-1, -1};
  uint32_t cut_full[2] = {1, 1}, cut_last[2] = {1, 1};
  uint32_t cut_shift =
      0;  ///< PackPlace::cut holds the index on the first cut axis below this bit, the second above
};

/// Where one element of a chunk lies.
template <typename Index>
struct PackPlace {
  Index offset = 0;
  uint32_t shared = 0;
  uint32_t cut = 0;  ///< index on the cut axes; 13 bits at most, as a chunk has at most 4096 elements
};

template <typename Index>
__device__ inline PackPlace<Index> PlaceOf(const PackAxis<Index>* axes, int rank, uint32_t element) {
  PackPlace<Index> place;
  for (int i = 0; i < rank; ++i) {
    const uint32_t at = axes[i].extent.Split(element);
    place.offset += at * axes[i].stride;
    place.shared += at * axes[i].shared;
    place.cut += at * axes[i].cut_unit;
  }
  return place;
}

inline constexpr uint32_t kNowhere = 0xffff;  ///< a cut behind every chunk

template <typename Element, bool kRows, typename Index>
__global__ void __launch_bounds__(kPackThreads, sizeof(Index) == 4 ? 2 : 1)
    PackKernel(const PackParams<Index> p, const Element* __restrict__ in, Element* __restrict__ out) {
  constexpr int kEach = kPackElements<Element>;
  __shared__ Element chunk[kRows ? 1 : kEach * kPackThreads];
  Index in_at[kEach], out_at[kEach];
  uint32_t cuts[kEach];        // of the element read (low half) and of the element written
  uint32_t shared[kEach / 2];  // two in a register: registers decide how many loads are in flight
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const uint32_t element = threadIdx.x + i * kPackThreads;
    const PackPlace<Index> from = PlaceOf(p.in_axes, p.rank, element);
    const PackPlace<Index> to = PlaceOf(p.out_axes, p.rank, element);
    in_at[i] = from.offset;
    out_at[i] = to.offset;
    shared[i / 2] = i % 2 == 0 ? to.shared : shared[i / 2] | to.shared << 16;
    cuts[i] = element < p.elements ? from.cut | to.cut << 16 : kNowhere | kNowhere << 16;
  }
  const uint32_t low = (1u << p.cut_shift) - 1;
  for (Index c = blockIdx.x; c < p.chunks; c += gridDim.x) {
    Index rest = c, from = 0, to = 0;
    uint32_t limit0 = p.cut_full[0], limit1 = p.cut_full[1];
    for (int i = 0; i < p.grid_rank; ++i) {
      const Index at = p.grid_counts[i].Split(rest);
      from += at * p.grid_in[i];
      to += at * p.grid_out[i];
      const bool last = at + 1 == p.grid_counts[i].divisor;
      if (last && i == p.cut_axis[0]) limit0 = p.cut_last[0];
      if (last && i == p.cut_axis[1]) limit1 = p.cut_last[1];
    }
    const auto inside = [&](uint32_t cut) { return (cut & low) < limit0 && cut >> p.cut_shift < limit1; };
    Element value[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (inside(cuts[i] & 0xffff)) value[i] = in[from + in_at[i]];
    if constexpr (!kRows) {
      __syncthreads();  // the chunk before has been read
#pragma unroll
      for (int i = 0; i < kEach; ++i) chunk[threadIdx.x + i * kPackThreads] = value[i];
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kEach; ++i) value[i] = chunk[shared[i / 2] >> (i % 2 * 16) & 0xffff];
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i)
      if (inside(cuts[i] >> 16)) out[to + out_at[i]] = value[i];
  }
}

template <typename Index>
PackParams<Index> MakePackParams(const Box& box, const Chunks& chunks, bool rows) {
  PackParams<Index> p;
  p.elements = static_cast<uint32_t>(chunks.elements);
  p.chunks = static_cast<Index>(chunks.total);
  uint32_t cut_unit[kMaxRank] = {}, shared[kMaxRank] = {}, step = 1;
  int cuts = 0;
  for (int a = box.rank; a-- > 0;) {
    shared[a] = step;
    step *= static_cast<uint32_t>(chunks.extents[a]);
    if (chunks.counts[a] == 1) continue;
    const int i = p.grid_rank++;
    p.grid_counts[i] = Divider<Index>(chunks.counts[a]);
    p.grid_in[i] = static_cast<Index>(chunks.extents[a] * box.in_strides[a]);
    p.grid_out[i] = static_cast<Index>(chunks.extents[a] * box.out_strides[a]);
    if (box.dims[a] % chunks.extents[a] == 0) continue;
    p.cut_axis[cuts] = i;
    p.cut_full[cuts] = static_cast<uint32_t>(chunks.extents[a]);
    p.cut_last[cuts] = static_cast<uint32_t>(box.dims[a] % chunks.extents[a]);
    cut_unit[a] = cuts++ == 0 ? 1 : 1u << p.cut_shift;
    while (cuts == 1 && (1u << p.cut_shift) < p.cut_full[0]) ++p.cut_shift;
  }
  int out_order[kMaxRank];
  OutputOrder(box, out_order);
  int in_rank = 0;
  for (int i = 0; i < box.rank; ++i) {
    const int in_axis = box.rank - 1 - i, out_axis = rows ? in_axis : out_order[i];
    const auto axis = [&](int a, int64_t stride) {
      return PackAxis<Index>{Divider<uint32_t>(chunks.extents[a]), static_cast<Index>(stride), shared[a],
                             cut_unit[a]};
    };
    if (chunks.extents[in_axis] > 1) p.in_axes[in_rank++] = axis(in_axis, box.in_strides[in_axis]);
    if (chunks.extents[out_axis] > 1) p.out_axes[p.rank++] = axis(out_axis, box.out_strides[out_axis]);
  }
  return p;
}

template <typename Element, typename Index>
cudaError_t LaunchPacked(const Box& box, const char* in, char* out, const gpu::Launcher& launcher) {
  // Rows of a few sectors or more coalesce well enough in the input's order.
  const bool rows = box.CopiesRows() && box.dims[box.rank - 1] * box.element_bytes >= 128;
  const Chunks chunks = MakeChunks(box, kPackElements<Element> * kPackThreads, 1);
  const PackParams<Index> p = MakePackParams<Index>(box, chunks, rows);
  int device = 0, processors = 1;
  if (cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  if (cudaError_t error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
      error != cudaSuccess)
    return error;
  // Blocks that stay and take several chunks each, all the same number.
  const int64_t most = int64_t{4} * processors, turns = CeilDiv(chunks.total, most);
  const auto blocks = static_cast<uint32_t>(CeilDiv(chunks.total, turns));
  const auto* from = reinterpret_cast<const Element*>(in);
  auto* to = reinterpret_cast<Element*>(out);
  const auto kernel = rows ? PackKernel<Element, true, Index> : PackKernel<Element, false, Index>;
  return launcher.Run(kernel, blocks, kPackThreads, 0, p, from, to);
}

}  // namespace tilewire::transpose
