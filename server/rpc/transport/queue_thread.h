// A queue with a thread of its own, which sleeps while nobody needs it.
#pragma once

#include <grpcpp/completion_queue.h>

#include <memory>
#include <thread>
#include <utility>

#include "server/base/mutex.h"

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
  void Run();
  /// Sleeps while nobody is there; false: it ends.
  bool AwaitSomebody();

  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::thread thread_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool asleep_ TILEWIRE_GUARDED_BY(mutex_) = false;
  int present_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  bool ended_ TILEWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace tilewire::rpc
