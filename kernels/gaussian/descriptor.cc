#include "kernels/operation/descriptor.h"

#include <array>
#include <utility>

#include "kernels/gaussian/problem.h"

namespace tilewire::gaussian {
namespace {

constexpr std::string_view kOperands[] = {"input"};
constexpr AttributeInfo kAttributes[] = {
    {.name = "mean", .kind = AttributeKind::kReal, .allowed = "any finite number", .picks_kernels = false},
    {.name = "stddev",
     .kind = AttributeKind::kReal,
     .fallback = 1,
     .allowed = "any finite number greater than 0",
     .picks_kernels = false}};

Result<std::unique_ptr<Problem>> Make(std::span<const ArraySpec> operands, const Attributes& attributes) {
  TILEWIRE_ASSIGN_OR_RETURN(Plan plan,
                            Plan::Make(operands[0], attributes.real("mean"), attributes.real("stddev")));
  return MakeProblem(std::move(plan));
}

std::vector<Example> Examples() {
  std::vector<Example> examples;
  for (const DType dtype : {DType::kF32, DType::kF64})
    for (const int64_t elements : {1024, (1 << 24), (1 << 24) - 3})
      examples.push_back({{MakeSpec(dtype, std::array{elements}).value()}, {}});
  return examples;
}

}  // namespace

constinit const Descriptor kDescriptor = {
    .name = "gaussian_pdf",
    .numeric_version = kNumericVersion,
    .operands = kOperands,
    .accepts = [](DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; },
    .attributes = kAttributes,
    .make = Make,
    .examples = Examples};

}  // namespace tilewire::gaussian
