// How a thread walks over the elements of a tile, from each to the next that is its own.
#pragma once

#include "kernels/compare/cuda_work.cuh"

namespace tilewire::compare::cuda {

/// At one distance from each other.
template <typename T>
struct EvenPlace {
  const T *a, *b;
  int64_t step;  ///< in elements
  __device__ void Move() {
    a += step;
    b += step;
  }
};

/// Along two or three reduced axes: no division after the first element.
template <typename T>
struct WalkPlace {
  const Rows& rows;
  const T *a, *b;
  uint32_t digits[2];
  /// At element `index` of the segment that begins at `a_begin` and `b_begin`.
  __device__ WalkPlace(const Rows& rows, const T* a_begin, const T* b_begin, int64_t index) : rows(rows) {
    int64_t inner, middle;
    const int64_t row = rmse::DivMod(index, rows.extents[0], &inner);
    const int64_t outer = rmse::DivMod(row, rows.extents[1], &middle);
    digits[0] = static_cast<uint32_t>(inner);
    digits[1] = static_cast<uint32_t>(middle);
    const int64_t offset = inner * rows.strides[0] + middle * rows.strides[1] + outer * rows.strides[2];
    a = a_begin + offset;
    b = b_begin + offset;
  }
  __device__ void Move() {
    digits[0] += rows.digits[0];
    digits[1] += rows.digits[1];
    int64_t step = rows.step;
    if (digits[0] >= rows.extents[0]) {
      digits[0] -= rows.extents[0];
      digits[1] += 1;
      step += rows.carries[0];
    }
    if (digits[1] >= rows.extents[1]) {
      digits[1] -= rows.extents[1];
      step += rows.carries[1];
    }
    a += step;
    b += step;
  }
};

/// Along any number of axes, however long.
template <typename T>
struct FarPlace {
  const rmse::Layout& layout;
  const T *a_begin, *b_begin;
  int64_t index, step;
  const T *a, *b;
  __device__ FarPlace(const rmse::Layout& layout, const T* a_begin, const T* b_begin, int64_t index,
                      int64_t step)
      : layout(layout), a_begin(a_begin), b_begin(b_begin), index(index), step(step) {
    Find();
  }
  __device__ void Move() {
    index += step;
    Find();
  }
  __device__ void Find() {
    const int64_t offset = index < layout.elements ? FarOffset(layout, index) : 0;
    a = a_begin + offset;
    b = b_begin + offset;
  }
};

}  // namespace tilewire::compare::cuda
