// An operation that is nothing but how it is cut: what the parts of a job ask of one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "server/engine/operation/operation.h"

namespace tilewire::engine::testing {

/// An operation of which nothing but its cuts is asked.
class Cuts final : public Operation {
 public:
  Cuts(size_t operands, std::vector<ByteInterval> ranges, const std::vector<int64_t>& results, bool fill)
      : Operation(nullptr), ranges_(std::move(ranges)), fill_(fill) {
    for (size_t i = 0; i < operands; ++i) operands_.push_back(Spec(ranges_.back().end));
    for (const int64_t bytes : results) results_.push_back(Spec(bytes));
  }
  std::string_view name() const override { return "cuts"; }
  std::string_view numeric_version() const override { return "cuts.1"; }
  std::span<const ArraySpec> operands() const override { return operands_; }
  std::span<const ArraySpec> results() const override { return results_; }
  int64_t range_count() const override { return static_cast<int64_t>(ranges_.size()); }
  ByteInterval range_bytes(int64_t index) const override { return ranges_[static_cast<size_t>(index)]; }
  bool ranges_fill_result() const override { return fill_; }
  void RunHost(Step, const Buffers&, Team&) const override { FAIL() << "nothing is run"; }

 private:
  static ArraySpec Spec(int64_t bytes) {
    const std::vector<int64_t> dims{bytes};
    return *MakeSpec(DType::kU8, dims);
  }
  const std::vector<ByteInterval> ranges_;
  const bool fill_;
  std::vector<ArraySpec> operands_, results_;
};

/// Ranges of `bytes`, the last one what is left, each reaching up to `more` into the next ones.
inline std::vector<ByteInterval> Ranged(int64_t total, int64_t bytes, int64_t more) {
  std::vector<ByteInterval> ranges;
  for (int64_t at = 0; at < total; at += bytes) ranges.push_back({at, std::min(at + bytes + more, total)});
  return ranges;
}

}  // namespace tilewire::engine::testing
