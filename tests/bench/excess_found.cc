#include "tests/bench/excess_found.h"

#include <map>
#include <utility>

#include "kernels/figures/statistics.h"

namespace tilewire::bench {

Found Summarise(const std::vector<CallEnd>& calls, double seconds, double cpu_seconds) {
  constexpr int kDeadlineExceeded = 4, kResourceExhausted = 8;
  Found found{.cpu = cpu_seconds / seconds};
  std::vector<double> times, own;
  for (const CallEnd& call : calls) {
    if (call.due >= seconds) continue;
    found.offered += 1 / seconds;
    if (call.status == 0) times.push_back(1e3 * (call.ended - call.due)), own.push_back(1e3 * call.own);
    const bool late = call.status == kDeadlineExceeded;
    double* const kind = call.status == 0                    ? &found.good
                         : call.status == kResourceExhausted ? call.sent ? &found.busy : &found.held
                         : late && !call.sent                ? &found.unsent
                         : late                              ? &found.late
                                                             : &found.other;
    *kind += 1 / seconds;
  }
  found.p50_ms = Quantile(times, 0.5);
  found.p99_ms = Quantile(times, 0.99);
  found.own_ms = Quantile(own, 0.99);
  return found;
}

double RecoverySeconds(const std::vector<CallEnd>& calls, double since, double good_ms) {
  constexpr double kWindow = 0.1, kBadShare = 0.1;
  std::map<int, std::pair<int, int>> windows;  // bad, all
  for (const CallEnd& call : calls) {
    if (call.due < since) continue;
    auto& [bad, all] = windows[static_cast<int>((call.due - since) / kWindow)];
    ++all;
    bad += call.status != 0 || 1e3 * (call.ended - call.due) > good_ms;
  }
  double seconds = 0;
  for (const auto& [window, counts] : windows)
    if (counts.first > kBadShare * counts.second) seconds = kWindow * (window + 1);
  return seconds;
}

bool Load::IsKept() const {
  constexpr double kDear = 10, kDearShare = 0.9, kCheapShare = 0.7, kMostOfP99 = 2, kMostRecoveryMs = 1000;
  constexpr double kUsualRefusalUs = 50;  // where too few were refused to tell
  const double dear_us = kDear * (refusal_us > 0 ? refusal_us : kUsualRefusalUs);
  const double owed = peak.call_us >= dear_us ? kDearShare : kCheapShare;
  return of_peak() >= owed && of_p99() <= kMostOfP99 && recovery_ms < kMostRecoveryMs;
}

Report::Values Load::Values() const {
  return {{"offered/s", found.offered}, {"good/s", found.good},    {"of_peak_%", 100 * of_peak()},
          {"busy/s", found.busy},       {"held/s", found.held},    {"late/s", found.late},
          {"unsent/s", found.unsent},   {"other/s", found.other},  {"p50_ms", found.p50_ms},
          {"p99_ms", found.p99_ms},     {"of_p99", of_p99()},      {"own_ms", found.own_ms},
          {"cpu", found.cpu},           {"call_us", peak.call_us}, {"refusal_us", refusal_us},
          {"recovery_ms", recovery_ms}, {"slow_ms", slow_ms}};
}

Load MedianOf(const std::vector<Load>& loads) {
  const auto of = [&](auto value) {
    std::vector<double> all;
    for (const Load& load : loads) all.push_back(value(load));
    return Quantile(all, 0.5);
  };
  const auto found = [&](double Found::*member) {
    return of([=](const Load& l) { return l.found.*member; });
  };
  Load median;
  for (double Found::*member :
       {&Found::offered, &Found::good, &Found::busy, &Found::held, &Found::late, &Found::unsent,
        &Found::other, &Found::p50_ms, &Found::p99_ms, &Found::own_ms, &Found::cpu})
    median.found.*member = found(member);
  const auto peak = [](double value, double ratio, double usual) {
    return ratio > 0 ? value / ratio : usual;
  };
  median.peak.good = peak(median.found.good, of([](const Load& l) { return l.of_peak(); }),
                          of([](const Load& l) { return l.peak.good; }));
  median.peak.p99_ms = peak(median.found.p99_ms, of([](const Load& l) { return l.of_p99(); }),
                            of([](const Load& l) { return l.peak.p99_ms; }));
  median.peak.call_us = of([](const Load& l) { return l.peak.call_us; });
  median.recovery_ms = of([](const Load& l) { return l.recovery_ms; });
  std::vector<double> refusals;  // of loads that tell, if most do
  for (const Load& load : loads)
    if (load.refusal_us > 0) refusals.push_back(load.refusal_us);
  if (2 * refusals.size() > loads.size()) median.refusal_us = Quantile(refusals, 0.5);
  median.slow_ms = of([](const Load& l) { return l.slow_ms; });
  return median;
}

}  // namespace tilewire::bench
