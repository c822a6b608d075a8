// How much of messages that have not come whole may be here.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/rpc/transport/allowance.h"

namespace tilewire::rpc {

/// gRPC 1.51 looks at a message's size only when all of it is here, and until then binds what has come, for
/// as many streams as there are. Here each message is followed by the length that it begins with, and what
/// has come of those that are not whole counts, by the blocks of memory that it keeps, as a byte of one keeps
/// all of it: no share has so much that others find nothing (Allowance). Most messages come whole, at once,
/// and cost nothing. Thread-safe; of one stream at a time.
class MessagesOnWay {
 public:
  using Stream = const void*;
  /// What a message counts to; nothing where `allowance` is null.
  struct Share {
    Allowance* allowance = nullptr;
    std::string name;
  };
  /// Asked once a stream at most.
  using ShareOf = std::function<Share()>;
  /// Memory that pieces lie in, and of how many bytes it is.
  struct Block {
    const void* at = nullptr;
    int64_t bytes = 0;
  };

  /// The next piece of a stream's messages, each behind the five bytes that gRPC puts before it, and the
  /// block that it lies in, which counts once where pieces of it come one after the other. BUSY where that is
  /// too much: then nothing of it counts any more, and nothing more of the stream is to come.
  template <typename B, typename F>
  Status Came(Stream stream, std::string_view piece, const B& block_of, const F& share_of) {
    Shard& shard = Of(stream);
    if (shard.none() && IsWhole(piece)) return {};
    return CameInPieces(&shard, stream, piece, block_of(), share_of);
  }
  /// There is no such stream any more.
  void Forget(Stream stream);

 private:
  static constexpr int kPrefixBytes = 5;
  struct Message {
    int prefix = 0;       ///< bytes of it that have come
    uint32_t length = 0;  ///< as far as they say
    int64_t came = 0;
    bool is_asked = false;
    Share share;
    Allowance::Held held;

    /// Whether one has ended with that piece, or there is none.
    bool Advance(std::string_view piece);
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
  static void Return(Message* message);
  static Status CameInPieces(Shard* shard, Stream stream, std::string_view piece, Block block,
                             const ShareOf& share_of);
  Shard& Of(Stream stream) {
    constexpr uintptr_t kLeastBytes = 512;  // that streams are apart, more or less
    return shards_[reinterpret_cast<uintptr_t>(stream) / kLeastBytes % shards_.size()];
  }

  static constinit thread_local const void* counted;  ///< the block that the thread has counted last
  std::array<Shard, 64> shards_;
};

}  // namespace tilewire::rpc
