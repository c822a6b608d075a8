#include "server/rpc/transport/unfinished_headers.h"

#include <utility>

namespace tilewire::rpc {

constinit thread_local UnfinishedHeaders::Begun UnfinishedHeaders::begun;

void UnfinishedHeaders::BeginFrame(Parser parser, uint32_t stream, bool last) {
  const Begun before = std::exchange(begun, {.parser = parser, .stream = stream});
  const bool again = before.parser == parser && before.stream == stream;
  Shard& shard = Of(parser);
  if (last && !again && shard.none()) return;
  const MutexLock lock(shard.mutex);
  const auto found = shard.headers.find(parser);
  if (found != shard.headers.end() && found->second.stream == stream) {
    ++found->second.frames;
    return;
  }
  if (found != shard.headers.end()) shard.headers.erase(found);
  if (!last || again) shard.headers[parser] = {.stream = stream};
  shard.Counted();
}

bool UnfinishedHeaders::Came(Parser parser, size_t bytes, bool frame_ends) {
  Shard& shard = Of(parser);
  if (frame_ends && shard.none()) return bytes <= kMostBytes;
  const MutexLock lock(shard.mutex);
  auto found = shard.headers.find(parser);
  if (found == shard.headers.end()) {
    if (frame_ends) return bytes <= kMostBytes;
    // Where another thread read its beginning nothing is known of it, and the next header ends it.
    const uint32_t stream = begun.parser == parser ? begun.stream : 0;
    found = shard.headers.emplace(parser, Header{.stream = stream}).first;
    shard.Counted();
  }
  Header& header = found->second;
  header.bytes += bytes;
  return header.bytes <= kMostBytes && header.frames <= kMostFrames;
}

void UnfinishedHeaders::Forget(Parser parser) {
  Shard& shard = Of(parser);
  if (shard.none()) return;
  const MutexLock lock(shard.mutex);
  shard.headers.erase(parser);
  shard.Counted();
}

}  // namespace tilewire::rpc
