// Problems in every cut give the same bits: ranges in any order, everything at once, windows that hold a
// range's bytes alone, threads that share a step.
#include <gtest/gtest.h>

#include "kernels/compare/problem.h"
#include "tests/unit/compare_reference.h"
#include "tests/unit/problem_testing.h"
#include "tests/unit/sanitized.h"

namespace tilewire::compare {
namespace {

using reference::Bytes;
using tilewire::testing::RunAll;

TEST(CompareProblem, TheSameBitsInEveryCut) {
  const struct {
    DType dtype;
    std::vector<int64_t> dims;
    std::vector<int32_t> axes;
    bool windows;
  } cases[] = {{DType::kF32, {2'100'003}, {}, true},        {DType::kF64, {3, 700'001}, {1}, true},
               {DType::kU8, {5'000'000}, {0}, true},        {DType::kI64, {200'000, 4}, {1}, true},
               {DType::kF16, {900, 3000}, {1}, true},       {DType::kF64, {5, 300, 401}, {1, 2}, true},
               {DType::kF32, {6, 500, 600}, {1}, true},     {DType::kF32, {20'000, 80}, {0}, false},
               {DType::kBF16, {60, 50, 700}, {0, 2}, false}};
  std::mt19937_64 random(11);
  Alone alone;
  tilewire::testing::Threads threads;
  for (const auto& one : cases) {
    const ArraySpec spec = *MakeSpec(one.dtype, one.dims);
    Bytes operands[] = {rmse::reference::RandomOperand(spec, true, random),
                        rmse::reference::RandomOperand(spec, true, random)};
    reference::Strew(spec, 100'000, operands[0], operands[1], random);
    const auto all = reference::Results(spec, one.axes, {}, operands[0], operands[1]);
    for (const std::vector<int32_t>& metrics : {std::vector<int32_t>{}, {8, 0, 9, 7}, {2, 6, 3}, {1}}) {
      if (tilewire::testing::kSanitized && metrics.size() == 3) continue;  // costs the most there
      std::vector<Bytes> wanted;
      for (const int32_t metric : metrics) wanted.push_back(all[static_cast<size_t>(metric)]);
      if (metrics.empty()) wanted = all;
      const auto problem = MakeProblem(*Plan::Make(spec, one.axes, metrics));
      EXPECT_EQ(RunAll(*problem, operands, false, alone, random), wanted);
      EXPECT_EQ(RunAll(*problem, operands, false, threads, random), wanted);
      EXPECT_EQ(RunAll(*problem->Whole(), operands, false, threads, random), wanted);
      EXPECT_GT(problem->range_count(), 1);
      const auto windowed = problem->Windowed();
      ASSERT_EQ(windowed.has_value(), one.windows) << spec.shape.ToString();
      if (windowed) EXPECT_EQ(RunAll(**windowed, operands, true, threads, random), wanted);
    }
  }
}

TEST(CompareProblem, SaysWhyItHasNoWindows) {
  const auto why = [](std::vector<int64_t> dims, std::vector<int32_t> axes) {
    const auto problem = MakeProblem(*Plan::Make(*MakeSpec(DType::kF32, dims), axes, {}));
    const auto windowed = problem->Windowed();
    return windowed ? "it has them" : windowed.error().ToString();
  };
  const std::string far_apart =
      "FAILED_PRECONDITION: values of this comparison are over bytes that lie too far apart; the reduced "
      "axes must be the last ones";
  EXPECT_EQ(why({20'000, 80}, {0}), far_apart);
  EXPECT_EQ(why({2000, 3, 1000}, {0, 2}), far_apart) << "the last axis is reduced, but not only that";
  EXPECT_EQ(why({100}, {}),
            "FAILED_PRECONDITION: this comparison cannot be cut into parts that come one after the other");
}

TEST(CompareProblem, RunsWithoutAFinishWhereSegmentsAreSingleTiles) {
  const auto problem = MakeProblem(
      *Plan::Make(*MakeSpec(DType::kF32, std::vector<int64_t>{500'000, 16}), std::vector<int32_t>{1}, {}));
  EXPECT_GT(problem->range_count(), 1);
  EXPECT_FALSE(problem->has_finish());
  EXPECT_EQ(problem->scratch_bytes(), 0);
}

}  // namespace
}  // namespace tilewire::compare
