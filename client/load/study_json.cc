// The result of a study.
#include "client/load/study.h"
#include "client/load/text.h"
#include "kernels/figures/text.h"

namespace tilewire::load {
namespace {

using nlohmann::ordered_json;

ordered_json PointJson(const OperationSpec& operation, const StudyPoint& point) {
  ordered_json json{{"operation", operation.kind()},
                    {"reduces", operation.reduces()},
                    {"bytes", point.bytes},
                    {"block_bytes", point.tuning.block_bytes},
                    {"lanes", point.tuning.lanes},
                    {"connections", point.tuning.connections},
                    {"overlap", point.overlap()},
                    {"calls", point.stats.good},
                    {"bytes_per_second", point.bytes_per_second()},
                    {"p50_us", point.stats.latency.Percentile(0.5)}};
  if (point.stats.overlap.count > 0) json["overlap_factor"] = point.stats.overlap.value();
  if (const std::string stage = BottleneckOf(point.stats); !stage.empty()) json["bottleneck"] = stage;
  return json;
}

std::string ChoiceText(const Tuning& tuning) {
  return (tuning.connections == 1 ? "1 connection" : std::to_string(tuning.connections) + " connections") +
         (tuning.block_bytes == 0 ? ", the server's own block size"
                                  : ", blocks of " + FormatBytes(tuning.block_bytes)) +
         (tuning.lanes == 0   ? ", the server's own lanes"
          : tuning.lanes == 1 ? ", 1 lane"
                              : ", " + std::to_string(tuning.lanes) + " lanes");
}

/// Which tier limits the recommended configuration, with its share of a measured limit where there is one.
std::string BottleneckText(const Recommendation& best, const ServerFacts& server) {
  std::string text =
      best.bottleneck.empty() ? "" : "The bottleneck is " + StageInWords(best.bottleneck) + ". ";
  if (!server.ceilings) return text + "The machine's limits were not measured.";
  for (const auto& [name, rate] : server.ceilings->bytes_per_second) {
    const bool copies_in = name == "h2d";
    if (!copies_in && name != "host_copy_all") continue;
    return text + FormatRate(best.bytes_per_second) + " is " + FormatShare(best.bytes_per_second / rate) +
           " of what " + TierInWords(name) + " reaches here (" + FormatRate(rate) + ").";
  }
  return text;
}

void AddRecommendation(const Recommendation& best, const ServerFacts& server, ordered_json* json) {
  std::string text = "Use " + ChoiceText(best.tuning) + ": " + FormatRate(best.bytes_per_second) +
                     " on calls of " + FormatBytes(best.bytes);
  if (best.best_bytes_per_second > best.bytes_per_second)
    text += ", within 3% of the best that was measured (" + FormatRate(best.best_bytes_per_second) + ")";
  text += ".";
  (*json)["recommendation"] = {{"block_bytes", best.tuning.block_bytes},
                               {"lanes", best.tuning.lanes},
                               {"connections", best.tuning.connections},
                               {"bytes_per_second", best.bytes_per_second},
                               {"text", text}};
  auto& findings = (*json)["findings"];
  findings.push_back(text);
  if (best.serial_bytes_per_second > 0)
    findings.push_back("Overlap of copies and kernels changes the rate there by " +
                       FormatNumber((best.bytes_per_second / best.serial_bytes_per_second - 1) * 100) +
                       "%: " + FormatRate(best.bytes_per_second) + " with it, " +
                       FormatRate(best.serial_bytes_per_second) + " without.");
  findings.push_back(BottleneckText(best, server));
}

ordered_json SweepJson(const StudyOptions& options) {
  return {{"name", "study " + options.operation},
          {"operation", options.operation},
          {"dtype", Name(options.dtype)},
          {"sizes", options.sizes},
          {"connections", options.connections},
          {"blocks", options.blocks},
          {"lanes", options.lanes},
          {"point_seconds", options.seconds},
          {"inputs", options.inputs},
          {"seed", options.seed}};
}

}  // namespace

ordered_json StudyJson(const StudyOptions& options, const std::vector<OperationSpec>& operations,
                       const ServerFacts& server, const StudyResult& study, const std::string& started,
                       double seconds) {
  const char* reason = study.interrupted ? "interrupted" : study.lost ? "server_lost" : "done";
  const char* text = study.interrupted ? "interrupted"
                     : study.lost      ? "the server could not be reached any more"
                                       : "all points were measured";
  CallStats total;
  for (const StudyPoint& point : study.points) total.Merge(point.stats);
  ordered_json json{{"schema", "tilewire-load/1"},
                    {"kind", "study"},
                    {"started", started},
                    {"seconds", seconds},
                    {"seed", options.seed},
                    {"stop", {{"reason", reason}, {"text", text}}},
                    {"server", ServerJson(server)},
                    {"client", ClientJson()},
                    {"scenario", SweepJson(options)},
                    {"mode", {{"type", "closed"}, {"callers", 1}}},
                    {"operations", ordered_json::array()},
                    {"total", TotalJson(operations, total, seconds)},
                    {"timeline", ordered_json::array()},
                    {"traces", ordered_json::array()},
                    {"generator",
                     {{"cpu_share", 0.0},
                      {"late_starts", 0},
                      {"max_late_us", 0.0},
                      {"bottleneck", false},
                      {"text", "one call at a time: the client's part of its time counts"}}}};
  if (server.ceilings) {
    json["ceilings"] = ordered_json::object();
    for (const auto& [name, rate] : server.ceilings->bytes_per_second) json["ceilings"][name] = rate;
  }
  json["study"] = ordered_json::array();
  for (const StudyPoint& point : study.points)
    json["study"].push_back(PointJson(operations.front(), point));  // sizes differ, no more
  json["findings"] = ordered_json::array();
  if (total.wrong > 0)
    json["findings"].push_back(std::to_string(total.wrong) + " answers have the wrong bits.");
  for (const auto& [key, count] : total.errors)
    json["findings"].push_back(std::to_string(count) + " calls failed: " + key + ".");
  if (study.interrupted || study.lost)
    json["findings"].push_back(std::string("The study ended early: ") + text + ".");
  if (const auto best = Recommend(study.points)) AddRecommendation(*best, server, &json);
  return json;
}

}  // namespace tilewire::load
