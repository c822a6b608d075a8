#include "client/load/results.h"

#include "client/cli/report.h"
#include "client/load/checkers.h"
#include "client/load/machine.h"
#include "kernels/figures/statistics.h"

namespace tilewire::load {
namespace {

using nlohmann::ordered_json;

constexpr size_t kBuckets = 200;

ordered_json LatencyJson(const Histogram& histogram) {
  ordered_json json{{"min", histogram.min()}, {"mean", histogram.mean()}};
  for (const auto& [name, share] :
       {std::pair("p50", 0.5), std::pair("p90", 0.9), std::pair("p99", 0.99), std::pair("p99_9", 0.999)})
    if (const auto us = histogram.Supported(share)) json[name] = *us;
  json["max"] = histogram.max();
  return json;
}

ordered_json TimelineJson(const Timeline& timeline, double seconds) {
  ordered_json steps = ordered_json::array();
  for (size_t i = 0; i < timeline.steps().size(); ++i) {
    const Timeline::Step& step = timeline.steps()[i];
    const double t = static_cast<double>(i) * timeline.step_seconds();
    if (t > seconds && step.calls == 0) break;
    steps.push_back({{"t", t},
                     {"calls", step.calls},
                     {"good", step.good},
                     {"errors", step.errors},
                     {"bytes", step.bytes},
                     {"p50_us", step.latency.Percentile(0.5)}});
    if (const auto p99 = step.latency.Supported(0.99)) steps.back()["p99_us"] = *p99;
    steps.back()["max_us"] = step.latency.max();
  }
  return steps;
}

ordered_json ModeJson(const Mode& mode, const RampResult* ramp) {
  const char* arrivals = mode.arrivals == Arrivals::kConstant ? "constant" : "poisson";
  if (mode.type == ModeType::kClosed) return {{"type", "closed"}, {"callers", mode.callers}};
  if (mode.type == ModeType::kOpen)
    return {{"type", "open"}, {"arrivals", arrivals}, {"rate", mode.rate}, {"callers", mode.callers}};
  return {{"type", "ramp"},
          {"arrivals", arrivals},
          {"bound_us", mode.bound_us},
          {"percentile", mode.percentile},
          {"best_rate", ramp != nullptr ? ramp->best_rate : 0},
          {"callers", mode.callers}};
}

ordered_json RampJson(const RampResult& ramp) {
  ordered_json steps = ordered_json::array();
  for (const RampStep& step : ramp.steps) {
    steps.push_back({{"rate", step.rate}, {"achieved", step.achieved}});
    steps.back()[step.supported ? "p99_us" : "max_us"] = step.latency_us;
    steps.back()["held"] = step.held;
  }
  return steps;
}

ordered_json GeneratorJson(const Scenario& scenario, const LoadResult& load) {
  const GeneratorVerdict verdict = JudgeGenerator(scenario, load);
  return {{"cpu_share", load.cpu_share},
          {"late_starts", load.punctuality.late},
          {"max_late_us", load.punctuality.max_late_us},
          {"checkers", CheckerCount()},
          {"checking_share", CheckingShare(load, scenario.mode.callers)},
          {"bottleneck", verdict.bottleneck},
          {"text", verdict.text}};
}

const char* StopWord(StopReason reason) {
  static constexpr const char* kWords[] = {"seconds", "requests",    "stable",
                                           "done",    "interrupted", "server_lost"};
  return kWords[static_cast<size_t>(reason)];
}

/// The value of a member that all operations have in common, else `mixed`.
template <typename Member>
ordered_json Common(const std::vector<OperationSpec>& operations, const Member& member, ordered_json mixed) {
  for (const OperationSpec& spec : operations)
    if (member(spec) != member(operations.front())) return mixed;
  return operations.empty() ? mixed : ordered_json(member(operations.front()));
}

}  // namespace

ordered_json StatJson(const OperationSpec* spec, const CallStats& stats, double seconds) {
  ordered_json json;
  json["name"] = spec != nullptr ? spec->name : "total";
  json["operation"] = spec != nullptr ? spec->kind() : "mix";
  json["reduces"] = spec != nullptr && spec->reduces();
  json["dtype"] = spec != nullptr ? std::string(Name(spec->operand.dtype)) : "";
  json["shape"] = spec != nullptr ? cli::JsonShape(spec->operand.shape) : ordered_json::array();
  json["access"] = spec != nullptr ? Name(spec->access) : "";
  json["connections"] = spec != nullptr ? spec->connections : 0;
  json["weight"] = spec != nullptr ? spec->weight : 0;
  json["calls"] = stats.calls();
  json["good"] = stats.good;
  json["wrong"] = stats.wrong;
  json["errors"] = ordered_json::object();
  for (const auto& [key, count] : stats.errors) json["errors"][key] = count;
  json["bytes"] = stats.bytes;
  json["wire_bytes"] = stats.bytes - stats.resident_bytes - stats.region_bytes;
  if (stats.region_bytes > 0) json["region_bytes"] = stats.region_bytes;
  json["bytes_per_second"] = seconds > 0 ? static_cast<double>(stats.bytes) / seconds : 0;
  json["calls_per_second"] = seconds > 0 ? static_cast<double>(stats.good) / seconds : 0;
  json["latency_us"] = LatencyJson(stats.latency);
  json["service_us"] = LatencyJson(stats.service);
  json["histogram"] = ordered_json::array();
  for (const auto& [upper, count] : stats.latency.Buckets(kBuckets)) {
    ordered_json bucket = ordered_json::array();
    bucket.push_back(upper);
    bucket.push_back(count);
    json["histogram"].push_back(std::move(bucket));
  }
  json["stages_us"] = ordered_json::object();
  for (size_t i = 0; i < stats.stages.size(); ++i)
    if (stats.stages[i].count > 0) json["stages_us"][kStageNames[i]] = stats.stages[i].value();
  if (stats.overlap.count > 0) json["overlap"] = stats.overlap.value();
  return json;
}

ordered_json TotalJson(const std::vector<OperationSpec>& operations, const CallStats& total, double seconds) {
  ordered_json json = StatJson(nullptr, total, seconds);
  double weight = 0;
  for (const OperationSpec& spec : operations) weight += spec.weight;
  json["operation"] = Common(
      operations, [](const auto& spec) { return std::string(spec.kind()); }, "mix");
  json["reduces"] = Common(
      operations, [](const auto& spec) { return spec.reduces(); }, false);
  json["dtype"] = Common(
      operations, [](const auto& spec) { return std::string(Name(spec.operand.dtype)); }, "");
  json["shape"] = Common(
      operations, [](const auto& spec) { return cli::JsonShape(spec.operand.shape); }, ordered_json::array());
  json["access"] = Common(
      operations, [](const auto& spec) { return std::string(Name(spec.access)); }, "");
  json["connections"] = Common(
      operations, [](const auto& spec) { return spec.connections; }, 0);
  json["weight"] = weight;
  return json;
}

ordered_json ServerJson(const ServerFacts& server) {
  const client::ServerInfo& info = server.info;
  const client::ServerInfo::Device device =
      info.devices.empty() ? client::ServerInfo::Device() : info.devices.front();
  ordered_json json{{"address", server.address},
                    {"version", info.version},
                    {"instance", info.instance},
                    {"device", device.id},
                    {"device_name", device.name},
                    {"processors", device.processors},
                    {"block_bytes", info.block_bytes},
                    {"lanes", info.lanes},
                    {"numeric_versions", info.numeric_versions}};
  if (device.copy_in_bytes_per_second) json["copy_in_bytes_per_second"] = *device.copy_in_bytes_per_second;
  if (device.copy_out_bytes_per_second) json["copy_out_bytes_per_second"] = *device.copy_out_bytes_per_second;
  return json;
}

ordered_json ClientJson() {
  const Machine machine = ThisMachine();
  return {{"processor", machine.processor},
          {"cores", machine.cores},
          {"memory_bytes", machine.memory_bytes},
          {"os", machine.os},
          {"version", TILEWIRE_VERSION}};
}

ordered_json RunJson(const Scenario& scenario, const ServerFacts& server, const LoadResult& load,
                     const RampResult* ramp) {
  const Measured& measured = load.measured;
  ordered_json json{
      {"schema", "tilewire-load/1"},  {"kind", "run"},
      {"started", load.started},      {"seconds", measured.seconds},
      {"seed", scenario.seed},        {"stop", {{"reason", StopWord(load.reason)}, {"text", load.text}}},
      {"server", ServerJson(server)}, {"client", ClientJson()},
      {"scenario", ToJson(scenario)}, {"mode", ModeJson(scenario.mode, ramp)}};
  json["operations"] = ordered_json::array();
  for (size_t i = 0; i < scenario.operations.size(); ++i)
    json["operations"].push_back(StatJson(&scenario.operations[i], measured.operations[i], measured.seconds));
  json["total"] = TotalJson(scenario.operations, measured.total(), measured.seconds);
  if (const auto noise = RateNoise(measured.timeline, measured.seconds)) json["total"]["noise"] = *noise;
  json["timeline"] = TimelineJson(measured.timeline, measured.seconds);
  json["traces"] = TracesJson(scenario.operations, measured, 3);
  json["generator"] = GeneratorJson(scenario, load);
  if (server.ceilings) {
    json["ceilings"] = ordered_json::object();
    for (const auto& [name, rate] : server.ceilings->bytes_per_second) json["ceilings"][name] = rate;
  }
  if (ramp != nullptr) json["ramp"] = RampJson(*ramp);
  json["findings"] = Findings(json, load);
  return json;
}

std::optional<double> RateNoise(const Timeline& timeline, double seconds) {
  constexpr size_t kParts = 20, kLeastParts = 8;
  const auto steps = static_cast<size_t>(seconds / timeline.step_seconds() + 1e-9);
  const size_t together = std::max<size_t>(steps / kParts, 1);
  std::vector<double> parts(steps / together, 0);
  for (size_t i = 0; i < parts.size() * together && i < timeline.steps().size(); ++i)
    parts[i / together] += static_cast<double>(timeline.steps()[i].bytes);
  if (parts.size() < kLeastParts || Median(parts) <= 0) return std::nullopt;
  return Summarize(parts).spread() / 2;
}

bool Clean(const LoadResult& load) {
  const CallStats total = load.measured.total();
  return total.wrong == 0 && total.failed == 0 && load.outside_wrong == 0 && load.outside_failed == 0;
}

}  // namespace tilewire::load
