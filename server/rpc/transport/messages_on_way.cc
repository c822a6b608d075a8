#include "server/rpc/transport/messages_on_way.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/rpc/transport/receive_limits.h"
#include "server/rpc/transport/slices.h"

namespace tilewire::rpc {
namespace {

constexpr uint8_t kMostFlags = 1;  // compressed
// Pieces are counted so many at a time. gRPC has a slice for each in an array that grows by half, and we have
// where its block is.
constexpr int64_t kPieces = 64;
constexpr int64_t kPieceBytes = 64;

}  // namespace

bool MessagesOnWay::IsWhole(std::string_view piece) {
  Progress progress;
  progress.Advance(piece);
  return progress.prefix == 0;
}

bool MessagesOnWay::Progress::Advance(std::string_view piece) {
  bool ended = false;
  while (!piece.empty()) {
    for (; prefix < kPrefixBytes && !piece.empty(); ++prefix, piece.remove_prefix(1)) {
      const auto byte = static_cast<uint8_t>(piece.front());
      if (prefix == 0)
        flags = byte;
      else
        length = length << 8 | byte;
    }
    if (prefix < kPrefixBytes || flags > kMostFlags || length > kTransportMessageBytes) break;
    const auto bytes = std::min<int64_t>(length - came, static_cast<int64_t>(piece.size()));
    came += bytes;
    piece.remove_prefix(static_cast<size_t>(bytes));
    if (came < length) break;
    prefix = 0, length = 0, came = 0;
    ended = true;
  }
  return ended;
}

Status MessagesOnWay::Progress::Wrong() const {
  if (prefix == 0) return {};
  if (flags > kMostFlags)
    return Status(
        {.code = Code::kInvalidArgument,
         .reason = "BAD_MESSAGE",
         .message = "a message begins with " + std::to_string(flags) + "; gRPC knows 0, and 1: compressed"});
  if (prefix < kPrefixBytes || length <= kTransportMessageBytes) return {};
  return MessageTooLarge(length);
}

MessagesOnWay::Verdict MessagesOnWay::CameInPieces(Shard* shard, Stream stream, std::string_view piece,
                                                   BlockOf block_of, ShareOf share_of) {
  const MutexLock lock(shard->mutex);
  auto at = shard->messages.find(stream);
  if (at == shard->messages.end()) {
    if (IsWhole(piece)) return {};
    at = shard->messages.try_emplace(stream).first;
    shard->Counted();
  }
  Message& message = at->second;
  if (message.is_refused) return {.is_wanted = false, .refusal = {}};
  if (message.is_nobodys()) return {};
  if (message.Advance(piece)) Leave(&message);
  if (message.prefix == 0) {
    shard->messages.erase(at);
    shard->Counted();
    return {};
  }
  Status status = Keep(&message, block_of(), share_of);
  if (status.ok()) return {};
  // gRPC lets go of it with its call, soon, and it is not to cost others of its share theirs.
  Leave(&message);
  message.is_refused = true;
  return {.is_wanted = false, .refusal = std::move(status)};
}

Status MessagesOnWay::Keep(Message* message, const BlocksKept::Block& block, ShareOf share_of) {
  Status wrong = message->Wrong();
  const bool is_record = ++message->pieces % kPieces == 0;
  const bool is_counted =
      block.bytes == 0 || (!message->blocks.empty() && message->blocks.back() == block.at);
  if (wrong.ok() && is_counted && !is_record) return {};
  if (!std::exchange(message->is_asked, true)) message->share = share_of();
  if (message->share == nullptr) return {};
  if (!wrong.ok()) return wrong;
  if (is_record) {
    constexpr int64_t kBytes = kPieces * kPieceBytes;
    TILEWIRE_RETURN_IF_ERROR(BlocksKept::Take(kBytes, *message->share, message->keeps, &message->held));
    message->keeps += kBytes;
  }
  if (is_counted) return {};
  TILEWIRE_RETURN_IF_ERROR(blocks_.Keep(block, message->share, message->keeps));
  message->blocks.push_back(block.at);
  message->keeps += block.bytes + BlocksKept::kRecordBytes;
  return {};
}

bool MessagesOnWay::IsRefused(Stream stream) {
  Shard& shard = Of(stream);
  if (shard.none()) return false;
  const MutexLock lock(shard.mutex);
  const auto found = shard.messages.find(stream);
  return found != shard.messages.end() && found->second.is_refused;
}

bool MessagesOnWay::Forget(Stream stream) {
  Shard& shard = Of(stream);
  if (shard.none()) return false;
  const MutexLock lock(shard.mutex);
  const auto found = shard.messages.find(stream);
  if (found == shard.messages.end()) return false;
  Leave(&found->second);
  const bool was_refused = found->second.is_refused;
  shard.messages.erase(found);
  shard.Counted();
  return was_refused;
}

void MessagesOnWay::Leave(Message* message) {
  for (const void* const block : message->blocks) blocks_.Leave(block);
  message->blocks.clear();
  message->keeps = 0;
  message->pieces = 0;
  if (message->held.bytes > 0) message->share->allowance->Return(message->share->name, &message->held);
}

}  // namespace tilewire::rpc
