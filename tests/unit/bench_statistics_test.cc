#include "kernels/bench/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/bench/format.h"

namespace tilewire::bench {
namespace {

TEST(BenchStatistics, QuantilesLieBetweenNeighbours) {
  const std::vector<double> sorted = {1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(Quantile(sorted, 0), 1);
  EXPECT_DOUBLE_EQ(Quantile(sorted, 0.5), 3);
  EXPECT_DOUBLE_EQ(Quantile(sorted, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(Quantile(sorted, 1), 8);
  EXPECT_DOUBLE_EQ(Quantile(std::vector<double>{5}, 0.3), 5);
  EXPECT_EQ(Quantile({}, 0.5), 0);
}

TEST(BenchStatistics, SummaryOfUnsortedRuns) {
  const Summary summary = Summarize({5, 1, 3, 2, 4});
  EXPECT_EQ(summary.runs, 5);
  EXPECT_DOUBLE_EQ(summary.min, 1);
  EXPECT_DOUBLE_EQ(summary.quarter, 2);
  EXPECT_DOUBLE_EQ(summary.median, 3);
  EXPECT_DOUBLE_EQ(summary.mean, 3);
  EXPECT_DOUBLE_EQ(summary.three_quarters, 4);
  EXPECT_DOUBLE_EQ(summary.max, 5);
  EXPECT_DOUBLE_EQ(summary.spread(), 2.0 / 3);
  EXPECT_NEAR(summary.uncertainty(), 2.0 / 3 / 2.2360679, 1e-6);
}

TEST(BenchStatistics, OneOutlierMovesTheMaximumAlone) {
  std::vector<double> seconds(99, 1.0);
  seconds.push_back(1000);
  const Summary summary = Summarize(seconds);
  EXPECT_DOUBLE_EQ(summary.median, 1);
  EXPECT_DOUBLE_EQ(summary.spread(), 0);
  EXPECT_DOUBLE_EQ(summary.max, 1000);
}

TEST(BenchStatistics, NothingMeasuredIsZero) {
  const Summary summary = Summarize({});
  EXPECT_EQ(summary.runs, 0);
  EXPECT_EQ(summary.spread(), 0);
  EXPECT_EQ(summary.uncertainty(), 0);
}

TEST(BenchStatistics, GeometricMean) {
  EXPECT_NEAR(GeometricMean(std::vector<double>{1, 4, 16}), 4, 1e-12);
  EXPECT_EQ(GeometricMean({}), 0);
}

/// 0.9, 1.1, 0.9, 1.1, …: a spread of 20% however many they are.
std::vector<double> Noisy(int runs) {
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) seconds.push_back(i % 2 == 0 ? 0.9 : 1.1);
  return seconds;
}

constexpr StoppingRule kRule{
    .noise = 0.01, .min_seconds = 0.5, .max_seconds = 1e6, .min_runs = 5, .max_runs = 1000};

TEST(BenchStoppingRule, QuietRunsStopAtTheLeast) {
  EXPECT_EQ(ShouldStop(kRule, std::vector<double>(4, 1.0), 4), Stop::kNotYet);
  EXPECT_EQ(ShouldStop(kRule, std::vector<double>(5, 1.0), 5), Stop::kQuiet);
}

TEST(BenchStoppingRule, ShortRunsGoOnForTheLeastTime) {
  EXPECT_EQ(ShouldStop(kRule, std::vector<double>(49, 0.01), 1), Stop::kNotYet);
  EXPECT_EQ(ShouldStop(kRule, std::vector<double>(51, 0.01), 1), Stop::kQuiet);
}

TEST(BenchStoppingRule, NoiseIsOutnumbered) {
  EXPECT_EQ(ShouldStop(kRule, Noisy(100), 100), Stop::kNotYet);  // 20% / sqrt(100) = 2%
  EXPECT_EQ(ShouldStop(kRule, Noisy(500), 500), Stop::kQuiet);   // 20% / sqrt(500) = 0.9%
}

TEST(BenchStoppingRule, NoiseThatStaysEndsAtTheMost) {
  StoppingRule rule = kRule;
  rule.noise = 1e-6;
  EXPECT_EQ(ShouldStop(rule, Noisy(999), 999), Stop::kNotYet);
  EXPECT_EQ(ShouldStop(rule, Noisy(1000), 1000), Stop::kMaxRuns);
  rule.max_seconds = 10;
  EXPECT_EQ(ShouldStop(rule, Noisy(9), 9.9), Stop::kNotYet);
  EXPECT_EQ(ShouldStop(rule, Noisy(9), 10), Stop::kMaxTime);
}

TEST(BenchStoppingRule, LongRunsAreMadeThreeTimes) {
  StoppingRule rule = kRule;
  rule.max_seconds = 2;
  EXPECT_EQ(ShouldStop(rule, {}, 1e9), Stop::kNotYet);
  EXPECT_EQ(ShouldStop(rule, std::vector<double>(2, 5.0), 10), Stop::kNotYet);
  EXPECT_EQ(ShouldStop(rule, std::vector<double>(3, 5.0), 15), Stop::kMaxTime);
  rule.max_runs = 1;
  EXPECT_EQ(ShouldStop(rule, {5.0}, 5), Stop::kMaxRuns);
}

TEST(BenchFormat, Numbers) {
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(4096), "4 KiB");
  EXPECT_EQ(FormatBytes(int64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(FormatMicroseconds(7.2134e-6), "7.213");
  EXPECT_EQ(FormatMicroseconds(1.8434e-3), "1843");
  EXPECT_EQ(FormatPercent(0.9734), "97.3%");
  EXPECT_EQ(FormatShape(std::vector<int64_t>{64, 100, 3}), "64x100x3");
}

}  // namespace
}  // namespace tilewire::bench
