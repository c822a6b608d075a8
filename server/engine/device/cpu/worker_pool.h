// Threads that share data-parallel loops: the compute of the CPU device.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "server/base/mutex.h"

namespace tilewire::engine {

/// Thread-safe: any number of threads may call ParallelFor at once, and the workers go round their loops in
/// turn, so a short loop never waits for a long one to end. The destructor must not run beside a ParallelFor.
class WorkerPool {
 public:
  using Body = std::function<void(int64_t begin, int64_t end)>;

  /// `threads` ≥ 0 workers; with 0 every caller does its loop alone.
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int threads() const { return static_cast<int>(threads_.size()); }

  /// Calls `body` on pieces of at most `grain` items (≥ 1; lower counts as 1) that together cover [0, items)
  /// exactly once, on the calling thread and on workers, and returns when all have returned: their writes are
  /// then visible to the caller. `body` must not throw. It may call ParallelFor. Allocates nothing a piece.
  void ParallelFor(int64_t items, int64_t grain, const Body& body);

 private:
  struct Loop;

  void Work();
  void Unlist(Loop* loop) TILEWIRE_REQUIRES(mutex_);

  Mutex mutex_;
  CondVar work_;                                          ///< a loop was listed, or stop_
  CondVar left_;                                          ///< a worker left a loop
  std::vector<Loop*> loops_ TILEWIRE_GUARDED_BY(mutex_);  ///< loops that may have pieces left
  size_t turn_ TILEWIRE_GUARDED_BY(mutex_) = 0;           ///< whose turn it is among loops_
  bool stop_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tilewire::engine
