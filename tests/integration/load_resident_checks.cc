// Load tests whose operands stay at the server: what is sent, what is left behind, and what is said when the
// server no longer has them.
#include <algorithm>

#include "client/cpp/client.h"
#include "tests/integration/load_fixture.h"

namespace tilewire::testing {
namespace {

using nlohmann::json;

class LoadResident : public Load {
 protected:
  explicit LoadResident(const std::vector<std::string>& flags = {}) : Load(flags) {}

  /// Two data sets of each kind of call.
  std::string Kinds(const std::string& length) const {
    return Scenario(R"({"mode": {"type": "closed", "callers": 2}, )" + length +
                    R"(, "warmup_seconds": 0, "inputs": 2, "operations": [
        {"name": "reference", "operation": "rmse", "shape": [300, 1000], "axes": [1], "access": "resident"},
        {"name": "striped", "operation": "rmse", "shape": [600, 1000], "access": "resident", "connections": 2},
        {"name": "both", "operation": "rmse", "dtype": "u8", "shape": [1000], "access": "resident",
         "resident": "all"},
        {"name": "transpose", "operation": "transpose", "shape": [500, 600], "access": "resident"}]})");
  }
  /// Of one data set of Kinds().
  static constexpr uint64_t kStored = 1'200'000 + 2'400'000 + 2 * 1000 + 1'200'000;

  /// Arrays that the server keeps, asked for at its address.
  size_t Kept(const std::string& address) const {
    const auto list = client::Client::Connect(address).List();
    EXPECT_TRUE(list) << list.error().ToString();
    return list ? list->arrays.size() : 0;
  }
  size_t Kept() const { return Kept(address_); }
};

TEST_F(LoadResident, OperandsAreSentOnceAndGoAtTheEnd) {
  const auto program = Start(Kinds(R"("requests": 200)"), {"--html", base_ + ".html"});
  const json result = Finish(*program, 0);
  EXPECT_EQ(result["total"]["good"], 200);
  uint64_t bytes = 0, wire = 0;
  const std::map<std::string, std::pair<uint64_t, uint64_t>> sizes{{"reference", {2'402'400, 1'202'400}},
                                                                   {"striped", {4'800'008, 2'400'008}},
                                                                   {"both", {2008, 8}},
                                                                   {"transpose", {2'400'000, 1'200'000}}};
  for (const json& stat : result["operations"]) {
    const auto good = stat["good"].get<uint64_t>();
    EXPECT_GT(good, 0u) << stat["name"];
    EXPECT_EQ(stat["access"], "resident");
    const auto& [all, sent] = sizes.at(stat["name"].get<std::string>());
    EXPECT_EQ(stat["bytes"], good * all) << stat["name"];
    EXPECT_EQ(stat["wire_bytes"], good * sent) << stat["name"];
    bytes += stat["bytes"].get<uint64_t>();
    wire += stat["wire_bytes"].get<uint64_t>();
  }
  EXPECT_EQ(result["total"]["bytes"], bytes);
  EXPECT_EQ(result["total"]["wire_bytes"], wire);
  EXPECT_NE(program->out().find("were not sent"), std::string::npos) << program->out();
  const auto moved = [&] {
    return SumOfMetric(metrics_, "tilewire_received_bytes_total") +
           SumOfMetric(metrics_, "tilewire_sent_bytes_total");
  };
  EXPECT_TRUE(Eventually([&] { return static_cast<uint64_t>(moved()) == wire + 2 * kStored; }))
      << moved() << ": each call's bytes, and each array once";
  EXPECT_EQ(Kept(), 0u);
}

TEST_F(LoadResident, CtrlCLeavesNothingBehind) {
  const auto program = Start(Kinds(R"("seconds": 600)"));
  ASSERT_TRUE(Eventually([&] { return Calls() >= 50; }));
  EXPECT_EQ(Kept(), 10u);
  program->Signal(SIGINT);
  const json result = Finish(*program, 130);
  EXPECT_EQ(result["stop"]["reason"], "interrupted");
  EXPECT_EQ(result["total"]["wrong"], 0);
  EXPECT_EQ(Kept(), 0u);
}

TEST_F(LoadResident, CtrlCOfAStuckServerSaysWhatStays) {
  const auto program = Start(Kinds(R"("seconds": 600)"));
  ASSERT_TRUE(Eventually([&] { return Calls() >= 50; }));
  server_.Signal(SIGSTOP);
  program->Signal(SIGINT);
  const json result = Finish(*program, 130);
  server_.Signal(SIGCONT);
  EXPECT_EQ(result["stop"]["reason"], "interrupted");
  EXPECT_NE(program->err().find("could not be deleted"), std::string::npos) << program->err();
}

TEST_F(LoadResident, ArraysThatAreGoneEndTheRunWithAReason) {
  const auto program = Start(Kinds(R"("seconds": 600)"));
  ASSERT_TRUE(
      Eventually([&] { return Calls() >= 80; }));  // 13 of them stored arrays and described the server
  auto client = client::Client::Connect(address_);
  const auto list = client.List();
  ASSERT_TRUE(list) << list.error().ToString();
  for (const client::ArrayInfo& array : list->arrays) EXPECT_TRUE(client.Delete(array.id).ok());
  const json result = Finish(*program, 1);
  EXPECT_EQ(result["stop"]["reason"], "server_lost");
  EXPECT_NE(program->out().find("no longer has the arrays"), std::string::npos) << program->out();
  EXPECT_GE(result["total"]["errors"]["NOT_FOUND/ARRAY"], 1);
  EXPECT_GE(result["total"]["good"], 40);
}

TEST_F(LoadResident, AServerStartedAnewEndsTheRun) {
  const std::string listen = "unix:" + base_ + ".sock";
  const auto serve = [&] {
    auto server = std::make_unique<Program>(TILEWIRE_TILEWIRED,
                                            std::vector<std::string>{"--device", "cpu", "--listen", listen});
    server->Ready();
    return server;
  };
  auto server = serve();
  const auto program = Start(Kinds(R"("seconds": 600)"), {}, listen);
  auto client = client::Client::Connect(listen);
  const auto uses = [](const client::ArrayInfo& array) { return array.users > 0; };
  ASSERT_TRUE(Eventually([&] {  // all are stored, and its author knows: calls of the run use them
    const auto list = client.List();
    return list && list->arrays.size() == 10 && std::ranges::any_of(list->arrays, uses);
  }));
  server->Signal(SIGKILL);
  server->Wait(60);
  server = serve();
  const json result = Finish(*program, 1);
  // On a machine so slow that this takes 5 s it is lost before it is back.
  EXPECT_EQ(result["stop"]["reason"], "server_lost");
  EXPECT_GE(result["total"]["errors"].size(), 1u);
  EXPECT_EQ(Kept(listen), 0u);
  unlink((base_ + ".sock").c_str());
}

class LoadResidentQuota : public LoadResident {
 protected:
  LoadResidentQuota() : LoadResident({"--store-bytes-per-identity", "4MiB"}) {}
};

TEST_F(LoadResidentQuota, WhatCannotBeStoredIsSaidBeforeTheRun) {
  const auto program = Start(Kinds(R"("requests": 10)"));
  EXPECT_EQ(program->Wait(100), 1) << program->out();
  EXPECT_NE(program->err().find("operands of \"striped\" cannot be stored"), std::string::npos)
      << program->err();
  EXPECT_EQ(Kept(), 0u) << "nor is what was stored before";
}

}  // namespace
}  // namespace tilewire::testing
