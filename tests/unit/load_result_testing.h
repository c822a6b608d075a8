// A result of the load test as its program would write it.
#pragma once

#include "client/load/results.h"

namespace tilewire::load {

/// A result with two operations, as RunJson makes it.
inline nlohmann::json ResultOf(double scale, uint64_t wrong = 0, uint64_t failed = 0) {
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
  return nlohmann::json::parse(RunJson(scenario, server, load, nullptr).dump());
}

}  // namespace tilewire::load
