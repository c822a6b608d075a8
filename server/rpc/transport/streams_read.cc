#include "server/rpc/transport/streams_read.h"

namespace tilewire::rpc {

constinit thread_local StreamsRead::Last StreamsRead::last;

StreamsRead::Last StreamsRead::Look(Parser parser, const Find& find) {
  const MutexLock lock(mutex_);
  auto found = accounts_.find(parser);
  if (found == accounts_.end()) found = accounts_.emplace(parser, find()).first;
  return {.parser = parser, .ends = ends_.load(std::memory_order_relaxed), .account = found->second.get()};
}

ConnectionAccount* StreamsRead::LookKnown(Parser parser) {
  const MutexLock lock(mutex_);
  const auto found = accounts_.find(parser);
  if (found == accounts_.end()) return nullptr;
  last = {.parser = parser, .ends = ends_.load(std::memory_order_relaxed), .account = found->second.get()};
  return last.account;
}

void StreamsRead::Forget(Parser parser) {
  const MutexLock lock(mutex_);
  if (accounts_.erase(parser) > 0) ends_.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace tilewire::rpc
