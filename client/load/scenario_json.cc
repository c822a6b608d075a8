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

ordered_json ToJson(const OperationSpec& spec) {
  ordered_json json{{"name", spec.name},
                    {"operation", spec.kind()},
                    {"dtype", Name(spec.operand.dtype)},
                    {"shape", cli::JsonShape(spec.operand.shape)}};
  if (const auto* rmse = std::get_if<client::RmseOp>(&spec.operation)) {
    static constexpr const char* kOutputs[] = {"rmse", "mse", "sum-squares"};
    json["axes"] = rmse->axes;
    json["output"] = kOutputs[static_cast<size_t>(rmse->output)];
  } else if (const auto* gaussian = std::get_if<client::GaussianOp>(&spec.operation)) {
    json["mean"] = gaussian->mean;
    json["stddev"] = gaussian->stddev;
  } else {
    json["axes"] = std::get<client::TransposeOp>(spec.operation).axes;
  }
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
