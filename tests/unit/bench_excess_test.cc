#include <gtest/gtest.h>

#include <vector>

#include "tests/bench/excess_found.h"

namespace tilewire::bench {
namespace {

Load LoadWith(double good, double peak, double p99_ms, double peak_p99_ms) {
  return {.found = {.good = good, .p99_ms = p99_ms},
          .peak = {.good = peak, .p99_ms = peak_p99_ms, .call_us = 100},
          .refusal_us = 50};
}

TEST(Excess, CallsCountInTheSecondsInWhichTheyWereDue) {
  const std::vector<CallEnd> calls{{.due = 0.5, .ended = 0.51, .status = 0, .sent = true},
                                   {.due = 0.6, .ended = 0.6, .status = 8, .sent = true},
                                   {.due = 0.7, .ended = 0.7, .status = 8},
                                   {.due = 0.8, .ended = 1.8, .status = 4, .sent = true},
                                   {.due = 0.9, .ended = 1.9, .status = 4},
                                   {.due = 1.9, .ended = 2.2, .status = CallEnd::kWrong, .sent = true},
                                   {.due = 2.1, .ended = 2.2, .status = 0, .sent = true}};
  const Found found = Summarise(calls, 2, 1);
  EXPECT_DOUBLE_EQ(found.offered, 3);
  for (const double kind : {found.good, found.busy, found.held, found.late, found.unsent, found.other})
    EXPECT_DOUBLE_EQ(kind, 0.5);
  EXPECT_NEAR(found.p99_ms, 10, 1e-9);
  EXPECT_DOUBLE_EQ(found.cpu, 0.5);
}

TEST(Excess, ItHasRecoveredAfterTheLastTenthOfASecondWithTooManyBadCalls) {
  std::vector<CallEnd> calls;
  for (int i = 0; i < 100; ++i)
    calls.push_back({.due = 1 + 0.01 * i, .ended = 1.001 + 0.01 * i, .status = 0});
  EXPECT_DOUBLE_EQ(RecoverySeconds(calls, 1, 5), 0);
  calls[35].status = 8;
  EXPECT_DOUBLE_EQ(RecoverySeconds(calls, 1, 5), 0) << "one of ten";
  calls[36].ended += 0.1;
  EXPECT_DOUBLE_EQ(RecoverySeconds(calls, 1, 5), 0.4) << "a slow one is as bad as one that failed";
}

TEST(Excess, KeptIsWhatIsOwed) {
  EXPECT_TRUE(LoadWith(70, 100, 20, 10).IsKept());
  EXPECT_FALSE(LoadWith(69, 100, 20, 10).IsKept());
  EXPECT_FALSE(LoadWith(70, 100, 21, 10).IsKept());
  Load load = LoadWith(89, 100, 20, 10);
  load.refusal_us = 11;
  EXPECT_TRUE(load.IsKept());
  load.refusal_us = 10;
  EXPECT_FALSE(load.IsKept()) << "of a call that costs ten refusals 90% are owed";
  load.found.good = 90;
  EXPECT_TRUE(load.IsKept());
  load.recovery_ms = 1000;
  EXPECT_FALSE(load.IsKept());
}

TEST(Excess, TheMedianIsThatOfRatiosWhateverTheCoreDid) {
  const std::vector<Load> loads{LoadWith(80, 100, 10, 10), LoadWith(180, 200, 30, 10),
                                LoadWith(60, 100, 90, 10)};
  const Load median = MedianOf(loads);
  EXPECT_NEAR(median.of_peak(), 0.8, 1e-12);
  EXPECT_NEAR(median.of_p99(), 3, 1e-12);
  EXPECT_DOUBLE_EQ(median.found.good, 80);
  EXPECT_DOUBLE_EQ(median.peak.call_us, 100);
  EXPECT_DOUBLE_EQ(median.refusal_us, 50);
}

TEST(Excess, WhatARefusalCostsIsToldByLoadsThatTell) {
  std::vector<Load> loads(3, LoadWith(80, 100, 10, 10));
  loads[0].refusal_us = 0, loads[1].refusal_us = 60, loads[2].refusal_us = 80;
  EXPECT_DOUBLE_EQ(MedianOf(loads).refusal_us, 70);
  loads[1].refusal_us = 0;
  EXPECT_DOUBLE_EQ(MedianOf(loads).refusal_us, 0) << "most do not";
}

TEST(Excess, TheMedianOfLoadsThatDidNothingIsNothing) {
  const Load median = MedianOf({LoadWith(0, 100, 0, 10), LoadWith(0, 200, 0, 30)});
  EXPECT_DOUBLE_EQ(median.of_peak(), 0);
  EXPECT_DOUBLE_EQ(median.of_p99(), 0);
  EXPECT_DOUBLE_EQ(median.peak.good, 150);
  EXPECT_FALSE(median.IsKept());
}

TEST(Excess, TheMedianOfOneIsIt) {
  const Load load = LoadWith(80, 100, 15, 10), median = MedianOf({load});
  EXPECT_DOUBLE_EQ(median.of_peak(), load.of_peak());
  EXPECT_DOUBLE_EQ(median.of_p99(), load.of_p99());
  EXPECT_EQ(median.IsKept(), load.IsKept());
}

}  // namespace
}  // namespace tilewire::bench
