#include "tests/bench/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace tilewire::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CoresOf, ReadsNumbersAndRanges) {
  EXPECT_THAT(CoresOf("0,2-4"), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(CoresOf(""), IsEmpty());
  EXPECT_THROW(CoresOf("all"), std::invalid_argument);
}

TEST(PinTo, RunsOnTheseCoresAlone) {
  std::thread([] {
    cpu_set_t before, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    int core = 0;
    while (!CPU_ISSET(core, &before)) ++core;
    PinTo("");
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
    PinTo(std::to_string(core));
    ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
    EXPECT_EQ(CPU_COUNT(&after), 1);
    EXPECT_TRUE(CPU_ISSET(core, &after));
    EXPECT_THROW(PinTo(std::to_string(CPU_SETSIZE - 1)), std::runtime_error);
  }).join();
}

TEST(SlowSteps, AreThoseThatTakeFourTimesTheUsual) {
  SlowSteps steps;
  for (int i = 0; i < 60; ++i) EXPECT_FALSE(steps.Add(1e-5));
  for (int i = 0; i < 40; ++i)
    EXPECT_FALSE(steps.Add(1e-3));  // slow when it began, for less than half of the time
  EXPECT_FALSE(steps.Add(3.9e-5));
  EXPECT_TRUE(steps.Add(4.1e-5));
  EXPECT_FALSE(steps.Add(1e-5));
}

TEST(SlowCores, CountsNothingBeforeItBeganNorWithoutCores) {
  const auto before = std::chrono::steady_clock::now();
  const SlowCores none("");
  EXPECT_EQ(none.MsBetween(before, before + std::chrono::hours(1)), 0);
  int core = 0;
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  while (!CPU_ISSET(core, &all)) ++core;
  const SlowCores one(std::to_string(core) + "," +
                      std::to_string(CPU_SETSIZE - 1));  // the last one is missing
  EXPECT_EQ(one.MsBetween(before - std::chrono::hours(1), before), 0);
}

}  // namespace
}  // namespace tilewire::bench
