#include "kernels/operation/descriptor.h"

#include <utility>

#include "kernels/compare/problem.h"
#include "kernels/rmse/problem.h"

namespace tilewire::compare {
namespace {

constexpr std::string_view kOperands[] = {"a", "b"};
constexpr AttributeInfo kAttributes[] = {
    {.name = "axes",
     .kind = AttributeKind::kIntegers,
     .allowed = "the axes to reduce, each once, negative from the end; none: all"},
    {.name = "metrics",
     .kind = AttributeKind::kIntegers,
     .allowed = "0: rmse, 1: mse, 2: sum_squares, 3: mean_abs, 4: sum_abs, 5: mean, 6: sum, 7: max_abs, "
                "8: max_abs_index, 9: nan_pairs, 10: unequal_pairs, each once; none: all"}};

Result<std::unique_ptr<Problem>> Make(std::span<const ArraySpec> operands, const Attributes& attributes) {
  TILEWIRE_RETURN_IF_ERROR(CheckAlike(kDescriptor, operands));
  TILEWIRE_ASSIGN_OR_RETURN(
      Plan plan, Plan::Make(operands[0], attributes.integers("axes"), attributes.integers("metrics")));
  return MakeProblem(std::move(plan));
}

/// Those of the RMSE, whose geometry it has, and one whose sums are enough.
std::vector<Example> Examples() {
  std::vector<Example> examples = rmse::kDescriptor.examples();
  examples.push_back(
      {examples.front().operands, {{"metrics", std::vector{static_cast<int32_t>(Metric::kMeanAbs)}}}});
  return examples;
}

}  // namespace

constinit const Descriptor kDescriptor = {.name = "compare",
                                          .numeric_version = kNumericVersion,
                                          .operands = kOperands,
                                          .accepts = IsReal,
                                          .attributes = kAttributes,
                                          .make = Make,
                                          .examples = Examples};

}  // namespace tilewire::compare
