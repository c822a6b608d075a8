#include "server/rpc/transport/blocks_kept.h"

#include <utility>

#include "server/rpc/transport/receive_limits.h"

namespace tilewire::rpc {
Status BlocksKept::Take(int64_t bytes, const Share& share, int64_t keeps, Allowance::Held* held) {
  const bool is_alone = share.allowance->held() <= keeps;
  if (is_alone && keeps + bytes <= 2 * kTransportMessageBytes) {
    share.allowance->Add(bytes, share.name, held);
    return {};
  }
  return share.allowance->Take(bytes, share.name, held);
}

Status BlocksKept::Keep(const Block& block, std::shared_ptr<const Share> share, int64_t keeps) {
  Shard& shard = Of(block.at);
  const MutexLock lock(shard.mutex);
  const auto [at, is_new] = shard.blocks.try_emplace(block.at);
  Kept& kept = at->second;
  if (!is_new) {
    ++kept.messages;
    return {};
  }
  Status status = Take(block.bytes + kRecordBytes, *share, keeps, &kept.held);
  if (status.ok())
    kept.share = std::move(share);
  else
    shard.blocks.erase(at);
  return status;
}

void BlocksKept::Leave(const void* block) {
  Shard& shard = Of(block);
  const MutexLock lock(shard.mutex);
  const auto at = shard.blocks.find(block);
  if (--at->second.messages > 0) return;
  at->second.share->allowance->Return(at->second.share->name, &at->second.held);
  shard.blocks.erase(at);
}

}  // namespace tilewire::rpc
