// Geometry: refusals, canonical axes, and ranges that cover everything exactly once.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/rmse/rmse.h"
#include "tests/unit/rmse_reference.h"

namespace tilewire::rmse {
namespace {

Plan MakePlan(DType dtype, std::vector<int64_t> dims, std::vector<int32_t> axes = {}) {
  return *Plan::Make(*MakeSpec(dtype, dims), axes, Output::kRmse);
}

std::string Refusal(DType dtype, std::vector<int64_t> dims, std::vector<int32_t> axes) {
  const auto plan = Plan::Make(*MakeSpec(dtype, dims), axes, Output::kRmse);
  return plan ? "accepted" : plan.error().ToString();
}

TEST(RmsePlan, RefusesWhatHasNoDifference) {
  for (const DType dtype : {DType::kBool, DType::kC64, DType::kC128})
    EXPECT_EQ(Refusal(dtype, {4}, {}), "INVALID_ARGUMENT: dtype is " + std::string(Name(dtype)) +
                                           "; allowed: a real dtype: i8 to u64, f16, bf16, f32, f64");
}

TEST(RmsePlan, RefusesBadAxesByName) {
  EXPECT_EQ(Refusal(DType::kF32, {4, 5}, {2}), "INVALID_ARGUMENT: axes is 2; allowed: -2 to 1");
  EXPECT_EQ(Refusal(DType::kF32, {4, 5}, {-3}), "INVALID_ARGUMENT: axes is -3; allowed: -2 to 1");
  EXPECT_EQ(Refusal(DType::kF32, {4, 5}, {1, -1}),
            "INVALID_ARGUMENT: axes is -1 twice; allowed: each axis once");
  EXPECT_EQ(Refusal(DType::kF32, {}, {0}), "INVALID_ARGUMENT: axes is 0; allowed: none for a 0-d array");
}

TEST(RmsePlan, RefusesUnknownOutputsAndResultsOverTheLimit) {
  const auto output = Plan::Make(*MakeSpec(DType::kF32, std::vector<int64_t>{4}), {}, static_cast<Output>(3));
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().message(), "output is 3; allowed: RMSE, MSE or SUM_SQUARES");
  // One f64 for each of 2^60 bytes would be 2^63 bytes.
  EXPECT_EQ(Refusal(DType::kI8, {int64_t{1} << 60, 1}, {1}),
            "INVALID_ARGUMENT: result.shape is (1152921504606846976); allowed: at most 2^60 bytes");
}

/// Every element of every segment, walked over by hand.
TEST(RmsePlan, ElementsLieWhereAxesOffsetSays) {
  const Plan plan = MakePlan(DType::kF32, {3, 4, 5, 2}, {1, 3});
  const Layout& layout = plan.layout();
  for (int64_t i = 0, at = 0; i < 3; ++i)
    for (int64_t j = 0; j < 4; ++j)
      for (int64_t k = 0; k < 5; ++k)
        for (int64_t l = 0; l < 2; ++l, ++at)
          ASSERT_EQ(AxesOffset(layout, false, 0, i * 5 + k) + AxesOffset(layout, true, 0, j * 2 + l), at);
  EXPECT_EQ(AxesOffset(layout, true, 1, 3), 30) << "without the innermost axis, which is reduced: j is 3";
  static_assert(Range{2, 5, 1, 8, 0, 0}.items() == 21);
  int64_t rest = 0;
  EXPECT_EQ(DivMod(int64_t{7} << 33, int64_t{2} << 33, &rest), 3);
  EXPECT_EQ(rest, int64_t{1} << 33);
}

TEST(RmsePlan, CanonicalAxesAlternate) {
  const Plan plan = MakePlan(DType::kF32, {2, 1, 3, 4, 5, 1, 6, 7}, {3, 4, -1});
  const Layout& layout = plan.layout();
  ASSERT_EQ(layout.rank, 4);
  const int64_t dims[] = {6, 20, 6, 7}, strides[] = {840, 42, 7, 1};
  const bool reduced[] = {false, true, false, true};
  for (int axis = 0; axis < 4; ++axis) {
    EXPECT_EQ(layout.dims[axis], dims[axis]);
    EXPECT_EQ(layout.strides[axis], strides[axis]);
    EXPECT_EQ(layout.reduced[axis], reduced[axis]);
  }
  EXPECT_EQ(layout.segments, 36);
  EXPECT_EQ(layout.elements, 140);
  EXPECT_EQ(layout.tiles, 1);
  EXPECT_EQ(plan.result().shape.ToString(), "(2, 1, 3, 1, 6)");
  EXPECT_EQ(plan.result().dtype, DType::kF64);
  EXPECT_EQ(plan.scratch_bytes(), 36 * 8);
}

TEST(RmsePlan, DegenerateShapesAreOneSegmentOrOneElement) {
  EXPECT_EQ(MakePlan(DType::kF64, {}).layout().segments, 1);
  EXPECT_EQ(MakePlan(DType::kF64, {1, 1, 1}).result().shape.ToString(), "()");
  EXPECT_EQ(MakePlan(DType::kF64, {1, 1, 1}, {1}).result().shape.ToString(), "(1, 1)");
  const Plan each = MakePlan(DType::kU8, {5, 1, 3}, {1});
  EXPECT_EQ(each.layout().segments, 15);
  EXPECT_EQ(each.layout().elements, 1);
  EXPECT_EQ(each.result().shape.ToString(), "(5, 3)");
}

// Every (segment, tile) once, in order of byte_begin, and every element of it inside the byte interval.
void CheckRanges(const Plan& plan, const std::vector<int32_t>& axes, const std::string& what) {
  const Layout& layout = plan.layout();
  const std::vector<int64_t> segment_of = reference::SegmentOfElement(plan.operand().shape, axes);
  const auto tiles = static_cast<size_t>(layout.tiles);
  const size_t items = static_cast<size_t>(layout.segments) * tiles;
  const int64_t size = SizeOf(plan.operand().dtype);
  std::vector<int64_t> first(items, INT64_MAX), last(items, -1), seen(static_cast<size_t>(layout.segments));
  for (size_t i = 0; i < segment_of.size(); ++i) {
    const auto segment = static_cast<size_t>(segment_of[i]);
    const size_t item = segment * tiles + static_cast<size_t>(seen[segment]++) / 4096;
    first[item] = std::min(first[item], static_cast<int64_t>(i) * size);
    last[item] = std::max(last[item], static_cast<int64_t>(i + 1) * size);
  }
  std::vector<int> covered(items);
  int64_t previous = 0;
  for (int64_t r = 0; r < plan.range_count(); ++r) {
    const Range range = plan.range(r);
    ASSERT_GT(range.items(), 0) << what;
    ASSERT_GE(range.byte_begin, previous) << what;
    ASSERT_LE(range.byte_end, plan.operand().bytes()) << what;
    previous = range.byte_begin;
    for (int64_t segment = range.segment_begin; segment < range.segment_end; ++segment)
      for (int64_t tile = range.tile_begin; tile < range.tile_end; ++tile) {
        const auto item = static_cast<size_t>(segment * layout.tiles + tile);
        ++covered.at(item);
        ASSERT_GE(first[item], range.byte_begin) << what << " range " << r;
        ASSERT_LE(last[item], range.byte_end) << what << " range " << r;
      }
  }
  EXPECT_EQ(std::count(covered.begin(), covered.end(), 1), static_cast<int64_t>(items)) << what;
}

TEST(RmsePlan, RangesCoverExactlyOnceAndContainTheirBytes) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 300; ++i) {
    const auto one = reference::MakeRandomCase(200000, random);
    const Plan plan = *Plan::Make(one.spec, one.axes, one.output);
    CheckRanges(plan, one.axes, reference::Describe(one));
  }
}

TEST(RmsePlan, LargeArraysAreCutAndCovered) {
  const struct {
    std::vector<int64_t> dims;
    std::vector<int32_t> axes;
    bool cut;
  } cases[] = {
      {{3000000}, {0}, true},          {{3, 1000000}, {1}, true},   {{1000000, 3}, {0}, true},
      {{300000, 10}, {1}, true},       {{2, 200000, 7}, {1}, true}, {{5, 3, 200000}, {0, 2}, true},
      {{100, 100, 300}, {0, 2}, true}, {{2000, 1500}, {0}, false},  {{2, 9000, 2, 90}, {1, 3}, true}};
  for (const auto& one : cases) {
    const Plan plan = MakePlan(DType::kF32, one.dims, one.axes);
    EXPECT_EQ(plan.range_count() > 1, one.cut) << plan.operand().shape.ToString();
    CheckRanges(plan, one.axes, plan.operand().shape.ToString());
  }
}

TEST(RmsePlan, PlainRangesHaveAGoodSize) {
  for (const auto& plan : {MakePlan(DType::kF32, {1 << 28}), MakePlan(DType::kF32, {1 << 20, 256}, {1}),
                           MakePlan(DType::kU8, {1 << 28}), MakePlan(DType::kF64, {1 << 22, 8}, {0})}) {
    for (int64_t r = 0; r < plan.range_count(); ++r) {
      const Range range = plan.range(r);
      EXPECT_LE(range.byte_end - range.byte_begin, 4 << 20);
      EXPECT_GE(range.byte_end - range.byte_begin, 1 << 20);
    }
  }
}

TEST(RmsePlan, HugeArraysNeitherOverflowNorMakeCountlessRanges) {
  const int64_t k2 = 1;
  const struct {
    DType dtype;
    std::vector<int64_t> dims;
    std::vector<int32_t> axes;
  } cases[] = {{DType::kI8, {k2 << 60}, {}},
               {DType::kF64, {k2 << 57}, {0}},
               {DType::kF32, {k2 << 30, k2 << 28}, {1}},
               {DType::kF32, {k2 << 30, k2 << 28}, {0}},
               {DType::kF64, {k2 << 20, k2 << 20, k2 << 17}, {0, 2}},
               {DType::kF64, {(k2 << 57) - 1, 1}, {1}},
               {DType::kU8, {(k2 << 40) - 1, 3, (k2 << 17) + 1}, {0}},
               {DType::kU16, {2, (k2 << 55) + 12345}, {1}}};
  for (const auto& one : cases) {
    const Plan plan = MakePlan(one.dtype, one.dims, one.axes);
    EXPECT_LE(plan.range_count(), 65536);
    EXPECT_GT(plan.scratch_bytes(), 0);
    int64_t items_end = 0, byte_begin = 0;
    for (int64_t r = 0; r < plan.range_count(); ++r) {
      const Range range = plan.range(r);
      EXPECT_GE(range.byte_begin, byte_begin);
      EXPECT_GT(range.byte_end, range.byte_begin);
      byte_begin = range.byte_begin;
      items_end += range.items();
    }
    EXPECT_EQ(items_end, plan.layout().segments * plan.layout().tiles);
    EXPECT_EQ(plan.range(0).byte_begin, 0);
    EXPECT_EQ(plan.range(plan.range_count() - 1).byte_end, plan.operand().bytes());
  }
}

}  // namespace
}  // namespace tilewire::rmse
