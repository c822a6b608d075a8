// `tilewire-load` and a server of its own for each test.
#pragma once

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/integration/program.h"

namespace tilewire::testing {

/// A server, and scenario and result files.
class Load : public ::testing::Test {
 protected:
  explicit Load(const std::vector<std::string>& flags = {})
      : server_(Flags(flags)),
        address_(server_.Ready().front()),
        metrics_(server_.MetricsAddress()),
        base_(::testing::TempDir() + "load-" + std::to_string(getpid())) {}
  static std::vector<std::string> Flags(const std::vector<std::string>& more) {
    std::vector<std::string> flags{"--device",       "cpu",    "--listen",         "localhost:0",
                                   "--device-bytes", "512MiB", "--metrics-listen", "127.0.0.1:0"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  ~Load() override {
    for (const char* end : {".json", ".result", ".html"}) unlink((base_ + end).c_str());
  }

  std::string Scenario(const std::string& text) const {
    std::ofstream(base_ + ".json") << text;
    return base_ + ".json";
  }
  /// Small calls of one kind.
  std::string Small(const std::string& mode, const std::string& length) const {
    return Scenario(R"({"mode": )" + mode + ", " + length +
                    R"(, "warmup_seconds": 0, "operations": [
                      {"operation": "rmse", "shape": [1024], "access": "unary"}]})");
  }
  /// At this fixture's server, or another one.
  std::unique_ptr<Program> Start(const std::string& scenario, std::vector<std::string> more = {},
                                 const std::string& address = "") const {
    std::vector<std::string> arguments{
        "run", scenario, "--server", address.empty() ? address_ : address, "--json", base_ + ".result"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return std::make_unique<Program>(TILEWIRE_LOAD, arguments);
  }
  /// Waits for its end; the result.
  nlohmann::json Finish(Program& program, int exit_code) const {
    EXPECT_EQ(program.Wait(200), exit_code) << program.out() << program.err();
    std::ifstream file(base_ + ".result");
    return nlohmann::json::parse(file, nullptr, false);
  }
  double Calls() const { return SumOfMetric(metrics_, "tilewire_call_wall_seconds_count{"); }

  Program server_;
  const std::string address_, metrics_, base_;
};

}  // namespace tilewire::testing
