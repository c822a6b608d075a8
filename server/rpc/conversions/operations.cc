#include "server/rpc/conversions/operations.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/reflection.h>

#include <vector>

#include "kernels/compare/problem.h"
#include "kernels/gaussian/problem.h"
#include "kernels/rmse/problem.h"
#include "kernels/transpose/problem.h"
#include "tilewire/v1/device.pb.h"

namespace tilewire::rpc {
namespace {

using google::protobuf::FieldDescriptor;

/// One row an operation: the member of v1::Operation that names it.
struct Row {
  v1::Operation::OperationCase member;
  const Descriptor* descriptor;
};
constexpr Row kTable[] = {
    {v1::Operation::kRmse, &rmse::kDescriptor},
    {v1::Operation::kTranspose, &transpose::kDescriptor},
    {v1::Operation::kGaussianPdf, &gaussian::kDescriptor},
    {v1::Operation::kCompare, &compare::kDescriptor},
};

}  // namespace

std::optional<AttributeKind> KindOf(const FieldDescriptor& field) {
  const auto type = field.cpp_type();
  const bool small = type == FieldDescriptor::CPPTYPE_ENUM || type == FieldDescriptor::CPPTYPE_INT32;
  if (field.is_repeated()) return small ? std::optional(AttributeKind::kIntegers) : std::nullopt;
  if (type == FieldDescriptor::CPPTYPE_DOUBLE) return AttributeKind::kReal;
  const bool other = type == FieldDescriptor::CPPTYPE_INT64 || type == FieldDescriptor::CPPTYPE_UINT32 ||
                     type == FieldDescriptor::CPPTYPE_BOOL;
  return small || other ? std::optional(AttributeKind::kInteger) : std::nullopt;
}

AttributeValue ValueOf(const google::protobuf::Message& message, const FieldDescriptor* field) {
  const auto* const reflection = message.GetReflection();
  if (field->is_repeated()) {  // enums too
    const auto all = reflection->GetRepeatedFieldRef<int32_t>(message, field);
    return std::vector<int32_t>(all.begin(), all.end());
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection->GetDouble(message, field);
    case FieldDescriptor::CPPTYPE_INT32:
      return int64_t{reflection->GetInt32(message, field)};
    case FieldDescriptor::CPPTYPE_UINT32:
      return int64_t{reflection->GetUInt32(message, field)};
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return int64_t{reflection->GetBool(message, field)};
    default:
      return int64_t{reflection->GetEnumValue(message, field)};
  }
}

std::span<const Descriptor* const> Operations() {
  static const auto all = [] {
    std::vector<const Descriptor*> descriptors;
    for (const Row& row : kTable) descriptors.push_back(row.descriptor);
    return descriptors;
  }();
  return all;
}

std::string OperationNames(const std::string& last) {
  std::vector<std::string> names;
  for (const Row& row : kTable) names.emplace_back(row.descriptor->name);
  if (!last.empty()) names.push_back(last);
  std::string text = names.front();
  for (size_t i = 1; i < names.size(); ++i) text += (i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

Named NamedBy(const v1::Operation& operation) {
  for (const Row& row : kTable) {
    if (row.member != operation.operation_case()) continue;
    Named named{.descriptor = row.descriptor, .attributes = {}};
    const auto* const member = v1::Operation::descriptor()->FindFieldByNumber(row.member);
    const google::protobuf::Message& message = operation.GetReflection()->GetMessage(operation, member);
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* const field = message.GetDescriptor()->field(i);
      named.attributes.Set(field->name(), ValueOf(message, field));
    }
    return named;
  }
  return {};
}

template <typename Request>
Result<v1::Operation> AskedOf(const Request& request) {
  v1::Operation asked = request.op();
  const auto* const older = request.GetReflection()->GetOneofFieldDescriptor(
      request, Request::descriptor()->FindOneofByName("operation"));
  if (older == nullptr) return asked;
  if (request.has_op()) return BadValue("op", "set beside an operation of the older fields", "one of them");
  const auto* const member = v1::Operation::descriptor()->FindFieldByNumber(older->number());
  if (member == nullptr || member->message_type() != older->message_type()) return asked;  // put
  asked.GetReflection()
      ->MutableMessage(&asked, member)
      ->CopyFrom(request.GetReflection()->GetMessage(request, older));
  return asked;
}

template Result<v1::Operation> AskedOf(const v1::Open& request);
template Result<v1::Operation> AskedOf(const v1::DescribeKernelsRequest& request);

}  // namespace tilewire::rpc
