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
  bool anyway = false;           ///< also what is not alike
};

struct Comparison {
  struct Row {
    std::string of;    ///< the operation, or the point of a study
    std::string what;  ///< "calls/s", "p50", "p99", …
    std::string before, after;
    double change = 0;  ///< after ÷ before − 1; 0 where `before` is 0, infinite of errors
    bool regression = false;
  };
  std::vector<Row> rows;
  std::vector<std::string> notes;  ///< what makes the two hard to compare
  bool regression = false;
};

/// In what two results of one kind are not alike, so that comparing them tells nothing about the server
/// alone: load, scenario, device, versions, machine, length (by more than half). What one of them does not
/// know, as an older file may not, does not count. Throws json::exception where one does not keep to its
/// schema.
std::vector<std::string> Unlike(const nlohmann::json& a, const nlohmann::json& b);

/// Compares results of schema "tilewire-load/1" and equal kind, `a` being the older one. A regression is:
/// less throughput or best rate, or a higher median, by more than the threshold; a higher p99, where both
/// know it, by more than the tail threshold; wrong answers; a larger share of failed calls (by over 0.1
/// points); an operation or point that is gone. INVALID_ARGUMENT, naming the file, where one is no such
/// result; the same with reason `UNLIKE` where they are not alike, unless that is asked for.
Result<Comparison> Compare(const nlohmann::json& a, const nlohmann::json& b, const CompareOptions& options);

}  // namespace tilewire::load
