// What a result means, in sentences.
#include <algorithm>
#include <cstdio>

#include "client/load/results.h"
#include "client/load/text.h"
#include "kernels/figures/text.h"

namespace tilewire::load {
namespace {

using nlohmann::ordered_json;

/// Own processor use from which on the generator falsifies what it measures, and the share of starts that it
/// may itself be late with.
constexpr double kBusyShare = 0.85, kWokeLateShare = 0.01;

std::string Count(uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

void AddFailures(const ordered_json& result, const LoadResult& load, std::vector<std::string>* findings) {
  const ordered_json& total = result["total"];
  if (load.reason == StopReason::kServerLost || load.reason == StopReason::kInterrupted)
    findings->push_back("The run ended early (" + load.text + "): these are the results so far.");
  if (const uint64_t wrong = total["wrong"].get<uint64_t>() + load.outside_wrong; wrong > 0)
    findings->push_back(
        Count(wrong, "answer has", "answers have") +
        " the wrong bits. That must never happen: check the server with `tilewire selftest`.");
  std::string kinds;
  for (const auto& [key, count] : total["errors"].items())
    kinds += (kinds.empty() ? "" : ", ") + count.dump() + " × " + key;
  if (!kinds.empty()) findings->push_back("Calls failed: " + kinds + ".");
  if (load.outside_failed > 0)
    findings->push_back(Count(load.outside_failed, "call", "calls") + " failed during the warm-up.");
  if (total["calls"] == 0) findings->push_back("No call ended in the window: nothing was measured.");
  if (load.punctuality.never > 0)
    findings->push_back(
        Count(load.punctuality.never, "call was", "calls were") +
        " due and never started: the rate is more than the server keeps up with, or needs more "
        "callers.");
}

/// Says where checking results took the callers' time.
void AddChecking(const ordered_json& result, std::vector<std::string>* findings) {
  const double share = result["generator"]["checking_share"].get<double>();
  if (share <= kCheckingLimits) return;
  findings->push_back("Checking limited the rate: callers waited " + FormatShare(share) +
                      " of the time for results to be compared (" +
                      Count(result["generator"]["checkers"].get<uint64_t>(), "thread does", "threads do") +
                      " that). Latencies of a closed loop do not include it.");
}

/// The stage that takes most of the server's time, as the calls saw it.
std::string LongestStage(const ordered_json& stat) {
  std::string longest;
  double most = 0;
  for (const auto& [name, mean] : stat["stages_us"].items())
    if (name != "queue" && mean.get<double>() > most) {
      most = mean.get<double>();
      longest = name;
    }
  return longest;
}

void AddLimits(const ordered_json& result, std::vector<std::string>* findings) {
  const ordered_json& total = result["total"];
  const double useful = total["bytes_per_second"].get<double>();
  const double bytes = total["bytes"].get<double>(), wire = total["wire_bytes"].get<double>();
  // What the server has already moves nowhere; what lies in shared memory still has to reach the device.
  const double moved = wire + total.value("region_bytes", 0.0);
  const double rate = bytes > 0 ? useful * moved / bytes : 0;
  if (wire < bytes)
    findings->push_back("Arrays that the server keeps or shares were not sent: " + FormatShare(wire / bytes) +
                        " of the bytes crossed the wire, " + FormatRate(useful * wire / bytes) +
                        " for a useful rate of " + FormatRate(useful) + ".");
  const std::string longest = LongestStage(total);
  if (useful > 0 && !longest.empty())
    findings->push_back("The longest stage at the server is " + StageInWords(longest) + ".");
  if (result.contains("ceilings") && rate > 0) {
    const ordered_json& ceilings = result["ceilings"];
    const char* tier = ceilings.contains("h2d") ? "h2d" : "host_copy_all";
    if (ceilings.contains(tier))
      findings->push_back("All calls together move " + FormatRate(rate) + ", " +
                          FormatShare(rate / ceilings[tier].get<double>()) + " of what " + TierInWords(tier) +
                          " reaches here (" + FormatRate(ceilings[tier].get<double>()) + ").");
  }
  if (total.contains("overlap"))
    findings->push_back("Overlap at the server is " + FormatNumber(total["overlap"].get<double>()) +
                        ": the sum of its stages over their wall time, 1 is one after the other.");
}

void AddLatency(const ordered_json& result, std::vector<std::string>* findings) {
  const ordered_json& latency = result["total"]["latency_us"];
  const ordered_json& service = result["total"]["service_us"];
  const double p50 = latency["p50"].get<double>(), p99 = latency.value("p99", 0.0),
               service_p99 = service.value("p99", 0.0);
  if (p50 > 0 && p99 > 5 * p50)
    findings->push_back("The tail is long: p99 is " + FormatNumber(p99 / p50) + " times the median.");
  if (service_p99 > 0 && p99 > 2 * service_p99)
    findings->push_back("Calls waited for their turn: p99 is " + FormatTime(p99) +
                        " from when they were due, " + FormatTime(service_p99) + " from when they started.");
}

}  // namespace

GeneratorVerdict JudgeGenerator(const Scenario& scenario, const LoadResult& load) {
  const Punctuality& starts = load.punctuality;
  const double woke_late =
      starts.starts > 0 ? static_cast<double>(starts.woke_late) / static_cast<double>(starts.starts) : 0;
  if (load.cpu_share >= kBusyShare)
    return {true, "the load generator used " + FormatShare(load.cpu_share) +
                      " of this machine's processors: the figures show its limits, not the server's"};
  if (woke_late > kWokeLateShare)
    return {true, FormatShare(woke_late) +
                      " of the calls started late although a caller was free: this machine "
                      "is too busy for the rate"};
  std::string text =
      "the load generator used " + FormatShare(load.cpu_share) + " of this machine's processors";
  if (starts.late > 0)
    text += "; " + Count(starts.late, "call", "calls") + " started late, by up to " +
            FormatTime(starts.max_late_us) + ", mostly because all " + std::to_string(scenario.mode.callers) +
            " callers waited for the server";
  else if (scenario.mode.type != ModeType::kClosed)
    text += "; every call started on time";
  return {false, text};
}

std::vector<std::string> Findings(const ordered_json& result, const LoadResult& load) {
  std::vector<std::string> findings;
  AddFailures(result, load, &findings);
  if (result["generator"]["bottleneck"] == true)
    findings.push_back("Do not trust the figures: " + result["generator"]["text"].get<std::string>() + ".");
  if (result["mode"]["type"] == "ramp") {
    const double best = result["mode"]["best_rate"].get<double>();
    findings.push_back(best > 0 ? "The highest rate that held the bound is " + FormatNumber(best) +
                                      " calls a second."
                                : "No rate held the bound.");
  }
  AddChecking(result, &findings);
  AddLimits(result, &findings);
  AddLatency(result, &findings);
  return findings;
}

}  // namespace tilewire::load
