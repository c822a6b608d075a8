// From many measurements of one thing to figures.
#pragma once

#include <span>
#include <vector>

namespace tilewire {

/// What many runs of one thing took; seconds. All fields are 0 without runs.
struct Summary {
  int runs = 0;
  double min = 0, quarter = 0, median = 0, mean = 0, three_quarters = 0, max = 0;
  /// Inter-quartile range ÷ median: how much single runs differ.
  double spread() const;
  /// How far the median itself may be off, relative: spread ÷ √runs. Falls with more runs where spread does
  /// not.
  double uncertainty() const;
};

/// Value below which the share `q` (0 to 1) of `values` lies, linear between neighbours; 0 when empty.
double Quantile(std::vector<double> values, double q);
double Median(std::vector<double> values);
Summary Summarize(std::vector<double> seconds);
/// 0 when empty; values must be > 0.
double GeometricMean(std::span<const double> values);

}  // namespace tilewire
