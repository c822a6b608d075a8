#include "kernels/operation/descriptor.h"

#include <algorithm>
#include <utility>

namespace tilewire {
namespace {

std::string_view KindText(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kInteger:
      return "an integer";
    case AttributeKind::kReal:
      return "a number";
    case AttributeKind::kIntegers:
      return "a list of integers";
  }
  return "";
}

AttributeValue Fallback(const AttributeInfo& info) {
  switch (info.kind) {
    case AttributeKind::kInteger:
      return static_cast<int64_t>(info.fallback);
    case AttributeKind::kReal:
      return info.fallback;
    case AttributeKind::kIntegers:
      break;
  }
  return std::vector<int32_t>();
}

/// Refuses what is unknown or of another kind.
Status Check(const Descriptor& descriptor, const Attributes& given) {
  const auto all = descriptor.attributes;
  for (const Attributes::Entry& entry : given.entries()) {
    const auto info = std::find_if(all.begin(), all.end(),
                                   [&](const AttributeInfo& each) { return each.name == entry.name; });
    if (info == all.end()) {
      std::string names;
      for (const AttributeInfo& each : all) names += (names.empty() ? "" : ", ") + std::string(each.name);
      return BadValue(entry.name, "given", "an attribute of " + std::string(descriptor.name) + ": " + names)
          .value();
    }
    const auto kind = static_cast<AttributeKind>(entry.value.index());
    if (kind != info->kind) return BadValue(entry.name, KindText(kind), KindText(info->kind)).value();
  }
  return {};
}

void AppendValue(const AttributeValue& value, std::string* text) {
  if (const auto* integer = std::get_if<int64_t>(&value)) *text += " " + std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) *text += " " + std::to_string(*real);
  if (const auto* list = std::get_if<std::vector<int32_t>>(&value))
    for (const int32_t each : *list) *text += " " + std::to_string(each);
}

}  // namespace

Result<Attributes> Descriptor::Complete(const Attributes& given) const {
  TILEWIRE_RETURN_IF_ERROR(Check(*this, given));
  Attributes all;
  for (const AttributeInfo& info : attributes) {
    const AttributeValue* const value = given.Find(info.name);
    all.Set(info.name, value != nullptr ? *value : Fallback(info));
  }
  return all;
}

Result<std::unique_ptr<Problem>> Descriptor::Make(std::span<const ArraySpec> specs,
                                                  const Attributes& given) const {
  if (specs.size() != operands.size())
    return BadValue("operands", std::to_string(specs.size()) + " specs", std::to_string(operands.size()));
  TILEWIRE_ASSIGN_OR_RETURN(const Attributes all, Complete(given));
  return make(specs, all);
}

std::string Descriptor::Text(std::span<const ArraySpec> specs, const Attributes& given) const {
  std::string text(name);
  text += " " + std::string(Name(specs[0].dtype)) + " " + specs[0].shape.ToString();
  for (const AttributeInfo& info : attributes) {
    const AttributeValue* const value = given.Find(info.name);
    if (!info.picks_kernels || !value || *value == Fallback(info)) continue;
    text += " " + std::string(info.name);
    AppendValue(*value, &text);
  }
  return text;
}

Status CheckAlike(const Descriptor& descriptor, std::span<const ArraySpec> operands) {
  const ArraySpec& first = operands.front();
  const std::string as = ", as operand " + std::string(descriptor.operands.front());
  for (size_t i = 1; i < operands.size(); ++i) {
    const std::string name(descriptor.operands[i]);
    if (operands[i].dtype != first.dtype)
      return BadValue(name + ".dtype", Name(operands[i].dtype), std::string(Name(first.dtype)) + as).value();
    if (!(operands[i].shape == first.shape))
      return BadValue(name + ".shape", operands[i].shape.ToString(), first.shape.ToString() + as).value();
  }
  return {};
}

}  // namespace tilewire
