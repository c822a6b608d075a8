#include "kernels/bench/stopping.h"

#include <gtest/gtest.h>

namespace tilewire::bench {
namespace {

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

}  // namespace
}  // namespace tilewire::bench
