#include "kernels/operation/descriptor.h"

#include <string>
#include <utility>

#include "kernels/rmse/problem.h"

namespace tilewire::rmse {
namespace {

constexpr std::string_view kOperands[] = {"a", "b"};
constexpr AttributeInfo kAttributes[] = {
    {.name = "axes",
     .kind = AttributeKind::kIntegers,
     .allowed = "the axes to reduce, each once, negative from the end; none: all"},
    {.name = "output",
     .kind = AttributeKind::kInteger,
     .allowed = "0: root mean square, 1: mean square, 2: sum of squares",
     .picks_kernels = false}};

Result<std::unique_ptr<Problem>> Make(std::span<const ArraySpec> operands, const Attributes& attributes) {
  TILEWIRE_RETURN_IF_ERROR(CheckAlike(kDescriptor, operands));
  const int64_t output = attributes.integer("output");
  if (output < 0 || output > static_cast<int64_t>(Output::kSumSquares))
    return BadValue("output", std::to_string(output), "a tilewire.v1.RmseOutput, 0 to 2");
  TILEWIRE_ASSIGN_OR_RETURN(
      Plan plan, Plan::Make(operands[0], attributes.integers("axes"), static_cast<Output>(output)));
  return MakeProblem(std::move(plan));
}

Example Of(DType dtype, const std::vector<int64_t>& dims, std::vector<int32_t> axes = {}) {
  const ArraySpec spec = MakeSpec(dtype, dims).value();
  return {{spec, spec}, {{"axes", std::move(axes)}}};
}

std::vector<Example> Examples() {
  std::vector<Example> examples;
  for (const DTypeInfo& info : AllDTypes())
    if (IsReal(info.dtype)) examples.push_back(Of(info.dtype, {4096, 4096}));
  for (Example example : {
           Of(DType::kF32, {1024}),                    // a small request
           Of(DType::kF32, {16, 1024, 1024}, {1, 2}),  // contiguous segments
           Of(DType::kF32, {1024, 1024, 16}, {0, 1}),  // columns: the batch axis is the fastest
           Of(DType::kF32, {4096, 4096}, {0}),         // many columns
           Of(DType::kF32, {64, 256, 1024}, {1}),      // batch axes on both sides
           Of(DType::kF32, {256, 64, 1024}, {0, 2}),   // reduced axes on both sides
           Of(DType::kF32, {1 << 20, 16}, {1}),        // many tiny segments
       })
    examples.push_back(std::move(example));
  return examples;
}

}  // namespace

constinit const Descriptor kDescriptor = {.name = "rmse",
                                          .numeric_version = kNumericVersion,
                                          .operands = kOperands,
                                          .accepts = IsReal,
                                          .attributes = kAttributes,
                                          .make = Make,
                                          .examples = Examples};

}  // namespace tilewire::rmse
