// The gaussian pdf as an operation among others: operand "input", attributes "mean" and "stddev", one result.
#pragma once

#include <memory>

#include "kernels/gaussian/gaussian.h"
#include "kernels/operation/descriptor.h"
#include "kernels/operation/problem.h"
#include "kernels/operation/published.h"

namespace tilewire::gaussian {

extern const Descriptor kDescriptor;

std::unique_ptr<Problem> MakeProblem(Plan plan);

/// What `tilewire selftest` asks servers.
std::vector<PublishedCase> PublishedCases();

/// `range` of `plan`.
struct Part {
  const Plan* plan;
  Range range;
};

/// What runs a problem of kDescriptor knows of it; open to tests that cut their problems finer.
class GaussianProblem : public Problem {
 public:
  explicit GaussianProblem(Plan plan);

  /// What range `index` computes on buffers that Problem::RunHost() would be given.
  virtual Part part(int64_t index) const { return {&plan_, plan_.range(index)}; }

  std::span<const ArraySpec> operands() const override { return {&plan_.input(), 1}; }
  std::span<const ArraySpec> results() const override { return {&plan_.result(), 1}; }
  int64_t range_count() const override { return plan_.range_count(); }
  ByteInterval range_bytes(int64_t index) const override {
    const Range range = plan_.range(index);
    const int64_t size = SizeOf(plan_.input().dtype);
    return {range.begin * size, range.end * size};
  }
  // Element by element: what has arrived can be computed and sent back while the rest is on its way.
  bool ranges_fill_result() const override { return true; }
  void RunHost(Step step, const Buffers& buffers, Team& team) const override;
  std::unique_ptr<Problem> Whole() const override;
  Result<std::unique_ptr<Problem>> Windowed() const override;

 protected:
  const Plan plan_;
};

}  // namespace tilewire::gaussian
