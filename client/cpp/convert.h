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
void ToProto(const RmseOp& op, v1::RmseOp* out);
void ToProto(const TransposeOp& op, v1::TransposeOp* out);
void ToProto(const GaussianOp& op, v1::GaussianOp* out);
/// Sets the member of a message's oneof that the operation is; `Message` is Open or DescribeKernelsRequest.
template <typename Message>
void SetOperation(const Operation& operation, Message* out) {
  if (const auto* rmse = std::get_if<RmseOp>(&operation)) {
    ToProto(*rmse, out->mutable_rmse());
  } else if (const auto* gaussian = std::get_if<GaussianOp>(&operation)) {
    ToProto(*gaussian, out->mutable_gaussian_pdf());
  } else {
    ToProto(std::get<TransposeOp>(operation), out->mutable_transpose());
  }
}

/// What a result tells beside its bytes: its spec and where it is. BAD_REPLY unless it is what `spec` expects
/// (where that is known), has an id if it was to be stored and none if not, and is where it was to be
/// written.
Status TakeResult(const v1::ArrayResult& result, const CallSpec& spec, Reply* reply);

}  // namespace tilewire::client
