// RMSE over several axes on the GPU: runs and columns whose rows lie at more than one distance, around every
// border of the kernels that walk over them.
#include "tests/gpu/rmse_device.h"

namespace tilewire::rmse {
namespace {

class RmseCudaAxes : public RmseDevice {
 protected:
  void CheckShape(DType dtype, const std::vector<int64_t>& dims, const std::vector<int32_t>& axes,
                  Shifts shifts) {
    if (!HasFatalFailure()) CheckLarge({*MakeSpec(dtype, dims), axes, Output::kRmse}, true, shifts, random_);
  }

  std::mt19937_64 random_{41};
};

const Shifts kShifts[] = {{0, 0}, {1, 1}, {1, 2}};
/// One of each size, and those that are not summed as the others of their size.
const DType kDTypes[] = {DType::kI8, DType::kU16, DType::kF16, DType::kF32, DType::kI64, DType::kF64};

// Neighbours that fill the blocks' groups and do not; a tile and a little, so that tiles begin inside runs.
TEST_F(RmseCudaAxes, RunsOfEveryLength) {
  for (const DType dtype : kDTypes)
    for (const int64_t run :
         {2, 3, 5, 7, 15, 16, 17, 31, 32, 33, 37, 63, 64, 65, 127, 128, 129, 256, 257, 513})
      for (const int64_t neighbours : {2, 3, 4, 5, 8, 9, 17})
        CheckShape(dtype, {4096 / run + 3, neighbours, run}, {0, 2}, kShifts[(run + neighbours) % 3]);
}

TEST_F(RmseCudaAxes, TilesThatEndBesideRunsAndRounds) {
  for (const DType dtype : kDTypes)
    for (const int64_t rows : {255, 256, 257, 1023, 1024, 1025, 2047, 2048, 2049})
      for (const int64_t run : {4, 5}) CheckShape(dtype, {2, rows, 5, run}, {1, 3}, kShifts[rows % 3]);
}

// Axes so short that one step passes several of them.
TEST_F(RmseCudaAxes, ThreeAxes) {
  for (const DType dtype : kDTypes)
    for (const int64_t middle : {2, 3, 5, 40, 300})
      for (const int64_t run : {2, 3, 37, 64, 100})
        for (const Shifts shifts : kShifts) {
          const int64_t outer = 9000 / (middle * run) + 2;
          CheckShape(dtype, {outer, 3, middle, 2, run}, {0, 2, 4}, shifts);
          CheckShape(dtype, {2, outer, 3, middle, 2, run}, {1, 3, 5}, shifts);
        }
}

TEST_F(RmseCudaAxes, FourAxesAndFive) {
  for (const DType dtype : kDTypes)
    for (const Shifts shifts : kShifts) {
      CheckShape(dtype, {3, 2, 3, 2, 3, 2, 37}, {0, 2, 4, 6}, shifts);
      CheckShape(dtype, {3, 2, 3, 2, 3, 2, 40, 16}, {0, 2, 4, 6}, shifts);
      CheckShape(dtype, {3, 2, 3, 2, 3, 2, 3, 2, 64}, {0, 2, 4, 6, 8}, shifts);
    }
}

// Rows of whole words and others, of few columns and of several windows; inner axes shorter than a step and
// longer than a tile.
TEST_F(RmseCudaAxes, Columns) {
  for (const DType dtype : kDTypes)
    for (const int64_t inner : {2, 3, 7, 50, 64, 129, 1000, 5000})
      for (const int64_t width : {2, 16, 32, 34, 48, 66, 80, 208, 33}) {
        if (inner * width > 100000) continue;
        for (const int64_t rows : {1023, 1024, 4200}) {
          const int64_t outer = rows / inner + 1;
          CheckShape(dtype, {outer, 2, inner, width}, {0, 2}, kShifts[width == 80 ? 1 : 0]);
          if (rows == 1024) CheckShape(dtype, {2, outer, 3, inner, width}, {1, 3}, {});
        }
      }
}

// Over one axis, as many tiles as fill the device.
TEST_F(RmseCudaAxes, ColumnsOverOneAxis) {
  for (const DType dtype : kDTypes)
    for (const int64_t width : {64, 128})
      CheckShape(dtype, {2, 70 * kTileElements * 64 / width + 5, width}, {1}, {});
}

// Rows of every remainder of a word, as many tiles as fill the device: the last group of rows is not full,
// and items of many begin inside words or not.
TEST_F(RmseCudaAxes, NarrowColumns) {
  for (const DType dtype : kDTypes)
    for (const int64_t width : {1, 2, 3, 5, 6, 7, 12, 17, 24, 33, 61, 64, 65}) {
      CheckShape(dtype, {200 * kTileElements + width, width}, {0}, {});
      CheckShape(dtype, {210, kTileElements + 16, width}, {1}, {});
      CheckShape(dtype, {105, 2 * kTileElements + 3, width}, {1}, {});
      if (width == 3) CheckShape(dtype, {210, kTileElements + 16, width}, {1}, {1, 1});
    }
}

// Ranges of a part of one item that are long enough to fill the device alone, where items begin inside words.
TEST_F(RmseCudaAxes, NarrowColumnsWhoseItemsBeginInsideWords) {
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kF16}) {
    CheckShape(dtype, {2, 300 * kTileElements + 1, 3}, {1}, {});
    CheckShape(dtype, {3, 150 * kTileElements + 1, 3}, {1}, {});
    CheckShape(dtype, {2, 420 * kTileElements + 5, 2}, {1}, {});
  }
}

TEST_F(RmseCudaAxes, WideColumnsOfBytes) {
  for (const DType dtype : {DType::kI8, DType::kU16})
    for (const int64_t width : {250, 1023}) CheckShape(dtype, {200 * kTileElements + 5, width}, {0}, {});
}

// Rows that fill the largest blocks, and so many that windows differ.
TEST_F(RmseCudaAxes, WideColumns) {
  for (const DType dtype : kDTypes)
    for (const int64_t width : {512, 1000, 4096, 5000}) CheckShape(dtype, {40, 2, 30, width}, {0, 2}, {});
}

TEST_F(RmseCudaAxes, ColumnsOfFewRows) {
  for (const DType dtype : kDTypes)
    for (const int64_t outer : {2, 3, 5, 9, 17, 33})
      for (const int64_t inner : {2, 3, 4, 8}) CheckShape(dtype, {outer, 5, inner, 64}, {0, 2}, {});
}

}  // namespace
}  // namespace tilewire::rmse
