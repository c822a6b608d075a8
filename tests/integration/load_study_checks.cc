// Overlap studies whose arrays go over the wire, through shared memory and from resident arrays, and what
// they say of a server that dies.
#include <signal.h>

#include "client/cpp/client.h"
#include "tests/integration/load_fixture.h"

namespace tilewire::testing {
namespace {

using nlohmann::json;

class StudyProgram : public Load {
 protected:
  explicit StudyProgram(const std::vector<std::string>& flags = {"--allow-regions",
                                                                 "/tilewire-study-" +
                                                                     std::to_string(getpid())})
      : Load(flags) {}

  std::unique_ptr<Program> Study(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{"study",         "gaussian-pdf", "--server", address_,
                                       "--connections", "1,2",          "--json",   base_ + ".result"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Program>(TILEWIRE_LOAD, arguments);
  }
  double Regions() const { return SumOfMetric(metrics_, "tilewire_regions "); }
  double Received() const { return SumOfMetric(metrics_, "tilewire_received_bytes_total"); }
  double Sent() const { return SumOfMetric(metrics_, "tilewire_sent_bytes_total"); }
  size_t Kept() const {
    const auto list = client::Client::Connect(address_).List();
    EXPECT_TRUE(list) << list.error().ToString();
    return list ? list->arrays.size() : 0;
  }
  static size_t CellsVia(const json& result, const char* via) {
    size_t cells = 0;
    for (const json& cell : result["study"]) cells += cell["via"] == via;
    return cells;
  }
};

TEST_F(StudyProgram, GoesBothWaysWhereTheServerOffersRegions) {
  const auto program = Study({"--sizes", "256KiB,1MiB", "--seconds", "0.05"});
  const json result = Finish(*program, 0);
  EXPECT_EQ(CellsVia(result, "region"), 4u) << "connections carry nothing there";
  EXPECT_EQ(CellsVia(result, "wire"), 8u);
  EXPECT_EQ(result["study"].size(), 12u);
  EXPECT_EQ(result["total"]["wrong"], 0);
  for (const json& cell : result["study"]) {
    EXPECT_GE(cell["calls"], 4);
    EXPECT_GE(cell["noise"], 0);
    EXPECT_FALSE(cell.contains("errors"));
  }
  ASSERT_EQ(result["recommendations"].size(), 2u);
  EXPECT_EQ(result["recommendations"][0]["via"], "region");
  EXPECT_GT(result["recommendations"][0]["overlap_worth"], 0);
  EXPECT_EQ(result["recommendation"]["via"], "wire");
  EXPECT_NE(program->out().find("Where the wire is not in the way"), std::string::npos) << program->out();
  EXPECT_EQ(Regions(), 0);
}

TEST_F(StudyProgram, GoesTheWayItIsTold) {
  EXPECT_EQ(
      CellsVia(Finish(*Study({"--sizes", "1MiB", "--seconds", "0.05", "--via", "region"}), 0), "region"), 2u);
  EXPECT_EQ(Received() + Sent(), 0) << "nothing crosses the wire";
  EXPECT_EQ(Regions(), 0);
  const json resident = Finish(*Study({"--sizes", "1MiB", "--seconds", "0.05", "--via", "resident"}), 0);
  EXPECT_EQ(CellsVia(resident, "resident"), 4u);
  EXPECT_EQ(Received(), 2 * (1 << 20)) << "each data set once, before the clock starts";
  EXPECT_EQ(Sent(), resident["total"]["good"].get<double>() * (1 << 20) + (4 + 10) * (1 << 20))
      << "the first two calls of each setting count for nothing, nor do the ten that are traced";
  ASSERT_EQ(resident["traces"].size(), 2u);
  for (const json& trace : resident["traces"]) EXPECT_FALSE(trace["spans"].empty());
  EXPECT_EQ(Kept(), 0u);
}

TEST_F(StudyProgram, AServerThatDiesIsAnErrorWhicheverWayArraysGo) {
  for (const char* via : {"wire", "region", "resident"}) {
    Program server(TILEWIRE_TILEWIRED,
                   Flags({"--allow-regions", "/tilewire-study-" + std::to_string(getpid())}));
    const std::string address = server.Ready().front(), metrics = server.MetricsAddress();
    Program program(TILEWIRE_LOAD,
                    {"study", "gaussian-pdf", "--server", address, "--sizes", "1MiB", "--via", via,
                     "--connections", "2", "--seconds", "3600", "--json", base_ + ".result"});
    ASSERT_TRUE(Eventually([&] { return SumOfMetric(metrics, "tilewire_call_wall_seconds_count{") >= 20; }));
    server.Signal(SIGKILL);
    server.Wait(60);
    const json result = Finish(program, 1);
    EXPECT_EQ(result["stop"]["reason"], "server_lost") << via;
    EXPECT_EQ(result["total"]["wrong"], 0) << via;
    EXPECT_GE(result["total"]["good"], 4) << via;
    EXPECT_EQ(result["total"]["errors"].size(), 1u) << via << result["total"]["errors"].dump();
    for (const auto& [key, count] : result["total"]["errors"].items())
      EXPECT_EQ(key.substr(0, 11), "UNAVAILABLE") << via;
  }
}

TEST_F(StudyProgram, ARunWhoseServerDiesHasNoWrongAnswers) {
  for (const char* access : {"unary", "stream", "region", "resident"}) {
    Program server(TILEWIRE_TILEWIRED,
                   Flags({"--allow-regions", "/tilewire-study-" + std::to_string(getpid())}));
    const std::string address = server.Ready().front(), metrics = server.MetricsAddress();
    const auto program =
        Start(Scenario(R"({"mode": {"type": "closed", "callers": 2}, "seconds": 600, "warmup_seconds": 0,
                           "operations": [{"operation": "gaussian-pdf", "shape": [200000], "access": ")" +
                       std::string(access) + R"("}]})"),
              {}, address);
    ASSERT_TRUE(Eventually([&] { return SumOfMetric(metrics, "tilewire_call_wall_seconds_count{") >= 40; }));
    server.Signal(SIGKILL);
    server.Wait(60);
    const json result = Finish(*program, 1);
    EXPECT_EQ(result["stop"]["reason"], "server_lost") << access;
    EXPECT_EQ(result["total"]["wrong"], 0) << access;
    EXPECT_GE(result["total"]["good"], 10) << access;
    for (const auto& [key, count] : result["total"]["errors"].items())
      EXPECT_EQ(key.substr(0, 11), "UNAVAILABLE") << access;
  }
}

class StudyProgramNoRegion : public StudyProgram {
 protected:
  StudyProgramNoRegion() : StudyProgram(std::vector<std::string>()) {}
};

TEST_F(StudyProgramNoRegion, GoesOverTheWireAndSaysWhyNotOtherwise) {
  const json result = Finish(*Study({"--sizes", "256KiB", "--seconds", "0.05"}), 0);
  EXPECT_EQ(CellsVia(result, "wire"), 4u);
  EXPECT_EQ(result["study"].size(), 4u);
  const auto refused = Study({"--sizes", "256KiB", "--via", "region,wire"});
  EXPECT_EQ(refused->Wait(100), 1) << refused->out();
  EXPECT_NE(refused->err().find("--allow-regions"), std::string::npos) << refused->err();
}

}  // namespace
}  // namespace tilewire::testing
