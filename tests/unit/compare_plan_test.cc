// What is asked for and what is refused: metrics, results, and what has to be kept for them.
#include <gtest/gtest.h>

#include "kernels/compare/problem.h"
#include "tests/unit/compare_reference.h"

namespace tilewire::compare {
namespace {

ArraySpec Spec(DType dtype, const std::vector<int64_t>& dims) {
  return MakeSpec(dtype, dims).value();
}

std::string Refusal(const ArraySpec& a, const ArraySpec& b, Attributes attributes) {
  const auto problem = kDescriptor.Make(std::array{a, b}, std::move(attributes));
  return problem ? "accepted" : problem.error().ToString();
}

using Integers = std::vector<int32_t>;

TEST(ComparePlan, NamesWhatItRefuses) {
  const ArraySpec f32 = Spec(DType::kF32, {4, 5});
  EXPECT_EQ(Refusal(f32, f32, {{"metrics", Integers{11}}}),
            "INVALID_ARGUMENT: metrics is 11; allowed: a tilewire.v1.CompareMetric, 0 to 10");
  EXPECT_EQ(Refusal(f32, f32, {{"metrics", Integers{-1}}}),
            "INVALID_ARGUMENT: metrics is -1; allowed: a tilewire.v1.CompareMetric, 0 to 10");
  EXPECT_EQ(Refusal(f32, f32, {{"metrics", Integers{3, 0, 3}}}),
            "INVALID_ARGUMENT: metrics is 3 twice; allowed: each metric once");
  EXPECT_EQ(Refusal(f32, f32, {{"axes", Integers{2}}}), "INVALID_ARGUMENT: axes is 2; allowed: -2 to 1");
  EXPECT_EQ(Refusal(f32, Spec(DType::kF64, {4, 5}), {}),
            "INVALID_ARGUMENT: b.dtype is f64; allowed: f32, as operand a");
  EXPECT_EQ(Refusal(f32, Spec(DType::kF32, {4, 6}), {}),
            "INVALID_ARGUMENT: b.shape is (4, 6); allowed: (4, 5), as operand a");
  const ArraySpec complex = Spec(DType::kC64, {4});
  EXPECT_EQ(Refusal(complex, complex, {}),
            "INVALID_ARGUMENT: dtype is c64; allowed: a real dtype: i8 to u64, f16, bf16, f32, f64");
}

TEST(ComparePlan, AResultAMetricInTheOrderAsked) {
  const ArraySpec spec = Spec(DType::kF32, {40, 1, 5});
  const auto problem =
      *kDescriptor.Make(std::array{spec, spec}, {{"axes", Integers{-1}}, {"metrics", Integers{9, 0, 8}}});
  ASSERT_EQ(problem->results().size(), 3U);
  EXPECT_EQ(problem->results()[0], Spec(DType::kU64, {40, 1}));
  EXPECT_EQ(problem->results()[1], Spec(DType::kF64, {40, 1}));
  EXPECT_EQ(problem->results()[2], Spec(DType::kI64, {40, 1}));
  EXPECT_EQ(problem->result_offset(1), 512);  // 320 bytes, and the next multiple of 256
  EXPECT_EQ(problem->result_bytes(), 1344);
}

TEST(ComparePlan, NoMetricsAreAllOfThem) {
  const ArraySpec spec = Spec(DType::kU16, {7});
  const auto problem = *kDescriptor.Make(std::array{spec, spec}, {});
  ASSERT_EQ(problem->results().size(), size_t{kMetrics});
  static_assert(kMetrics <= kMaxResults);
  for (size_t i = 0; i < kMetrics; ++i)
    EXPECT_EQ(problem->results()[i], Spec(TypeOf(static_cast<Metric>(i)), {})) << i;
}

TEST(ComparePlan, KeepsNoMoreThanTheMetricsNeed) {
  const ArraySpec spec = Spec(DType::kF32, {3, 10'000});  // three tiles a segment
  const auto scratch = [&spec](Integers metrics) {
    return Plan::Make(spec, Integers{1}, metrics)->scratch_bytes();
  };
  EXPECT_EQ(scratch({0, 1, 2}), 9 * 8);
  EXPECT_EQ(scratch({3}), 3 * 9 * 8);
  EXPECT_EQ(scratch({6, 0}), 3 * 9 * 8);
  for (int32_t metric = 7; metric < kMetrics; ++metric) EXPECT_EQ(scratch({metric}), 7 * 9 * 8);
  EXPECT_EQ(scratch({}), 7 * 9 * 8);
  // Single tiles are finished at once.
  EXPECT_EQ(Plan::Make(spec, Integers{0}, {})->scratch_bytes(), 0);
}

TEST(ComparePlan, ExamplesAreProblems) {
  for (const Example& example : kDescriptor.examples())
    EXPECT_TRUE(kDescriptor.Make(example.operands, example.attributes));
}

}  // namespace
}  // namespace tilewire::compare
