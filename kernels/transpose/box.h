// A band without its accidents, and its cutting into chunks: what the host and the CUDA version share.
#pragma once

#include <cstdint>

#include "kernels/transpose/transpose.h"

namespace tilewire::transpose {

/// A strided box to be copied: no unit axes, no axes that could be one. Input axes outermost first; strides
/// and offsets in (widened) elements. Rank 0 is one element. Plain data.
struct Box {
  int rank = 0;
  int element_bytes = 1;
  int64_t in_offset = 0, out_offset = 0;
  int64_t dims[kMaxRank] = {};
  int64_t in_strides[kMaxRank] = {};
  int64_t out_strides[kMaxRank] = {};

  int64_t elements() const;
  /// The axis with the smallest output stride; rank must be 1 or more.
  int OutputFastest() const;
  /// Whether the innermost input axis is contiguous on both sides: the box is then a set of row copies.
  bool CopiesRows() const;
};

/// The band as a box.
Box MakeBox(const Layout& layout, const Range& range);

/// A box cut into equal chunks (the last along an axis may be shorter). Chunks grow from the fastest axes of
/// both sides at once, so that a chunk's input and its output are both made of runs as long as its size
/// allows. At most two axes are cut to an extent between 1 and their own. Plain data.
struct Chunks {
  int64_t extents[kMaxRank] = {};
  int64_t counts[kMaxRank] = {};  ///< chunks along each axis
  int64_t elements = 1;           ///< of a full chunk
  int64_t total = 1;              ///< chunks
};

/// Chunks of at most `max_elements`; cut axes are multiples of `multiple` where there is room for it.
Chunks MakeChunks(const Box& box, int64_t max_elements, int64_t multiple);

/// How chunks grow where their shape matters more than being square: the input's run is kept about
/// in_weight / out_weight times as long as the output's, and axes that are nearly covered are covered.
Chunks MakeWeightedChunks(const Box& box, int64_t max_elements, int64_t in_weight, int64_t out_weight);

/// The elements of a full chunk that follow each other in the input, and in the output.
int64_t InputRun(const Box& box, const Chunks& chunks);
int64_t OutputRun(const Box& box, const Chunks& chunks);

/// Chunk `index`, row-major over counts, as a box of the same rank (unit axes possible).
Box ChunkBox(const Box& box, const Chunks& chunks, int64_t index);

/// Axes of the box by ascending output stride; `order` has room for kMaxRank.
void OutputOrder(const Box& box, int* order);

}  // namespace tilewire::transpose
