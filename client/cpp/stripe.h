// What the streams of one striped call share. Internal to the library.
//
//   Stripe ──turns (a block of an operand each)──> StreamCall 0, 1, 2, … ──messages──> their connections
//          <──output at any offset────────────────
//
// Streams take the next turn when they have sent the last: a slow connection carries less, a refused one
// nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/schedule.h"
#include "proto/wire/codec.h"
#include "server/base/mutex.h"

namespace tilewire::client {

/// Thread-safe, but for Start.
class Stripe {
 public:
  /// `options.progress` and, unless `options.concurrent_sink`, `sink` are called by one thread at a time.
  /// `results`: bytes that come of each.
  Stripe(const ResultSink& sink, const CallOptions& options, uint64_t send_total,
         const std::vector<uint64_t>& results);

  /// The server has admitted the call. Before any turn is taken.
  void Start(Schedule schedule) { schedule_.emplace(std::move(schedule)); }

  /// The next block of an operand that nobody sends yet.
  std::optional<ChunkPlan> NextTurn();
  /// Cuts the next message off a turn.
  ChunkPlan CutMessage(ChunkPlan* turn) const { return schedule_->CutMessage(turn); }
  /// Operand bytes were taken by gRPC.
  void Sent(uint64_t bytes);
  /// Output bytes that start at `offset` of a result. INTERNAL `BAD_REPLY` where there is no such result,
  /// beyond its end, or where a byte came before; or the sink's error.
  Status Deliver(size_t result, uint64_t offset, const wire::Pieces& pieces);
  /// Whether operand bytes were handed to gRPC, or output bytes to the sink.
  Moved moved() const { return moved_.load(); }
  /// Whether the sink has all output.
  bool complete() const { return complete_.load(); }
  uint64_t received() const;
  uint64_t receive_total() const { return ends_.empty() ? 0 : ends_.back(); }

 private:
  /// Notes that [begin, end) came; false when a part of it had.
  bool CoverLocked(uint64_t begin, uint64_t end) TILEWIRE_REQUIRES(mutex_);
  Status BeginLocked(size_t result, uint64_t offset, uint64_t bytes) TILEWIRE_REQUIRES(mutex_);
  Status Pass(size_t result, uint64_t offset, const wire::Pieces& pieces) const;
  /// Where a result begins among all of them.
  uint64_t BeginOf(size_t result) const { return result == 0 ? 0 : ends_[result - 1]; }
  void ReceivedLocked(uint64_t bytes) TILEWIRE_REQUIRES(mutex_);
  void Report() const TILEWIRE_REQUIRES(mutex_) {
    if (options_.progress) options_.progress(progress_);
  }

  const ResultSink& sink_;
  const CallOptions& options_;
  std::vector<uint64_t> ends_;  // of the results, one right after the other; const once made
  mutable Mutex mutex_;
  std::optional<Schedule> schedule_;  // its turns are guarded by mutex_
  Progress progress_ TILEWIRE_GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> covered_
      TILEWIRE_GUARDED_BY(mutex_);  // output bytes that came, counted over all results: begin → end
  std::atomic<Moved> moved_{Moved::kNothing};
  std::atomic<bool> complete_;
};

}  // namespace tilewire::client
