#include "kernels/transpose/problem.h"

#include <algorithm>
#include <utility>

namespace tilewire::transpose {
namespace {

class WholeTranspose final : public TransposeProblem {
 public:
  using TransposeProblem::TransposeProblem;
  std::unique_ptr<Problem> Whole() const override { return nullptr; }  // it is
  int64_t range_count() const override { return 1; }
  Range band(int64_t) const override { return plan_.whole(); }
};

}  // namespace

TransposeProblem::TransposeProblem(Plan plan) : Problem(&kDescriptor), plan_(std::move(plan)) {}

void TransposeProblem::RunHost(Step step, const Buffers& buffers, Team& team) const {
  const Range range = band(step.range);
  const int64_t items = HostItems(plan_, range);
  const int64_t item_bytes = (range.byte_end - range.byte_begin) / std::max<int64_t>(items, 1);
  team.For(items, GrainOf(item_bytes), [&](int64_t begin, int64_t end) {
    HostRange(plan_, range, begin, end, buffers.operands[0], buffers.results[0]);
  });
}

std::unique_ptr<Problem> TransposeProblem::Whole() const {
  return std::make_unique<WholeTranspose>(plan_);
}

std::unique_ptr<Problem> MakeProblem(Plan plan) {
  return std::make_unique<TransposeProblem>(std::move(plan));
}

}  // namespace tilewire::transpose
