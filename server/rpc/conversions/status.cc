#include "server/rpc/conversions/status.h"

#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace tilewire::rpc {
namespace {

/// What went wrong inside, a device's own words included, is for the log.
std::string PublicMessage(const Status::Detail& detail) {
  if (detail.code != Code::kInternal) return detail.message;
  if (detail.reason == "DEVICE_FAILED") return "the device failed while the job was running on it";
  return "internal error; the server's log has the request id";
}

}  // namespace

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const Status::Detail& detail = *status.detail();
  const std::string message = PublicMessage(detail);

  google::rpc::ErrorInfo info;
  info.set_reason(detail.reason);
  info.set_domain("tilewire");
  if (!detail.field.empty()) {
    (*info.mutable_metadata())["field"] = detail.field;
    (*info.mutable_metadata())["value"] = detail.value;
    (*info.mutable_metadata())["allowed"] = detail.allowed;
  }
  google::rpc::Status details;
  details.set_code(static_cast<int>(detail.code));
  details.set_message(message);
  details.add_details()->PackFrom(info);
  return grpc::Status(static_cast<grpc::StatusCode>(detail.code), message, details.SerializeAsString());
}

void AddRetryPushback(const Status& status, grpc::ServerContext* context) {
  if (!status.ok() && status.detail()->retry_after_ms >= 0)
    context->AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(status.detail()->retry_after_ms));
}

}  // namespace tilewire::rpc
