#include "client/cpp/wire_form.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/reflection.h>

#include <vector>

#include "client/cpp/operations.h"
#include "client/cpp/request.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::client {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

constexpr const char* kService = "/tilewire.v1.Kernels/";

const FieldDescriptor* MemberOf(const Operation& operation) {
  return v1::Operation::descriptor()->FindFieldByNumber(FindOperation(*operation.descriptor)->member);
}

void SetInteger(int64_t value, const FieldDescriptor* field, Message* out) {
  const auto* const reflection = out->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->SetInt32(out, field, static_cast<int32_t>(value));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection->SetUInt32(out, field, static_cast<uint32_t>(value));
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->SetInt64(out, field, value);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->SetBool(out, field, value != 0);
    default:
      return reflection->SetEnumValue(out, field, static_cast<int>(value));
  }
}

/// The member of v1::Operation: attributes are its fields, by their names.
void SetAttributes(const Operation& operation, Message* out) {
  // Checked before the call. Those that were not given are not always what proto3 takes for absent fields.
  const Attributes all = operation.descriptor->Complete(operation.attributes).value();
  for (const auto& [name, value] : all.entries())
    SetAttribute(value, out->GetDescriptor()->FindFieldByName(name), out);
}

/// The method for that operation alone; null where there is none.
const MethodDescriptor* OwnMethod(const FieldDescriptor* member) {
  const auto* const kernels = v1::Open::descriptor()->file()->FindServiceByName("Kernels");
  for (int i = 0; i < kernels->method_count(); ++i) {
    const FieldDescriptor* const op = kernels->method(i)->input_type()->FindFieldByName("op");
    if (op != nullptr && op->message_type() == member->message_type()) return kernels->method(i);
  }
  return nullptr;
}

}  // namespace

void SetAttribute(const AttributeValue& value, const FieldDescriptor* field, Message* out) {
  const auto* const reflection = out->GetReflection();
  if (const auto* integer = std::get_if<int64_t>(&value)) SetInteger(*integer, field, out);
  if (const auto* real = std::get_if<double>(&value)) reflection->SetDouble(out, field, *real);
  if (const auto* list = std::get_if<std::vector<int32_t>>(&value))
    for (const int32_t each : *list)  // enums too
      reflection->GetMutableRepeatedFieldRef<int32_t>(out, field).Add(each);
}

void SetOperation(const Operation& operation, Message* request) {
  const FieldDescriptor* const member = MemberOf(operation);
  // What was there first has the same number in the oneof of these messages.
  const FieldDescriptor* const own = request->GetDescriptor()->FindFieldByNumber(member->number());
  if (own != nullptr && !own->is_repeated() && own->message_type() == member->message_type())
    return SetAttributes(operation, request->GetReflection()->MutableMessage(request, own));
  const FieldDescriptor* const op = request->GetDescriptor()->FindFieldByName("op");
  SetMember(operation, static_cast<v1::Operation*>(request->GetReflection()->MutableMessage(request, op)));
}

void SetMember(const Operation& operation, v1::Operation* out) {
  SetAttributes(operation, out->GetReflection()->MutableMessage(out, MemberOf(operation)));
}

UnaryRequest MakeUnaryRequest(const CallSpec& spec) {
  const Operation& operation = std::get<Operation>(spec.task);
  const MethodDescriptor* const method = OwnMethod(MemberOf(operation));
  if (method == nullptr) return MakeCompute(spec);
  const auto* const type = method->input_type();
  UnaryRequest request{kService + method->name(), nullptr};
  request.message.reset(google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  Message* const message = request.message.get();
  const auto* const reflection = message->GetReflection();
  SetAttributes(operation, reflection->MutableMessage(message, type->FindFieldByName("op")));
  SetOptions(
      spec, static_cast<v1::Options*>(reflection->MutableMessage(message, type->FindFieldByName("options"))));
  // Operands are fields in their order.
  size_t next = 0;
  for (int i = 0; i < type->field_count(); ++i)
    if (type->field(i)->message_type() == v1::Operand::descriptor())
      FillOperand(spec.sources[next++],
                  static_cast<v1::Operand*>(reflection->MutableMessage(message, type->field(i))));
  return request;
}

UnaryRequest MakeCompute(const CallSpec& spec) {
  auto compute = std::make_unique<v1::ComputeRequest>();
  SetMember(std::get<Operation>(spec.task), compute->mutable_operation());
  SetOptions(spec, compute->mutable_options());
  for (const ArraySource& source : spec.sources) FillOperand(source, compute->add_operands());
  return {kService + std::string("Compute"), std::move(compute)};
}

}  // namespace tilewire::client
