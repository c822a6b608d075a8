// How much has come of headers that have not come whole.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "server/base/mutex.h"

namespace tilewire::rpc {

/// gRPC 1.51 keeps what has come of a header until all of it is here, reads it anew with each piece, and sets
/// no bound to either (CVE-2023-33953): a few megabytes take all of a core. Nearly all headers come whole, at
/// once, and cost nothing here. Thread-safe; of one parser, who reads one connection, at a time.
class UnfinishedHeaders {
 public:
  /// Of the headers of one stream, if they come in pieces, and frames in which they may come. Of the metadata
  /// of a call 8 KiB are taken.
  static constexpr size_t kMostBytes = 64 << 10;
  static constexpr int kMostFrames = 64;
  using Parser = const void*;

  /// A frame of a header begins, the last one or not. Of streams that it skips gRPC 1.51 says that wrongly,
  /// so a second one of the same stream counts in any case.
  void BeginFrame(Parser parser, uint32_t stream, bool last);
  /// A piece of it has come, and maybe its end. False: that is too much.
  bool Came(Parser parser, size_t bytes, bool frame_ends);
  /// There is no such parser any more.
  void Forget(Parser parser);

 private:
  struct Header {
    uint32_t stream = 0;  ///< 0: not known
    int frames = 1;
    size_t bytes = 0;
  };
  struct Begun {
    Parser parser = nullptr;
    uint32_t stream = 0;
  };
  /// Those who send none in pieces are not to wait for those who do.
  struct Shard {
    Mutex mutex;
    std::unordered_map<Parser, Header> headers TILEWIRE_GUARDED_BY(mutex);
    std::atomic<size_t> count{0};

    bool none() const { return count.load(std::memory_order_relaxed) == 0; }
    void Counted() TILEWIRE_REQUIRES(mutex) { count.store(headers.size(), std::memory_order_relaxed); }
  };

  Shard& Of(Parser parser) {
    constexpr uintptr_t kLeastBytes = 4096;  // that parsers are apart, more or less
    return shards_[reinterpret_cast<uintptr_t>(parser) / kLeastBytes % shards_.size()];
  }

  static constinit thread_local Begun begun;  ///< the frame whose beginning the thread has read last
  std::array<Shard, 64> shards_;
};

}  // namespace tilewire::rpc
