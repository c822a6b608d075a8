// kernels/array: the dtype table, shapes and their limits, axes, status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kernels/array/dtype.h"
#include "kernels/array/shape.h"

namespace tilewire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status ShapeError(std::vector<int64_t> dims) {
  auto shape = Shape::Make(dims, "x.shape");
  return shape ? Status() : shape.error();
}

TEST(DType, TableIsIndexedByNumber) {
  int number = 0;
  for (const DTypeInfo& info : AllDTypes()) {
    EXPECT_EQ(static_cast<int>(info.dtype), ++number);
    EXPECT_EQ(&Info(info.dtype), &info);
    EXPECT_EQ(DTypeFromNumber(number), info.dtype);
    EXPECT_EQ(DTypeFromName(info.name), info.dtype);
  }
  EXPECT_EQ(number, 15);
}

TEST(DType, NamesAndDescriptorsAreUnique) {
  std::set<std::string_view> names, descriptors;
  for (const DTypeInfo& info : AllDTypes()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(descriptors.insert(info.npy_descr).second) << info.npy_descr;
    EXPECT_EQ(info.npy_descr.substr(2), std::to_string(info.size)) << info.name;
    EXPECT_EQ(info.npy_descr[0], info.size == 1 ? '|' : '<') << info.name;
  }
}

TEST(DType, UnknownNumbersAndNamesAreNothing) {
  EXPECT_FALSE(DTypeFromNumber(0));
  EXPECT_FALSE(DTypeFromNumber(16));
  EXPECT_FALSE(DTypeFromNumber(-1));
  EXPECT_FALSE(DTypeFromName("float32"));
  EXPECT_FALSE(DTypeFromName(""));
}

TEST(DType, BoolAndComplexAreNotReal) {
  for (const DTypeInfo& info : AllDTypes()) {
    const bool refused = info.name == "bool" || info.name == "c64" || info.name == "c128";
    EXPECT_EQ(IsReal(info.dtype), !refused) << info.name;
  }
}

TEST(Shape, RankZeroIsOneElement) {
  const auto shape = Shape::Make({});
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->rank(), 0);
  EXPECT_EQ(shape->elements(), 1);
  EXPECT_EQ(shape->ToString(), "()");
}

TEST(Shape, KeepsExtentsAndCounts) {
  const auto shape = Shape::Make(std::vector<int64_t>{2, 1, 5});
  ASSERT_TRUE(shape);
  EXPECT_THAT(shape->dims(), ElementsAre(2, 1, 5));
  EXPECT_EQ(shape->elements(), 10);
  EXPECT_EQ(shape->ToString(), "(2, 1, 5)");
  EXPECT_EQ(*shape, *Shape::Make(std::vector<int64_t>{2, 1, 5}));
  EXPECT_FALSE(*shape == *Shape::Make(std::vector<int64_t>{2, 5}));
}

TEST(Shape, RefusesRankOver16) {
  EXPECT_TRUE(Shape::Make(std::vector<int64_t>(16, 1)));
  EXPECT_EQ(ShapeError(std::vector<int64_t>(17, 1)).message(), "x.shape rank is 17; allowed: 0 to 16");
}

TEST(Shape, RefusesExtentsBelowOne) {
  EXPECT_EQ(ShapeError({4, 0}).message(), "x.shape[1] is 0; allowed: 1 or more");
  EXPECT_EQ(ShapeError({-3}).message(), "x.shape[0] is -3; allowed: 1 or more");
  EXPECT_EQ(ShapeError({-3}).code(), Code::kInvalidArgument);
  EXPECT_EQ(ShapeError({-3}).reason(), "BAD_VALUE");
  // A zero after an overflow is still an overflow: nothing is multiplied unchecked.
  EXPECT_FALSE(ShapeError({INT64_MAX, INT64_MAX, 0}).ok());
}

TEST(Shape, RefusesProductsOverTheLimit) {
  EXPECT_TRUE(Shape::Make(std::vector<int64_t>{int64_t{1} << 30, int64_t{1} << 30}));
  EXPECT_THAT(std::string(ShapeError({int64_t{1} << 30, int64_t{1} << 30, 2}).message()), HasSubstr("2^60"));
  EXPECT_FALSE(ShapeError({int64_t{1} << 32, int64_t{1} << 32}).ok());  // wraps to 0
  EXPECT_FALSE(ShapeError({INT64_MAX}).ok());
}

TEST(Spec, CountsBytesAndRefusesTooMany) {
  const auto spec = MakeSpec(DType::kC128, std::vector<int64_t>{3, 5});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->bytes(), 240);
  EXPECT_TRUE(MakeSpec(DType::kF64, std::vector<int64_t>{int64_t{1} << 57}));
  const auto large = MakeSpec(DType::kF64, std::vector<int64_t>{(int64_t{1} << 57) + 1}, "a");
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().message(), "a.shape is (144115188075855873); allowed: at most 2^60 bytes");
}

TEST(Spec, RefusesUnknownDTypeNumbersByName) {
  for (const int number : {-1, 0, 16, 1 << 20}) {
    const auto spec = MakeSpec(number, std::vector<int64_t>{1}, "b");
    ASSERT_FALSE(spec);
    EXPECT_EQ(spec.error().message(),
              "b.dtype is " + std::to_string(number) + "; allowed: a tilewire.v1.DType, 1 to 15");
  }
  EXPECT_EQ(MakeSpec(12, std::vector<int64_t>{1})->dtype, DType::kF32);
}

TEST(Axes, NegativeCountFromTheEndAndOrderIsKept) {
  EXPECT_THAT(*NormalizeAxes(std::vector<int32_t>{-1, 0}, 3), ElementsAre(2, 0));
  const auto outermost = NormalizeAxes(std::vector<int32_t>{-3, 2, -2}, 3);
  ASSERT_TRUE(outermost) << outermost.error().ToString();
  EXPECT_THAT(*outermost, ElementsAre(0, 2, 1));
  EXPECT_TRUE(NormalizeAxes({}, 0)->empty());
}

TEST(Axes, RefusesForeignAndRepeatedOnes) {
  EXPECT_EQ(NormalizeAxes(std::vector<int32_t>{3}, 3).error().message(), "axes is 3; allowed: -3 to 2");
  EXPECT_EQ(NormalizeAxes(std::vector<int32_t>{-4}, 3).error().message(), "axes is -4; allowed: -3 to 2");
  EXPECT_EQ(NormalizeAxes(std::vector<int32_t>{0}, 0).error().message(),
            "axes is 0; allowed: none for a 0-d array");
  EXPECT_EQ(NormalizeAxes(std::vector<int32_t>{1, -2}, 3, "perm").error().message(),
            "perm is -2 twice; allowed: each axis once");
  EXPECT_FALSE(NormalizeAxes(std::vector<int32_t>{INT32_MIN}, 16));
}

TEST(StatusType, OkIsEmptyAndErrorsCarryDetail) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().ToString(), "OK");
  EXPECT_EQ(Status().detail(), nullptr);
  const Status limit = OverLimit("elements", "9", "at most 8").value();
  EXPECT_EQ(limit.ToString(), "RESOURCE_EXHAUSTED: elements is 9; allowed: at most 8");
  EXPECT_EQ(limit.reason(), "LIMIT");
  EXPECT_EQ(limit.detail()->field, "elements");
  EXPECT_EQ(limit.detail()->retry_after_ms, -1);
  const Status busy = Busy("queue is full", 250);
  EXPECT_EQ(busy.reason(), "BUSY");
  EXPECT_EQ(busy.detail()->retry_after_ms, 250);
}

TEST(StatusType, MacrosPassErrorsOn) {
  const auto outer = [](bool fail) -> Result<int> {
    const auto inner = [fail]() -> Status { return fail ? Busy("later", 1) : Status(); };
    TILEWIRE_RETURN_IF_ERROR(inner());
    TILEWIRE_ASSIGN_OR_RETURN(const int value, Result<int>(7));
    return value;
  };
  EXPECT_EQ(*outer(false), 7);
  EXPECT_EQ(outer(true).error().message(), "later");
}

TEST(StatusType, EveryCodeHasItsName) {
  std::set<std::string_view> names;
  for (int code = 0; code <= 16; ++code)
    EXPECT_TRUE(names.insert(CodeName(static_cast<Code>(code))).second) << code;
}

}  // namespace
}  // namespace tilewire
