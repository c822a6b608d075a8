#include "server/rpc/transport/awaited.h"

#include <utility>

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

}  // namespace tilewire::rpc
