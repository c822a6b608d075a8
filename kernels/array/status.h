// The one error type of every layer that does not know gRPC.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace tilewire {

/// Canonical status codes; the numbers are gRPC's, so that mapping is a cast
/// (server/rpc/conversions/status.cc).
enum class Code : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// "INVALID_ARGUMENT" and so on.
std::string_view CodeName(Code code);

/// Success, or a code with what went wrong. Copies share the detail; OK is a null pointer. Thread-compatible.
class [[nodiscard]] Status {
 public:
  struct Detail {
    Code code = Code::kUnknown;
    std::string reason;           ///< UPPER_SNAKE word for programs: google.rpc.ErrorInfo.reason
    std::string message;          ///< for people; names the field, the value and what was allowed
    std::string field;            ///< the offending request field, or empty
    std::string value;            ///< what it was
    std::string allowed;          ///< what it may be
    int64_t retry_after_ms = -1;  ///< ≥ 0: worth a retry after that many milliseconds
    bool unlogged = false;        ///< `value` is between client and server, as ids are: no log shows it
  };

  Status() = default;
  explicit Status(Detail detail) : detail_(std::make_shared<const Detail>(std::move(detail))) {}
  Status(Code code, std::string_view reason, std::string_view message);

  bool ok() const { return detail_ == nullptr; }
  Code code() const { return detail_ ? detail_->code : Code::kOk; }
  std::string_view reason() const { return detail_ ? std::string_view(detail_->reason) : std::string_view(); }
  std::string_view message() const {
    return detail_ ? std::string_view(detail_->message) : std::string_view();
  }
  /// Null when ok.
  const Detail* detail() const { return detail_.get(); }
  /// The message for logs: without a value that is `unlogged`, and then without any text but ours.
  std::string LogText() const;
  /// "OK", or "CODE_NAME: message".
  std::string ToString() const;

 private:
  std::shared_ptr<const Detail> detail_;
};

template <typename T>
using Result = tl::expected<T, Status>;

/// INVALID_ARGUMENT, reason BAD_VALUE: "`field` is `value`; allowed: `allowed`".
tl::unexpected<Status> BadValue(std::string_view field, std::string_view value, std::string_view allowed);
/// BadValue for an id, which no log shows.
tl::unexpected<Status> BadId(std::string_view field, std::string_view id, std::string_view allowed);
/// RESOURCE_EXHAUSTED, reason LIMIT: well formed, but more than this server is configured for; never worth a
/// retry.
tl::unexpected<Status> OverLimit(std::string_view field, std::string_view value, std::string_view allowed);
/// RESOURCE_EXHAUSTED, reason BUSY: the same request may succeed after `retry_after_ms`.
Status Busy(std::string_view message, int64_t retry_after_ms);

inline tl::unexpected<Status> Fail(Status status) {
  return tl::unexpected<Status>(std::move(status));
}

}  // namespace tilewire

/// Returns the error of a Result or Status expression from a function that returns Status or Result<T>.
#define TILEWIRE_CONCAT_(a, b) a##b
#define TILEWIRE_CONCAT(a, b) TILEWIRE_CONCAT_(a, b)
#define TILEWIRE_RETURN_IF_ERROR(expr) \
  if (::tilewire::Status status_ = (expr); !status_.ok()) return ::tilewire::ErrorReturn(std::move(status_))
#define TILEWIRE_ASSIGN_OR_RETURN_(tmp, lhs, expr)                  \
  auto tmp = (expr);                                                \
  if (!tmp) return ::tilewire::ErrorReturn(std::move(tmp).error()); \
  lhs = *std::move(tmp)
#define TILEWIRE_ASSIGN_OR_RETURN(lhs, expr) \
  TILEWIRE_ASSIGN_OR_RETURN_(TILEWIRE_CONCAT(result_, __LINE__), lhs, expr)

namespace tilewire {
/// Converts to either return type of a failing function; only the macros above use it.
struct ErrorReturn {
  explicit ErrorReturn(Status s) : status(std::move(s)) {}
  Status status;
  operator Status() && { return std::move(status); }  // NOLINT(google-explicit-constructor)
  template <typename T>
  operator Result<T>() && {  // NOLINT(google-explicit-constructor)
    return tl::unexpected<Status>(std::move(status));
  }
};
}  // namespace tilewire
