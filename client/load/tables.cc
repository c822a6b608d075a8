#include "client/load/tables.h"

#include <cmath>
#include <cstdio>
#include <optional>

#include "client/load/text.h"
#include "kernels/figures/text.h"

namespace tilewire::load {
namespace {

using nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

std::string HeadText(const ordered_json& result) {
  const ordered_json& server = result["server"];
  const ordered_json& mode = result["mode"];
  std::string text = "server   " + server["address"].get<std::string>() + ", version " +
                     server["version"].get<std::string>() + ", " + server["device"].get<std::string>() +
                     " \"" + server["device_name"].get<std::string>() + "\"\n";
  text += "load     " + result["scenario"]["name"].get<std::string>() + ": ";
  if (mode["type"] == "closed") {
    text +=
        mode["callers"].dump() + (mode["callers"] == 1 ? " caller, closed loop" : " callers, closed loop");
  } else {
    text += mode["arrivals"].get<std::string>() + " arrivals";
    text += mode["type"] == "open" ? ", " + FormatNumber(mode["rate"].get<double>()) + " calls/s"
                                   : ", p" + FormatNumber(mode["percentile"].get<double>()) + " within " +
                                         FormatTime(mode["bound_us"].get<double>()) + ": best " +
                                         FormatNumber(mode["best_rate"].get<double>()) + " calls/s";
  }
  return text + "\nwindow   " + FormatNumber(result["seconds"].get<double>()) + " s (" +
         result["stop"]["text"].get<std::string>() + "), seed " + result["seed"].dump() + "\n";
}

/// 0 is written where no call ended well, and by no call.
std::string TimeOrNone(const ordered_json& json, const char* name) {
  return json.contains(name) && json[name] != 0 ? FormatTime(json[name].get<double>()) : "-";
}

std::optional<double> NoiseOf(const ordered_json& json) {
  if (!json.contains("noise")) return std::nullopt;
  return json["noise"].get<double>();
}

/// "45 GB/s ± 1.2%".
std::string RateOf(const ordered_json& json) {
  return FormatRate(json["bytes_per_second"].get<double>()) + FormatNoise(NoiseOf(json));
}

std::vector<std::string> StatRow(const ordered_json& stat) {
  const auto time = [&](const char* name) { return TimeOrNone(stat["latency_us"], name); };
  uint64_t errors = 0;
  for (const auto& count : stat["errors"]) errors += count.get<uint64_t>();
  return {stat["name"].get<std::string>(),
          stat["calls"].dump(),
          stat["wrong"].dump(),
          std::to_string(errors),
          FormatNumber(stat["calls_per_second"].get<double>()),
          RateOf(stat),
          time("p50"),
          time("p90"),
          time("p99"),
          time("p99_9"),
          time("max")};
}

std::string StagesText(const ordered_json& stats) {
  Rows rows{{"server time, means", "queue", "receive", "stage", "h2d", "kernel", "d2h", "send", "other",
             "overlap"}};
  for (const ordered_json& stat : stats) {
    std::vector<std::string> row{stat["name"].get<std::string>()};
    for (size_t i = 1; i + 1 < rows[0].size(); ++i)
      row.push_back(stat["stages_us"].contains(rows[0][i])
                        ? FormatTime(stat["stages_us"][rows[0][i]].get<double>())
                        : "-");
    row.push_back(stat.contains("overlap") ? FormatNumber(stat["overlap"].get<double>()) : "-");
    rows.push_back(std::move(row));
  }
  return Columns(rows);
}

std::string RunText(const ordered_json& result) {
  ordered_json stats = result["operations"];
  if (stats.size() > 1) stats.push_back(result["total"]);
  if (const auto noise = NoiseOf(result["total"])) stats.back()["noise"] = *noise;
  Rows rows{
      {"operation", "calls", "wrong", "errors", "calls/s", "rate", "p50", "p90", "p99", "p99.9", "max"}};
  for (const ordered_json& stat : stats) rows.push_back(StatRow(stat));
  std::string text = "\n" + Columns(rows) + "\n" + StagesText(stats);
  for (const auto& [key, count] : result["total"]["errors"].items())
    text += "error    " + count.dump() + " × " + key + "\n";
  if (!result.contains("ramp")) return text;
  Rows steps{{"rate tried", "achieved", "latency", ""}};
  for (const ordered_json& step : result["ramp"])
    steps.push_back({FormatNumber(step["rate"].get<double>()), FormatNumber(step["achieved"].get<double>()),
                     TimeOrNone(step, "p99_us"), step["held"] == true ? "held" : "too much"});
  return text + "\n" + Columns(steps);
}

std::string OrOwn(const ordered_json& number, const std::string& text) {
  return number == 0 ? "own" : text;
}

std::string StudyText(const ordered_json& result) {
  Rows rows{{"arrays go", "bytes of a call", "block", "lanes", "connections", "overlap", "serial", "gain",
             "p50", "overlap factor", "bottleneck"}};
  const ordered_json& points = result["study"];
  for (size_t i = 0; i + 1 < points.size(); i += 2) {
    const ordered_json &on = points[i], &off = points[i + 1];
    const double with = on["bytes_per_second"].get<double>(), without = off["bytes_per_second"].get<double>();
    rows.push_back({on["via"].get<std::string>(), FormatBytes(on["bytes"].get<uint64_t>()),
                    OrOwn(on["block_bytes"], FormatBytes(on["block_bytes"].get<uint64_t>())),
                    OrOwn(on["lanes"], on["lanes"].dump()), on["connections"].dump(), RateOf(on), RateOf(off),
                    without > 0 ? FormatNumber(with / without) : "-", TimeOrNone(on, "p50_us"),
                    on.contains("overlap_factor") ? FormatNumber(on["overlap_factor"].get<double>()) : "-",
                    on.contains("bottleneck") ? on["bottleneck"].get<std::string>() : "-"});
  }
  return "\n" + Columns(rows);
}

}  // namespace

std::string ResultText(const ordered_json& result) {
  std::string text = HeadText(result);
  text += result["kind"] == "study" ? StudyText(result) : RunText(result);
  if (result.contains("ceilings")) text += "\n" + CeilingsText(result["ceilings"]);
  text += "\n";
  for (const ordered_json& finding : result["findings"]) text += "* " + finding.get<std::string>() + "\n";
  if (result["kind"] == "run" && result["generator"]["bottleneck"] != true)
    text += "* " + result["generator"]["text"].get<std::string>() + "\n";
  return text;
}

std::string CeilingsText(const ordered_json& ceilings) {
  Rows rows{{"limit", "rate", ""}};
  std::string text;
  for (const auto& [name, rate] : ceilings.items()) rows.push_back({name, FormatRate(rate.get<double>())});
  for (auto& row : rows) row.resize(2);
  std::string lines = Columns(rows);
  // What each is goes behind the numbers, as text that is aligned to the left.
  size_t at = lines.find('\n');
  for (const auto& [name, rate] : ceilings.items()) {
    at = lines.find('\n', at + 1);
    const std::string words = "  " + TierInWords(name);
    lines.insert(at, words);
    at += words.size();
  }
  return lines;
}

std::string ComparisonText(const Comparison& comparison) {
  std::string text;
  for (const std::string& note : comparison.notes) text += "note: " + note + "\n";
  Rows rows{{"of", "what", "before", "after", "change", ""}};
  for (const Comparison::Row& row : comparison.rows) {
    char change[32] = "new";  // of what was not there before
    if (std::isfinite(row.change)) std::snprintf(change, sizeof(change), "%+.1f%%", row.change * 100);
    rows.push_back({row.of, row.what, row.before, row.after, change, row.regression ? "REGRESSION" : ""});
  }
  text += Columns(rows);
  return text + (comparison.regression ? "regression\n" : "no regression\n");
}

}  // namespace tilewire::load
