#include "client/python/core/call.h"

#include <chrono>
#include <new>
#include <string>
#include <utility>

namespace tilewire::python {
namespace {

using Clock = std::chrono::steady_clock;

/// A deadline that passes while a stream is under way may show as its end before it shows as a deadline.
bool MayBeDeadline(Code code) {
  return code == Code::kCancelled || code == Code::kUnavailable || code == Code::kResourceExhausted;
}

Status DeadlinePassed(std::chrono::milliseconds timeout, const Status& seen) {
  std::string message = "the timeout of " + std::to_string(timeout.count()) + " ms passed";
  if (seen.code() != Code::kDeadlineExceeded) message += " (" + seen.ToString() + ")";
  return Status(Code::kDeadlineExceeded, "DEADLINE", message);
}

}  // namespace

Call::Call(const client::CallOptions& options, Explain explain, Work work)
    : options_(options), explain_(std::move(explain)), work_(std::move(work)) {
  options_.stop = stop_.get_token();
}

void Call::Run() {
  if (options_.timeout && options_.timeout->count() <= 0) {  // gRPC may be quicker than its own clock
    work_ = nullptr;
    status_ = Status(Code::kDeadlineExceeded, "DEADLINE", "the timeout is 0 s: no time for a call");
    return;
  }
  const auto start = Clock::now();
  try {
    std::optional<client::OwnedArray> stored;
    auto result = std::exchange(work_, nullptr)(options_, &stored);
    if (stored) stored_.reset(new client::OwnedArray(*std::move(stored)));
    if (result)
      reply_ = *std::move(result);
    else
      status_ = explain_(std::move(result).error());
  } catch (const std::bad_alloc&) {
    status_ = Status(Code::kResourceExhausted, "MEMORY", "this process has no memory left for the call");
  }
  const bool late = options_.timeout && Clock::now() - start >= *options_.timeout;
  if (late && MayBeDeadline(status_.code()) && !stop_.stop_requested())
    status_ = DeadlinePassed(*options_.timeout, status_);
}

Owned<client::OwnedArray> Call::TakeStored() {
  return std::move(stored_);
}

}  // namespace tilewire::python
