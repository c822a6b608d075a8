// Results as JSON, schema "tilewire-load/1" (RESULTS.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/load/ramp.h"
#include "client/load/scenario.h"
#include "client/load/statistics.h"

namespace tilewire::load {

/// What a result says about the server beside its own words.
struct ServerFacts {
  std::string address;
  client::ServerInfo info;
  std::optional<client::ServerCeilings> ceilings;
};

/// The generator's own part in the figures.
struct GeneratorVerdict {
  bool bottleneck = false;
  std::string text;
};
/// Judges whether the generator itself limited what it measured.
GeneratorVerdict JudgeGenerator(const Scenario& scenario, const LoadResult& load);

/// The fields of a Stat; `spec` null: the total.
nlohmann::ordered_json StatJson(const OperationSpec* spec, const CallStats& stats, double seconds);
/// The total of a scenario's operations, with what all of them have in common.
nlohmann::ordered_json TotalJson(const std::vector<OperationSpec>& operations, const CallStats& total,
                                 double seconds);
/// A traced call of a study.
nlohmann::ordered_json StudyTraceJson(const std::string& name, const client::Reply& reply);
/// Up to `at_most` traced calls, each nearest to its operation's median; different operations first.
nlohmann::ordered_json TracesJson(const std::vector<OperationSpec>& operations, const Measured& measured,
                                  size_t at_most);
nlohmann::ordered_json ServerJson(const ServerFacts& server);
nlohmann::ordered_json ClientJson();

/// The result of `tilewire-load run`; `ramp` where the scenario is one, `load` then is the best step's.
nlohmann::ordered_json RunJson(const Scenario& scenario, const ServerFacts& server, const LoadResult& load,
                               const RampResult* ramp);

/// Sentences about a finished result, most important first.
std::vector<std::string> Findings(const nlohmann::ordered_json& result, const LoadResult& load);

/// How much the throughput varied: half of the interquartile range of the bytes in some 20 equal parts of the
/// window, over their median. None where there are fewer than 8 parts, or nothing was measured.
std::optional<double> RateNoise(const Timeline& timeline, double seconds);

/// Whether nothing was wrong and nothing failed, in the window or outside of it.
bool Clean(const LoadResult& load);

}  // namespace tilewire::load
