// The host kernels against the contract written out plainly: every layout, dtype, instruction set and split.
#include "kernels/rmse/rmse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "kernels/rmse/host_isa.h"
#include "tests/unit/rmse_reference.h"
#include "tests/unit/sanitized.h"

namespace tilewire::rmse {
namespace {

using reference::Bits;
using reference::Bytes;

std::vector<uint64_t> AllBits(const std::vector<double>& values) {
  std::vector<uint64_t> bits;
  for (const double value : values) bits.push_back(Bits(value));
  return bits;
}

size_t ItemCount(const Plan& plan) {
  return static_cast<size_t>(plan.layout().segments * plan.layout().tiles);
}

std::vector<double> Finish(const Plan& plan, std::vector<double> sums) {
  std::vector<double> result(static_cast<size_t>(plan.layout().segments), -1);
  HostFinish(plan, 0, plan.layout().segments, sums.data(), result.data());
  return result;
}

// All ranges on one instruction set. Untouched sums would show: they start as NaN.
std::vector<double> Run(const Plan& plan, const HostIsa& isa, const Bytes& a, const Bytes& b) {
  std::vector<double> sums(ItemCount(plan), -1e300);
  for (int64_t r = 0; r < plan.range_count(); ++r) {
    const Range range = plan.range(r);
    isa.tiles(
        {a.data(), b.data(), sums.data(), &plan.layout(), range, 0, range.items(), plan.operand().dtype});
  }
  return Finish(plan, sums);
}

void CheckCase(const reference::RandomCase& one, bool tame, std::mt19937_64& random) {
  const Plan plan = *Plan::Make(one.spec, one.axes, one.output);
  const Bytes a = reference::RandomOperand(one.spec, tame, random);
  const Bytes b = reference::RandomOperand(one.spec, tame, random);
  const auto expected = AllBits(reference::Rmse(one.spec, one.axes, one.output, a, b));
  for (const HostIsa& isa : SupportedHostIsas())
    ASSERT_EQ(AllBits(Run(plan, isa, a, b)), expected) << reference::Describe(one) << " on " << isa.name;
}

TEST(Rmse, ThousandsOfSmallRandomShapes) {
  std::mt19937_64 random(tilewire::testing::Seed(1));
  for (int i = 0; i < tilewire::testing::Cases(4000) && !HasFatalFailure(); ++i)
    CheckCase(reference::MakeRandomCase(2000, random), i % 2 == 0, random);
}

TEST(Rmse, HundredsOfLargerRandomShapes) {
  std::mt19937_64 random(tilewire::testing::Seed(2));
  for (int i = 0; i < tilewire::testing::Cases(300) && !HasFatalFailure(); ++i)
    CheckCase(reference::MakeRandomCase(60000, random), i % 4 != 0, random);
}

// Each kernel path at each of its edges, for every dtype.
TEST(Rmse, EveryDTypeOnEveryPath) {
  const struct {
    std::vector<int64_t> dims;
    std::vector<int32_t> axes;
  } shapes[] = {{{9, 1}, {1}},          {{5, 2}, {1}},         {{7, 9}, {1}},         {{3, 33}, {1}},
                {{3, 256}, {1}},        {{2, 257}, {1}},       {{2, 4353}, {1}},      {{2, 9000}, {1}},
                {{300, 1}, {0}},        {{4100, 3}, {0}},      {{300, 16}, {0}},      {{130, 17}, {0}},
                {{257, 64}, {0}},       {{4400, 70}, {0}},     {{3, 40, 130}, {1}},   {{6, 5, 100}, {0, 2}},
                {{4, 3, 2, 5}, {0, 2}}, {{70, 3, 70}, {0, 2}}, {{2, 3, 4, 5}, {1, 3}}};
  std::mt19937_64 random(3);
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsReal(info.dtype)) continue;
    for (const auto& shape : shapes)
      for (const bool tame : {true, false})
        CheckCase({*MakeSpec(info.dtype, shape.dims), shape.axes, Output::kRmse}, tame, random);
  }
}

TEST(Rmse, EveryTileLengthThatMatters) {
  std::mt19937_64 random(4);
  for (int64_t n = 1; n <= 600; ++n) {
    CheckCase({*MakeSpec(DType::kF32, std::vector<int64_t>{n}), {}, Output::kSumSquares}, true, random);
    CheckCase({*MakeSpec(DType::kF64, std::vector<int64_t>{n, 2}), {0}, Output::kMse}, true, random);
  }
}

TEST(Rmse, AnySplitOfTheItemsGivesTheSameBits) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    const auto one = reference::MakeRandomCase(40000, random);
    const Plan plan = *Plan::Make(one.spec, one.axes, one.output);
    const Bytes a = reference::RandomOperand(one.spec, true, random);
    const Bytes b = reference::RandomOperand(one.spec, true, random);
    std::vector<double> whole(ItemCount(plan)), pieces(ItemCount(plan), -1e300);
    const Range all = plan.whole();
    HostRange(plan, all, 0, all.items(), a.data(), b.data(), whole.data());
    for (int64_t at = 0; at < all.items();) {
      const int64_t next = std::min(all.items(), at + 1 + static_cast<int64_t>(random() % 70));
      HostRange(plan, all, at, next, a.data(), b.data(), pieces.data());
      at = next;
    }
    ASSERT_EQ(AllBits(pieces), AllBits(whole)) << reference::Describe(one);
  }
}

TEST(Rmse, ThreadsMayShareARange) {
  const auto spec = *MakeSpec(DType::kF32, std::vector<int64_t>{40000, 20});
  const Plan plan = *Plan::Make(spec, std::vector<int32_t>{0}, Output::kRmse);
  std::mt19937_64 random(6);
  const Bytes a = reference::RandomOperand(spec, true, random),
              b = reference::RandomOperand(spec, true, random);
  std::vector<double> sums(ItemCount(plan));
  const Range all = plan.whole();
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      HostRange(plan, all, all.items() * t / 4, all.items() * (t + 1) / 4, a.data(), b.data(), sums.data());
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(AllBits(Finish(plan, sums)), AllBits(reference::Rmse(spec, {0}, Output::kRmse, a, b)));
}

TEST(Rmse, OperandsNeedOnlyTheAlignmentOfAnElement) {
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsReal(info.dtype)) continue;
    const auto spec = *MakeSpec(info.dtype, std::vector<int64_t>{5000});
    const Plan plan = *Plan::Make(spec, {}, Output::kMse);
    std::mt19937_64 random(7);
    const Bytes a = reference::RandomOperand(spec, true, random),
                b = reference::RandomOperand(spec, true, random);
    const auto size = static_cast<size_t>(info.size);
    Bytes shifted_a(a.size() + 64), shifted_b(b.size() + 64);
    std::copy(a.begin(), a.end(), shifted_a.begin() + static_cast<int64_t>(size));
    std::copy(b.begin(), b.end(), shifted_b.begin() + static_cast<int64_t>(3 * size));
    std::vector<double> sums(2);
    HostRange(plan, plan.whole(), 0, 2, shifted_a.data() + size, shifted_b.data() + 3 * size, sums.data());
    EXPECT_EQ(AllBits(Finish(plan, sums)), AllBits(reference::Rmse(spec, {}, Output::kMse, a, b)))
        << info.name;
  }
}

TEST(Rmse, NanResultsAreCanonicalForEveryOutput) {
  const auto spec = *MakeSpec(DType::kF32, std::vector<int64_t>{2, 3});
  const float a[6] = {1, -NAN, 2, 1, 1, 1}, b[6] = {};
  for (const Output output : {Output::kRmse, Output::kMse, Output::kSumSquares}) {
    const Plan plan = *Plan::Make(spec, std::vector<int32_t>{1}, output);
    double sums[2], result[2];
    HostRange(plan, plan.whole(), 0, 2, a, b, sums);
    HostFinish(plan, 0, 2, sums, result);
    uint64_t bits;
    std::memcpy(&bits, &result[0], 8);
    EXPECT_EQ(bits, 0x7ff8000000000000);
    EXPECT_TRUE(std::isfinite(result[1]));
  }
}

TEST(Rmse, FinishTakesAnySubsetOfSegments) {
  const auto spec = *MakeSpec(DType::kF32, std::vector<int64_t>{6, 13000});
  const Plan plan = *Plan::Make(spec, std::vector<int32_t>{1}, Output::kRmse);
  std::mt19937_64 random(8);
  const Bytes a = reference::RandomOperand(spec, true, random),
              b = reference::RandomOperand(spec, true, random);
  std::vector<double> sums(ItemCount(plan)), result(6, -1);
  HostRange(plan, plan.whole(), 0, plan.whole().items(), a.data(), b.data(), sums.data());
  HostFinish(plan, 4, 6, sums.data(), result.data());
  EXPECT_EQ(result[3], -1);
  HostFinish(plan, 0, 4, sums.data(), result.data());
  EXPECT_EQ(AllBits(result), AllBits(reference::Rmse(spec, {1}, Output::kRmse, a, b)));
}

}  // namespace
}  // namespace tilewire::rmse
