// The server's table of operations, and what requests say of them. Adding an operation adds a row.
#pragma once

#include <google/protobuf/message.h>

#include <optional>
#include <span>
#include <string>

#include "kernels/operation/descriptor.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::rpc {

/// In the order in which Describe tells their numeric versions.
std::span<const Descriptor* const> Operations();
/// "rmse, transpose or gaussian_pdf"; with `last` as the last of the list.
std::string OperationNames(const std::string& last = "");

/// What an attribute may be on the wire: an enum, int32, int64, uint32 or bool; a double; repeated enums or
/// int32. Nothing for any other field.
std::optional<AttributeKind> KindOf(const google::protobuf::FieldDescriptor& field);
/// The attribute that such a field of `message` is.
AttributeValue ValueOf(const google::protobuf::Message& message,
                       const google::protobuf::FieldDescriptor* field);

/// An operation and its attributes as a message gives them.
struct Named {
  const Descriptor* descriptor = nullptr;  ///< null where it names none
  Attributes attributes;
};
/// What a message names: attributes are the fields of its member, by their names. Thread-safe.
Named NamedBy(const v1::Operation& operation);

/// What a request names in its own oneof, which is frozen, or in its `op`; nothing for put and where it names
/// none. INVALID_ARGUMENT where it does both. `Request`: v1::Open, v1::DescribeKernelsRequest.
template <typename Request>
Result<v1::Operation> AskedOf(const Request& request);

}  // namespace tilewire::rpc
