// Calls that were refused where gRPC reads their messages, before whoever handles them saw these.
#pragma once

#include <grpc/grpc.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <unordered_map>

#include "kernels/array/status.h"
#include "server/base/mutex.h"

namespace tilewire::rpc {

/// Why each of them was, which gRPC tells its client and nobody else. Thread-safe.
class RefusedCalls {
 public:
  static RefusedCalls& OfProcess();

  void Add(const grpc_call* call, const Status& why);
  /// There is no such call any more.
  void Forget(const grpc_call* call);
  /// Nothing of one that was not refused.
  std::optional<Status> Why(const grpc_call* call) const;

 private:
  mutable Mutex mutex_;
  std::unordered_map<const grpc_call*, Status> why_ TILEWIRE_GUARDED_BY(mutex_);
  std::atomic<size_t> count_{0};  ///< who was not refused needs no lock while nobody was
};

}  // namespace tilewire::rpc
