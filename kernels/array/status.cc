#include "kernels/array/status.h"

namespace tilewire {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kCancelled:
      return "CANCELLED";
    case Code::kUnknown:
      return "UNKNOWN";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kAlreadyExists:
      return "ALREADY_EXISTS";
    case Code::kPermissionDenied:
      return "PERMISSION_DENIED";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kAborted:
      return "ABORTED";
    case Code::kOutOfRange:
      return "OUT_OF_RANGE";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
    case Code::kDataLoss:
      return "DATA_LOSS";
    case Code::kUnauthenticated:
      return "UNAUTHENTICATED";
  }
  return "UNKNOWN";
}

Status::Status(Code code, std::string_view reason, std::string_view message)
    : Status(Detail{.code = code, .reason = std::string(reason), .message = std::string(message)}) {}

std::string Status::ToString() const {
  if (ok()) return "OK";
  return std::string(CodeName(code())) + ": " + detail_->message;
}

std::string Status::LogText() const {
  if (ok()) return "";
  if (!detail_->unlogged) return detail_->message;
  return detail_->field + " is an id of " + std::to_string(detail_->value.size()) +
         " characters, which is not logged; allowed: " + detail_->allowed;
}

namespace {
tl::unexpected<Status> FieldError(Code code, std::string_view reason, std::string_view field,
                                  std::string_view value, std::string_view allowed, bool unlogged = false) {
  Status::Detail d{.code = code,
                   .reason = std::string(reason),
                   .field = std::string(field),
                   .value = std::string(value),
                   .allowed = std::string(allowed),
                   .unlogged = unlogged};
  d.message = d.field + " is " + d.value + "; allowed: " + d.allowed;
  return Fail(Status(std::move(d)));
}
}  // namespace

tl::unexpected<Status> BadValue(std::string_view field, std::string_view value, std::string_view allowed) {
  return FieldError(Code::kInvalidArgument, "BAD_VALUE", field, value, allowed);
}

tl::unexpected<Status> BadId(std::string_view field, std::string_view id, std::string_view allowed) {
  return FieldError(Code::kInvalidArgument, "BAD_VALUE", field, id, allowed, true);
}

tl::unexpected<Status> OverLimit(std::string_view field, std::string_view value, std::string_view allowed) {
  return FieldError(Code::kResourceExhausted, "LIMIT", field, value, allowed);
}

Status Busy(std::string_view message, int64_t retry_after_ms) {
  return Status(Status::Detail{.code = Code::kResourceExhausted,
                               .reason = "BUSY",
                               .message = std::string(message),
                               .retry_after_ms = retry_after_ms});
}

}  // namespace tilewire
