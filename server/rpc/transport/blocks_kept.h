// Memory that pieces of messages keep.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/rpc/transport/allowance.h"

namespace tilewire::rpc {

/// Blocks of memory that gRPC read into, each counted once, while there is a message that has a piece in it:
/// a byte of one keeps all of it. What lies in one block is one connection's, but for streams that were
/// reset: theirs may be freed, and be another's, before they end. Thread-safe.
class BlocksKept {
 public:
  /// What a block counts to.
  struct Share {
    Allowance* allowance = nullptr;
    std::string name;
  };
  struct Block {
    const void* at = nullptr;
    int64_t bytes = 0;
  };
  /// What a block takes here, which counts, too.
  static constexpr int64_t kRecordBytes = 96;

  /// A message keeps it from now on, which keeps so many bytes already, as counted here. BUSY, and nothing
  /// done, where its share would have too much; a message of a common size that is alone always passes.
  Status Keep(const Block& block, std::shared_ptr<const Share> share, int64_t keeps);
  /// Takes `bytes` of `share` for such a message, into `held`.
  static Status Take(int64_t bytes, const Share& share, int64_t keeps, Allowance::Held* held);
  /// That message does not any more.
  void Leave(const void* block);

 private:
  struct Kept {
    int messages = 1;
    std::shared_ptr<const Share> share;
    Allowance::Held held;
  };
  struct Shard {
    Mutex mutex;
    std::unordered_map<const void*, Kept> blocks TILEWIRE_GUARDED_BY(mutex);
  };

  Shard& Of(const void* block) {
    constexpr uintptr_t kLeastBytes = 256;  // that blocks are apart, more or less
    return shards_[reinterpret_cast<uintptr_t>(block) / kLeastBytes % shards_.size()];
  }

  std::array<Shard, 64> shards_;
};

}  // namespace tilewire::rpc
