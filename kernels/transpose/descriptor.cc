#include "kernels/operation/descriptor.h"

#include <utility>

#include "kernels/transpose/problem.h"

namespace tilewire::transpose {
namespace {

constexpr std::string_view kOperands[] = {"input"};
constexpr AttributeInfo kAttributes[] = {
    {.name = "axes",
     .kind = AttributeKind::kIntegers,
     .allowed = "a permutation of all axes, negative from the end; none: reversed order"}};

Result<std::unique_ptr<Problem>> Make(std::span<const ArraySpec> operands, const Attributes& attributes) {
  TILEWIRE_ASSIGN_OR_RETURN(Plan plan, Plan::Make(operands[0], attributes.integers("axes")));
  return MakeProblem(std::move(plan));
}

Example Of(DType dtype, const std::vector<int64_t>& dims, std::vector<int32_t> axes = {}) {
  return {{MakeSpec(dtype, dims).value()}, {{"axes", std::move(axes)}}};
}

/// A matrix of every element size, then permutations that need kernels of their own.
std::vector<Example> Examples() {
  return {
      Of(DType::kU8, {4096, 4096}),
      Of(DType::kU16, {4096, 4096}),
      Of(DType::kF32, {4096, 4096}),
      Of(DType::kF64, {4096, 4096}),
      Of(DType::kC128, {4096, 4096}),
      Of(DType::kF32, {64, 64}),     // a small request
      Of(DType::kU8, {4099, 4097}),  // odd extents
      Of(DType::kF32, {4099, 4097}),
      Of(DType::kF32, {1 << 20, 3}),  // a short fast axis, there and back
      Of(DType::kF32, {3, 1 << 20}),
      Of(DType::kF32, {16, 1024, 1024}, {0, 2, 1}),      // the leading axis is kept
      Of(DType::kF32, {256, 512, 64}, {1, 0, 2}),        // the fastest axis is kept
      Of(DType::kF32, {64, 100, 50, 60}, {3, 2, 1, 0}),  // four axes
      Of(DType::kF32, {64, 100, 50, 60}, {2, 0, 3, 1}),
  };
}

}  // namespace

constinit const Descriptor kDescriptor = {.name = "transpose",
                                          .numeric_version = kNumericVersion,
                                          .operands = kOperands,
                                          .accepts = [](DType) { return true; },
                                          .attributes = kAttributes,
                                          .make = Make,
                                          .examples = Examples};

}  // namespace tilewire::transpose
