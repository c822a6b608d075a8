#include "server/engine/device/cpu/worker_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>

namespace tilewire::engine {
namespace {

/// Pieces that a worker takes of one loop before it looks at the next: few, so that concurrent loops share
/// the workers, but more than one, so that the lock is not taken for every piece.
constexpr int kPiecesPerTurn = 4;

}  // namespace

/// Lives on the stack of the caller, which leaves only once no worker is inside.
struct WorkerPool::Loop {
  const Body& body;
  const int64_t items, grain, pieces;
  std::atomic<int64_t> next{0};  ///< pieces are handed out by counting
  int inside = 0;                ///< workers in it; under mutex_

  /// Runs up to `limit` pieces; false when none is left.
  bool Run(int64_t limit) {
    for (int64_t i = 0; i < limit; ++i) {
      const int64_t piece = next.fetch_add(1, std::memory_order_relaxed);
      if (piece >= pieces) return false;
      const int64_t begin = piece * grain;
      body(begin, begin + std::min(grain, items - begin));
    }
    return true;
  }
};

WorkerPool::WorkerPool(int threads) {
  threads_.reserve(static_cast<size_t>(std::max(threads, 0)));
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Work(); });
    pthread_setname_np(threads_.back().native_handle(), "tw-worker");
  }
}

WorkerPool::~WorkerPool() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  work_.NotifyAll();
  for (auto& thread : threads_) thread.join();
}

void WorkerPool::ParallelFor(int64_t items, int64_t grain, const Body& body) {
  if (items <= 0) return;
  grain = std::clamp<int64_t>(grain, 1, items);
  Loop loop{body, items, grain, (items - 1) / grain + 1};
  if (loop.pieces == 1 || threads_.empty()) {
    loop.Run(loop.pieces);
    return;
  }
  {
    MutexLock lock(mutex_);
    loops_.push_back(&loop);
  }
  const int64_t helpers = std::min<int64_t>(loop.pieces - 1, threads());
  for (int64_t i = 0; i < helpers; ++i) work_.NotifyOne();
  loop.Run(loop.pieces);
  // A worker may still be in its last piece. The lock also makes its writes visible here.
  MutexLock lock(mutex_);
  Unlist(&loop);
  while (loop.inside > 0) left_.Wait(mutex_);
}

void WorkerPool::Work() {
  RelockableMutexLock lock(mutex_);
  while (true) {
    while (!stop_ && loops_.empty()) work_.Wait(mutex_);
    if (loops_.empty()) return;
    Loop* loop = loops_[turn_++ % loops_.size()];
    ++loop->inside;
    lock.Unlock();
    const bool more = loop->Run(kPiecesPerTurn);
    lock.Lock();
    if (!more) Unlist(loop);
    // The caller may return, and the loop be gone, as soon as the lock is released with nobody inside.
    if (--loop->inside == 0) left_.NotifyAll();
  }
}

void WorkerPool::Unlist(Loop* loop) {
  const auto it = std::find(loops_.begin(), loops_.end(), loop);
  if (it != loops_.end()) loops_.erase(it);
}

}  // namespace tilewire::engine
