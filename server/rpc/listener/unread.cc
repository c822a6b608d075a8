#include "server/rpc/listener/unread.h"

#include <cmath>

namespace tilewire::rpc {
namespace {

// Headers and frames of a small call, most of which are an index each after the first.
constexpr double kHeadersBytes = 128;
// Calls after which what came before counts a third.
constexpr double kForgets = 32;

}  // namespace

void MeanCall::Update(const ConnectionAccount& account) {
  const uint64_t calls = account.calls, messages = account.message_bytes;
  const auto more = static_cast<double>(calls - calls_);
  if (more <= 0) return;
  const double each = static_cast<double>(messages - messages_) / more + kHeadersBytes;
  bytes_ += bytes_ == 0 ? each : (each - bytes_) * (1 - std::exp(-more / kForgets));
  calls_ = calls, messages_ = messages;
}

double MeanCall::CallsIn(int64_t unread_bytes) const {
  return bytes_ == 0 ? 0 : static_cast<double>(unread_bytes) / bytes_;
}

}  // namespace tilewire::rpc
