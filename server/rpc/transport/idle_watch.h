// Gives up on a client that keeps its call waiting.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "server/base/mutex.h"
#include "server/base/timer.h"
#include "server/rpc/transport/pace.h"

namespace tilewire::rpc {

/// How long a client is waited for.
struct Patience {
  double idle_seconds = 30;
  int64_t block_bytes = 1;  ///< of output that count as progress
  double least_rate = 0;    ///< bytes a second that a job moves while others wait; 0: any
};

/// What a watch asks about its call. Called on the timer's thread, without a lock held.
struct CallFacts {
  std::function<int()> sharers;  ///< streams that share the client's uplink: one of N needs N times as long
  std::function<uint64_t()> moved;    ///< operand and result bytes of the call's job so far
  std::function<bool()> others_wait;  ///< for what the job holds
  std::function<bool()> held_up;      ///< the job waits for the server, whatever else its streams wait for
};

enum class Late : uint8_t {
  kIdle,         ///< no block of progress
  kNeverOpened,  ///< no first message, from headers on
  kSlow,         ///< below the least rate, and others wait
};
/// So long may the first message take at most.
inline constexpr std::chrono::seconds kOpenWithin{10};
/// So long, or as long as without progress, may a job be below the least rate: a client that fetches its next
/// bytes from somewhere is not slow.
inline constexpr std::chrono::seconds kSlowFor{10};

/// Time counts only while the call waits for its client, and only without a block of progress: a message that
/// trickles in byte by byte is no progress. Who makes progress, but slower than the least rate, may do so
/// while nobody else needs what the job holds. The call's coroutines set the marks; a timer looks at them.
/// Thread-safe.
class IdleWatch {
 public:
  /// `on_late(why, cut)`: `cut` says that the client cannot be told, because it does not take what was sent
  /// before.
  using OnLate = std::function<void(Late why, bool cut)>;

  /// Watches for as long as `owner` lives and Stop was not called.
  void Start(std::weak_ptr<void> owner, Timer* timer, const Patience& patience, CallFacts facts,
             OnLate on_late);
  void Stop();

  std::atomic<bool> reading{false};        ///< waits for a message of the client
  std::atomic<bool> writing{false};        ///< waits for the client to take a message
  std::atomic<bool> opened{false};         ///< until then nothing is written that the client would wait for
  std::atomic<uint64_t> blocks_read{0};    ///< input blocks completed
  std::atomic<uint64_t> bytes_written{0};  ///< output bytes taken
  std::atomic<uint64_t> steps{0};          ///< other messages taken

 private:
  struct Seen {
    uint64_t progress = 0, moved = 0;
    TimePoint since, at;  ///< of the last progress, of the last look
    Pace pace;
  };
  void Look(Seen last);
  std::optional<Late> Judge(const Seen& seen) const;

  std::weak_ptr<void> owner_;
  Timer* timer_ = nullptr;
  Patience patience_;
  CallFacts facts_;
  OnLate on_late_;
  Mutex mutex_;
  Timer::Id next_look_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  bool watching_ TILEWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace tilewire::rpc
