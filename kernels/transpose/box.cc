#include "kernels/transpose/box.h"

#include <algorithm>
#include <numeric>

namespace tilewire::transpose {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

/// The run that a chunk covers when its axes are walked in `order`, and the axis where that run is cut.
struct Run {
  int64_t length = 1;
  int open_axis = -1;  ///< first axis in order that the chunk does not cover whole; -1: none
};

Run RunOf(const Box& box, const int64_t* extents, const int* order) {
  Run run;
  for (int i = 0; i < box.rank; ++i) {
    run.length *= extents[order[i]];
    if (extents[order[i]] == box.dims[order[i]]) continue;
    run.open_axis = order[i];
    break;
  }
  return run;
}

void InputOrder(const Box& box, int* order) {
  for (int i = 0; i < box.rank; ++i) order[i] = box.rank - 1 - i;
}

struct Growth {
  int64_t multiple = 1;  ///< of cut extents, where there is room for it
  int64_t in_weight = 1, out_weight = 1;
  bool completes_axes = false;  ///< takes a whole axis rather than half of it or more
};

/// Even chunks rather than a short last one, which would waste most of a thread block's or vector's lanes.
void EvenOut(const Box& box, int64_t multiple, Chunks& chunks) {
  chunks.elements = 1;
  for (int a = 0; a < box.rank; ++a) {
    const int64_t even = CeilDiv(box.dims[a], CeilDiv(box.dims[a], chunks.extents[a]));
    const int64_t rounded = CeilDiv(even, multiple) * multiple;
    if (even > multiple && rounded <= chunks.extents[a])
      chunks.extents[a] = rounded;
    else
      chunks.extents[a] = even;
    chunks.counts[a] = CeilDiv(box.dims[a], chunks.extents[a]);
    chunks.elements *= chunks.extents[a];
    chunks.total *= chunks.counts[a];
  }
}

Chunks GrowChunks(const Box& box, int64_t max_elements, const Growth& growth) {
  Chunks chunks;
  int in_order[kMaxRank], out_order[kMaxRank];
  InputOrder(box, in_order);
  OutputOrder(box, out_order);
  std::fill_n(chunks.extents, box.rank, 1);
  // Doubling the shorter run until nothing more fits.
  for (bool grown = true; grown;) {
    grown = false;
    const Run in = RunOf(box, chunks.extents, in_order), out = RunOf(box, chunks.extents, out_order);
    const bool in_first = in.length * growth.out_weight <= out.length * growth.in_weight;
    for (const int axis :
         {in_first ? in.open_axis : out.open_axis, in_first ? out.open_axis : in.open_axis}) {
      if (axis < 0) continue;
      int64_t& extent = chunks.extents[axis];
      const int64_t room = max_elements / (chunks.elements / extent);
      int64_t next = std::min({2 * extent, box.dims[axis], room});
      if (growth.completes_axes && box.dims[axis] <= std::min(room, 4 * extent)) next = box.dims[axis];
      if (next <= extent) continue;
      chunks.elements = chunks.elements / extent * next;
      extent = next;
      grown = true;
      break;
    }
  }
  EvenOut(box, growth.multiple, chunks);
  return chunks;
}

}  // namespace

int64_t Box::elements() const {
  return std::accumulate(dims, dims + rank, int64_t{1}, [](int64_t a, int64_t b) { return a * b; });
}

int Box::OutputFastest() const {
  return static_cast<int>(std::min_element(out_strides, out_strides + rank) - out_strides);
}

bool Box::CopiesRows() const {
  return rank > 0 && in_strides[rank - 1] == 1 && out_strides[rank - 1] == 1;
}

Box MakeBox(const Layout& layout, const Range& range) {
  Box box;
  box.element_bytes = layout.element_bytes;
  box.in_offset = range.in_offset;
  box.out_offset = range.out_offset;
  for (int a = 0; a < layout.rank; ++a) {
    if (range.dims[a] == 1) continue;
    const int64_t in_run = range.dims[a] * layout.in_strides[a];
    const int64_t out_run = range.dims[a] * layout.out_strides[a];
    // A cut or dropped axis can make neighbours of axes that were none.
    const int last = box.rank - 1;
    const bool fuses = last >= 0 && box.in_strides[last] == in_run && box.out_strides[last] == out_run;
    const int at = fuses ? last : box.rank++;
    box.dims[at] = fuses ? box.dims[at] * range.dims[a] : range.dims[a];
    box.in_strides[at] = layout.in_strides[a];
    box.out_strides[at] = layout.out_strides[a];
  }
  return box;
}

void OutputOrder(const Box& box, int* order) {
  std::iota(order, order + box.rank, 0);
  std::sort(order, order + box.rank, [&](int a, int b) { return box.out_strides[a] < box.out_strides[b]; });
}

Chunks MakeChunks(const Box& box, int64_t max_elements, int64_t multiple) {
  return GrowChunks(box, max_elements, {.multiple = multiple});
}

Chunks MakeWeightedChunks(const Box& box, int64_t max_elements, int64_t in_weight, int64_t out_weight) {
  return GrowChunks(box, max_elements,
                    {.in_weight = in_weight, .out_weight = out_weight, .completes_axes = true});
}

int64_t InputRun(const Box& box, const Chunks& chunks) {
  int order[kMaxRank];
  InputOrder(box, order);
  return RunOf(box, chunks.extents, order).length;
}

int64_t OutputRun(const Box& box, const Chunks& chunks) {
  int order[kMaxRank];
  OutputOrder(box, order);
  return RunOf(box, chunks.extents, order).length;
}

Box ChunkBox(const Box& box, const Chunks& chunks, int64_t index) {
  Box chunk = box;
  for (int a = box.rank; a-- > 0;) {
    const int64_t begin = index % chunks.counts[a] * chunks.extents[a];
    index /= chunks.counts[a];
    chunk.dims[a] = std::min(chunks.extents[a], box.dims[a] - begin);
    chunk.in_offset += begin * box.in_strides[a];
    chunk.out_offset += begin * box.out_strides[a];
  }
  return chunk;
}

}  // namespace tilewire::transpose
