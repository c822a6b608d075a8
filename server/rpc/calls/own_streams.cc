#include "server/rpc/calls/own_streams.h"

namespace tilewire::rpc {
namespace {

constexpr int64_t kStreamsRetryMs = 250;

}  // namespace

Status OwnStreams::Enter(const std::string& caller, int most) {
  const MutexLock lock(mutex_);
  const auto found = there_.find(caller);
  const int there = found == there_.end() ? 0 : found->second;
  if (there < most) {
    ++there_[caller];
    return {};
  }
  const std::string allowed = std::to_string(most) + " (streams in --policy)";
  return Status({.code = Code::kResourceExhausted,
                 .reason = "BUSY",
                 .message = std::to_string(there) + " of your calls stream; allowed: " + allowed,
                 .field = "streams of yours",
                 .value = std::to_string(there),
                 .allowed = allowed,
                 .retry_after_ms = kStreamsRetryMs});
}

void OwnStreams::Leave(const std::string& caller) {
  const MutexLock lock(mutex_);
  const auto found = there_.find(caller);
  if (--found->second == 0) there_.erase(found);
}

}  // namespace tilewire::rpc
