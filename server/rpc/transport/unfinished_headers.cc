#include "server/rpc/transport/unfinished_headers.h"

namespace tilewire::rpc {

constinit thread_local UnfinishedHeaders::Begun UnfinishedHeaders::begun;

void UnfinishedHeaders::BeginFrame(Parser parser, uint32_t stream, bool last) {
  begun = {.parser = parser, .stream = stream, .last = last};
  if (last && none()) return;
  const MutexLock lock(mutex_);
  const auto found = headers_.find(parser);
  if (found != headers_.end() && found->second.stream == stream) {
    found->second.last = last;
    ++found->second.frames;
    return;
  }
  if (found != headers_.end()) headers_.erase(found);
  if (!last) headers_[parser] = {.stream = stream, .frames = 1};
  Counted();
}

bool UnfinishedHeaders::Came(Parser parser, size_t bytes, bool frame_ends) {
  if (frame_ends && none()) return bytes <= kMostBytes;
  const MutexLock lock(mutex_);
  auto found = headers_.find(parser);
  if (found == headers_.end()) {
    if (frame_ends) return bytes <= kMostBytes;
    // Where another thread read its beginning nothing is known of it, and the next header ends it.
    const Begun known = begun.parser == parser ? begun : Begun{};
    found = headers_.emplace(parser, Header{.stream = known.stream, .last = known.last, .frames = 1}).first;
  }
  Header& header = found->second;
  header.bytes += bytes;
  const bool fits = header.bytes <= kMostBytes && header.frames <= kMostFrames;
  if (frame_ends && header.last) headers_.erase(found);
  Counted();
  return fits;
}

void UnfinishedHeaders::Forget(Parser parser) {
  if (none()) return;
  const MutexLock lock(mutex_);
  headers_.erase(parser);
  Counted();
}

}  // namespace tilewire::rpc
