#include "kernels/figures/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace tilewire {
namespace {

double OfSorted(std::span<const double> sorted, double q) {
  if (sorted.empty()) return 0;
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = position - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

}  // namespace

double Summary::spread() const {
  return median > 0 ? (three_quarters - quarter) / median : 0;
}

double Summary::uncertainty() const {
  return runs > 0 ? spread() / std::sqrt(runs) : 0;
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return OfSorted(values, q);
}

double Median(std::vector<double> values) {
  return Quantile(std::move(values), 0.5);
}

Summary Summarize(std::vector<double> seconds) {
  Summary summary;
  if (seconds.empty()) return summary;
  std::sort(seconds.begin(), seconds.end());
  summary.runs = static_cast<int>(seconds.size());
  summary.min = seconds.front();
  summary.quarter = OfSorted(seconds, 0.25);
  summary.median = OfSorted(seconds, 0.5);
  summary.three_quarters = OfSorted(seconds, 0.75);
  summary.max = seconds.back();
  summary.mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  return summary;
}

double GeometricMean(std::span<const double> values) {
  if (values.empty()) return 0;
  double logs = 0;
  for (const double value : values) logs += std::log(value);
  return std::exp(logs / static_cast<double>(values.size()));
}

}  // namespace tilewire
