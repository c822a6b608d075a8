#include "kernels/bench/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/bench_testing.h"

namespace tilewire::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RunSettings FastSettings() {
  RunSettings settings;
  settings.rule = {.noise = 0.01, .min_seconds = 0, .max_seconds = 10, .min_runs = 3, .max_runs = 5};
  return settings;
}

TEST(BenchRunner, FiltersMatchAnywhereInTheName) {
  const std::vector<Case> cases = {MakeCase("rmse", "f32/4 KiB"), MakeCase("rmse", "f64/4 KiB"),
                                   MakeCase("copies", "read")};
  EXPECT_THAT(Select(cases, std::regex("")), ElementsAre(0, 1, 2));
  EXPECT_THAT(Select(cases, std::regex("^rmse/.*4 KiB")), ElementsAre(0, 1));
  EXPECT_THAT(Select(cases, std::regex("f64|read/tilewire$")), ElementsAre(1, 2));
  EXPECT_TRUE(Select(cases, std::regex("f16")).empty());
}

TEST(BenchRunner, LimitsOfChosenCasesAreChosenToo) {
  std::vector<Case> cases = {MakeCase("copies", "read"), MakeCase("copies", "copy"), MakeCase("rmse", "f32")};
  cases[0].defines_limit = "device read";
  cases[1].defines_limit = "device copy";
  cases[2].limit = "device read";
  EXPECT_THAT(Select(cases, std::regex("rmse")), ElementsAre(0, 2));
}

TEST(BenchRunner, MeasuresEveryModeByTheRule) {
  FakeMeter meter(1e-6);
  const Record record = RunCase(MakeCase("g", "short"), meter, FastSettings());
  ASSERT_EQ(record.outcome, Outcome::kMeasured) << record.reason;
  EXPECT_THAT(meter.modes, ElementsAre(Mode::kCold, Mode::kHot, Mode::kCompletion));
  EXPECT_EQ(record.check.kind, Check::Kind::kRelative);
  const Measurement* hot = record.Find(Mode::kHot);
  ASSERT_NE(hot, nullptr);
  EXPECT_EQ(hot->seconds.runs, 3);
  EXPECT_EQ(hot->stop, Stop::kQuiet);
  EXPECT_EQ(hot->batch, 3);
  EXPECT_DOUBLE_EQ(record.Rate(*hot), 1e9);
}

TEST(BenchRunner, LongCasesNeedNoCompletionTime) {
  FakeMeter meter(1e-3);
  RunCase(MakeCase("g", "long"), meter, FastSettings());
  EXPECT_THAT(meter.modes, ElementsAre(Mode::kCold, Mode::kHot));
}

TEST(BenchRunner, WrongResultsFailAndAreNotTimed) {
  FakeMeter meter(1e-6);
  const Record record =
      RunCase(MakeCase("g", "wrong", Status(Code::kInternal, "WRONG", "3 elements are wrong")), meter,
              FastSettings());
  EXPECT_EQ(record.outcome, Outcome::kFailed);
  EXPECT_EQ(record.reason, "3 elements are wrong");
  EXPECT_TRUE(meter.modes.empty());
  EXPECT_TRUE(record.measurements.empty());
}

TEST(BenchRunner, ACheckNeverSkips) {
  FakeMeter meter(1e-6);
  const Status status(Code::kResourceExhausted, "MEMORY", "no room for the check");
  EXPECT_EQ(RunCase(MakeCase("g", "unchecked", status), meter, FastSettings()).outcome, Outcome::kFailed);
}

TEST(BenchRunner, WhatDoesNotFitIsSkippedByName) {
  FakeMeter meter(1e-6);
  Case large = MakeCase("g", "large");
  large.memory_bytes = 1001;
  const Record record = RunCase(large, meter, FastSettings());
  EXPECT_EQ(record.outcome, Outcome::kSkipped);
  EXPECT_THAT(record.reason, HasSubstr("1001 B"));

  Case full = MakeCase("g", "full");
  full.prepare = [](Stream) -> Result<std::unique_ptr<Work>> {
    return Fail(Status(Code::kResourceExhausted, "DEVICE_MEMORY", "allocating 100 B: out of memory"));
  };
  EXPECT_EQ(RunCase(full, meter, FastSettings()).outcome, Outcome::kSkipped);
  full.prepare = [](Stream) -> Result<std::unique_ptr<Work>> {
    return Fail(Status(Code::kInternal, "CUDA", "launch failed"));
  };
  EXPECT_EQ(RunCase(full, meter, FastSettings()).outcome, Outcome::kFailed);
}

TEST(BenchRunner, LimitsRunFirstAndApplyToAll) {
  std::vector<Case> cases = {MakeCase("rmse", "f32"), MakeCase("copies", "read"), MakeCase("host", "rmse")};
  cases[0].limit = "device read";
  cases[1].defines_limit = "device read";
  cases[1].bytes = 4000;
  cases[2].place = Place::kHost;
  FakeMeter device(1e-6);
  std::vector<std::string> order;
  std::map<std::string, double> limits;
  const std::vector<Record> records = RunCases(
      cases, {0, 1, 2}, {.device = &device, .missing = "no host today"}, FastSettings(),
      [&](const Record& record) { order.push_back(record.info.name); }, &limits);
  EXPECT_THAT(order, ElementsAre("read", "f32", "rmse"));
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].info.name, "f32");
  EXPECT_DOUBLE_EQ(limits.at("device read"), 4e9);
  EXPECT_DOUBLE_EQ(records[0].Share(*records[0].Headline()), 0.25);
  EXPECT_EQ(records[2].outcome, Outcome::kSkipped);
  EXPECT_EQ(records[2].reason, "no host today");
}

TEST(BenchHostMeter, TimesTheWorkAndFlushesWhatItTouches) {
  class Sum : public FakeWork {
   public:
    using FakeWork::FakeWork;
    Status Run(Stream /*stream*/) override {
      for (const std::byte one : data) sum = sum + std::to_integer<int>(one);
      return {};
    }
    std::vector<std::span<const std::byte>> Touched() const override { return {data}; }
    std::vector<std::byte> data = std::vector<std::byte>(1000, std::byte{1});
    volatile int sum = 0;
  };
  const std::unique_ptr<Meter> meter = MakeHostMeter();
  Sum work{Status()};
  for (const Mode mode : {Mode::kCold, Mode::kHot}) {
    auto sampler = meter->Begin(work, mode);
    ASSERT_TRUE(sampler);
    std::vector<double> seconds;
    ASSERT_TRUE((*sampler)->Sample(&seconds).ok());
    EXPECT_EQ(seconds.size(), 1U);
    EXPECT_GT(seconds[0], 0);
  }
  EXPECT_EQ(work.sum, 4000) << "each mode runs once before and once timed";
  EXPECT_FALSE(meter->Begin(work, Mode::kCompletion));
}

}  // namespace
}  // namespace tilewire::bench
