#include "server/rpc/calls/cancellation.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <string>
#include <utility>

#include "server/base/limits.h"
#include "server/rpc/transport/grpc_reads.h"
#include "server/rpc/transport/receive_limits.h"
#include "server/rpc/transport/refused_calls.h"

namespace tilewire::rpc {
namespace {

/// What gRPC told the client, as far as it can be known here.
Status RefusedByGrpc() {
  return Status(
      {.code = Code::kResourceExhausted,
       .reason = "LIMIT",
       .message = "gRPC refused a message of more than " + std::to_string(kTransportMessageBytes) + " bytes",
       .field = "message",
       .value = "more than " + std::to_string(kTransportMessageBytes) + " bytes",
       .allowed = std::to_string(kMaxMessageBytes)});
}

/// A client cancels at its own deadline; what it told the server was rounded up and took a while to arrive.
/// Of short ones half: not all who cancel them were late.
Clock::duration DeadlineSlack(Clock::duration whole) {
  return std::min<Clock::duration>(std::chrono::milliseconds(20) + whole / 50, whole / 2);
}

}  // namespace

void Cancellation::Start(std::shared_ptr<void> call, const Metadata* metadata, TimePoint arrived) {
  {
    const MutexLock lock(mutex_);
    metadata_ = metadata;
    arrived_ = arrived;
    if (!over_) {
      call_ = std::move(call);
      return;
    }
  }
  if (context_->IsCancelled()) ClientGone();
}

void Cancellation::Complete(bool) {
  std::shared_ptr<void> call;
  {
    const MutexLock lock(mutex_);
    over_ = true;
    call = std::move(call_);
  }
  if (call && context_->IsCancelled()) ClientGone();
}

void Cancellation::ClientGone() {
  cancelled_.store(true);
  if (running_->cutting()) return End(ServerGone(), false);
  End(GoneOrLate(), false);
}

Status Cancellation::GoneOrLate() const {
  if (const auto why = RefusedCalls::OfProcess().Why(context_->c_call())) return *why;
  const auto left = metadata_->TimeLeft();
  if (left && *left <= DeadlineSlack(*left + (Clock::now() - arrived_)))
    return Status(Code::kDeadlineExceeded, "DEADLINE", "the call's deadline passed");
  return Status(Code::kCancelled, "CANCELLED", "the client cancelled the call or is gone");
}

void Cancellation::End(const Status& status, bool cut) {
  const Status why = job_->End(status);
  // A server may end a call at any time only through the C API; the client sees this very code and message.
  if (cut)
    grpc_call_cancel_with_status(context_->c_call(), static_cast<grpc_status_code>(why.code()),
                                 std::string(why.message()).c_str(), nullptr);
}

bool Cancellation::InputEndedEarly() {
  // The transport's errors are the client's doing. Where gRPC refuses messages by itself, a client that
  // half-closes early and then cancels passes for one whose message was too large: nothing tells them apart.
  input_ended_early_ = !grpc_call_failed_before_recv_message(context_->c_call());
  return input_ended_early_;
}

Status Cancellation::OnRecord(const Status& status) const {
  if (!cancelled()) return status;
  if (const auto why = RefusedCalls::OfProcess().Why(context_->c_call())) return *why;
  const Status reason = job_->reason();
  if (input_ended_early_ && !SeesMessages() && reason.reason() == "CANCELLED") return RefusedByGrpc();
  // A client that is gone looks like one that half-closed until gRPC says so, and nobody got a reply that was
  // ready.
  return status.ok() || status.reason() == "BYTES_MISSING" ? reason : status;
}

}  // namespace tilewire::rpc
