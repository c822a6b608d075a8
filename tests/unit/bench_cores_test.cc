#include "tests/bench/cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tilewire::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

int FirstCore() {
  cpu_set_t all;
  EXPECT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  int core = 0;
  while (!CPU_ISSET(core, &all)) ++core;
  return core;
}

TEST(CoresOf, ReadsNumbersAndRanges) {
  EXPECT_THAT(CoresOf("0,2-4"), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(CoresOf(""), IsEmpty());
  for (const char* wrong : {"all", "2x", "0;1", "-1", "3-1", "1-", ",1", "99999999999", "0-4096"})
    EXPECT_THROW(CoresOf(wrong), std::invalid_argument) << wrong;
}

TEST(PinTo, RunsOnTheseCoresAlone) {
  std::thread([] {
    cpu_set_t before, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
    const int core = FirstCore();
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
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(steps.Add(1e-6));
  for (int i = 0; i < 55; ++i) EXPECT_FALSE(steps.Add(1e-5));
  for (int i = 0; i < 40; ++i)
    EXPECT_FALSE(steps.Add(1e-3));  // slow when it began, for less than half of the time
  EXPECT_FALSE(steps.Add(3.9e-5));
  EXPECT_TRUE(steps.Add(4.1e-5));
  EXPECT_FALSE(steps.Add(1e-5));
}

TEST(SlowMs, IsThePartOfTheTimesThatItWasSlow) {
  const std::chrono::steady_clock::time_point at;
  const auto ms = [&](int count) { return at + std::chrono::milliseconds(count); };
  std::vector<LookedAt> all;
  for (int i = 0; i < 100; ++i) all.push_back({ms(2 * i), i >= 20 && i < 30});
  EXPECT_DOUBLE_EQ(SlowMs(all, ms(0), ms(200)), 20);
  EXPECT_DOUBLE_EQ(SlowMs(all, ms(40), ms(60)), 20) << "all of it";
  EXPECT_DOUBLE_EQ(SlowMs(all, ms(58), ms(62)), 2) << "the last one and one after it";
  EXPECT_DOUBLE_EQ(SlowMs(all, ms(60), ms(200)), 0);
  EXPECT_DOUBLE_EQ(SlowMs(all, ms(0), ms(40)), 0);
  EXPECT_DOUBLE_EQ(SlowMs(all, ms(300), ms(400)), 0) << "not looked at";
}

TEST(SlowCores, CountsNothingBeforeItBeganNorWithoutCores) {
  const auto before = std::chrono::steady_clock::now();
  const SlowCores none("");
  EXPECT_EQ(none.MsBetween(before, before + std::chrono::hours(1)), 0);
  const SlowCores one(std::to_string(FirstCore()) + "," +
                      std::to_string(CPU_SETSIZE - 1));  // the last one is missing
  EXPECT_EQ(one.MsBetween(before - std::chrono::hours(1), before), 0);
}

}  // namespace
}  // namespace tilewire::bench
