// Comparing as an operation among others: operands "a" and "b", attributes "axes" and "metrics", a result a
// metric.
#pragma once

#include <memory>

#include "kernels/compare/compare.h"
#include "kernels/operation/descriptor.h"
#include "kernels/operation/problem.h"
#include "kernels/operation/published.h"

namespace tilewire::compare {

extern const Descriptor kDescriptor;

/// The golden vectors, all metrics together.
std::vector<PublishedCase> PublishedCases();

std::unique_ptr<Problem> MakeProblem(Plan plan);

/// A range's work: `range` of `plan`, whose first tile is tile `first` of the problem's, and whose first
/// element has index `element` in its segment.
struct Part {
  const rmse::Plan* plan;
  rmse::Range range;
  int64_t first, element;
};

/// What runs a problem of kDescriptor knows of it.
class CompareProblem : public Problem {
 public:
  explicit CompareProblem(Plan plan);

  const Plan& plan() const { return plan_; }
  /// What range `index` computes on buffers that Problem::RunHost() would be given.
  virtual Part part(int64_t index) const { return {&geometry(), geometry().range(index), 0, 0}; }
  /// What is kept of tiles, from tile `first` of all on.
  Planes PlanesIn(const Buffers& buffers, int64_t first) const;
  Values ValuesIn(const Buffers& buffers) const;

  std::span<const ArraySpec> operands() const override { return operands_; }
  std::span<const ArraySpec> results() const override { return plan_.results(); }
  int64_t scratch_bytes() const override { return plan_.scratch_bytes(); }
  int64_t range_count() const override { return geometry().range_count(); }
  ByteInterval range_bytes(int64_t index) const override {
    const rmse::Range range = geometry().range(index);
    return {range.byte_begin, range.byte_end};
  }
  // Segments of one tile are finished by the range that has them.
  bool has_finish() const override { return has_scratch() && range_count() > 1; }
  bool range_finishes() const override { return range_count() == 1; }
  void RunHost(Step step, const Buffers& buffers, Team& team) const override;
  std::unique_ptr<Problem> Whole() const override;
  Result<std::unique_ptr<Problem>> Windowed() const override;

 protected:
  const rmse::Plan& geometry() const { return plan_.geometry(); }
  bool has_scratch() const { return geometry().layout().tiles > 1; }
  const Plan plan_;

 private:
  const ArraySpec operands_[2];
};

}  // namespace tilewire::compare
