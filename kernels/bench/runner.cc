#include "kernels/bench/runner.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "kernels/bench/ranges.h"
#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Result<Measurement> Measure(Work& work, Mode mode, Meter& meter, const StoppingRule& rule) {
  const ScopedRange range{std::string(Name(mode))};
  TILEWIRE_ASSIGN_OR_RETURN(std::unique_ptr<Sampler> sampler, meter.Begin(work, mode));
  Measurement measurement{.mode = mode, .batch = sampler->batch()};
  std::vector<double> seconds;
  const auto begin = std::chrono::steady_clock::now();
  while (measurement.stop == Stop::kNotYet) {
    TILEWIRE_RETURN_IF_ERROR(sampler->Sample(&seconds));
    measurement.stop = ShouldStop(rule, seconds, SecondsSince(begin));
  }
  measurement.seconds = Summarize(std::move(seconds));
  return measurement;
}

/// An error, or a case that this machine cannot run.
void Fail(const Status& status, Record* record) {
  const bool cannot = status.code() == Code::kResourceExhausted || status.code() == Code::kUnimplemented;
  record->outcome = cannot ? Outcome::kSkipped : Outcome::kFailed;
  record->reason = std::string(status.message());
  record->measurements.clear();
}

Status MeasureAll(const Case& one, Meter& meter, const RunSettings& settings, Record* record) {
  auto work = one.prepare(meter.stream());
  if (!work) return work.error();
  {
    const ScopedRange range("verify");
    auto check = (*work)->Verify(meter.stream());
    if (!check) {  // a wrong result is never a reason to skip
      return Status(Code::kInternal, check.error().reason(), check.error().message());
    }
    record->check = *check;
  }
  for (const Mode mode : settings.modes) {
    if (mode == Mode::kCompletion) {
      const Measurement* hot = record->Find(Mode::kHot);
      const bool is_short = hot != nullptr && hot->seconds.median < settings.completion_below_seconds;
      if (one.place == Place::kHost || !is_short) continue;
    }
    auto measurement = Measure(**work, mode, meter, settings.rule);
    if (!measurement) return measurement.error();
    record->measurements.push_back(*std::move(measurement));
  }
  record->outcome = Outcome::kMeasured;
  return {};
}

void NoteLimit(const Record& record, std::map<std::string, double>* limits) {
  if (record.info.defines_limit.empty()) return;
  double& limit = (*limits)[record.info.defines_limit];
  for (const Measurement& measurement : record.measurements) {
    if (measurement.mode != Mode::kCompletion) limit = std::max(limit, record.Rate(measurement));
  }
}

}  // namespace

std::vector<size_t> Select(const std::vector<Case>& cases, const std::regex& filter) {
  std::set<std::string> limits;
  std::set<size_t> chosen;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!std::regex_search(FullName(cases[i]), filter)) continue;
    chosen.insert(i);
    limits.insert(cases[i].limit);
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!cases[i].defines_limit.empty() && limits.contains(cases[i].defines_limit)) chosen.insert(i);
  }
  return {chosen.begin(), chosen.end()};
}

Record RunCase(const Case& one, Meter& meter, const RunSettings& settings) {
  const ScopedRange range(FullName(one));
  Record record;
  record.info = one;
  if (one.memory_bytes > meter.memory_bytes()) {
    record.reason = "needs " + FormatBytes(one.memory_bytes) +
                    " of memory; allowed: " + FormatBytes(meter.memory_bytes());
    return record;
  }
  const Status status = MeasureAll(one, meter, settings, &record);
  if (!status.ok()) Fail(status, &record);
  return record;
}

std::vector<Record> RunCases(const std::vector<Case>& cases, const std::vector<size_t>& chosen,
                             const Meters& meters, const RunSettings& settings,
                             const std::function<void(const Record&)>& done,
                             std::map<std::string, double>* limits) {
  std::vector<size_t> order = chosen;
  std::stable_partition(order.begin(), order.end(),
                        [&](size_t i) { return !cases[i].defines_limit.empty(); });
  std::map<size_t, Record> records;
  for (const size_t i : order) {
    Meter* meter = cases[i].place == Place::kHost ? meters.host : meters.device;
    Record record;
    if (meter == nullptr) {
      record.info = cases[i];
      record.reason = meters.missing;
    } else {
      record = RunCase(cases[i], *meter, settings);
    }
    NoteLimit(record, limits);
    done(record);
    records.emplace(i, std::move(record));
  }
  std::vector<Record> result;
  for (auto& [i, record] : records) {
    const auto limit = limits->find(record.info.limit);
    if (limit != limits->end()) record.limit_rate = limit->second;
    result.push_back(std::move(record));
  }
  return result;
}

}  // namespace tilewire::bench
