// What is kept of many calls: histograms, timelines, counts; and when calls are due.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "client/load/arrivals.h"
#include "client/load/inputs.h"
#include "client/load/statistics.h"
#include "client/load/text.h"

namespace tilewire::load {
namespace {

Answer Good(uint64_t bytes = 10) {
  return {.right = true, .bytes = bytes};
}
Answer Failed(Code code, const std::string& reason) {
  return {.status = Status(code, reason, "told to")};
}

TEST(LoadHistogram, PercentilesAreAtMostOnePercentHigh) {
  Random random(7);
  // From nanoseconds to half an hour, and a narrow range where one bucket holds many.
  for (const double octaves : {42.0, 1.0}) {
    Histogram histogram;
    std::vector<double> values;
    for (int i = 0; i < 20'000; ++i) {
      values.push_back(std::exp2(random.Uniform() * octaves) / 1000 * 1.5);
      histogram.Add(values.back());
    }
    std::sort(values.begin(), values.end());
    double sum = 0;
    for (const double value : values) sum += value;
    for (const double share : {0.0, 0.001, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto rank = static_cast<size_t>(std::max(std::ceil(share * 20'000), 1.0));
      const double exact = values[rank - 1];
      EXPECT_GE(histogram.Percentile(share), exact * (1 - 1e-9) - 1e-3) << share;
      EXPECT_LE(histogram.Percentile(share), exact * 1.01 + 1e-3) << share;
    }
    EXPECT_DOUBLE_EQ(histogram.min(), values.front());
    EXPECT_DOUBLE_EQ(histogram.max(), values.back());
    EXPECT_NEAR(histogram.mean(), sum / 20'000, 1e-6 * sum / 20'000);
    EXPECT_EQ(histogram.count(), 20'000u);
  }
}

TEST(LoadHistogram, EmptyAndOutOfRangeValues) {
  Histogram histogram;
  EXPECT_EQ(histogram.Percentile(0.99), 0);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_TRUE(histogram.Buckets(200).empty());
  histogram.Add(-5);
  histogram.Add(1e300);
  histogram.Add(0);
  EXPECT_EQ(histogram.count(), 3u);
  EXPECT_GT(histogram.Percentile(1), 3600e6) << "an hour fits";
  EXPECT_LE(histogram.Percentile(0.5), 0.0021);
}

TEST(LoadHistogram, MergingEqualsAddingAndCopiesAreApart) {
  Histogram a, b, both;
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const double value = random.Uniform() * (i % 2 == 0 ? 10 : 1e6);
    (i % 3 == 0 ? a : b).Add(value);
    both.Add(value);
  }
  const Histogram before = a;
  a.Merge(b);
  EXPECT_EQ(before.count(), 334u);
  EXPECT_EQ(a.count(), both.count());
  EXPECT_EQ(a.Buckets(10'000), both.Buckets(10'000));
  for (const double share : {0.1, 0.5, 0.99}) EXPECT_EQ(a.Percentile(share), both.Percentile(share));
}

TEST(LoadHistogram, BucketsHoldEverythingAndAreFewEnough) {
  Histogram histogram;
  Random random(5);
  for (int i = 0; i < 10'000; ++i) histogram.Add(std::exp2(random.Uniform() * 40) / 1000);
  for (const size_t most : {200u, 40u}) {
    const auto buckets = histogram.Buckets(most);
    EXPECT_LE(buckets.size(), most);
    uint64_t sum = 0;
    double last = 0;
    for (const auto& [upper, count] : buckets) {
      EXPECT_GT(upper, last);
      EXPECT_GT(count, 0u);
      last = upper;
      sum += count;
    }
    EXPECT_EQ(sum, 10'000u);
    EXPECT_GE(last, histogram.max());
  }
}

TEST(LoadHistogram, TellsAPercentileThatTwoCallsLieBeyond) {
  const std::tuple<double, uint64_t> first[] = {{0.9, 20}, {0.99, 200}, {0.999, 2000}};
  for (const auto& [share, count] : first) {
    EXPECT_FALSE(Supports(count - 1, share)) << share;
    EXPECT_TRUE(Supports(count, share)) << share;
    EXPECT_FALSE(Supports(0, share));
  }
  EXPECT_TRUE(Supports(1, 0.5)) << "the median always";
  Histogram histogram;
  for (int i = 1; i <= 20; ++i) histogram.Add(i);
  EXPECT_EQ(histogram.Supported(0.99), std::nullopt);
  ASSERT_TRUE(histogram.Supported(0.9));
  EXPECT_NEAR(*histogram.Supported(0.9), 18, 0.2);
}

TEST(LoadTimeline, GrowsByTakingStepsTogether) {
  Timeline timeline(0.1);
  uint64_t calls = 0;
  for (double t = 0; t < 1000; t += 0.37) {
    timeline.Add(t, Good(), 100 + t);
    ++calls;
  }
  EXPECT_LE(timeline.steps().size(), Timeline::kMaxSteps);
  EXPECT_GT(timeline.steps().size(), Timeline::kMaxSteps / 4);
  EXPECT_DOUBLE_EQ(timeline.step_seconds(), 3.2);
  uint64_t sum = 0, bytes = 0;
  for (size_t i = 0; i < timeline.steps().size(); ++i) {
    const Timeline::Step& step = timeline.steps()[i];
    sum += step.calls;
    bytes += step.bytes;
    EXPECT_EQ(step.latency.count(), step.calls);
    // What ended in a step lies there: its latency tells when it ended.
    if (step.calls > 0) {
      EXPECT_GE(step.latency.min() - 100, static_cast<double>(i) * 3.2 - 1e-2);
      EXPECT_LE(step.latency.max() - 100, static_cast<double>(i + 1) * 3.2 + 1e-2);
    }
  }
  EXPECT_EQ(sum, calls);
  EXPECT_EQ(bytes, 10 * calls);
}

TEST(LoadTimeline, TellsErrorsAndWrongAnswersApart) {
  Timeline timeline(1);
  timeline.Add(0.5, Good(), 1);
  timeline.Add(0.6, Answer{.right = false, .bytes = 10}, 1);
  timeline.Add(0.7, Failed(Code::kUnavailable, ""), 1);
  timeline.Add(-0.1, Good(), 1);
  ASSERT_EQ(timeline.steps().size(), 1u);
  EXPECT_EQ(timeline.steps()[0].calls, 4u);
  EXPECT_EQ(timeline.steps()[0].good, 2u);
  EXPECT_EQ(timeline.steps()[0].errors, 1u);
  EXPECT_EQ(timeline.steps()[0].bytes, 20u);
}

TEST(LoadStats, CountsByOutcomeAndNamesErrors) {
  CallStats stats;
  stats.Add(Good(), 5, 3);
  stats.Add(Answer{.right = false, .bytes = 10}, 7, 7);
  stats.Add(Failed(Code::kResourceExhausted, "BUSY"), 1, 1);
  stats.Add(Failed(Code::kUnavailable, "UNAVAILABLE"), 1, 1);
  stats.Add(Failed(Code::kUnavailable, ""), 1, 1);
  EXPECT_EQ(stats.calls(), 5u);
  EXPECT_EQ(stats.good, 1u);
  EXPECT_EQ(stats.wrong, 1u);
  EXPECT_EQ(stats.bytes, 10u);
  EXPECT_EQ(stats.latency.count(), 2u) << "of answers";
  EXPECT_EQ(stats.errors,
            (std::map<std::string, uint64_t>{{"RESOURCE_EXHAUSTED/BUSY", 1}, {"UNAVAILABLE", 2}}));
  for (int i = 0; i < 1000; ++i) stats.AddError("E" + std::to_string(i), 1);
  EXPECT_LE(stats.errors.size(), kMaxErrorKinds + 1) << "bounded, whatever comes";
  uint64_t sum = 0;
  for (const auto& [key, count] : stats.errors) sum += count;
  EXPECT_EQ(sum, 1003u);
  CallStats merged;
  merged.Merge(stats);
  merged.Merge(stats);
  EXPECT_EQ(merged.calls(), 2 * stats.calls());
  EXPECT_EQ(merged.failed, 2 * 1003u);
}

TEST(LoadStats, EveryStageIsKeptUnderItsNameAndHasWords) {
  Answer answer = Good();
  client::Timing& timing = answer.reply.emplace().timing;
  double us = 0;
  for (auto* const stage : {&timing.queue_us, &timing.receive_us, &timing.stage_us, &timing.h2d_us,
                            &timing.kernel_us, &timing.d2h_us, &timing.send_us, &timing.other_us})
    *stage = ++us;
  timing.bottleneck = "other";
  CallStats stats;
  stats.Add(answer, 100, 100);
  for (size_t i = 0; i < kStageNames.size(); ++i) {
    EXPECT_EQ(stats.stages[i].value(), static_cast<double>(i + 1)) << kStageNames[i];
    EXPECT_EQ(client::Name(static_cast<client::Stage>(i + 1)), std::string(kStageNames[i]));
    EXPECT_NE(StageInWords(kStageNames[i]), kStageNames[i]);
  }
  EXPECT_EQ(stats.bottlenecks, (std::map<std::string, uint64_t>{{"other", 1}}));
}

TEST(LoadArrivals, ConstantOnesAreEquallySpaced) {
  Schedule schedule(Arrivals::kConstant, 400, 1);
  for (int i = 0; i < 1'000'000; ++i) ASSERT_NEAR(schedule.Next(), i / 400.0, 1e-9);
}

TEST(LoadArrivals, PoissonOnesHaveTheRateAndAreRepeatable) {
  Schedule a(Arrivals::kPoisson, 1000, 9), b(Arrivals::kPoisson, 1000, 9), c(Arrivals::kPoisson, 1000, 10);
  double last = 0, squares = 0;
  bool differs = false;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    const double at = a.Next();
    ASSERT_EQ(at, b.Next());
    differs = differs || at != c.Next();
    ASSERT_GE(at, last);
    squares += (at - last) * (at - last);
    last = at;
  }
  EXPECT_TRUE(differs);
  EXPECT_NEAR(last, kCount / 1000.0, 2);  // 6 standard deviations
  EXPECT_NEAR(squares / kCount * 1e6, 2, 0.1) << "exponential: the second moment is 2/rate²";
}

TEST(LoadInputs, DataDiffersEverywhereAndIsFinite) {
  for (const DTypeInfo& info : AllDTypes()) {
    const ArraySpec spec = MakeSpec(info.dtype, std::array<int64_t, 1>{4096}).value();
    std::vector<uint8_t> a, b, c;
    FillRandom(spec, 1, &a);
    FillRandom(spec, 1, &b);
    FillRandom(spec, 2, &c);
    EXPECT_EQ(a.size(), static_cast<size_t>(spec.bytes())) << info.name;
    EXPECT_EQ(a, b) << info.name;
    EXPECT_NE(a, c) << info.name;
    EXPECT_NE(std::count(a.begin(), a.end(), 0), static_cast<long>(a.size())) << info.name;
    for (size_t i = 0; i + 2 <= a.size() && info.dtype == DType::kF16; i += 2)
      ASSERT_LT((a[i + 1] >> 2) & 31, 17) << "an exponent under that of 4";
    for (size_t i = 0; i < a.size() && info.dtype == DType::kBool; ++i) ASSERT_LE(a[i], 1);
    for (size_t i = 0; i + 4 <= a.size() && info.dtype == DType::kF32; i += 4) {
      float value;
      std::memcpy(&value, &a[i], 4);
      ASSERT_TRUE(std::isfinite(value) && value != 0 && std::abs(value) <= 4) << value;
    }
  }
}

}  // namespace
}  // namespace tilewire::load
