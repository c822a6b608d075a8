#include "kernels/bench/record.h"

#include <algorithm>

namespace tilewire::bench {

std::string_view Name(Mode mode) {
  switch (mode) {
    case Mode::kCold:
      return "cold";
    case Mode::kHot:
      return "hot";
    case Mode::kCompletion:
      return "completion";
  }
  return "";
}

std::vector<Mode> AllModes() {
  return {Mode::kCold, Mode::kHot, Mode::kCompletion};
}

std::string_view Name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kMeasured:
      return "measured";
    case Outcome::kSkipped:
      return "skipped";
    case Outcome::kFailed:
      return "failed";
  }
  return "";
}

std::string FullName(const CaseInfo& info) {
  return info.group + '/' + info.name + '/' + info.implementation;
}

const Measurement* Record::Find(Mode mode) const {
  for (const Measurement& measurement : measurements) {
    if (measurement.mode == mode) return &measurement;
  }
  return nullptr;
}

const Measurement* Record::Headline() const {
  const Measurement* cold = Find(Mode::kCold);
  return cold != nullptr ? cold : Find(Mode::kHot);
}

double Record::Rate(const Measurement& measurement) const {
  const double median = measurement.seconds.median;
  return median > 0 ? static_cast<double>(info.bytes) / median : 0;
}

double Record::Share(const Measurement& measurement) const {
  return limit_rate > 0 ? Rate(measurement) / limit_rate : 0;
}

std::vector<std::string> Groups(const Report& report) {
  std::vector<std::string> groups;
  for (const Record& record : report.records) {
    if (std::find(groups.begin(), groups.end(), record.info.group) == groups.end()) {
      groups.push_back(record.info.group);
    }
  }
  return groups;
}

std::vector<double> SampledShares(const Report& report, const std::string& group) {
  std::vector<double> shares;
  for (const Record& record : report.records) {
    const Measurement* headline = record.Headline();
    if (record.info.sampled && record.info.group == group && headline != nullptr) {
      shares.push_back(record.Share(*headline));
    }
  }
  std::sort(shares.begin(), shares.end());
  return shares;
}

}  // namespace tilewire::bench
