// The result of a study.
#include <algorithm>
#include <cmath>

#include "client/load/study.h"
#include "client/load/text.h"
#include "kernels/figures/statistics.h"
#include "kernels/figures/text.h"

namespace tilewire::load {
namespace {

using nlohmann::ordered_json;

ordered_json PointJson(const OperationSpec& operation, const StudyPoint& point) {
  ordered_json json{{"operation", operation.kind()},
                    {"reduces", operation.reduces()},
                    {"via", Name(point.via)},
                    {"bytes", point.bytes},
                    {"block_bytes", point.tuning.block_bytes},
                    {"lanes", point.tuning.lanes},
                    {"connections", point.tuning.connections},
                    {"overlap", point.overlap()},
                    {"calls", point.stats.good},
                    {"bytes_per_second", point.bytes_per_second()},
                    {"p50_us", point.stats.latency.Percentile(0.5)}};
  if (const auto noise = point.noise()) json["noise"] = *noise;
  if (point.stats.wrong > 0) json["wrong"] = point.stats.wrong;
  for (const auto& [key, count] : point.stats.errors) json["errors"][key] = count;
  if (point.stats.overlap.count > 0) json["overlap_factor"] = point.stats.overlap.value();
  if (const std::string stage = BottleneckOf(point.stats); !stage.empty()) json["bottleneck"] = stage;
  return json;
}

std::string ChoiceText(const Recommendation& best) {
  const Tuning& tuning = best.tuning;
  const std::string connections =
      tuning.connections == 1 ? "1 connection, " : std::to_string(tuning.connections) + " connections, ";
  return (best.via == Via::kRegion ? "" : connections) +
         (tuning.block_bytes == 0 ? "the server's own block size"
                                  : "blocks of " + FormatBytes(tuning.block_bytes)) +
         (tuning.lanes == 0   ? ", the server's own lanes"
          : tuning.lanes == 1 ? ", 1 lane"
                              : ", " + std::to_string(tuning.lanes) + " lanes");
}

std::string AdviceText(const Recommendation& best) {
  const std::string use = best.via == Via::kWire     ? "Use "
                          : best.via == Via::kRegion ? "Through shared memory use "
                                                     : "From resident arrays use ";
  std::string text = use + ChoiceText(best) + ": " + FormatRate(best.bytes_per_second) +
                     FormatNoise(best.noise) + " on calls of " + FormatBytes(best.bytes);
  if (best.best_bytes_per_second > best.bytes_per_second)
    text += ", within 3% of the best that was measured (" + FormatRate(best.best_bytes_per_second) + ")";
  return text + ".";
}

/// Which tier limits the recommended configuration, with its share of a measured limit where there is one.
std::string BottleneckText(const Recommendation& best, const ServerFacts& server) {
  const std::string way = best.via == Via::kWire ? ""
                                                 : (best.via == Via::kRegion ? "Through shared memory: "
                                                                             : "From resident arrays: ");
  std::string text =
      way + (best.bottleneck.empty() ? "" : "The bottleneck is " + StageInWords(best.bottleneck) + ". ");
  if (!server.ceilings) return text + "The machine's limits were not measured.";
  for (const auto& [name, rate] : server.ceilings->bytes_per_second) {
    const bool copies_in = name == "h2d";
    if (!copies_in && name != "host_copy_all") continue;
    return text + FormatRate(best.bytes_per_second) + " is " + FormatShare(best.bytes_per_second / rate) +
           " of what " + TierInWords(name) + " reaches here (" + FormatRate(rate) + ").";
  }
  return text;
}

/// With overlap over without, at the recommended settings and everywhere.
struct Worth {
  double there = 0;
  std::optional<double> noise;
  std::vector<double> everywhere;
};

Worth WorthOf(const Recommendation& best, const std::vector<StudyPoint>& points) {
  Worth worth;
  worth.there = best.bytes_per_second / best.serial_bytes_per_second;
  if (best.noise && best.serial_noise) worth.noise = std::hypot(*best.noise, *best.serial_noise);
  for (size_t i = 0; i + 1 < points.size(); i += 2)
    if (points[i].via == best.via && points[i].stats.good > 0 && points[i + 1].stats.good > 0)
      worth.everywhere.push_back(points[i].bytes_per_second() / points[i + 1].bytes_per_second());
  return worth;
}

std::string WorthText(const Recommendation& best, const Worth& worth) {
  const std::string where = best.via == Via::kWire ? "Over the wire"
                            : best.via == Via::kRegion
                                ? "Where the wire is not in the way, through shared memory,"
                                : "From resident arrays";
  const auto [low, high] = std::minmax_element(worth.everywhere.begin(), worth.everywhere.end());
  return where + " overlap of copies and kernels is worth " + FormatFixed(worth.there, 2) + " ×" +
         FormatNoise(worth.noise) + ": " + FormatRate(best.bytes_per_second) + FormatNoise(best.noise) +
         " with it, " + FormatRate(best.serial_bytes_per_second) + FormatNoise(best.serial_noise) +
         " without, on calls of " + FormatBytes(best.bytes) + "; over all settings " +
         FormatFixed(Median(worth.everywhere), 2) + " × (" + FormatFixed(*low, 2) + " to " +
         FormatFixed(*high, 2) + ").";
}

ordered_json RecommendationJson(const Recommendation& best, const std::vector<StudyPoint>& points) {
  ordered_json json{{"via", Name(best.via)},
                    {"bytes", best.bytes},
                    {"block_bytes", best.tuning.block_bytes},
                    {"lanes", best.tuning.lanes},
                    {"connections", best.tuning.connections},
                    {"bytes_per_second", best.bytes_per_second}};
  if (best.noise) json["noise"] = *best.noise;
  if (best.serial_bytes_per_second > 0) {
    const Worth worth = WorthOf(best, points);
    json["serial_bytes_per_second"] = best.serial_bytes_per_second;
    json["overlap_worth"] = worth.there;
    if (worth.noise) json["overlap_worth_noise"] = *worth.noise;
  }
  json["text"] = AdviceText(best);
  return json;
}

/// The way with the wire is what `recommendation` is about, where it was measured; sentences begin with what
/// the device does without it.
void AddRecommendations(const StudyOptions& options, const std::vector<StudyPoint>& points,
                        const ServerFacts& server, ordered_json* json) {
  std::vector<Recommendation> found;
  for (const Via via : {Via::kRegion, Via::kResident, Via::kWire})
    if (const auto best = Recommend(points, via); best && std::ranges::count(options.vias, via) > 0)
      found.push_back(*best);
  if (found.empty()) return;
  (*json)["recommendation"] = RecommendationJson(found.back(), points);
  auto& findings = (*json)["findings"];
  for (const Recommendation& best : found)
    if (best.serial_bytes_per_second > 0) findings.push_back(WorthText(best, WorthOf(best, points)));
  for (const Recommendation& best : found) {
    (*json)["recommendations"].push_back(RecommendationJson(best, points));
    findings.push_back(AdviceText(best));
    findings.push_back(BottleneckText(best, server));
  }
}

ordered_json SweepJson(const StudyOptions& options) {
  ordered_json vias = ordered_json::array();
  for (const Via via : options.vias) vias.push_back(Name(via));
  return {{"name", "study " + options.operation},
          {"operation", options.operation},
          {"dtype", Name(options.dtype)},
          {"sizes", options.sizes},
          {"via", vias},
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
  const char* text = study.interrupted        ? "interrupted"
                     : study.lost             ? "the server could not be reached any more"
                     : study.left_out.empty() ? "all points were measured"
                                              : "all points but those left out were measured";
  CallStats total;
  for (const StudyPoint& point : study.points) total.Merge(point.stats);
  // Operands that a dead server did not take are as much its failure as a call.
  if (study.lost && !study.left_out.empty()) total.AddError(ErrorKey(study.left_out.back().status), 1);
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
  for (const StudyTrace& trace : study.traces)
    json["traces"].push_back(StudyTraceJson(operations[trace.place.size].name + " " +
                                                InWords(trace.place.via) +
                                                (trace.overlap ? ", with overlap" : ", one after the other"),
                                            trace.reply));
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
  for (const auto& [place, status] : study.left_out)
    json["findings"].push_back("Left out, arrays of " + FormatBytes(options.sizes[place.size]) + " " +
                               InWords(place.via) + ": " + status.ToString());
  AddRecommendations(options, study.points, server, &json);
  return json;
}

}  // namespace tilewire::load
