// What an operation's result looks like; checked here so that wrong calls fail before anything is sent.
#include <charconv>
#include <cmath>

#include "client/cpp/call_spec.h"
#include "client/cpp/client.h"

namespace tilewire::client {
namespace {

Result<ArraySpec> RmseResult(const RmseOp& op, std::span<const ArraySpec> operands) {
  const ArraySpec& a = operands[0];
  if (operands[1].dtype != a.dtype)
    return BadValue("b.dtype", Name(operands[1].dtype), std::string(Name(a.dtype)) + ", as a");
  if (operands[1].shape != a.shape)
    return BadValue("b.shape", operands[1].shape.ToString(), a.shape.ToString() + ", as a");
  if (!IsReal(a.dtype)) return BadValue("a.dtype", Name(a.dtype), "any but bool and complex");
  TILEWIRE_ASSIGN_OR_RETURN(const std::vector<int> axes, NormalizeAxes(op.axes, a.shape.rank(), "axes"));
  uint32_t reduced = axes.empty() ? ~0u : 0u;
  for (const int axis : axes) reduced |= 1u << axis;
  std::vector<int64_t> batch;
  for (int axis = 0; axis < a.shape.rank(); ++axis)
    if (!(reduced >> axis & 1)) batch.push_back(a.shape.dim(axis));
  return MakeSpec(DType::kF64, batch, "result");
}

Result<ArraySpec> TransposeResult(const TransposeOp& op, std::span<const ArraySpec> operands) {
  const Shape& shape = operands[0].shape;
  TILEWIRE_ASSIGN_OR_RETURN(const std::vector<int> axes, NormalizeAxes(op.axes, shape.rank(), "axes"));
  if (!axes.empty() && static_cast<int>(axes.size()) != shape.rank())
    return BadValue("axes", std::to_string(axes.size()) + " axes",
                    std::to_string(shape.rank()) + ", a permutation of all");
  std::vector<int64_t> dims;
  for (int i = 0; i < shape.rank(); ++i)
    dims.push_back(shape.dim(axes.empty() ? shape.rank() - 1 - i : axes[static_cast<size_t>(i)]));
  return MakeSpec(operands[0].dtype, dims, "result");
}

/// The shortest text that reads back to the same double.
std::string Text(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

Result<ArraySpec> GaussianResult(const GaussianOp& op, std::span<const ArraySpec> operands) {
  const DType dtype = operands[0].dtype;
  if (dtype != DType::kF32 && dtype != DType::kF64) return BadValue("dtype", Name(dtype), "f32 or f64");
  if (!std::isfinite(op.mean)) return BadValue("mean", Text(op.mean), "any finite number");
  if (!std::isfinite(op.stddev) || op.stddev <= 0)
    return BadValue("stddev", Text(op.stddev), "any finite number greater than 0");
  return operands[0];
}

/// Wrong however the operands look.
Status CheckCount(const Operation& operation, size_t operands) {
  struct Wanted {
    size_t count;
    const char* allowed;
  };
  const Wanted wanted = std::holds_alternative<RmseOp>(operation)       ? Wanted{2, "2 for rmse"}
                        : std::holds_alternative<GaussianOp>(operation) ? Wanted{1, "1 for gaussian pdf"}
                                                                        : Wanted{1, "1 for transpose"};
  if (operands == wanted.count) return {};
  return BadValue("operands", std::to_string(operands), wanted.allowed).value();
}

}  // namespace

Result<std::optional<ArraySpec>> ResultSpecIfKnown(const Operation& operation,
                                                   std::span<const ArraySource> operands) {
  TILEWIRE_RETURN_IF_ERROR(CheckCount(operation, operands.size()));
  const auto* rmse = std::get_if<RmseOp>(&operation);
  std::optional<ArraySpec> any;
  for (const auto& operand : operands)
    if (operand.known_spec()) any = operand.known_spec();
  if (!any) return rmse && rmse->axes.empty() ? std::optional(ArraySpec{DType::kF64, {}}) : std::nullopt;
  // What is not known must be equal to the rest, which the server checks.
  std::vector<ArraySpec> specs;
  for (const auto& operand : operands) specs.push_back(operand.known_spec().value_or(*any));
  TILEWIRE_ASSIGN_OR_RETURN(ArraySpec result, ResultSpec(operation, specs));
  return std::optional(result);
}

Result<ArraySpec> ResultSpec(const Operation& operation, std::span<const ArraySpec> operands) {
  TILEWIRE_RETURN_IF_ERROR(CheckCount(operation, operands.size()));
  if (const auto* rmse = std::get_if<RmseOp>(&operation)) return RmseResult(*rmse, operands);
  if (const auto* gaussian = std::get_if<GaussianOp>(&operation)) return GaussianResult(*gaussian, operands);
  return TransposeResult(std::get<TransposeOp>(operation), operands);
}

}  // namespace tilewire::client
