// Judgements: the ramp's best rate, the comparison of two results, what a result says of itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/load/compare.h"
#include "client/load/ramp.h"
#include "client/load/results.h"
#include "client/load/tables.h"

namespace tilewire::load {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

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

/// A result with two operations, as RunJson makes it.
json ResultOf(double scale, uint64_t wrong = 0, uint64_t failed = 0) {
  Scenario scenario = ParseScenario(R"({"mode": {"type": "closed"}, "channels": 1, "operations": [
      {"name": "a", "operation": "rmse", "shape": [64]}, {"name": "b", "operation": "transpose", "shape": [4, 4]}]})",
                                    "s.json")
                          .value();
  LoadResult load;
  load.measured = Measured(2);
  load.measured.seconds = 2;
  for (int i = 1; i <= 1000; ++i)
    for (CallStats& stats : load.measured.operations) {
      const Answer answer{.right = true, .bytes = 100};
      stats.Add(answer, i * scale, i * scale);
      load.measured.timeline.Add(i * 0.0019, answer, i * scale);
    }
  load.measured.operations[0].wrong += wrong;
  if (failed > 0) load.measured.operations[1].AddError("UNAVAILABLE", failed);
  load.started = IsoNow();
  load.text = "the time is over";
  ServerFacts server{"localhost:1", {}, std::nullopt};
  server.info.devices = {{.id = "cpu", .name = "a CPU"}};
  server.ceilings = client::ServerCeilings{"cpu", {{"host_copy_all", 1e9}}};
  return json::parse(RunJson(scenario, server, load, nullptr).dump());
}

bool Regression(const json& a, const json& b, const CompareOptions& options = {}) {
  const auto comparison = Compare(a, b, options);
  EXPECT_TRUE(comparison) << comparison.error().ToString();
  bool any = false;
  for (const auto& row : comparison->rows) any = any || row.regression;
  EXPECT_EQ(any, comparison->regression);
  EXPECT_THAT(ComparisonText(*comparison), HasSubstr(any ? "REGRESSION" : "no regression"));
  return comparison->regression;
}

TEST(LoadCompare, VerdictsFollowTheThresholds) {
  const json before = ResultOf(1);
  EXPECT_FALSE(Regression(before, before));
  EXPECT_FALSE(Regression(before, ResultOf(1.05)));
  EXPECT_FALSE(Regression(before, ResultOf(0.5))) << "better is no regression";
  EXPECT_TRUE(Regression(before, ResultOf(1.2)));
  EXPECT_FALSE(Regression(before, ResultOf(1.2), {.threshold = 0.3, .tail_threshold = 0.3}));
  EXPECT_TRUE(Regression(before, ResultOf(1.2), {.threshold = 0.3, .tail_threshold = 0.1})) << "by the tail";
  EXPECT_TRUE(Regression(before, ResultOf(1, 1)));
  EXPECT_FALSE(Regression(before, ResultOf(1, 0, 1))) << "one call of a thousand and one";
  EXPECT_TRUE(Regression(before, ResultOf(1, 0, 10)));
  EXPECT_FALSE(Regression(ResultOf(1, 0, 10), ResultOf(1, 0, 10)));
  json slower = before;
  slower["operations"][1]["calls_per_second"] =
      before["operations"][1]["calls_per_second"].get<double>() * 0.8;
  EXPECT_TRUE(Regression(before, slower));
  json fewer = before;
  fewer["operations"].erase(1);
  EXPECT_TRUE(Regression(before, fewer)) << "an operation is gone";
  EXPECT_FALSE(Regression(fewer, before)) << "a new one is no regression";
}

TEST(LoadCompare, RampsAndStudiesToo) {
  json ramp = ResultOf(1);
  ramp["mode"] = {{"type", "ramp"}, {"best_rate", 100.0}};
  json worse = ramp;
  worse["mode"]["best_rate"] = 80.0;
  EXPECT_TRUE(Regression(ramp, worse));
  EXPECT_FALSE(Regression(worse, ramp));
  json study = ResultOf(1);
  study["kind"] = "study";
  study["study"] = {{{"operation", "rmse"},
                     {"bytes", 8},
                     {"block_bytes", 0},
                     {"lanes", 0},
                     {"connections", 1},
                     {"overlap", true},
                     {"bytes_per_second", 100.0},
                     {"p50_us", 1}}};
  json slower = study;
  slower["study"][0]["bytes_per_second"] = 50.0;
  EXPECT_TRUE(Regression(study, slower));
  EXPECT_FALSE(Regression(slower, study));
  slower["study"][0]["overlap"] = false;
  EXPECT_TRUE(Regression(study, slower)) << "the point is gone";
}

TEST(LoadCompare, NotesWhatDiffersAndRefusesWhatIsNoResult) {
  const json before = ResultOf(1);
  json other = before;
  other["server"]["device"] = "cuda:0";
  other["generator"]["bottleneck"] = true;
  const auto comparison = Compare(before, other, {});
  ASSERT_TRUE(comparison);
  EXPECT_THAT(comparison->notes, Contains(HasSubstr("device differs: \"cpu\" and \"cuda:0\"")));
  EXPECT_THAT(comparison->notes, Contains(HasSubstr("generator was the bottleneck")));
  for (json wrong :
       {json(3), json::object(), json{{"schema", "tilewire-load/9"}}, json{{"schema", "tilewire-load/1"}}}) {
    EXPECT_FALSE(Compare(before, wrong, {}));
    EXPECT_FALSE(Compare(wrong, before, {}));
  }
  json broken = before;
  broken["operations"][0]["latency_us"] = "fast";
  EXPECT_FALSE(Compare(before, broken, {}));
  other["kind"] = "study";
  EXPECT_FALSE(Compare(before, other, {}));
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

}  // namespace
}  // namespace tilewire::load
