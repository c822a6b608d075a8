// Whether one result is worse than another.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/array/status.h"

namespace tilewire::load {

struct CompareOptions {
  double threshold = 0.10;       ///< of throughput and median latency, a share
  double tail_threshold = 0.25;  ///< of p99, which varies more from run to run
};

struct Comparison {
  struct Row {
    std::string of;    ///< the operation, or the point of a study
    std::string what;  ///< "calls/s", "p50", "p99", …
    std::string before, after;
    double change = 0;  ///< after ÷ before − 1; 0 where `before` is 0
    bool regression = false;
  };
  std::vector<Row> rows;
  std::vector<std::string> notes;  ///< what makes the two hard to compare
  bool regression = false;
};

/// Compares results of schema "tilewire-load/1" and equal kind, `a` being the older one. A regression is:
/// less throughput or best rate, or a higher median, by more than the threshold; a higher p99 by more than
/// the tail threshold; wrong answers; a larger share of failed calls (by over 0.1 points); an operation or
/// point that is gone. INVALID_ARGUMENT, naming the file, where one is no such result.
Result<Comparison> Compare(const nlohmann::json& a, const nlohmann::json& b, const CompareOptions& options);

}  // namespace tilewire::load
