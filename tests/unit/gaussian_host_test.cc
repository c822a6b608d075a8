// The host code of every instruction set: the promised bits, and what may not change them.
#include <gtest/gtest.h>

#include <set>

#include "kernels/gaussian/golden.h"
#include "tests/unit/gaussian_reference.h"

namespace tilewire::gaussian {
namespace {

using reference::Distribution;
using reference::FromBits;
using reference::ToBits;

constexpr Distribution kDistributions[] = {
    {0, 1},           {0.1, 1.1},  {1e6, 1.3},       {-3e-5, 2e-7}, {1e30, 3e29},      {0, 1e-40},
    {1e-310, 1e-311}, {0, 5e-324}, {1e-322, 2e-323}, {0, 1e-290},   {-1e308, 1.7e308}, {1e300, 1e299},
};

template <typename T>
void ExpectGolden(const GoldenCase& golden) {
  std::vector<T> x(kGoldenElements), expected(kGoldenElements);
  FillGoldenInput(golden, x.data());
  FillGoldenResult(golden, expected.data());
  for (const HostIsa* isa : SupportedHostIsas()) {
    const std::vector<T> y = reference::Run(*isa, {golden.mean, golden.stddev}, x);
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(ToBits(y[i]), ToBits(expected[i])) << golden.name << " element " << i << " on " << isa->name;
  }
}

TEST(GaussianGolden, EveryInstructionSetReproducesThem) {
  std::set<std::string_view> names;
  for (const GoldenCase& golden : GoldenCases()) {
    EXPECT_TRUE(names.insert(golden.name).second) << golden.name;
    golden.dtype == DType::kF32 ? ExpectGolden<float>(golden) : ExpectGolden<double>(golden);
  }
  for (const std::string dtype : {"f32", "f64"})
    for (const std::string what :
         {"/standard", "/tail", "/special", "/special_tiny", "/special_huge", "/overflow"})
      EXPECT_TRUE(names.contains(dtype + what)) << dtype << what;
}

template <typename T>
void ExpectCloseToCorrect(const reference::PointBlock& block, int64_t* points, int64_t* off_by_one) {
  std::vector<T> x;
  for (const reference::Point& point : block.points) x.push_back(FromBits<T>(point.x));
  for (const HostIsa* isa : SupportedHostIsas()) {
    const std::vector<T> y = reference::Run(*isa, block.distribution, x);
    for (size_t i = 0; i < y.size(); ++i) {
      // Bits of numbers that are not negative ascend with them, infinity included.
      const auto distance = static_cast<int64_t>(ToBits(y[i]) - block.points[i].y);
      ASSERT_LE(std::abs(distance), 1) << isa->name << " " << block.distribution.ToString() << " x " << x[i];
      *off_by_one += distance != 0;
    }
    *points += static_cast<int64_t>(y.size());
  }
}

TEST(GaussianHost, IsWithinOneUlpOfCorrectlyRoundedPoints) {
  int64_t points[2] = {}, off_by_one[2] = {};
  for (const reference::PointBlock& block : reference::CorrectlyRoundedPoints()) {
    if (block.dtype == DType::kF32)
      ExpectCloseToCorrect<float>(block, &points[0], &off_by_one[0]);
    else
      ExpectCloseToCorrect<double>(block, &points[1], &off_by_one[1]);
  }
  for (const int i : {0, 1}) {
    EXPECT_GE(points[i], 2000);
    // The bounds on the error leave few results that are not the nearest number.
    EXPECT_LT(static_cast<double>(off_by_one[i]), (i == 0 ? 0.02 : 0.2) * static_cast<double>(points[i]));
    RecordProperty(i == 0 ? "f32_not_nearest" : "f64_not_nearest", static_cast<int>(off_by_one[i]));
  }
}

template <typename T>
void ExpectSpecialValues() {
  using Limits = std::numeric_limits<T>;
  const uint64_t canonical = sizeof(T) == 4 ? 0x7fc00000 : 0x7ff8000000000000;
  const uint64_t sign = uint64_t{1} << (8 * sizeof(T) - 1);
  const uint64_t infinity = ToBits(Limits::infinity());
  for (const Distribution& d : kDistributions) {
    for (const HostIsa* isa : SupportedHostIsas()) {
      SCOPED_TRACE(d.ToString() + " on " + isa->name);
      std::vector<T> x = {Limits::infinity(), -Limits::infinity()};
      // Quiet and signalling, with payloads, of either sign.
      for (const uint64_t nan :
           {infinity + 1, canonical, canonical + 5, infinity | (canonical - 1 - infinity)})
        for (const uint64_t with : {uint64_t{0}, sign}) x.push_back(FromBits<T>(nan | with));
      x.insert(x.end(), {T(0), -T(0), Limits::denorm_min(), -Limits::denorm_min()});
      const std::vector<T> y = reference::Run(*isa, d, x);
      EXPECT_EQ(ToBits(y[0]), 0u) << "+0 at infinity";
      EXPECT_EQ(ToBits(y[1]), 0u) << "+0 at -infinity";
      for (size_t i = 2; i < 10; ++i) EXPECT_EQ(ToBits(y[i]), canonical) << "NaN " << i;
      EXPECT_EQ(ToBits(y[10]), ToBits(y[11])) << "the sign of zero does not matter";
      for (const T value : y) EXPECT_FALSE(std::signbit(value)) << "never below +0";
    }
  }
}

TEST(GaussianHost, SpecialValues) {
  ExpectSpecialValues<float>();
  ExpectSpecialValues<double>();
}

TEST(GaussianHost, EndsOfTheRange) {
  const auto f64 = [](double x, double mean, double stddev) {
    return reference::Run(*SupportedHostIsas().back(), {mean, stddev}, std::vector<double>{x})[0];
  };
  constexpr double kTiny = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(f64(38.5, 0, 1), 11 * kTiny) << "subnormal";
  EXPECT_EQ(f64(39, 0, 1), 0);
  EXPECT_EQ(f64(0, 0, kTiny), std::numeric_limits<double>::infinity()) << "overflow";
  EXPECT_EQ(f64(0, 0, 2.3e-309), 0x1.ee02d1c141397p+1023) << "the peak, close to overflow";
  EXPECT_EQ(f64(1, 0, kTiny), 0) << "2^1074 deviations away";
  EXPECT_EQ(f64(1.7e308, -1.7e308, 1e308), f64(3.4, 0, 1) / 1e308) << "the difference alone would overflow";
  const auto f32 = [](float x, double mean, double stddev) {
    return reference::Run(*SupportedHostIsas().back(), {mean, stddev}, std::vector<float>{x})[0];
  };
  EXPECT_EQ(f32(14.34f, 0, 1), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(f32(14.5f, 0, 1), 0);
  EXPECT_EQ(f32(0, 0, 1e-39), std::numeric_limits<float>::infinity());
  EXPECT_EQ(f32(3.4e38f, 1e308, 1e300), 0) << "a deviation whose pdf no f32 can hold";
}

/// All bits of all instruction sets agree, over x of every magnitude.
template <typename T>
void ExpectSameBits() {
  for (const Distribution& d : kDistributions) {
    const std::vector<T> x = reference::RandomInput<T>(d, 20011, 7);
    const std::vector<T> expected = reference::Run(*SupportedHostIsas().front(), d, x);
    for (const HostIsa* isa : SupportedHostIsas())
      ASSERT_EQ(std::memcmp(reference::Run(*isa, d, x).data(), expected.data(), x.size() * sizeof(T)), 0)
          << isa->name << " against " << SupportedHostIsas().front()->name << ", " << d.ToString();
  }
}

TEST(GaussianHost, EveryInstructionSetGivesTheSameBits) {
  ExpectSameBits<float>();
  ExpectSameBits<double>();
}

/// Ranges, splits into items and computing in place change no bit, and nothing else is written.
template <typename T>
void ExpectSplitsDoNotMatter(int64_t elements, Distribution d) {
  const Plan plan = reference::MakePlan(reference::kDTypeOf<T>, elements, d);
  const std::vector<T> x = reference::RandomInput<T>(d, elements, 3);
  const std::vector<T> expected = reference::Run(*SupportedHostIsas().back(), d, x);
  const size_t bytes = x.size() * sizeof(T);
  std::mt19937 random(5);
  std::vector<T> y(x.size() + 2, T(-1)), in_place = x;
  for (int64_t index = plan.range_count(); index-- > 0;) {
    const Range range = plan.range(index);
    const int64_t items = HostItems(plan, range);
    const int64_t cut = static_cast<int64_t>(random()) % (items + 1);
    HostRange(plan, range, cut, items, x.data(), y.data() + 1);
    HostRange(plan, range, 0, cut, x.data(), y.data() + 1);
    for (int64_t item = 0; item < items; ++item)
      HostRange(plan, range, item, item + 1, in_place.data(), in_place.data());
  }
  EXPECT_EQ(std::memcmp(y.data() + 1, expected.data(), bytes), 0) << elements;
  EXPECT_EQ(std::memcmp(in_place.data(), expected.data(), bytes), 0) << elements << " in place";
  EXPECT_EQ(y.front(), T(-1)) << "written before the output";
  EXPECT_EQ(y.back(), T(-1)) << "written behind the output";
}

TEST(GaussianHost, SplitsDoNotMatter) {
  for (const int64_t elements : {1, 2, 7, 63, 64, 65, 127, 4095, 4096, 4097, 9999, 600001}) {
    ExpectSplitsDoNotMatter<float>(elements, {0.25, 1.5});
    ExpectSplitsDoNotMatter<double>(elements, {0.25, 1.5});
    ExpectSplitsDoNotMatter<double>(elements, {0, 1e-300});
  }
}

TEST(GaussianHost, NoItemsWriteNothing) {
  const Plan plan = reference::MakePlan(DType::kF32, 100, {0, 1});
  const std::vector<float> x(100, 1);
  std::vector<float> y(100, -1);
  HostRange(plan, plan.whole(), 1, 1, x.data(), y.data());
  HostRange(plan, plan.whole(), 0, 0, x.data(), y.data());
  EXPECT_EQ(y, std::vector<float>(100, -1));
}

}  // namespace
}  // namespace tilewire::gaussian
