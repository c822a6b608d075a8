// A queue with a thread of its own, which sleeps while nobody needs it.
#pragma once

#include <grpcpp/completion_queue.h>

#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/mutex.h"
#include "server/base/timing.h"
#include "server/rpc/transport/progress.h"

namespace tilewire::rpc {

/// For calls that take long: events of one such queue never run at once. While no call is on it the thread
/// does not wait in gRPC's epoll set, where it would read what comes for others and have to wake them
/// (crew.h). Thread-safe.
class QueueThread {
 public:
  explicit QueueThread(std::unique_ptr<grpc::ServerCompletionQueue> queue) : queue_(std::move(queue)) {}
  /// When nothing can start an operation on the queue any more: shuts it down and empties it.
  ~QueueThread();
  QueueThread(const QueueThread&) = delete;

  /// Once. Throws std::system_error where the system has no threads.
  void Start();

  grpc::ServerCompletionQueue* queue() const { return queue_.get(); }

  /// To be said several times a second while there are connections: where gRPC keeps the thread (progress.h)
  /// another one goes on, of at most 16. Not beside Start or the end.
  void LookAfter(TimePoint now);

  /// Whether nobody is there, and nothing is done.
  bool asleep() const;

  /// Somebody needs the queue until he leaves.
  void Enter();
  void Leave();

  /// Entered, and left with it.
  class Stay {
   public:
    Stay() = default;
    explicit Stay(QueueThread* at) : at_(at) { at_->Enter(); }
    Stay(Stay&& other) noexcept : at_(std::exchange(other.at_, nullptr)) {}
    Stay& operator=(Stay&& other) noexcept {
      std::swap(at_, other.at_);
      return *this;
    }
    ~Stay() {
      if (at_ != nullptr) at_->Leave();
    }

   private:
    QueueThread* at_ = nullptr;
  };

 private:
  /// One of its threads, guarded by the mutex but for what is atomic, or LookAfter's.
  struct Member {
    Progress progress;
    std::atomic<bool> in_grpc{false};
    bool stands = false;
  };

  void AddThread() TILEWIRE_REQUIRES(mutex_);
  void Run();
  /// Sleeps while nobody is there, or another one serves; false: it ends.
  bool AwaitTurn(Member* member);
  /// Waits for an event and does it; false: the queue is shut down and empty.
  bool DoNext(Member* member);

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::thread> threads_ TILEWIRE_GUARDED_BY(mutex_);
  std::deque<Member> members_ TILEWIRE_GUARDED_BY(mutex_);  ///< where they are they stay
  Member* serving_ TILEWIRE_GUARDED_BY(mutex_) = nullptr;   ///< the one that waits for events, or does one
  size_t waiting_ TILEWIRE_GUARDED_BY(mutex_) = 0;          ///< threads, for their turn
  int present_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  bool ended_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::atomic<int> standing_{0};  ///< threads; set with the mutex
  Mutex one_at_a_time_;           ///< held while an event is done
};

}  // namespace tilewire::rpc
