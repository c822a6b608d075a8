// How much has come of headers that have not come whole.
#pragma once

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
  /// Of one header as it came, and frames in which it may come. Of its metadata 8 KiB are taken.
  static constexpr size_t kMostBytes = 64 << 10;
  static constexpr int kMostFrames = 64;
  using Parser = const void*;

  /// A frame of a header begins, the last one or not.
  void BeginFrame(Parser parser, uint32_t stream, bool last);
  /// A piece of it has come, and maybe its end. False: that is too much.
  bool Came(Parser parser, size_t bytes, bool frame_ends);
  /// There is no such parser any more.
  void Forget(Parser parser);

 private:
  struct Header {
    uint32_t stream = 0;  ///< 0: not known
    bool last = false;    ///< the frame that comes is its last one
    int frames = 0;
    size_t bytes = 0;
  };
  struct Begun {
    Parser parser = nullptr;
    uint32_t stream = 0;
    bool last = false;
  };

  bool none() const { return count_.load(std::memory_order_relaxed) == 0; }
  void Counted() TILEWIRE_REQUIRES(mutex_) { count_.store(headers_.size(), std::memory_order_relaxed); }

  static constinit thread_local Begun begun;  ///< the frame whose beginning the thread has read last
  Mutex mutex_;
  std::unordered_map<Parser, Header> headers_ TILEWIRE_GUARDED_BY(mutex_);
  std::atomic<size_t> count_{0};
};

}  // namespace tilewire::rpc
