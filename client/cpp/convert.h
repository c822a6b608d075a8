// Between messages of tilewire.v1 and the client's own types. Internal to the library.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <optional>
#include <string>
#include <string_view>

#include "client/cpp/client.h"
#include "tilewire/v1/arrays.pb.h"
#include "tilewire/v1/device.pb.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::client {

struct CallSpec;

/// Code, message, ErrorInfo (reason, field, value, allowed) and retry pushback of a finished call. OK stays
/// OK.
Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context);
/// INTERNAL, reason BAD_REPLY: the server broke the contract.
Status BadReply(std::string_view what);

Timing FromProto(const v1::Timing& timing);
ServerInfo FromProto(const v1::DescribeResponse& info);
ServerKernels FromProto(const v1::DescribeKernelsResponse& kernels);
Result<ArraySpec> FromProto(const v1::ArraySpec& spec);
/// BAD_REPLY where the spec is none.
Result<ArrayInfo> FromProto(const v1::ArrayInfo& info);

void ToProto(const ArraySpec& spec, v1::ArraySpec* out);
void ToProto(const RegionPlace& place, v1::RegionPlace* out);

/// What results tell beside their bytes: their specs and where they are. BAD_REPLY unless they are what
/// `spec` expects (where that is known), have ids if they were to be stored and none if not, and are where
/// they were to be written.
Status TakeResults(const google::protobuf::RepeatedPtrField<v1::ArrayResult>& results, const CallSpec& spec,
                   Reply* reply);

}  // namespace tilewire::client
