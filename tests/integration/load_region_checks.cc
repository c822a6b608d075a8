// Load tests whose arrays lie in memory that is shared with the server.
#include "client/cpp/client.h"
#include "tests/integration/load_fixture.h"

namespace tilewire::testing {
namespace {

using nlohmann::json;

class LoadRegion : public Load {
 protected:
  explicit LoadRegion(const std::vector<std::string>& flags = {"--allow-regions",
                                                               "/tilewire-load-" + std::to_string(getpid())})
      : Load(flags) {}

  std::string Kinds(const std::string& length) const {
    return Scenario(R"({"mode": {"type": "closed", "callers": 3}, )" + length +
                    R"(, "warmup_seconds": 0, "inputs": 2, "operations": [
        {"name": "rmse", "operation": "rmse", "shape": [300, 1000], "axes": [1], "access": "region"},
        {"name": "transpose", "operation": "transpose", "dtype": "u16", "shape": [501, 603], "access": "region"},
        {"name": "pdf", "operation": "gaussian-pdf", "shape": [300000], "access": "region"}]})");
  }
  double Regions() const { return SumOfMetric(metrics_, "tilewire_regions "); }
};

TEST_F(LoadRegion, NothingCrossesTheWireAndNothingStays) {
  const auto program = Start(Kinds(R"("requests": 200)"));
  const json result = Finish(*program, 0);
  EXPECT_EQ(result["total"]["good"], 200);
  const std::map<std::string, uint64_t> sizes{
      {"rmse", 2'402'400}, {"transpose", 2 * 501 * 603 * 2}, {"pdf", 2'400'000}};
  for (const json& stat : result["operations"]) {
    const auto good = stat["good"].get<uint64_t>();
    EXPECT_GT(good, 0u) << stat["name"];
    EXPECT_EQ(stat["access"], "region");
    EXPECT_EQ(stat["bytes"], good * sizes.at(stat["name"].get<std::string>())) << stat["name"];
    EXPECT_EQ(stat["wire_bytes"], 0) << stat["name"];
    EXPECT_EQ(stat["region_bytes"], stat["bytes"]) << stat["name"];
  }
  EXPECT_TRUE(Eventually([&] { return SumOfMetric(metrics_, "tilewire_call_wall_seconds_count{") >= 200; }));
  EXPECT_EQ(SumOfMetric(metrics_, "tilewire_received_bytes_total"), 0);
  EXPECT_EQ(SumOfMetric(metrics_, "tilewire_sent_bytes_total"), 0);
  EXPECT_EQ(Regions(), 0);
}

TEST_F(LoadRegion, CtrlCLeavesNothingBehind) {
  const auto program = Start(Kinds(R"("seconds": 600)"));
  ASSERT_TRUE(Eventually([&] { return Calls() >= 50; }));
  EXPECT_GT(Regions(), 0);
  program->Signal(SIGINT);
  const json result = Finish(*program, 130);
  EXPECT_EQ(result["stop"]["reason"], "interrupted");
  EXPECT_EQ(result["total"]["wrong"], 0);
  EXPECT_EQ(Regions(), 0);
}

class LoadNoRegion : public LoadRegion {
 protected:
  LoadNoRegion() : LoadRegion(std::vector<std::string>()) {}
};

TEST_F(LoadNoRegion, AServerThatDoesNotAllowThemIsNamedBeforeTheRun) {
  const auto program = Start(Kinds(R"("requests": 10)"));
  EXPECT_EQ(program->Wait(100), 1) << program->out();
  EXPECT_NE(program->err().find("memory for \"rmse\" cannot be shared"), std::string::npos) << program->err();
}

}  // namespace
}  // namespace tilewire::testing
