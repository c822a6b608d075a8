// Gives up on a client that keeps its call waiting.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "server/base/mutex.h"
#include "server/base/timer.h"

namespace tilewire::rpc {

/// Time counts only while the call waits for its client, and only without a block of progress: a message that
/// trickles in byte by byte is no progress. The call's coroutines set the marks; a timer looks at them.
/// Thread-safe.
class IdleWatch {
 public:
  /// `on_idle(cut)`: `cut` says that the client cannot be told, because it does not take what was sent
  /// before.
  using OnIdle = std::function<void(bool cut)>;

  /// Watches for as long as `owner` lives and Stop was not called. `block_bytes` of output count as progress.
  /// `sharers` tells how many streams share the client's uplink: one of N needs N times as long for a block.
  void Start(std::weak_ptr<void> owner, Timer* timer, double idle_seconds, int64_t block_bytes,
             std::function<int()> sharers, OnIdle on_idle);
  void Stop();

  std::atomic<bool> reading{false};        ///< waits for a message of the client
  std::atomic<bool> writing{false};        ///< waits for the client to take a message
  std::atomic<bool> opened{false};         ///< until then nothing is written that the client would wait for
  std::atomic<uint64_t> blocks_read{0};    ///< input blocks completed
  std::atomic<uint64_t> bytes_written{0};  ///< output bytes taken
  std::atomic<uint64_t> steps{0};          ///< other messages taken

 private:
  void Look(uint64_t last_progress, TimePoint since);

  std::weak_ptr<void> owner_;
  Timer* timer_ = nullptr;
  Clock::duration idle_{};
  uint64_t block_bytes_ = 1;
  std::function<int()> sharers_;
  OnIdle on_idle_;
  Mutex mutex_;
  Timer::Id next_look_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  bool watching_ TILEWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace tilewire::rpc
