// How much of messages that have not come whole may be here.
#pragma once

#include <absl/functional/function_ref.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/rpc/transport/blocks_kept.h"

namespace tilewire::rpc {

/// gRPC 1.51 looks at a message's size only when all of it is here, and until then binds what has come, for
/// as many streams as there are. Here each message is followed by the length that it begins with: one that is
/// too large is refused when it says so, and what has come of others counts while they are not whole, by the
/// blocks of memory that it keeps: no share has so much that others find nothing (Allowance). Most messages
/// come whole, at once, and cost nothing. Thread-safe; of one stream at a time.
class MessagesOnWay {
 public:
  using Stream = const void*;
  /// Asked once at most until a message ends with a piece; null: nothing of it counts or is refused.
  using ShareOf = absl::FunctionRef<std::shared_ptr<const BlocksKept::Share>()>;
  using BlockOf = absl::FunctionRef<BlocksKept::Block()>;
  struct Verdict {
    bool is_wanted = true;  ///< else nothing more of that stream is to be kept
    Status refusal;         ///< why, said once a stream
  };

  /// The next piece of a stream's messages, each behind the five bytes that gRPC puts before it; `block_of`:
  /// what it lies in. Refused: LIMIT where a message is larger than gRPC takes, BAD_MESSAGE where it is none,
  /// BUSY where too much is here.
  Verdict Came(Stream stream, std::string_view piece, BlockOf block_of, ShareOf share_of) {
    Shard& shard = Of(stream);
    if (shard.none() && IsWhole(piece)) return {};
    return CameInPieces(&shard, stream, piece, block_of, share_of);
  }
  bool IsRefused(Stream stream);
  /// There is no such stream any more; whether it was refused.
  bool Forget(Stream stream);

 private:
  static constexpr int kPrefixBytes = 5;
  /// Where in its messages a stream is.
  struct Progress {
    int prefix = 0;       ///< bytes of it that have come
    uint8_t flags = 0;    ///< the first of them
    uint32_t length = 0;  ///< as far as the others say
    int64_t came = 0;

    /// Whether one has ended with that piece, or there is none. Goes no further than what no message may be.
    bool Advance(std::string_view piece);
    /// What no message may be.
    Status Wrong() const;
  };
  struct Message : Progress {
    bool is_asked = false, is_refused = false;
    std::shared_ptr<const BlocksKept::Share> share;
    std::vector<const void*> blocks;
    int64_t keeps = 0;     ///< bytes of them and of `held`
    int64_t pieces = 0;    ///< of it, whose records gRPC keeps,
    Allowance::Held held;  ///< which count by themselves

    bool is_nobodys() const { return is_asked && share == nullptr; }
  };
  /// Those who send none in pieces are not to wait for those who do.
  struct Shard {
    Mutex mutex;
    std::unordered_map<Stream, Message> messages TILEWIRE_GUARDED_BY(mutex);
    std::atomic<size_t> count{0};

    bool none() const { return count.load(std::memory_order_relaxed) == 0; }
    void Counted() TILEWIRE_REQUIRES(mutex) { count.store(messages.size(), std::memory_order_relaxed); }
  };

  static bool IsWhole(std::string_view piece);
  Verdict CameInPieces(Shard* shard, Stream stream, std::string_view piece, BlockOf block_of,
                       ShareOf share_of);
  Status Keep(Message* message, const BlocksKept::Block& block, ShareOf share_of);
  void Leave(Message* message);
  Shard& Of(Stream stream) {
    constexpr uintptr_t kLeastBytes = 512;  // that streams are apart, more or less
    return shards_[reinterpret_cast<uintptr_t>(stream) / kLeastBytes % shards_.size()];
  }

  std::array<Shard, 64> shards_;
  BlocksKept blocks_;
};

}  // namespace tilewire::rpc
