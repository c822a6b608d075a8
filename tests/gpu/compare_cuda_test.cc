// The CUDA kernels of compare.1 give the host's bits: golden vectors, random shapes, every dtype, metric,
// launch shape, cut and alignment.
#include <cstdlib>
#include <iostream>

#include "kernels/compare/golden.h"
#include "tests/gpu/compare_device.h"

namespace tilewire::compare {
namespace {

class CompareCuda : public CompareDevice {};

/// In buffers that fit exactly: what compute-sanitizer runs.
class CompareCudaSanitized : public CompareDevice {
 protected:
  CompareCudaSanitized() { exact_ = true; }
};

struct NamedShape {
  std::vector<int64_t> dims;
  std::vector<int32_t> axes;
};

// One segment and few; segments that a thread, some threads or a block take; columns of every such kind; runs
// and columns over several axes; many segments, so that threads take whole ones.
const NamedShape kShapes[] = {{{1}, {0}},
                              {{300, 1}, {1}},
                              {{300, 2}, {1}},
                              {{300, 16}, {1}},
                              {{70, 33}, {1}},
                              {{40, 130}, {1}},
                              {{40, 300}, {1}},
                              {{2200, 513}, {1}},
                              {{30, 4096}, {1}},
                              {{9, 8199}, {1}},
                              {{300'000}, {0}},
                              {{9'000'007}, {0}},
                              {{1100, 8200}, {1}},
                              {{140'000, 3}, {1}},
                              {{140'001, 16}, {1}},
                              {{140'000, 31}, {1}},
                              {{20'000, 40}, {1}},
                              {{20'000, 65}, {1}},
                              {{20'001, 100}, {1}},
                              {{9'000, 200}, {1}},
                              {{9'000, 257}, {1}},
                              {{6'000, 1000}, {1}},
                              {{5000, 3}, {0}},
                              {{9000, 1}, {0}},
                              {{9000, 2}, {0}},
                              {{9000, 33}, {0}},
                              {{5, 700}, {0}},
                              {{20, 700}, {0}},
                              {{600, 70}, {0}},
                              {{4200, 128}, {0}},
                              {{3, 200'001}, {0}},
                              {{50, 140'000}, {0}},
                              {{3, 90, 130}, {1}},
                              {{300, 4, 4}, {1}},
                              {{40'000, 5, 4}, {1}},
                              {{300, 500, 3}, {1}},
                              {{6, 5, 100}, {0, 2}},
                              {{70, 3, 70}, {0, 2}},
                              {{70, 30, 8}, {0, 2}},
                              {{600, 7, 2}, {0, 2}},
                              {{3, 50, 12}, {0, 2}},
                              {{5, 30, 4, 50}, {1, 3}},
                              {{4, 30, 5, 50}, {0, 2}},
                              {{3, 4, 5, 6, 7}, {0, 2, 4}},
                              {{9, 3, 50, 2, 37}, {0, 2, 4}},
                              {{3, 4, 5, 6, 7}, {1, 3}},
                              {{2, 9, 300, 3, 64}, {0, 2}},
                              {{3, 2, 3, 2, 3, 2, 40}, {0, 2, 4, 6}}};

uint64_t Seed(uint64_t usual) {
  const char* text = std::getenv("TILEWIRE_TEST_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
  std::cout << "TILEWIRE_TEST_SEED=" << seed << "\n";
  return seed;
}

std::vector<DType> RealDTypes() {
  std::vector<DType> all;
  for (const DTypeInfo& info : AllDTypes())
    if (IsReal(info.dtype)) all.push_back(info.dtype);
  return all;
}

/// All; what all three sums need; the squares alone.
const std::vector<int32_t> kMetricSets[] = {{}, {6, 3}, {1}};

TEST_F(CompareCuda, GoldenVectors) {
  for (const GoldenCase& golden : GoldenCases()) {
    const auto spec = *MakeSpec(golden.dtype, std::vector<int64_t>{golden.n});
    Bytes a(static_cast<size_t>(spec.bytes())), b(a.size());
    FillGolden(golden, a.data(), b.data());
    Check(spec, {}, {}, a, b, {});
    if (HasFatalFailure()) FAIL() << golden.name;
    Grow(result_, 256 * kMetrics);
    std::vector<Bytes> got;
    Buffers buffers;
    buffers.operands[0] = a_.data;
    buffers.operands[1] = b_.data;
    Launch(*MakeProblem(*Plan::Make(spec, {}, {}))->Whole(), buffers, false, &got);
    for (size_t m = 0; m < kMetrics; ++m)
      ASSERT_EQ(std::memcmp(got[m].data(), &golden.expected[m], 8), 0)
          << golden.name << " " << Name(static_cast<Metric>(m));
  }
}

// Operands at equal and at different places; one case in ten is large.
TEST_F(CompareCuda, ThousandsOfRandomShapes) {
  std::mt19937_64 random(Seed(21));
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) {
    const auto one = rmse::reference::MakeRandomCase(i % 10 == 0  ? 300000
                                                     : i % 3 == 0 ? 40000
                                                                  : 4000,
                                                     random);
    Shifts shifts;
    if (i % 2 == 0) shifts = {static_cast<int64_t>(random() % 17), static_cast<int64_t>(random() % 17)};
    CheckRandom(one.spec, one.axes, kMetricSets[i % 5 == 0 ? random() % 3 : 0], i % 3 != 0,
                i % 4 == 0 ? 0 : uint64_t{1} << random() % 14, shifts, random);
  }
}

TEST_F(CompareCuda, EveryDTypeOnEveryLaunchShape) {
  std::mt19937_64 random(Seed(22));
  constexpr uint64_t kEvery[] = {1, 30, 3000};
  size_t turn = 0;
  for (const DType dtype : RealDTypes())
    for (const NamedShape& shape : kShapes) {
      const auto spec = *MakeSpec(dtype, shape.dims);
      CheckRandom(spec, shape.axes, {}, true, 0, {}, random);
      if (HasFatalFailure()) return;
      CheckRandom(spec, shape.axes, {}, turn % 3 != 0, kEvery[turn % 3], {1, 2}, random);
      if (HasFatalFailure()) return;
      CheckRandom(spec, shape.axes, kMetricSets[1 + turn++ % 2], true, 1000, {3, 3}, random);
      if (HasFatalFailure()) return;
    }
}

TEST_F(CompareCudaSanitized, EveryKernelStaysInsideItsArrays) {
  std::mt19937_64 random(Seed(26));
  for (const NamedShape& shape : kShapes)
    for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kF64}) {
      const auto spec = *MakeSpec(dtype, shape.dims);
      if (spec.shape.elements() > 1'000'000 && dtype != DType::kF32) continue;
      for (const auto& metrics : kMetricSets)
        if (!HasFatalFailure()) CheckRandom(spec, shape.axes, metrics, true, 100, {}, random);
    }
}

// One chunk of tiles, several, and several passes; counts that are odd on some level.
TEST_F(CompareCuda, ManyTilesCombineInTheSameTree) {
  std::mt19937_64 random(Seed(24));
  for (const int64_t tiles : {2, 7, 8, 9, 16, 17, 255, 2047, 2048, 2049, 4097, 8200}) {
    if (HasFatalFailure()) return;
    CheckRandom(*MakeSpec(DType::kU8, std::vector<int64_t>{tiles * 4096 - 5}), {}, {}, true, 0, {}, random);
    if (tiles <= 4097)
      CheckRandom(*MakeSpec(DType::kBF16, std::vector<int64_t>{tiles * 4096 - 5}), {}, {}, true, 70'000, {},
                  random);
  }
  for (const int64_t tiles : {2, 3, 16, 17, 31})
    if (!HasFatalFailure())
      CheckRandom(*MakeSpec(DType::kF16, std::vector<int64_t>{9000 / tiles, 4096 * tiles - 8}), {1}, {}, true,
                  100'000, {}, random);
}

// The same largest |d| in several tiles, threads and ranges, and NaNs and infinities among them.
TEST_F(CompareCuda, TheFirstOfEqualsWins) {
  std::mt19937_64 random(Seed(25));
  for (const DType dtype : RealDTypes())
    for (const NamedShape& shape :
         {NamedShape{{2'000'003}, {0}}, {{70'000, 40}, {0}}, {{3, 500'001}, {1}}, {{50, 30, 90}, {0, 2}}}) {
      const auto spec = *MakeSpec(dtype, shape.dims);
      const auto size = static_cast<size_t>(SizeOf(dtype));
      Bytes a(static_cast<size_t>(spec.bytes())), b(a.size());
      for (size_t at = 0; at < a.size(); at += size)
        if (random() % 5000 == 0) (random() % 2 == 0 ? a : b)[at + size - 1] = 0x3c;
      Check(spec, shape.axes, {8, 7, 10, 9}, a, b, {});
      if (HasFatalFailure()) return;
    }
}

TEST_F(CompareCuda, ListsWhatItLaunches) {
  for (const auto& [n, launches] :
       {std::pair<int64_t, size_t>{100, 1}, {4096, 1}, {1 << 22, 2}, {1 << 28, 3}}) {
    const auto problem =
        MakeProblem(*Plan::Make(*MakeSpec(DType::kF32, std::vector<int64_t>{n}), {}, {}))->Whole();
    std::vector<gpu::Launch> list;
    ASSERT_CUDA(kCuda.enqueue(*problem, {0}, Buffers{}, gpu::Launcher(&list)));
    EXPECT_EQ(list.size(), launches) << n;
  }
}

}  // namespace
}  // namespace tilewire::compare
