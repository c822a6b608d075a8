#include "server/rpc/transport/refused_calls.h"

namespace tilewire::rpc {

RefusedCalls& RefusedCalls::OfProcess() {
  static auto* const calls = new RefusedCalls;  // for good: gRPC's threads may outlive any static object
  return *calls;
}

void RefusedCalls::Add(const grpc_call* call, const Status& why) {
  const MutexLock lock(mutex_);
  why_.insert_or_assign(call, why);
  count_.store(why_.size());
}

void RefusedCalls::Forget(const grpc_call* call) {
  const MutexLock lock(mutex_);
  why_.erase(call);
  count_.store(why_.size());
}

std::optional<Status> RefusedCalls::Why(const grpc_call* call) const {
  if (count_.load() == 0) return std::nullopt;
  const MutexLock lock(mutex_);
  const auto found = why_.find(call);
  if (found == why_.end()) return std::nullopt;
  return found->second;
}

}  // namespace tilewire::rpc
