#include "kernels/operation/descriptor.h"

#include <utility>

#include "kernels/compare/problem.h"

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
  const ArraySpec &a = operands[0], &b = operands[1];
  if (a.dtype != b.dtype)
    return BadValue("b.dtype", Name(b.dtype), std::string(Name(a.dtype)) + ", as operand a");
  if (!(a.shape == b.shape))
    return BadValue("b.shape", b.shape.ToString(), a.shape.ToString() + ", as operand a");
  TILEWIRE_ASSIGN_OR_RETURN(Plan plan,
                            Plan::Make(a, attributes.integers("axes"), attributes.integers("metrics")));
  return MakeProblem(std::move(plan));
}

Example Of(DType dtype, const std::vector<int64_t>& dims, std::vector<int32_t> axes = {},
           std::vector<int32_t> metrics = {}) {
  const ArraySpec spec = MakeSpec(dtype, dims).value();
  return {{spec, spec}, {{"axes", std::move(axes)}, {"metrics", std::move(metrics)}}};
}

std::vector<Example> Examples() {
  std::vector<Example> examples;
  for (const DTypeInfo& info : AllDTypes())
    if (IsReal(info.dtype)) examples.push_back(Of(info.dtype, {4096, 4096}));
  for (Example example : {
           Of(DType::kF32, {4096, 4096}, {}, {static_cast<int32_t>(Metric::kMeanAbs)}),  // sums alone
           Of(DType::kF32, {1024}),                                                      // a small request
           Of(DType::kF32, {1024, 1024, 16}, {0, 1}),  // columns: the batch axis is the fastest
           Of(DType::kF32, {4096, 4096}, {0}),         // many columns
           Of(DType::kF32, {256, 64, 1024}, {0, 2}),   // reduced axes on both sides
           Of(DType::kF32, {1 << 20, 16}, {1}),        // many tiny segments
       })
    examples.push_back(std::move(example));
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
