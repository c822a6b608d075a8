// A box as a matrix: which axes make up its rows, which its columns, and where row or column n lies.
//
// The fastest axes of the input, one after the other, are one contiguous run there (x); the fastest axes of
// the output are one there (y). As long as the two sets are disjoint the box is a batch of matrices whose
// element (x, y) is at rows(y) + x in the input and at columns(x) + y in the output, where rows and columns
// are sums over the digits of an index. So short and odd axes fill tiles as well as long ones.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/transpose/box.h"
#include "kernels/transpose/cuda_divider.cuh"

namespace tilewire::transpose {

/// Axes of a box that are contiguous on one side, fastest first.
struct Side {
  int rank = 0;
  int axes[kMaxRank] = {};
  int64_t extent = 1;
};

/// Both sides; axes of neither are the batch.
struct Sides {
  Side x, y;
  bool valid = false;  ///< false where one axis is the fastest on both sides
};

/// Lets both sides grow to `want_x` and `want_y` elements, the side that lacks more first; an axis belongs to
/// one.
inline Sides MakeSides(const Box& box, int64_t want_x, int64_t want_y) {
  Sides sides;
  if (box.rank < 2) return sides;
  int out_order[kMaxRank];
  OutputOrder(box, out_order);
  bool taken[kMaxRank] = {};
  const auto grow = [&](Side& side, int64_t want, int axis, int64_t stride) {
    if (side.extent >= want || taken[axis] || stride != side.extent) return false;
    taken[axis] = true;
    side.axes[side.rank++] = axis;
    side.extent *= box.dims[axis];
    return true;
  };
  const auto grow_x = [&] {
    const int axis = box.rank - 1 - sides.x.rank;
    return axis >= 0 && grow(sides.x, want_x, axis, box.in_strides[axis]);
  };
  const auto grow_y = [&] {
    if (sides.y.rank == box.rank) return false;
    const int axis = out_order[sides.y.rank];
    return grow(sides.y, want_y, axis, box.out_strides[axis]);
  };
  if (!grow_x() || !grow_y()) return sides;
  sides.valid = true;
  for (bool grown = true; grown;) {
    const bool x_first = sides.x.extent * want_y <= sides.y.extent * want_x;
    grown = x_first ? grow_x() || grow_y() : grow_y() || grow_x();
  }
  return sides;
}

/// Maps an index over several axes, fastest first, to an offset.
template <typename Index>
struct Digits {
  int rank = 0;
  Divider<Index> extents[kMaxRank];
  Index strides[kMaxRank] = {};

  void Add(int64_t extent, int64_t stride) {
    extents[rank] = Divider<Index>(extent);
    strides[rank++] = static_cast<Index>(stride);
  }
#ifdef __CUDACC__
  /// Of an index inside; rank must be 1 or more.
  __device__ Index Offset(Index at) const {
    Index offset = 0;
    for (int i = 0; i + 1 < rank; ++i) offset += extents[i].Split(at) * strides[i];
    return offset + at * strides[rank - 1];
  }
#endif
};

}  // namespace tilewire::transpose
