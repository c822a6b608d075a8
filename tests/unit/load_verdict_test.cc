// Judgements: the ramp's best rate, what a result says of itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/load/ramp.h"
#include "client/load/results.h"
#include "client/load/tables.h"
#include "tests/unit/load_result_testing.h"

namespace tilewire::load {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

/// A server whose latency explodes above `capacity`.
auto ServerOf(double capacity, int* measured = nullptr) {
  return [capacity, measured](double rate, RampStep* step) {
    if (measured != nullptr) ++*measured;
    step->achieved = std::min(rate, capacity);
    step->latency_us = rate <= capacity ? 100 + rate / capacity * 800 : 1e6;
    return true;
  };
}

TEST(LoadRamp, FindsTheCapacityWithinItsResolution) {
  for (const double capacity : {0.7, 10.0, 777.0, 123'456.0}) {
    int measured = 0;
    const RampResult result =
        FindBestRate({.start_rate = 10, .bound_us = 1000, .max_steps = 100}, ServerOf(capacity, &measured));
    EXPECT_LE(result.best_rate, capacity);
    EXPECT_GE(result.best_rate * 1.05, capacity * (1 - 1e-9)) << capacity;
    EXPECT_EQ(result.steps.size(), static_cast<size_t>(measured));
    for (const RampStep& step : result.steps) EXPECT_EQ(step.held, step.rate <= capacity);
    EXPECT_FALSE(result.stopped);
  }
}

TEST(LoadRamp, HasBounds) {
  EXPECT_EQ(FindBestRate({.start_rate = 10, .max_rate = 300, .bound_us = 1000}, ServerOf(1e5)).best_rate,
            300);
  EXPECT_EQ(FindBestRate({.start_rate = 1000, .max_rate = 300, .bound_us = 1000}, ServerOf(1e5)).best_rate,
            300);
  const RampResult hopeless = FindBestRate({.start_rate = 10, .bound_us = 1}, ServerOf(1e5));
  EXPECT_EQ(hopeless.best_rate, 0);
  EXPECT_LE(hopeless.steps.size(), 40u);
}

TEST(LoadRamp, OneHiccupDecidesNothingAndErrorsDo) {
  int count = 0;
  const auto hiccup = [&](double rate, RampStep* step) {
    ServerOf(400)(rate, step);
    if (++count == 2) step->latency_us = 1e9;
    return true;
  };
  EXPECT_GE(FindBestRate({.start_rate = 10, .bound_us = 1000}, hiccup).best_rate, 380);
  const auto failing = [](double rate, RampStep* step) {
    ServerOf(400)(rate, step);
    step->clean = rate < 50;
    return true;
  };
  EXPECT_LT(FindBestRate({.start_rate = 10, .bound_us = 1000}, failing).best_rate, 50);
  const auto slow = [](double rate, RampStep* step) {
    *step = {.rate = rate, .achieved = rate * 0.9, .latency_us = 1};
    return true;
  };
  EXPECT_EQ(FindBestRate({.start_rate = 10, .bound_us = 1000}, slow).best_rate, 0)
      << "the rate was not achieved";
}

TEST(LoadRamp, StopsWhenTold) {
  int count = 0;
  const RampResult result =
      FindBestRate({.start_rate = 10, .bound_us = 1000}, [&](double rate, RampStep* step) {
        ServerOf(1e6)(rate, step);
        return ++count < 3;
      });
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.steps.size(), 2u);
  EXPECT_EQ(result.best_rate, 20);
}

TEST(LoadResult, HoldsWhatItsSchemaSays) {
  const json result = ResultOf(3, 2, 1);
  EXPECT_EQ(result["schema"], "tilewire-load/1");
  EXPECT_EQ(result["total"]["calls"], 2003);
  EXPECT_EQ(result["total"]["wrong"], 2);
  EXPECT_EQ(result["total"]["operation"], "mix");
  EXPECT_EQ(result["total"]["dtype"], "f32") << "what all operations have in common";
  EXPECT_EQ(result["total"]["shape"], json::array());
  EXPECT_EQ(result["operations"][0]["bytes_per_second"], 50'000);
  EXPECT_EQ(result["operations"][1]["errors"], (json{{"UNAVAILABLE", 1}}));
  uint64_t in_histogram = 0, in_timeline = 0;
  for (const json& bucket : result["total"]["histogram"]) in_histogram += bucket[1].get<uint64_t>();
  for (const json& step : result["timeline"]) in_timeline += step["calls"].get<uint64_t>();
  EXPECT_EQ(in_histogram, 2000u);
  EXPECT_EQ(in_timeline, 2000u);
  EXPECT_LE(result["total"]["histogram"].size(), 200u);
  const std::string findings = result["findings"].dump();
  EXPECT_THAT(findings, HasSubstr("2 answers have the wrong bits"));
  EXPECT_THAT(findings, HasSubstr("1 × UNAVAILABLE"));
  EXPECT_THAT(findings, HasSubstr("of what a memcpy into pinned memory by all threads reaches here"));
  const std::string text = ResultText(nlohmann::ordered_json::parse(result.dump()));
  for (const char* word :
       {"p99.9", "localhost:1", "a CPU", "1 caller, closed loop", "error    1 × UNAVAILABLE"})
    EXPECT_THAT(text, HasSubstr(word));
}

TEST(LoadResult, TheGeneratorSaysWhenItIsTheBottleneck) {
  Scenario scenario;
  scenario.mode.type = ModeType::kOpen;
  LoadResult load;
  load.punctuality.starts = 1000;
  EXPECT_FALSE(JudgeGenerator(scenario, load).bottleneck);
  load.punctuality.late = 900;  // callers waited for the server: no fault of the generator
  EXPECT_FALSE(JudgeGenerator(scenario, load).bottleneck);
  EXPECT_THAT(JudgeGenerator(scenario, load).text, HasSubstr("900 calls started late"));
  load.punctuality.woke_late = 50;
  EXPECT_TRUE(JudgeGenerator(scenario, load).bottleneck);
  load.punctuality = {};
  load.cpu_share = 0.95;
  EXPECT_TRUE(JudgeGenerator(scenario, load).bottleneck);
  EXPECT_THAT(JudgeGenerator(scenario, load).text, HasSubstr("95%"));
}

/// Of one operation.
Scenario ScenarioOf(const std::string& mode) {
  return ParseScenario(
             R"({"mode": )" + mode + R"(, "operations": [{"operation": "transpose", "shape": [4, 4]}]})",
             "s.json")
      .value();
}

/// Ten seconds in which nothing happened.
LoadResult Quiet() {
  LoadResult load;
  load.measured = Measured(1);
  load.measured.seconds = 10;
  load.started = IsoNow();
  return load;
}

TEST(LoadResult, CallsBeforeAndBesideTheWindowAreNamed) {
  const Scenario scenario = ScenarioOf(R"({"type": "open", "rate": 5})");
  LoadResult load = Quiet();
  load.outside_failed = 1;
  load.punctuality.never = 7;
  load.reason = StopReason::kInterrupted;
  load.text = "Ctrl-C";
  const std::string findings =
      RunJson(scenario, {"localhost:1", {}, std::nullopt}, load, nullptr)["findings"].dump();
  EXPECT_THAT(findings, HasSubstr("1 call failed during the warm-up."));
  EXPECT_THAT(findings, HasSubstr("7 calls were due and never started"));
  EXPECT_THAT(findings, HasSubstr("No call ended in the window"));
  EXPECT_THAT(findings, HasSubstr("The run ended early (Ctrl-C)"));
}

TEST(LoadResult, WhereNoCallEndedWellThereIsNoLatency) {
  LoadResult load = Quiet();
  load.measured.operations[0].AddError("UNAVAILABLE", 3);
  const auto result =
      RunJson(ScenarioOf(R"({"type": "closed"})"), {"localhost:1", {}, std::nullopt}, load, nullptr);
  const std::string text = ResultText(result);
  EXPECT_THAT(text, HasSubstr("3 × UNAVAILABLE"));
  EXPECT_THAT(text, Not(HasSubstr(" 0 µs")));
}

TEST(LoadResult, NoiseIsWhatThroughputVariesBy) {
  const auto noise = [](int steps, double by, double seconds) {
    Timeline timeline(0.5);
    for (int i = 0; i < steps; ++i) {
      const double factor = i % 4 == 0 ? 1 - by : i % 4 == 2 ? 1 + by : 1;
      timeline.Add(i * 0.5 + 0.1, {.right = true, .bytes = static_cast<uint64_t>(1e6 * factor)}, 1);
    }
    return RateNoise(timeline, seconds);
  };
  ASSERT_TRUE(noise(16, 0.1, 8));
  EXPECT_NEAR(*noise(16, 0, 8), 0, 1e-9);
  EXPECT_NEAR(*noise(16, 0.1, 8), 0.025, 0.026);
  EXPECT_GT(*noise(16, 0.1, 8), 0);
  EXPECT_GT(*noise(16, 0.4, 8), *noise(16, 0.1, 8));
  EXPECT_FALSE(noise(6, 0.1, 3)) << "too few parts";
  EXPECT_FALSE(noise(0, 0, 8)) << "nothing";
  EXPECT_TRUE(noise(599, 0.1, 299.5)) << "steps are taken together";
}

TEST(LoadResult, CheckingThatLimitsTheRateIsNamed) {
  const Scenario scenario = ScenarioOf(R"({"type": "closed", "callers": 2})");
  LoadResult load = Quiet();
  const ServerFacts server{"localhost:1", {}, std::nullopt};
  load.held_up_seconds = 0.19;
  EXPECT_THAT(RunJson(scenario, server, load, nullptr)["findings"].dump(),
              Not(HasSubstr("Checking limited")));
  load.held_up_seconds = 5;
  const auto result = RunJson(scenario, server, load, nullptr);
  EXPECT_NEAR(result["generator"]["checking_share"].get<double>(), 0.25, 1e-9);
  EXPECT_THAT(result["findings"].dump(),
              HasSubstr("Checking limited the rate: callers waited 25% of the time"));
}

}  // namespace
}  // namespace tilewire::load
