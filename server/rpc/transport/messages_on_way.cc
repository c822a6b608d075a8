#include "server/rpc/transport/messages_on_way.h"

#include <algorithm>
#include <utility>

namespace tilewire::rpc {

constinit thread_local const void* MessagesOnWay::counted = nullptr;

bool MessagesOnWay::IsWhole(std::string_view piece) {
  Message message;
  message.Advance(piece);
  return message.prefix == 0;
}

bool MessagesOnWay::Message::Advance(std::string_view piece) {
  bool ended = false;
  while (!piece.empty()) {
    for (; prefix < kPrefixBytes && !piece.empty(); ++prefix, piece.remove_prefix(1))
      if (prefix > 0) length = length << 8 | static_cast<uint8_t>(piece.front());  // after a byte of flags
    if (prefix < kPrefixBytes) break;
    const auto bytes = std::min<int64_t>(length - came, static_cast<int64_t>(piece.size()));
    came += bytes;
    piece.remove_prefix(static_cast<size_t>(bytes));
    if (came < length) break;
    prefix = 0, length = 0, came = 0;
    ended = true;
  }
  return ended;
}

Status MessagesOnWay::CameInPieces(Shard* shard, Stream stream, std::string_view piece, Block block,
                                   const ShareOf& share_of) {
  const MutexLock lock(shard->mutex);
  const auto at = shard->messages.try_emplace(stream).first;
  Message& message = at->second;
  if (message.Advance(piece)) Return(&message);
  if (message.prefix == 0) {
    shard->messages.erase(at);
    shard->Counted();
    return {};
  }
  shard->Counted();
  if (block.bytes == 0 || std::exchange(counted, block.at) == block.at) return {};
  if (!message.is_asked) {
    message.is_asked = true;
    message.share = share_of();
  }
  if (message.share.allowance == nullptr) return {};
  Status status = message.share.allowance->Take(block.bytes, message.share.name, &message.held);
  // gRPC lets go of it with its call, at once, and it is not to cost others of its share theirs.
  if (!status.ok()) Return(&message);
  return status;
}

void MessagesOnWay::Forget(Stream stream) {
  Shard& shard = Of(stream);
  if (shard.none()) return;
  const MutexLock lock(shard.mutex);
  const auto found = shard.messages.find(stream);
  if (found == shard.messages.end()) return;
  Return(&found->second);
  shard.messages.erase(found);
  shard.Counted();
}

void MessagesOnWay::Return(Message* message) {
  if (message->held.bytes == 0) return;
  message->share.allowance->Return(message->share.name, &message->held);
  counted = nullptr;  // perhaps for that one, and another block may soon be where it was
}

}  // namespace tilewire::rpc
