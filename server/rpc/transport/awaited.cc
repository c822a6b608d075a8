#include "server/rpc/transport/awaited.h"

#include <utility>

#include "server/rpc/transport/coroutine.h"

namespace tilewire::rpc {

Awaited& Awaited::OfThisThread() {
  thread_local Awaited awaited;
  return awaited;
}

void Awaited::Keep(std::shared_ptr<Lookout> lookout) {
  Leave();
  lookout_ = std::move(lookout);
}

void Awaited::Look() {
  const std::shared_ptr<Lookout> lookout = lookout_;  // what runs meanwhile may keep another one
  if (!lookout->Look() && lookout_ == lookout) lookout_ = nullptr;
}

void Awaited::Leave() {
  if (const auto lookout = std::exchange(lookout_, nullptr)) lookout->Leave();
}

void ServeJobs(grpc::CompletionQueue* queue) {
  Awaited& awaited = Awaited::OfThisThread();
  void* tag = nullptr;
  bool ok = false;
  for (;;) {
    if (!awaited.any()) {
      if (!queue->Next(&tag, &ok)) return;
    } else {
      const auto next = queue->AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_REALTIME));
      if (next == grpc::CompletionQueue::TIMEOUT) {
        awaited.Look();
        continue;
      }
      awaited.Leave();
      if (next == grpc::CompletionQueue::SHUTDOWN) return;
    }
    static_cast<Event*>(tag)->Complete(ok);
  }
}

}  // namespace tilewire::rpc
