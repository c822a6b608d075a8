// The CUDA kernels of rmse.1 give the host's bits: golden vectors, random shapes, every dtype, every launch
// shape, every alignment.
#include <bit>
#include <cstdlib>
#include <iostream>

#include "kernels/rmse/golden.h"
#include "tests/gpu/rmse_device.h"
#include "tests/gpu/rmse_shapes.h"

namespace tilewire::rmse {
namespace {

using reference::Bytes;

class RmseCuda : public RmseDevice {};

/// Small shapes through every kernel, in buffers that fit exactly: what compute-sanitizer runs.
class RmseCudaSanitized : public RmseDevice {
 protected:
  RmseCudaSanitized() { exact_ = true; }
};

uint64_t Seed(uint64_t usual) {
  const char* text = std::getenv("TILEWIRE_TEST_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
  std::cout << "TILEWIRE_TEST_SEED=" << seed << "\n";
  return seed;
}

TEST_F(RmseCuda, GoldenVectors) {
  for (const GoldenCase& golden : GoldenCases()) {
    const auto spec = *MakeSpec(golden.dtype, std::vector<int64_t>{golden.n});
    Bytes a(static_cast<size_t>(spec.bytes())), b(a.size());
    FillGolden(golden, a.data(), b.data());
    const uint64_t expected[] = {golden.rmse, golden.mse, golden.sum_squares};
    for (const Output output : {Output::kRmse, Output::kMse, Output::kSumSquares}) {
      const Plan plan = *Plan::Make(spec, {}, output);
      Upload(plan, a, b, {});
      for (const Way way : kWays) {
        std::vector<uint64_t> bits;
        Launch(plan, device_a_, device_b_, way, &bits);
        ASSERT_EQ(bits, std::vector<uint64_t>{expected[static_cast<int>(output)]}) << golden.name;
      }
    }
  }
}

// Operands at equal and at different places; one case in ten is large.
TEST_F(RmseCuda, ThousandsOfRandomShapes) {
  std::mt19937_64 random(Seed(21));
  for (int i = 0; i < 5000 && !HasFatalFailure(); ++i) {
    const auto one = reference::MakeRandomCase(i % 10 == 0 ? 300000 : i % 3 == 0 ? 40000 : 4000, random);
    Shifts shifts;
    if (i % 2 == 0) shifts.a = shifts.b = static_cast<int64_t>(random() % 17);
    if (i % 8 == 0) shifts.b = static_cast<int64_t>(random() % 17);
    Check(one, i % 3 != 0, shifts, random);
  }
}

// Many segments, around the lengths where a row of lanes, a round of accumulators or a word ends, beginning
// anywhere in a word.
TEST_F(RmseCuda, ManySegmentsOfLengthsAroundARowOfLanes) {
  std::mt19937_64 random(Seed(27));
  constexpr int64_t kSegments = 2500, kLongest = 1025;
  for (const DType dtype : RealDTypes()) {
    const auto most = *MakeSpec(dtype, std::vector<int64_t>{kSegments, kLongest});
    const auto a = reference::RandomOperand(most, true, random);
    const auto b = reference::RandomOperand(most, true, random);
    for (const int64_t n : {129, 160, 223, 225, 255, 256, 257, 287, 288,  289,  300,  383,
                            385, 500, 511, 512, 513, 545, 767, 769, 1001, 1023, 1024, 1025}) {
      const auto spec = *MakeSpec(dtype, std::vector<int64_t>{kSegments - n % 4, n});
      const auto shift = static_cast<int64_t>(random() % 17);
      Check({spec, {1}, Output::kRmse}, Bytes(a.begin(), a.begin() + spec.bytes()),
            Bytes(b.begin(), b.begin() + spec.bytes()), {shift, shift});
      if (HasFatalFailure()) return;
    }
  }
}

// So many that warps copy several stages of them, and sweeps are whole.
TEST_F(RmseCuda, SegmentsOfManyStages) {
  std::mt19937_64 random(Seed(28));
  for (const DType dtype : RealDTypes()) {
    const int64_t size = SizeOf(dtype), n = size == 1 ? 528 : size == 2 ? 264 : size == 4 ? 270 : 140;
    for (const Shifts shifts : {Shifts{0, 0}, Shifts{5, 5}}) {
      CheckLarge({*MakeSpec(dtype, std::vector<int64_t>{100'003, n}), {1}, Output::kRmse}, true, shifts,
                 random);
      if (HasFatalFailure()) return;
    }
  }
}

// Of every number of whole words that a thread sums alone, and some beside it.
TEST_F(RmseCuda, ManySegmentsOfWholeWords) {
  std::mt19937_64 random(Seed(29));
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kU16})
    for (int64_t n = 8; n <= 264; n += 8)
      for (const Shifts shifts : {Shifts{0, 0}, Shifts{8, 16}, Shifts{1, 1}}) {
        const int64_t segments = 410'000 / std::bit_ceil(static_cast<uint64_t>(n / 8)) + 1001;
        CheckLarge({*MakeSpec(dtype, std::vector<int64_t>{segments, n}), {1}, Output::kRmse}, true, shifts,
                   random);
        if (HasFatalFailure()) return;
      }
}

TEST_F(RmseCuda, EveryDTypeOnEveryLaunchShape) {
  std::mt19937_64 random(Seed(22));
  for (const DType dtype : RealDTypes())
    for (const NamedShape& shape : kShapes) {
      const reference::RandomCase one{*MakeSpec(dtype, shape.dims), shape.axes, Output::kRmse};
      const bool large = one.spec.shape.elements() > 1'000'000;
      for (const bool tame : {true, false})
        large ? CheckLarge(one, tame, {}, random) : Check(one, tame, {}, random);
    }
}

TEST_F(RmseCudaSanitized, EveryKernelStaysInsideItsArrays) {
  std::mt19937_64 random(Seed(26));
  const std::vector<DType> dtypes = RealDTypes();
  for (size_t s = 0; s < std::size(kShapes) && !HasFatalFailure(); ++s) {
    // Each shape with four dtypes, one of each size, and with aligned, alike and differently misaligned
    // operands.
    for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kF64}) {
      const auto spec = *MakeSpec(dtype, kShapes[s].dims);
      const bool large = spec.bytes() > int64_t{1} << 22;  // the checkers are slow: once is enough
      if (large && dtype != DType::kF32) continue;
      for (const Shifts shifts : {Shifts{0, 0}, Shifts{1, 1}, Shifts{1, 2}})
        if (!large || shifts.b == 0) Check({spec, kShapes[s].axes, Output::kRmse}, true, shifts, random);
    }
  }
}

TEST_F(RmseCuda, OperandsNeedOnlyTheAlignmentOfAnElement) {
  std::mt19937_64 random(Seed(23));
  for (const DType dtype : RealDTypes())
    for (const NamedShape& shape : kShapes) {
      const auto spec = *MakeSpec(dtype, shape.dims);
      if (spec.shape.elements() > 200000) continue;
      for (const Shifts shifts : {Shifts{1, 1}, Shifts{3, 3}, Shifts{0, 1}, Shifts{2, 1}})
        Check({spec, shape.axes, Output::kMse}, true, shifts, random);
    }
}

// One chunk of tile sums, several, and several passes; counts that are odd on some level.
TEST_F(RmseCuda, ManyTilesCombineInTheSameTree) {
  std::mt19937_64 random(Seed(24));
  for (const int64_t tiles : {2, 7, 8, 9, 16, 17, 1023, 1025, 2112, 2113, 3001, 5000, 8200}) {
    const std::vector<int64_t> dims = {tiles * 4096 - 5};
    Check({*MakeSpec(DType::kU8, dims), {}, Output::kRmse}, true, {}, random);
    if (tiles <= 3001) Check({*MakeSpec(DType::kBF16, dims), {}, Output::kRmse}, true, {}, random);
  }
  for (const int64_t tiles : {2, 3, 8, 9, 31})
    Check({*MakeSpec(DType::kF16, std::vector<int64_t>{9000 / tiles, 4096 * tiles - 8}), {1}, Output::kRmse},
          true, {}, random);
  Check({*MakeSpec(DType::kF32, std::vector<int64_t>{3, 4096 * 1500}), {1}, Output::kRmse}, true, {}, random);
}

TEST_F(RmseCuda, MillionsOfTinySegments) {
  std::mt19937_64 random(Seed(25));
  for (const int64_t n : {1, 3, 16})
    Check({*MakeSpec(DType::kF32, std::vector<int64_t>{2000003, n}), {1}, Output::kRmse}, true, {}, random);
  Check({*MakeSpec(DType::kU8, std::vector<int64_t>{3, 2000003}), {0}, Output::kRmse}, true, {}, random);
}

TEST_F(RmseCuda, ListsWhatItLaunches) {
  for (const auto& [n, launches] : {std::pair<int64_t, size_t>{100, 1}, {4096, 1}, {int64_t{1} << 28, 2}}) {
    const Plan plan = *Plan::Make(*MakeSpec(DType::kF32, std::vector<int64_t>{n}), {}, Output::kRmse);
    std::vector<gpu::Launch> list;
    ASSERT_CUDA(CudaWhole(plan, nullptr, nullptr, nullptr, nullptr, gpu::Launcher(&list)));
    EXPECT_EQ(list.size(), launches) << n;
  }
}

}  // namespace
}  // namespace tilewire::rmse
