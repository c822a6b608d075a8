// The host kernels against the contract written out plainly: every layout, dtype, metric and instruction set.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "kernels/compare/host_isa.h"
#include "kernels/rmse/rmse.h"
#include "tests/unit/compare_reference.h"
#include "tests/unit/sanitized.h"

namespace tilewire::compare {
namespace {

using reference::Bytes;
using rmse::reference::RandomCase;

constexpr uint64_t kUntouched = 0x1234567890abcdef;

std::vector<int32_t> AllMetrics() {
  std::vector<int32_t> all(kMetrics);
  for (int i = 0; i < kMetrics; ++i) all[static_cast<size_t>(i)] = i;
  return all;
}

/// All metrics of everything as one range on one instruction set, [metric][segment].
std::vector<std::vector<uint64_t>> RunOn(const HostIsa& isa, const Plan& plan, const void* a, const void* b) {
  const rmse::Layout& layout = plan.geometry().layout();
  const int64_t tiles = layout.segments * layout.tiles;
  std::vector<uint64_t> memory(static_cast<size_t>(7 * tiles), kUntouched);
  const Planes planes = Planes::In(memory.data(), plan.kept(), tiles, 0);
  const rmse::Range whole = plan.geometry().whole();
  isa.tiles({.a = a,
             .b = b,
             .planes = planes,
             .first = 0,
             .element = 0,
             .layout = &layout,
             .range = whole,
             .item_begin = 0,
             .item_end = whole.items(),
             .dtype = plan.geometry().operand().dtype,
             .kept = plan.kept()});
  std::vector<std::vector<uint64_t>> results(
      kMetrics, std::vector<uint64_t>(static_cast<size_t>(layout.segments), kUntouched));
  Values values;
  for (const Metric metric : plan.metrics())
    values.of[static_cast<int>(metric)] =
        reinterpret_cast<std::byte*>(results[static_cast<size_t>(metric)].data());
  const bool wide =
      plan.geometry().operand().dtype == DType::kI64 || plan.geometry().operand().dtype == DType::kU64;
  if (layout.tiles == 1) {
    isa.results({static_cast<double>(layout.elements), wide}, planes, layout.segments, values);
  } else {
    HostFinish(plan.geometry(), plan.kept(), 0, layout.segments, planes, values);
  }
  return results;
}

void Check(const ArraySpec& spec, const std::vector<int32_t>& axes, const std::vector<int32_t>& metrics,
           const Bytes& a, const Bytes& b) {
  const Plan plan = *Plan::Make(spec, axes, metrics);
  const auto expected = reference::Compare(spec, axes, a, b);
  const std::vector<int32_t> asked = metrics.empty() ? AllMetrics() : metrics;
  for (const HostIsa* const isa : SupportedHostIsas()) {
    const auto results = RunOn(*isa, plan, a.data(), b.data());
    for (int metric = 0; metric < kMetrics; ++metric)
      for (size_t s = 0; s < expected.size(); ++s) {
        const bool is_asked = std::find(asked.begin(), asked.end(), metric) != asked.end();
        ASSERT_EQ(results[static_cast<size_t>(metric)][s],
                  is_asked ? expected[s][static_cast<size_t>(metric)] : kUntouched)
            << rmse::reference::Describe({spec, axes, rmse::Output::kRmse}) << " metric "
            << Name(static_cast<Metric>(metric)) << " segment " << s << " on " << isa->name;
      }
  }
}

/// `every`: of so many elements one is special; 0: none is.
void CheckRandom(const ArraySpec& spec, const std::vector<int32_t>& axes, const std::vector<int32_t>& metrics,
                 bool tame, uint64_t every, std::mt19937_64& random) {
  Bytes a = rmse::reference::RandomOperand(spec, tame, random);
  Bytes b = rmse::reference::RandomOperand(spec, tame, random);
  if (every > 0) reference::Strew(spec, every, a, b, random);
  Check(spec, axes, metrics, a, b);
}

std::vector<int32_t> SomeMetrics(std::mt19937_64& random) {
  std::vector<int32_t> all = AllMetrics();
  std::shuffle(all.begin(), all.end(), random);
  // Often those that need less, each kind of kept.
  if (random() % 3 == 0) std::erase_if(all, [](int32_t metric) { return metric > 2; });
  if (random() % 3 == 0) std::erase_if(all, [](int32_t metric) { return metric > 6; });
  if (all.empty()) return all;
  all.resize(1 + random() % all.size());
  return all;
}

TEST(Compare, ThousandsOfSmallRandomShapes) {
  std::mt19937_64 random(tilewire::testing::Seed(1));
  for (int i = 0; i < tilewire::testing::Cases(2500) && !::testing::Test::HasFatalFailure(); ++i) {
    const RandomCase one = rmse::reference::MakeRandomCase(2000, random);
    CheckRandom(one.spec, one.axes, i % 4 == 0 ? AllMetrics() : SomeMetrics(random), i % 2 == 0,
                i % 3 == 0 ? 0 : uint64_t{1} << random() % 12, random);
  }
}

TEST(Compare, HundredsOfLargerRandomShapes) {
  std::mt19937_64 random(tilewire::testing::Seed(2));
  for (int i = 0; i < tilewire::testing::Cases(80) && !::testing::Test::HasFatalFailure(); ++i) {
    const RandomCase one = rmse::reference::MakeRandomCase(60000, random);
    CheckRandom(one.spec, one.axes, {}, i % 4 != 0, i % 3 == 0 ? 0 : uint64_t{1} << random() % 12, random);
  }
}

// Each path at each of its edges, for every dtype.
TEST(Compare, EveryDTypeOnEveryPath) {
  const struct {
    std::vector<int64_t> dims;
    std::vector<int32_t> axes;
  } shapes[] = {{{9, 1}, {1}},
                {{5, 2}, {1}},
                {{37, 9}, {1}},
                {{3, 33}, {1}},
                {{35, 64}, {1}},
                {{3, 65}, {1}},
                {{3, 256}, {1}},
                {{2, 257}, {1}},
                {{2, 4353}, {1}},
                {{2, 9000}, {1}},
                {{300, 1}, {0}},
                {{4100, 3}, {0}},
                {{300, 16}, {0}},
                {{130, 17}, {0}},
                {{257, 64}, {0}},
                {{4400, 70}, {0}},
                {{3, 40, 130}, {1}},
                {{6, 5, 100}, {0, 2}},
                {{4, 3, 2, 5}, {0, 2}},
                {{70, 3, 70}, {0, 2}},
                {{2, 3, 4, 5}, {1, 3}},
                {{1}, {}},
                {{}, {}}};
  std::mt19937_64 random(3);
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsReal(info.dtype)) continue;
    for (const auto& shape : shapes)
      for (const bool tame : {true, false})
        for (const uint64_t every : {0, 1, 7, 1000}) {
          if (tilewire::testing::kSanitized && (every == 1 || every == 1000))
            continue;  // costs the most there
          CheckRandom(*MakeSpec(info.dtype, shape.dims), shape.axes, {}, tame, every, random);
          if (HasFatalFailure()) return;
        }
  }
}

// Columns and runs at every width around vectors and groups.
TEST(Compare, EveryWidthThatMatters) {
  std::mt19937_64 random(4);
  int turn = 0;
  for (const int64_t width : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 50})
    for (const int64_t rows : {1, 2, 3, 15, 63, 64, 65, 127, 255, 256, 257, 513}) {
      const auto dtype = static_cast<DType>(2 + turn++ % 12);
      CheckRandom(*MakeSpec(dtype, std::vector<int64_t>{rows, width}), {0}, {}, true, 50, random);
      CheckRandom(*MakeSpec(dtype, std::vector<int64_t>{rows, width}), {1}, {}, true, 50, random);
      CheckRandom(*MakeSpec(dtype, std::vector<int64_t>{3, rows, width}), {1}, {}, true, 50, random);
      if (HasFatalFailure()) return;
    }
}

TEST(Compare, TheSameBitsAsRmse) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 500; ++i) {
    RandomCase one = rmse::reference::MakeRandomCase(20000, random);
    const Bytes a = rmse::reference::RandomOperand(one.spec, i % 2 == 0, random);
    const Bytes b = rmse::reference::RandomOperand(one.spec, i % 2 == 0, random);
    const Plan plan = *Plan::Make(one.spec, one.axes, {});
    const auto results = RunOn(*SupportedHostIsas().back(), plan, a.data(), b.data());
    for (int output = 0; output < 3; ++output) {
      const rmse::Plan its = *rmse::Plan::Make(one.spec, one.axes, static_cast<rmse::Output>(output));
      std::vector<double> sums(static_cast<size_t>(its.scratch_bytes() / 8));
      rmse::HostRange(its, its.whole(), 0, its.whole().items(), a.data(), b.data(), sums.data());
      std::vector<uint64_t> expected(static_cast<size_t>(its.layout().segments));
      rmse::HostFinish(its, 0, its.layout().segments, sums.data(),
                       reinterpret_cast<double*>(expected.data()));
      ASSERT_EQ(results[static_cast<size_t>(output)], expected) << rmse::reference::Describe(one);
    }
  }
}

// Operands 256 MiB apart, which are read otherwise.
TEST(Compare, OperandsAtOnePlaceModulo256MiB) {
  constexpr size_t kApart = size_t{256} << 20, kRoom = size_t{1} << 17;
  void* const memory =
      mmap(nullptr, kApart + kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const a = static_cast<std::byte*>(memory);
  ASSERT_EQ(mprotect(a, kRoom, PROT_READ | PROT_WRITE), 0);
  ASSERT_EQ(mprotect(a + kApart, kRoom, PROT_READ | PROT_WRITE), 0);
  std::mt19937_64 random(6);
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsReal(info.dtype)) continue;
    for (const int64_t elements : {65, 256, 261, 4096, 12289})
      for (const uint64_t every : {0, 2, 500}) {
        const ArraySpec spec = *MakeSpec(info.dtype, std::vector<int64_t>{elements});
        Bytes x = rmse::reference::RandomOperand(spec, true, random);
        Bytes y = rmse::reference::RandomOperand(spec, true, random);
        if (every > 0) reference::Strew(spec, every, x, y, random);
        std::memcpy(a, x.data(), x.size());
        std::memcpy(a + kApart, y.data(), y.size());
        const Plan plan = *Plan::Make(spec, {}, SomeMetrics(random));
        for (const HostIsa* const isa : SupportedHostIsas())
          EXPECT_EQ(RunOn(*isa, plan, a, a + kApart), RunOn(*isa, plan, x.data(), y.data()))
              << Name(info.dtype) << elements << " on " << isa->name;
      }
  }
  EXPECT_EQ(munmap(memory, kApart + kRoom), 0);
}

TEST(Compare, PairsThatHaveRulesOfTheirOwn) {
  const auto run = [](DType dtype, const auto& a, const auto& b) {
    const auto spec = *MakeSpec(dtype, std::vector<int64_t>{static_cast<int64_t>(a.size())});
    Bytes x(static_cast<size_t>(spec.bytes())), y(x.size());
    std::memcpy(x.data(), a.data(), x.size());
    std::memcpy(y.data(), b.data(), y.size());
    std::array<uint64_t, kMetrics> first = {};
    for (const HostIsa* const isa : SupportedHostIsas()) {
      const auto all = RunOn(*isa, *Plan::Make(spec, {}, {}), x.data(), y.data());
      for (size_t m = 0; m < kMetrics; ++m) first[m] = all[m][0];
    }
    return first;
  };
  const auto bits = [](double value) { return rmse::reference::Bits(value); };
  const auto none = static_cast<uint64_t>(-1);
  enum { kMax = 7, kIndex = 8, kNans = 9, kUnequal = 10, kSumOf = 6, kMeanOf = 5 };
  using Floats = std::vector<float>;

  const auto zeros = run(DType::kF32, Floats{-0.0F, 0, 0}, Floats{0, -0.0F, 0});
  EXPECT_EQ(zeros[kSumOf], bits(0));  // not -0
  EXPECT_EQ(zeros[kMax], bits(0));
  EXPECT_EQ(zeros[kIndex], 0U);
  EXPECT_EQ(zeros[kUnequal], 0U);

  const auto nans = run(DType::kF32, Floats{NAN, INFINITY, 1}, Floats{NAN, INFINITY, NAN});
  EXPECT_EQ(nans[kMax], bits(NAN));
  EXPECT_EQ(nans[kIndex], none);
  EXPECT_EQ(nans[kNans], 3U);
  EXPECT_EQ(nans[kUnequal], 2U);  // infinities of one sign are equal

  const auto after = run(DType::kF32, Floats{NAN, 5, 5, 5}, Floats{1, 5, 5, 5});
  EXPECT_EQ(after[kMax], bits(0));
  EXPECT_EQ(after[kIndex], 1U);

  // 2^63 + 1 and 2^63 are one double, but not one integer; extremes of either sign.
  const auto ties = run(DType::kU64, std::vector<uint64_t>{0, 0, (uint64_t{1} << 63) + 1, 7},
                        std::vector<uint64_t>{uint64_t{1} << 63, (uint64_t{1} << 63) + 1, 0, 7});
  EXPECT_EQ(ties[kMax], bits(0x1p63));
  EXPECT_EQ(ties[kIndex], 1U);
  EXPECT_EQ(ties[kUnequal], 3U);
  const auto far = run(DType::kI64, std::vector<int64_t>{INT64_MIN, INT64_MAX, 0},
                       std::vector<int64_t>{INT64_MAX, INT64_MIN, 0});
  EXPECT_EQ(far[kMax], bits(0x1p64));
  EXPECT_EQ(far[kIndex], 0U);
  EXPECT_EQ(far[kSumOf], bits(0));

  const double least = std::numeric_limits<double>::denorm_min();
  const auto tiny = run(DType::kF64, std::vector<double>{0, 0, 0}, std::vector<double>{least, 0, 0});
  EXPECT_EQ(tiny[kMeanOf], bits(-0.0));  // one division, rounded
}

}  // namespace
}  // namespace tilewire::compare
