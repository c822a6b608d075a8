// What an operation's results look like; checked here so that wrong calls fail before anything is sent.
#include "client/cpp/operation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "client/cpp/call_spec.h"
#include "client/cpp/operations.h"
#include "kernels/gaussian/problem.h"
#include "kernels/rmse/problem.h"
#include "kernels/transpose/problem.h"

namespace tilewire::client {
namespace {

/// What is wrong however the operands look; attributes as AttributesOf().
Result<Attributes> CheckAsked(const Operation& operation, size_t operands) {
  TILEWIRE_ASSIGN_OR_RETURN(Attributes attributes, AttributesOf(operation));
  const Descriptor& descriptor = *operation.descriptor;
  if (const size_t wanted = descriptor.operands.size(); operands != wanted) {
    std::string name(descriptor.name);
    std::ranges::replace(name, '_', ' ');
    return BadValue("operands", std::to_string(operands), std::to_string(wanted) + " for " + name);
  }
  return attributes;
}

/// "f32 or f64", "any but bool and complex".
std::string AcceptedText(const Descriptor& descriptor) {
  std::vector<std::string> accepted, refused;
  for (const DTypeInfo& info : AllDTypes())
    (descriptor.accepts(info.dtype) ? accepted : refused).emplace_back(info.name);
  const bool few = accepted.size() <= refused.size();
  if (!few && !descriptor.accepts(DType::kC64) && !descriptor.accepts(DType::kC128)) {
    std::erase_if(refused, [](const std::string& name) { return name.starts_with('c'); });
    refused.emplace_back("complex");
  }
  return few ? Listed(accepted, " or ") : "any but " + Listed(refused, " and ");
}

/// A refusal of Descriptor::Make, said in terms of the call: an operand is held against the first one, and a
/// dtype against those that would do.
Status InTermsOfCall(Status refused, const Descriptor& descriptor, std::span<const ArraySpec> specs) {
  if (refused.detail() == nullptr) return refused;
  const std::string field = refused.detail()->field;
  const ArraySpec& first = specs.front();
  const std::string name(descriptor.operands.front());
  for (size_t i = 1; i < specs.size(); ++i) {
    const std::string operand(descriptor.operands[i]);
    if (field == operand + ".dtype" && specs[i].dtype != first.dtype)
      return BadValue(field, Name(specs[i].dtype), std::string(Name(first.dtype)) + ", as " + name).value();
    if (field == operand + ".shape" && specs[i].shape != first.shape)
      return BadValue(field, specs[i].shape.ToString(), first.shape.ToString() + ", as " + name).value();
  }
  if (field == "dtype" && !descriptor.accepts(first.dtype))
    return BadValue(specs.size() > 1 ? name + ".dtype" : field, Name(first.dtype), AcceptedText(descriptor))
        .value();
  return refused;
}

}  // namespace

Operation::Operation(const RmseOp& op)
    : Operation(rmse::kDescriptor, {{"axes", op.axes}, {"output", static_cast<int64_t>(op.output)}}) {}
Operation::Operation(const TransposeOp& op) : Operation(transpose::kDescriptor, {{"axes", op.axes}}) {}
Operation::Operation(const GaussianOp& op)
    : Operation(gaussian::kDescriptor, {{"mean", op.mean}, {"stddev", op.stddev}}) {}

Result<Attributes> AttributesOf(const Operation& operation) {
  const Descriptor* const descriptor = operation.descriptor;
  if (descriptor != nullptr && FindOperation(*descriptor) != nullptr)
    return descriptor->Complete(operation.attributes);
  return BadValue("operation", descriptor == nullptr ? "none" : descriptor->name, CommandNames(" or "));
}

Result<std::optional<std::vector<ArraySpec>>> ResultSpecsIfKnown(const Operation& operation,
                                                                 std::span<const ArraySource> operands) {
  TILEWIRE_ASSIGN_OR_RETURN(const Attributes attributes, CheckAsked(operation, operands.size()));
  std::optional<ArraySpec> any;
  for (const auto& operand : operands)
    if (operand.known_spec()) any = operand.known_spec();
  if (!any) {
    const auto results = FindOperation(*operation.descriptor)->results_of_any;
    return results != nullptr ? results(attributes) : std::nullopt;
  }
  // What is not known must be equal to the rest, which the server checks.
  std::vector<ArraySpec> specs;
  for (const auto& operand : operands) specs.push_back(operand.known_spec().value_or(*any));
  TILEWIRE_ASSIGN_OR_RETURN(std::vector<ArraySpec> results, ResultSpecs(operation, specs));
  return std::optional(std::move(results));
}

Result<std::vector<ArraySpec>> ResultSpecs(const Operation& operation, std::span<const ArraySpec> operands) {
  TILEWIRE_ASSIGN_OR_RETURN(const Attributes attributes, CheckAsked(operation, operands.size()));
  const auto problem = operation.descriptor->Make(operands, attributes);
  if (!problem) return Fail(InTermsOfCall(problem.error(), *operation.descriptor, operands));
  const auto results = (*problem)->results();
  return std::vector<ArraySpec>(results.begin(), results.end());
}

Result<ArraySpec> ResultSpec(const Operation& operation, std::span<const ArraySpec> operands) {
  TILEWIRE_ASSIGN_OR_RETURN(const std::vector<ArraySpec> results, ResultSpecs(operation, operands));
  return results.front();
}

}  // namespace tilewire::client
