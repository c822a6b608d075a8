// `tilewire-load` against servers that work, stop and die. What is asserted are counts, and which of two
// times is longer.
#include <set>

#include "tests/integration/load_fixture.h"

namespace tilewire::testing {
namespace {

using nlohmann::json;

TEST_F(Load, CountsAgreeWithTheServersOwn) {
  const std::string scenario = Scenario(R"({"mode": {"type": "closed", "callers": 3}, "requests": 300,
    "warmup_seconds": 0, "operations": [
      {"name": "r", "operation": "rmse", "shape": [1024], "access": "unary", "weight": 5},
      {"name": "s", "operation": "rmse", "dtype": "i32", "shape": [64, 3000], "axes": [0], "access": "stream"},
      {"name": "x", "operation": "transpose", "shape": [600, 1000], "access": "striped", "connections": 2},
      {"name": "g", "operation": "gaussian-pdf", "shape": [30000], "access": "stream"}]})");
  const auto program = Start(scenario, {"--ceilings"});
  const json result = Finish(*program, 0);
  EXPECT_EQ(result["total"]["good"], 300);
  EXPECT_EQ(result["server"]["device"], "cpu");
  EXPECT_EQ(result["ceilings"].size(), 3u);
  uint64_t good = 0, bytes = 0;
  double service_seconds = 0;
  for (const json& stat : result["operations"]) {
    EXPECT_GT(stat["good"], 0) << stat["name"];
    EXPECT_GT(stat["stages_us"].size(), 0u) << stat["name"];
    good += stat["good"].get<uint64_t>();
    bytes += stat["bytes"].get<uint64_t>();
    service_seconds += stat["service_us"]["mean"].get<double>() * stat["calls"].get<double>() / 1e6;
  }
  EXPECT_EQ(good, 300u);
  EXPECT_EQ(result["total"]["bytes"], bytes);
  EXPECT_FALSE(result["traces"].empty());
  // The limits were asked for once; they are a job of the engine's, but no call of an operation.
  EXPECT_TRUE(Eventually([&] {
    return SumOfMetric(metrics_, "tilewire_jobs_admitted_total") == 301 &&
           SumOfMetric(metrics_, "tilewire_jobs_in_flight") == 0 &&
           SumOfMetric(metrics_, "tilewire_calls_in_progress") == 0;
  }));
  const double operands = SumOfMetric(metrics_, "tilewire_received_bytes_total"),
               results = SumOfMetric(metrics_, "tilewire_sent_bytes_total");
  EXPECT_EQ(static_cast<uint64_t>(operands + results), bytes) << "every byte of a good call, once";
  EXPECT_GT(service_seconds, 0);
}

TEST_F(Load, TracesOfStripedCallsTellEveryStreamWithinTheCall) {
  const std::string scenario = Scenario(R"({"mode": {"type": "closed", "callers": 2}, "requests": 64,
    "warmup_seconds": 0, "operations": [
      {"operation": "transpose", "shape": [2048, 2048], "access": "striped", "connections": 3}]})");
  const json result = Finish(*Start(scenario), 0);
  ASSERT_FALSE(result["traces"].empty());
  std::set<std::string> tracks;
  for (const json& trace : result["traces"]) {
    double end = 0;
    for (const json& span : trace["spans"])
      if (span["stage"] == "call") end = span["end_us"].get<double>();
    for (const json& span : trace["spans"]) {
      EXPECT_GE(span["begin_us"], 0) << span.dump();
      EXPECT_LE(span["end_us"], end) << span.dump();
      if (span["process"] == "server") tracks.insert(span["track"].get<std::string>());
    }
  }
  EXPECT_TRUE(tracks.contains("stream 0") && tracks.contains("stream 1")) << result["traces"].dump();
}

TEST_F(Load, AStoppedServerShowsInAnOpenLoopOnly) {
  const auto open = Start(
      Small(R"({"type": "open", "arrivals": "constant", "rate": 50, "callers": 4})", R"("seconds": 6)"));
  ASSERT_TRUE(Eventually([&] { return Calls() >= 25; }));
  server_.Signal(SIGSTOP);
  const auto stopped = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const double pause_us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - stopped).count();
  server_.Signal(SIGCONT);
  const json shown = Finish(*open, 0);
  EXPECT_EQ(shown["total"]["good"], 300) << "no start is skipped";
  // 50 calls fell due in each second of the pause; those of its first half waited for the rest of it.
  EXPECT_GT(shown["total"]["latency_us"]["max"], pause_us / 2);
  uint64_t waited = 0;
  for (const json& bucket : shown["total"]["histogram"])
    if (bucket[0].get<double>() >= pause_us / 2) waited += bucket[1].get<uint64_t>();
  EXPECT_GE(waited, 20u);
  EXPECT_GT(shown["total"]["latency_us"]["p99"], pause_us / 2);
  EXPECT_GE(shown["generator"]["late_starts"], 10) << "four callers were not enough meanwhile";

  const double before = Calls();
  const auto closed = Start(Small(R"({"type": "closed", "callers": 1})", R"("requests": 2000)"));
  ASSERT_TRUE(Eventually([&] { return Calls() >= before + 25; }));
  server_.Signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  server_.Signal(SIGCONT);
  const json hidden = Finish(*closed, 0);
  EXPECT_EQ(hidden["total"]["good"], 2000);
  EXPECT_LT(hidden["total"]["latency_us"]["p99"], pause_us / 2) << "one call of 2000 saw it";
}

TEST_F(Load, AServerThatDiesLeavesTheResultsSoFar) {
  const auto program = Start(Small(R"({"type": "closed", "callers": 2})", R"("seconds": 600)"));
  ASSERT_TRUE(Eventually([&] { return Calls() >= 70; }));
  server_.Signal(SIGKILL);
  const json result = Finish(*program, 1);
  EXPECT_EQ(result["stop"]["reason"], "server_lost");
  EXPECT_GE(result["total"]["good"], 48);
  uint64_t unavailable = 0;
  for (const auto& [key, count] : result["total"]["errors"].items())
    if (key.starts_with("UNAVAILABLE")) unavailable += count.get<uint64_t>();
  EXPECT_GE(unavailable, 3u);
  EXPECT_NE(program->out().find("results so far"), std::string::npos) << program->out();
}

TEST_F(Load, CtrlCEndsARunEvenWhereTheServerIsStuck) {
  const auto program = Start(Small(R"({"type": "closed", "callers": 2})", R"("seconds": 600)"));
  ASSERT_TRUE(Eventually([&] { return Calls() >= 70; }));
  server_.Signal(SIGSTOP);
  program->Signal(SIGINT);
  const json result = Finish(*program, 130);
  server_.Signal(SIGCONT);
  EXPECT_EQ(result["stop"]["reason"], "interrupted");
  EXPECT_GE(result["total"]["good"], 48);
}

TEST_F(Load, StudyAndReadyMadeScenariosRun) {
  Program study(TILEWIRE_LOAD, {"study", "gaussian-pdf", "--server", address_, "--sizes", "256KiB,1MiB",
                                "--connections", "1,2", "--seconds", "0.05", "--json", base_ + ".result"});
  const json result = Finish(study, 0);
  EXPECT_EQ(result["study"].size(), 8u);
  EXPECT_TRUE(result.contains("recommendation"));
  EXPECT_NE(study.out().find("Use "), std::string::npos) << study.out();
  const auto quick = Start(std::string(TILEWIRE_LOAD_SCENARIOS) + "/quick.json",
                           {"--seconds", "0.5", "--html", base_ + ".html"});
  EXPECT_EQ(Finish(*quick, 0)["total"]["wrong"], 0);
  std::ifstream page(base_ + ".html");
  std::string first;
  std::getline(page, first);
  EXPECT_NE(first.find("<!doctype html>"), std::string::npos) << first;
  Program ceilings(TILEWIRE_LOAD, {"ceilings", "--server", address_});
  EXPECT_EQ(ceilings.Wait(60), 0) << ceilings.err();
  EXPECT_NE(ceilings.out().find("device_copy"), std::string::npos) << ceilings.out();
}

}  // namespace
}  // namespace tilewire::testing
