// How operations are asked for on the wire. Those that the first servers knew go in the fields and by the
// methods that these have, which is frozen and understood by all; every other one in the form that is the
// same for all, which later servers have. Internal to the library.
#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <string>

#include "client/cpp/call_spec.h"
#include "tilewire/v1/types.pb.h"

namespace tilewire::client {

/// Sets the operation of `request`, a v1::Open or v1::DescribeKernelsRequest.
void SetOperation(const Operation& operation, google::protobuf::Message* request);

/// A call of Kernels that is one message each way.
struct UnaryRequest {
  std::string method;  ///< "/tilewire.v1.Kernels/Compute"
  /// Its reply can be read as a v1::ComputeResponse: others have one `result` by the number of its `results`.
  std::unique_ptr<google::protobuf::Message> message;
};
/// With operation, options and operands.
UnaryRequest MakeUnaryRequest(const CallSpec& spec);

/// Sets a field of `out` that is an attribute of an operation; the server's KindOf() says which can be.
void SetAttribute(const AttributeValue& value, const google::protobuf::FieldDescriptor* field,
                  google::protobuf::Message* out);

// The form that is the same for all; SetOperation() and MakeUnaryRequest() choose.
void SetMember(const Operation& operation, v1::Operation* out);
UnaryRequest MakeCompute(const CallSpec& spec);

}  // namespace tilewire::client
