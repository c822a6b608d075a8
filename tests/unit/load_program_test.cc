// The program against a server that lies, and without one.
#include "tests/unit/client_cli_testing.h"

namespace tilewire::client::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class LoadProgram : public ::testing::Test {
 protected:
  /// A closed loop of 40 calls of each kind and access.
  std::string Scenario(const std::string& mode = R"({"type": "closed", "callers": 2})",
                       const std::string& more = R"("requests": 40,)") const {
    const std::string path = dir_.File("s.json");
    std::ofstream(path) << R"({"mode": )" << mode << ", " << more
                        << R"( "warmup_seconds": 0, "timeout_seconds": 60,
      "operations": [
        {"name": "r", "operation": "rmse", "shape": [500], "access": "unary"},
        {"name": "t", "operation": "transpose", "dtype": "u16", "shape": [300, 400], "access": "stream"},
        {"name": "g", "operation": "gaussian-pdf", "dtype": "f64", "shape": [77], "access": "unary"}]})";
    return path;
  }
  Ran Run(std::vector<std::string> arguments) {
    return Program(TILEWIRE_LOAD, arguments, server_.address()).Wait();
  }
  Ran RunJson(const std::string& scenario, json* result) {
    const std::string path = dir_.File("r.json");
    Ran ran = Run({"run", scenario, "--json", path});
    *result = json::parse(ReadFile(path), nullptr, false);
    return ran;
  }

  TempDir dir_;
  FakeServer server_;
};

TEST_F(LoadProgram, CountsGoodCallsExactly) {
  json result;
  const Ran ran = RunJson(Scenario(), &result);
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_EQ(result["total"]["good"], 40);
  EXPECT_EQ(result["stop"]["reason"], "requests");
  EXPECT_EQ(result["server"]["address"], server_.address());
  const FakeLog log = server_.log();
  EXPECT_EQ(log.calls + log.streams, 40 + 1 + 2) << "and Describe: the program's, and one a connection";
  EXPECT_EQ(log.streams, result["operations"][1]["good"].get<int>());
  EXPECT_TRUE(log.mistakes.empty());
  EXPECT_THAT(ran.out, HasSubstr("p99.9"));
  EXPECT_EQ(ran.err, "") << "no progress where there is no terminal";
}

TEST_F(LoadProgram, WrongBitsAreCountedAndFailTheRun) {
  server_.Behave({.lie = FakeBehaviour::Lie::kWrongBits});
  json result;
  const Ran ran = RunJson(Scenario(), &result);
  EXPECT_EQ(ran.exit_code, 1);
  const auto unary =
      result["operations"][0]["calls"].get<int>() + result["operations"][2]["calls"].get<int>();
  EXPECT_GT(unary, 0);
  EXPECT_EQ(result["total"]["wrong"], unary) << "the fake flips a bit in unary replies";
  EXPECT_EQ(result["total"]["good"], 40 - unary);
  EXPECT_EQ(result["operations"][0]["bytes"], 0);
  EXPECT_THAT(ran.out, HasSubstr("wrong bits"));
}

TEST_F(LoadProgram, WrongBitsAreFoundByThoseWhoCheckForTheCallers) {
  server_.Behave({.lie = FakeBehaviour::Lie::kWrongBits});
  const std::string path = dir_.File("large.json");
  std::ofstream(path) << R"({"mode": {"type": "closed", "callers": 3}, "requests": 40, "warmup_seconds": 0,
    "operations": [{"operation": "transpose", "dtype": "u16", "shape": [300, 400], "access": "unary"}]})";
  json result;
  const Ran ran = RunJson(path, &result);
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_EQ(result["total"]["wrong"], 40) << "of 240 kB each";
  EXPECT_EQ(result["total"]["good"], 0);
  EXPECT_GE(result["generator"]["checkers"], 1);
  EXPECT_GT(result["total"]["latency_us"]["p50"], 0);
}

TEST_F(LoadProgram, ErrorsAreCountedByStatusAndNotRetried) {
  const std::string path = dir_.File("r.json");
  const std::string scenario = Scenario(R"({"type": "closed", "callers": 2})", R"("requests": 1000,)");
  Program program(TILEWIRE_LOAD, {"run", scenario, "--json", path}, server_.address());
  ASSERT_TRUE(tilewire::testing::Eventually([this] { return server_.log().calls >= 10; }));
  server_.Behave({.busy = 7});
  const Ran ran = program.Wait();
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  const json result = json::parse(ReadFile(path));
  EXPECT_EQ(result["total"]["errors"], (json{{"RESOURCE_EXHAUSTED/BUSY", 7}}));
  EXPECT_EQ(result["total"]["good"], 993);
}

TEST_F(LoadProgram, TracesShowBothSides) {
  json result;
  RunJson(Scenario(), &result);
  ASSERT_FALSE(result["traces"].empty());
  EXPECT_LE(result["traces"].size(), 3u);
  EXPECT_GT(result["traces"][0]["wall_us"], 0);
  ASSERT_FALSE(result["traces"][0]["spans"].empty());
  for (const json& span : result["traces"][0]["spans"]) EXPECT_LE(span["begin_us"], span["end_us"]);
}

TEST_F(LoadProgram, OpenLoopsAndRampsRun) {
  json result;
  Ran ran = RunJson(Scenario(R"({"type": "open", "rate": 500, "arrivals": "constant"})"), &result);
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_EQ(result["mode"]["type"], "open");
  EXPECT_EQ(result["total"]["good"], 40);
  ran = RunJson(Scenario(R"({"type": "ramp", "bound_us": 1e9, "start_rate": 5, "max_rate": 10})",
                         R"("seconds": 0.5, "seed": 3,)"),
                &result);
  EXPECT_EQ(result["mode"]["type"], "ramp");
  double best = 0;
  ASSERT_FALSE(result["ramp"].empty());
  for (const json& step : result["ramp"])
    if (step["held"] == true) best = std::max(best, step["rate"].get<double>());
  EXPECT_EQ(result["mode"]["best_rate"], best);
  EXPECT_EQ(ran.exit_code, best > 0 ? 0 : 1) << ran.out << ran.err;
}

TEST_F(LoadProgram, AStudyWithoutCeilingsStillRuns) {
  const std::string path = dir_.File("r.json");
  const Ran ran =
      Run({"study", "rmse", "--sizes", "64KiB", "--connections", "1", "--seconds", "0.05", "--json", path});
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  const json result = json::parse(ReadFile(path));
  EXPECT_EQ(result["study"].size(), 2u);
  EXPECT_FALSE(result.contains("ceilings"));
  EXPECT_THAT(ran.err, HasSubstr("limits were not measured"));
}

TEST_F(LoadProgram, WrongUsageIsTwo) {
  const std::string good = Scenario();
  const std::string bad = dir_.File("bad.json");
  std::ofstream(bad) << "{\n\"mode\": {\"type\": \"close\"}}";
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, "a command is missing"},
      {{"run"}, "SCENARIO"},
      {{"run", "/no/such.json"}, "/no/such.json"},
      {{"run", bad}, "bad.json:2: mode.type is \"close\"; allowed: closed, open, ramp"},
      {{"run", good, "--rate", "5"}, "--rate"},
      {{"run", good, "--callers", "0"}, "--callers"},
      {{"run", good, "--seconds", "soon"}, "--seconds"},
      {{"run", good, "--server", "nowhere"}, "--server"},
      {{"run", good, "--json", "/no/such/folder/r.json"}, "/no/such/folder"},
      {{"study", "fft"}, "fft"},
      {{"study", "rmse", "--dtype", "f31"}, "f31"},
      {{"study", "rmse", "--sizes", "0"}, "--sizes"},
      {{"study", "rmse", "--via", "wire,bus"}, "bus"},
      {{"study", "gaussian-pdf", "--dtype", "i8"}, "i8"},
      {{"compare", good, bad}, "schema"},
      {{"compare", good, "/no/such.json"}, "/no/such.json"},
      {{"nonsense"}, "nonsense"}};
  for (const auto& [arguments, named] : cases) {
    const Ran ran = Run(arguments);
    EXPECT_EQ(ran.exit_code, 2) << named << ran.out << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(named));
    EXPECT_EQ(ran.out, "") << named;
  }
  EXPECT_EQ(Run({"--help"}).exit_code, 0);
  EXPECT_THAT(Run({"--version"}).out, HasSubstr("tilewire-load 0."));
}

TEST_F(LoadProgram, AServerThatIsNotThereIsFour) {
  const std::string scenario = Scenario();
  const std::vector<std::vector<std::string>> commands{
      {"run", scenario}, {"study", "rmse", "--sizes", "4KiB"}, {"ceilings"}};
  for (const std::vector<std::string>& arguments : commands) {
    const Ran ran = Program(TILEWIRE_LOAD, arguments, "unix:" + dir_.File("nobody.sock")).Wait();
    EXPECT_EQ(ran.exit_code, 4) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("nobody.sock"));
    EXPECT_THAT(ran.err, HasSubstr("UNAVAILABLE"));
  }
}

TEST_F(LoadProgram, CompareHasAVerdict) {
  json before;
  RunJson(Scenario(), &before);
  const std::string a = dir_.File("a.json"), b = dir_.File("b.json");
  std::ofstream(a) << before.dump();
  EXPECT_EQ(Run({"compare", a, a}).exit_code, 0);
  json after = before;
  for (json& stat : after["operations"])
    stat["calls_per_second"] = stat["calls_per_second"].get<double>() * 0.85;
  std::ofstream(b) << after.dump();
  const Ran worse = Run({"compare", a, b});
  EXPECT_EQ(worse.exit_code, 3) << worse.out;
  EXPECT_THAT(worse.out, HasSubstr("REGRESSION"));
  EXPECT_EQ(Run({"compare", a, b, "--threshold", "20"}).exit_code, 0);
  EXPECT_EQ(Run({"compare", b, a}).exit_code, 0);
  after["server"]["version"] = "9.9.9";
  std::ofstream(b) << after.dump();
  const Ran unlike = Run({"compare", a, b});
  EXPECT_EQ(unlike.exit_code, 2) << unlike.out;
  EXPECT_THAT(unlike.err, HasSubstr("version differs"));
  EXPECT_EQ(unlike.out, "");
  const Ran anyway = Run({"compare", a, b, "--anyway", "--threshold", "20"});
  EXPECT_EQ(anyway.exit_code, 0) << anyway.err;
  EXPECT_THAT(anyway.out, HasSubstr("note: version differs"));
}

TEST_F(LoadProgram, CtrlCTellsTheResultsSoFar) {
  const std::string path = dir_.File("r.json");
  Program program(TILEWIRE_LOAD,
                  {"run", Scenario(R"({"type": "closed"})", R"("seconds": 3600,)"), "--json", path},
                  server_.address());
  ASSERT_TRUE(tilewire::testing::Eventually([this] { return server_.log().calls >= 20; }));
  program.Kill(SIGINT);
  const Ran ran = program.Wait();
  EXPECT_EQ(ran.exit_code, 130) << ran.out << ran.err;
  const json result = json::parse(ReadFile(path));
  EXPECT_EQ(result["stop"]["reason"], "interrupted");
  EXPECT_GE(result["total"]["good"], 10);
  EXPECT_EQ(result["total"]["errors"], json::object());
}

TEST_F(LoadProgram, UnknownVariablesAreTold) {
  const Ran ran =
      Program("/usr/bin/env", {"TILEWIRE_SERVR=h:1", TILEWIRE_LOAD, "run", Scenario()}, server_.address())
          .Wait();
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(
      ran.err,
      "warning: unknown environment variable TILEWIRE_SERVR; the nearest known one is TILEWIRE_SERVER\n");
}

}  // namespace
}  // namespace tilewire::client::testing
