// RMSE as an operation among others: operands "a" and "b", attributes "axes" and "output", one result of f64.
#pragma once

#include <memory>

#include "kernels/operation/descriptor.h"
#include "kernels/operation/problem.h"
#include "kernels/operation/published.h"
#include "kernels/rmse/rmse.h"

namespace tilewire::rmse {

extern const Descriptor kDescriptor;

std::unique_ptr<Problem> MakeProblem(Plan plan);

/// What `tilewire selftest` asks servers.
std::vector<PublishedCase> PublishedCases();

/// The tile sums of a range: `range` of `plan`, from sum `first` of the problem's on.
struct Sums {
  const Plan* plan;
  Range range;
  int64_t first;
};

/// What runs a problem of kDescriptor knows of it; open to tests that cut their problems finer.
class RmseProblem : public Problem {
 public:
  explicit RmseProblem(Plan plan);

  const Plan& plan() const { return plan_; }
  /// What range `index` computes on buffers that Problem::RunHost() would be given.
  virtual Sums sums(int64_t index) const { return {&plan_, plan_.range(index), 0}; }
  static double* TileSums(const Buffers& buffers) { return reinterpret_cast<double*>(buffers.scratch); }
  static double* Values(const Buffers& buffers) { return reinterpret_cast<double*>(buffers.results[0]); }

  std::span<const ArraySpec> operands() const override { return operands_; }
  std::span<const ArraySpec> results() const override { return {&plan_.result(), 1}; }
  int64_t scratch_bytes() const override { return plan_.scratch_bytes(); }
  int64_t range_count() const override { return plan_.range_count(); }
  ByteInterval range_bytes(int64_t index) const override {
    const Range range = plan_.range(index);
    return {range.byte_begin, range.byte_end};
  }
  // What is one range anyway takes fewer launches, and has the same bits.
  bool has_finish() const override { return range_count() > 1; }
  bool range_finishes() const override { return range_count() == 1; }
  void RunHost(Step step, const Buffers& buffers, Team& team) const override;
  std::unique_ptr<Problem> Whole() const override;
  Result<std::unique_ptr<Problem>> Windowed() const override;

 protected:
  const Plan plan_;

 private:
  const ArraySpec operands_[2];
};

}  // namespace tilewire::rmse
