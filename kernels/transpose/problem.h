// Transpose as an operation among others: operand "input", attribute "axes", one result.
#pragma once

#include <memory>

#include "kernels/operation/descriptor.h"
#include "kernels/operation/problem.h"
#include "kernels/operation/published.h"
#include "kernels/transpose/transpose.h"

namespace tilewire::transpose {

extern const Descriptor kDescriptor;

std::unique_ptr<Problem> MakeProblem(Plan plan);

/// What `tilewire selftest` asks servers.
std::vector<PublishedCase> PublishedCases();

/// What runs a problem of kDescriptor knows of it; open to tests that cut their problems finer.
class TransposeProblem : public Problem {
 public:
  explicit TransposeProblem(Plan plan);

  const Plan& plan() const { return plan_; }
  /// The band that range `index` is.
  virtual Range band(int64_t index) const { return plan_.range(index); }

  std::span<const ArraySpec> operands() const override { return {&plan_.input(), 1}; }
  std::span<const ArraySpec> results() const override { return {&plan_.result(), 1}; }
  int64_t range_count() const override { return plan_.range_count(); }
  ByteInterval range_bytes(int64_t index) const override {
    const Range range = band(index);
    return {range.byte_begin, range.byte_end};
  }
  bool ranges_fill_result() const override { return plan_.keeps_leading_axis(); }
  void RunHost(Step step, const Buffers& buffers, Team& team) const override;
  std::unique_ptr<Problem> Whole() const override;

 protected:
  const Plan plan_;
};

}  // namespace tilewire::transpose
