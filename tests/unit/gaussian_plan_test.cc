// Validation and ranges, without data.
#include <gmock/gmock.h>

#include "tests/unit/gaussian_reference.h"

namespace tilewire::gaussian {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// The refusal's field, value and allowed, which a client may show.
void ExpectRefused(DType dtype, double mean, double stddev, std::string_view field, std::string_view value,
                   std::string_view allowed) {
  const auto plan = Plan::Make(*MakeSpec(dtype, std::vector<int64_t>{3}), mean, stddev);
  ASSERT_FALSE(plan) << field << " " << value;
  const Status& status = plan.error();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.reason(), "BAD_VALUE");
  ASSERT_NE(status.detail(), nullptr);
  EXPECT_EQ(status.detail()->field, field);
  EXPECT_EQ(status.detail()->value, value);
  EXPECT_EQ(status.detail()->allowed, allowed);
}

TEST(GaussianPlan, RefusesEveryOtherDType) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (info.dtype == DType::kF32 || info.dtype == DType::kF64)
      EXPECT_TRUE(Plan::Make(*MakeSpec(info.dtype, std::vector<int64_t>{3}), 0, 1)) << info.name;
    else
      ExpectRefused(info.dtype, 0, 1, "dtype", info.name, "f32 or f64");
  }
}

TEST(GaussianPlan, RefusesParametersThatAreNoDistribution) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    ExpectRefused(dtype, kNan, 1, "mean", "nan", "any finite number");
    ExpectRefused(dtype, kInf, 1, "mean", "inf", "any finite number");
    ExpectRefused(dtype, -kInf, 1, "mean", "-inf", "any finite number");
    constexpr std::string_view kPositive = "any finite number greater than 0";
    ExpectRefused(dtype, 0, kNan, "stddev", "nan", kPositive);
    ExpectRefused(dtype, 0, kInf, "stddev", "inf", kPositive);
    ExpectRefused(dtype, 0, -kInf, "stddev", "-inf", kPositive);
    ExpectRefused(dtype, 0, 0.0, "stddev", "0", kPositive);
    ExpectRefused(dtype, 0, -0.0, "stddev", "-0", kPositive);
    ExpectRefused(dtype, 0, -1.5, "stddev", "-1.5", kPositive);
    ExpectRefused(dtype, 0, -5e-324, "stddev", "-5e-324", kPositive);
  }
}

TEST(GaussianPlan, RefusesMoreBytesThanAnArrayMayHave) {
  // MakeSpec would have refused it; a spec put together by hand is refused all the same.
  const ArraySpec spec{DType::kF64, *Shape::Make(std::vector<int64_t>{int64_t{1} << 30, int64_t{1} << 30})};
  const auto plan = Plan::Make(spec, 0, 1);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().ToString(), ::testing::HasSubstr("at most 2^60 bytes"));
}

TEST(GaussianPlan, KeepsWhatItWasGiven) {
  const ArraySpec spec = *MakeSpec(DType::kF64, std::vector<int64_t>{3, 1, 5});
  const Plan plan = *Plan::Make(spec, -2.5, 5e-324);
  EXPECT_EQ(plan.input(), spec);
  EXPECT_EQ(plan.result(), spec);
  EXPECT_EQ(plan.mean(), -2.5);
  EXPECT_EQ(plan.stddev(), 5e-324);
  EXPECT_EQ(plan.whole().begin, 0);
  EXPECT_EQ(plan.whole().end, 15);
}

TEST(GaussianPlan, RangesPartitionTheArrayInOrder) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const int64_t elements : {1, 2, 4095, 262143, 262144, 262145, 524287, 524288, 524289, 10000019}) {
      const Plan plan = reference::MakePlan(dtype, elements, {0, 1});
      int64_t end = 0;
      for (int64_t i = 0; i < plan.range_count(); ++i) {
        const Range range = plan.range(i);
        ASSERT_EQ(range.begin, end) << elements << " range " << i;
        ASSERT_GT(range.end, range.begin);
        ASSERT_EQ(range.begin * SizeOf(dtype) % 16, 0) << "a range begins where 16-byte accesses may";
        if (i + 1 < plan.range_count()) {
          ASSERT_EQ((range.end - range.begin) * SizeOf(dtype), 2 << 20) << elements << " range " << i;
        }
        end = range.end;
      }
      EXPECT_EQ(end, elements);
    }
  }
}

TEST(GaussianPlan, RangesFollowFromTheShapeAlone) {
  const Plan a = reference::MakePlan(DType::kF32, 3000000, {0, 1});
  const Plan b = reference::MakePlan(DType::kF32, 3000000, {-1e300, 5e-324});
  ASSERT_EQ(a.range_count(), b.range_count());
  for (int64_t i = 0; i < a.range_count(); ++i) EXPECT_EQ(a.range(i).end, b.range(i).end);
}

TEST(GaussianPlan, HugeArraysHaveABoundedNumberOfRanges) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (int64_t elements = int64_t{1} << 30; elements <= kMaxArrayBytes / SizeOf(dtype); elements *= 2) {
      for (const int64_t less : {0, 1}) {
        const Plan plan = reference::MakePlan(dtype, elements - less, {0, 1});
        EXPECT_LE(plan.range_count(), 64 << 10);
        EXPECT_GE(plan.range_count(), 512);
        EXPECT_EQ(plan.range(0).begin, 0);
        EXPECT_EQ(plan.range(plan.range_count() - 1).end, elements - less);
        EXPECT_LT(plan.range(plan.range_count() - 1).begin, elements - less);
      }
    }
  }
}

TEST(GaussianPlan, ItemsCoverARange) {
  const Plan plan = reference::MakePlan(DType::kF32, 10000019, {0, 1});
  const Range last = plan.range(plan.range_count() - 1);
  EXPECT_EQ(HostItems(plan, {0, 1}), 1);
  EXPECT_EQ(HostItems(plan, {0, 4096}), 1);
  EXPECT_EQ(HostItems(plan, {0, 4097}), 2);
  EXPECT_EQ(HostItems(plan, last), (last.end - last.begin + 4095) / 4096);
}

}  // namespace
}  // namespace tilewire::gaussian
