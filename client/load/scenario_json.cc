// A scenario as JSON, and as the load that it asks for.
#include "client/cli/report.h"
#include "client/load/scenario.h"

namespace tilewire::load {
namespace {

using nlohmann::ordered_json;

ordered_json ToJson(const Mode& mode) {
  static constexpr const char* kTypes[] = {"closed", "open", "ramp"};
  ordered_json json{{"type", kTypes[static_cast<size_t>(mode.type)]}, {"callers", mode.callers}};
  if (mode.type == ModeType::kClosed) return json;
  json["arrivals"] = mode.arrivals == Arrivals::kConstant ? "constant" : "poisson";
  if (mode.type == ModeType::kOpen) {
    json["rate"] = mode.rate;
  } else {
    json["bound_us"] = mode.bound_us;
    json["percentile"] = mode.percentile;
    json["start_rate"] = mode.rate;
    json["max_rate"] = mode.max_rate;
  }
  return json;
}

/// As ParseAttribute() reads it.
ordered_json ToJson(const client::Flag& flag, const AttributeValue& value) {
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* integer = std::get_if<int64_t>(&value)) return flag.words[static_cast<size_t>(*integer)];
  const auto& list = std::get<std::vector<int32_t>>(value);
  if (flag.words.empty()) return list;
  ordered_json words = ordered_json::array();
  for (const int32_t each : list) words.push_back(flag.words[static_cast<size_t>(each)]);
  return words;
}

ordered_json ToJson(const OperationSpec& spec) {
  ordered_json json{{"name", spec.name},
                    {"operation", spec.kind()},
                    {"dtype", Name(spec.operand.dtype)},
                    {"shape", cli::JsonShape(spec.operand.shape)}};
  for (const auto& [name, value] : spec.operation.attributes.entries())
    json[name] = ToJson(*client::FindFlag(spec.info(), name), value);
  json["access"] = Name(spec.access);
  json["connections"] = spec.connections;
  if (spec.access == Access::kResident) json["resident"] = spec.resident == Stays::kAll ? "all" : "reference";
  json["weight"] = spec.weight;
  return json;
}

}  // namespace

ordered_json ToJson(const Scenario& scenario) {
  ordered_json json{{"name", scenario.name}, {"seed", scenario.seed}, {"mode", ToJson(scenario.mode)}};
  json["warmup_seconds"] = scenario.warmup_seconds;
  if (scenario.seconds) json["seconds"] = *scenario.seconds;
  if (scenario.requests) json["requests"] = *scenario.requests;
  if (scenario.stable)
    json["stable"] = {{"within", scenario.stable->within},
                      {"windows", scenario.stable->windows},
                      {"window_seconds", scenario.stable->window_seconds},
                      {"max_seconds", scenario.stable->max_seconds}};
  json["timeout_seconds"] = scenario.timeout_seconds;
  json["inputs"] = scenario.inputs;
  json["channels"] = scenario.channels;
  json["operations"] = ordered_json::array();
  for (const OperationSpec& spec : scenario.operations) json["operations"].push_back(ToJson(spec));
  return json;
}

LoadOptions OptionsOf(const Scenario& scenario) {
  LoadOptions options;
  if (scenario.mode.type != ModeType::kClosed) options.rate = scenario.mode.rate;
  options.arrivals = scenario.mode.arrivals;
  options.callers = scenario.mode.callers;
  options.seed = scenario.seed;
  for (const OperationSpec& spec : scenario.operations) options.weights.push_back(spec.weight);
  options.inputs = scenario.inputs;
  options.warmup_seconds = scenario.warmup_seconds;
  options.seconds = scenario.seconds;
  options.requests = scenario.requests;
  options.stable = scenario.stable;
  options.patience_seconds = std::max(5.0, scenario.seconds.value_or(5));
  return options;
}

}  // namespace tilewire::load
