// Every kernel that takes a layout gives the host's bits, chosen or not; and which kernel a layout reaches.
#include <set>

#include "tests/gpu/rmse_device.h"
#include "tests/gpu/rmse_shapes.h"

namespace tilewire::rmse {
namespace {

class RmseCudaChoice : public RmseDevice {
 protected:
  void CheckAll(DType dtype, const NamedShape& shape, Shifts shifts, bool tame) {
    if (HasFatalFailure()) return;
    const reference::RandomCase one{*MakeSpec(dtype, shape.dims), shape.axes, Output::kRmse};
    auto& [a, b] = parts_[{dtype, tame}];
    if (a.empty()) a = SomeElements(dtype, tame, random_), b = SomeElements(dtype, tame, random_);
    const int64_t bytes = one.spec.bytes();
    CheckChoices(one, Repeated(a, bytes), Repeated(b, bytes), shifts, &used_);
  }

  /// The kernels that CudaWhole launches where the operands begin at multiples of 256 bytes, or after them.
  std::vector<std::string> Reached(DType dtype, const std::vector<int64_t>& dims,
                                   const std::vector<int32_t>& axes, Shifts shifts = {}) {
    const Plan plan = *Plan::Make(*MakeSpec(dtype, dims), axes, Output::kRmse);
    const int64_t size = SizeOf(dtype);  // the pointers are not followed
    return KernelsOf(plan, reinterpret_cast<const void*>(4096 + shifts.a * size),
                     reinterpret_cast<const void*>(8192 + shifts.b * size));
  }

  std::mt19937_64 random_{61};
  std::map<std::pair<DType, bool>, std::pair<reference::Bytes, reference::Bytes>> parts_;
  std::map<std::string, int> used_;
};

/// In buffers that fit exactly: what compute-sanitizer runs.
class RmseCudaChoiceSanitized : public RmseCudaChoice {
 protected:
  RmseCudaChoiceSanitized() { exact_ = true; }
};

using Names = std::vector<std::string>;

const Shifts kEveryShifts[] = {{0, 0}, {1, 1}, {8, 8}, {2, 4}, {1, 2}};
const DType kChoiceDTypes[] = {DType::kI8, DType::kU16, DType::kF16, DType::kF32, DType::kI64, DType::kF64};

TEST_F(RmseCudaChoice, EveryKernelGivesTheSameBits) {
  for (const DType dtype : kChoiceDTypes)
    for (const NamedShape& shape : kShapes)
      for (const Shifts shifts : kEveryShifts) CheckAll(dtype, shape, shifts, shifts.a % 2 == 0);
  std::set<std::string> families;
  for (const auto& [name, count] : used_) families.insert(name.substr(0, name.find(',')));
  EXPECT_EQ(families, (std::set<std::string>{"GroupKernel", "RingKernel", "StagedKernel", "StreamKernel",
                                             "TilesKernel", "WalkKernel"}));
}

// Chosen or not: the checkers are slow, so small shapes must do.
TEST_F(RmseCudaChoiceSanitized, EveryKernelStaysInsideItsArrays) {
  for (const NamedShape& shape : kShapes)
    for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kF64}) {
      const auto spec = *MakeSpec(dtype, shape.dims);
      if (spec.shape.elements() > 13'000) continue;
      for (const Shifts shifts : {Shifts{0, 0}, Shifts{1, 1}, Shifts{1, 2}})
        CheckAll(dtype, shape, shifts, true);
    }
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32})
    for (const Shifts shifts : {Shifts{0, 0}, Shifts{1, 1}}) {
      CheckAll(dtype, {{300, 16, 2}, {0, 2}}, shifts, true);
      CheckAll(dtype, {{2, 4099, 3}, {1}}, shifts, true);
      CheckAll(dtype, {{300, 99}, {0}}, shifts, true);
    }
}

// Columns of every remainder of a word, of few rows and of more than a tile, in arrays that begin inside
// words; items that do.
TEST_F(RmseCudaChoice, Columns) {
  for (const DType dtype : kChoiceDTypes)
    for (const int64_t width : {1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 48, 64, 99, 130, 260})
      for (const int64_t rows : {2, 3, 5, 9, 40, 255, 300, 700, 1025, 4099, 8300})
        for (const Shifts shifts : kEveryShifts) {
          CheckAll(dtype, {{rows, width}, {0}}, shifts, true);
          if (rows < 1100) CheckAll(dtype, {{3, rows, width}, {1}}, shifts, true);
        }
}

TEST_F(RmseCudaChoice, Runs) {
  for (const DType dtype : kChoiceDTypes)
    for (const Shifts shifts : kEveryShifts) {
      for (const int64_t run : {2, 3, 4, 8, 16, 32, 33, 64, 256, 300})
        for (const int64_t neighbours : {1, 3, 8, 20, 33}) {
          CheckAll(dtype, {{2, neighbours, run}, {0, 2}}, shifts, true);
          CheckAll(dtype, {{4200 / run + 2, neighbours, run}, {0, 2}}, shifts, true);
          CheckAll(dtype, {{2, 40, neighbours, run}, {1, 3}}, shifts, true);
        }
      CheckAll(dtype, {{3, 2, 3, 2, 3, 2, 37}, {0, 2, 4, 6}}, shifts, true);
      CheckAll(dtype, {{3, 2, 3, 2, 3, 2, 300, 2}, {0, 2, 4, 6}}, shifts, true);
      CheckAll(dtype, {{40, 3, 5, 20}, {0, 2}}, shifts, true);
      CheckAll(dtype, {{40, 3, 50, 64}, {0, 2}}, shifts, true);
    }
}

TEST_F(RmseCudaChoice, ContiguousSegments) {
  for (const DType dtype : kChoiceDTypes)
    for (const int64_t n : {1, 2, 5, 8, 24, 31, 33, 72, 100, 257, 270, 513, 1000, 4096, 4099, 9000})
      for (const Shifts shifts : kEveryShifts) {
        CheckAll(dtype, {{37, n}, {1}}, shifts, true);
        if (n < 600) CheckAll(dtype, {{68000 / (n / 16 + 1), n}, {1}}, shifts, true);
      }
}

// The device's multiprocessors move the borders, so these shapes are far from them.
TEST_F(RmseCudaChoice, LayoutsReachTheirKernels) {
  const std::string finish = "FinishKernel";
  EXPECT_EQ(Reached(DType::kF32, {1 << 28}, {}), (Names{"TilesKernel", finish}));
  EXPECT_EQ(Reached(DType::kF32, {1000}, {}), (Names{"TilesKernel"}));
  EXPECT_EQ(Reached(DType::kF32, {1 << 20, 1000}, {1}), (Names{"TilesKernel"}));
  EXPECT_EQ(Reached(DType::kF32, {1 << 22, 16}, {1}), (Names{"GroupKernel"}));
  EXPECT_EQ(Reached(DType::kF64, {1 << 22, 3}, {1}), (Names{"GroupKernel"}));
  EXPECT_EQ(Reached(DType::kF32, {1 << 22, 33}, {1}), (Names{"StagedKernel"}));
  EXPECT_EQ(Reached(DType::kF16, {1 << 22, 24}, {1}), (Names{"StagedKernel"}));
  EXPECT_EQ(Reached(DType::kF32, {1 << 20, 257}, {1}), (Names{"StagedKernel"}));
  EXPECT_EQ(Reached(DType::kU8, {1 << 20, 10, 100}, {1}), (Names{"StagedKernel"}));
  EXPECT_EQ(Reached(DType::kF32, {1 << 22, 3}, {0}), (Names{"RingKernel", finish}));
  EXPECT_EQ(Reached(DType::kF32, {1 << 22, 3}, {0}, {1, 1}), (Names{"RingKernel", finish}));
  EXPECT_EQ(Reached(DType::kF32, {1 << 22, 64}, {0}), (Names{"RingKernel", finish}));
  EXPECT_EQ(Reached(DType::kF32, {64, 64, 128, 256}, {0, 2}), (Names{"RingKernel", finish}));
  EXPECT_EQ(Reached(DType::kF32, {2048, 2048}, {0}), (Names{"RingKernel"}));
  EXPECT_EQ(Reached(DType::kF32, {1 << 22, 16}, {0}), (Names{"StreamKernel", finish}));
  EXPECT_EQ(Reached(DType::kF32, {4, 1 << 24}, {0}), (Names{"StreamKernel"}));
  EXPECT_EQ(Reached(DType::kF16, {1 << 18, 1001}, {0}), (Names{"StreamKernel", finish}));
  EXPECT_EQ(Reached(DType::kF32, {512, 512, 512}, {0, 2}), (Names{"WalkKernel", finish}));
  EXPECT_EQ(Reached(DType::kF16, {64, 64, 64, 64}, {1, 3}), (Names{"WalkKernel"}));
  EXPECT_EQ(Reached(DType::kF16, {1 << 20, 1000}, {1}, {1, 2}), (Names{"WalkKernel"}));
  EXPECT_EQ(Reached(DType::kF32, {3, 2, 3, 2, 3, 2, 37}, {0, 2, 4, 6}), (Names{"WalkKernel"}));
}

}  // namespace
}  // namespace tilewire::rmse
