#include "server/rpc/transport/queue_thread.h"

#include <grpcpp/alarm.h>
#include <pthread.h>

#include <exception>

#include "server/rpc/transport/coroutine.h"

namespace tilewire::rpc {
namespace {

constexpr size_t kMostThreads = 16;

/// Whose event this thread does.
thread_local const QueueThread* doing = nullptr;

/// Tells the thread to look whether anybody is there.
class Nudge final : public Event {
 public:
  static void Send(grpc::CompletionQueue* queue) {
    auto* const nudge = new Nudge;
    ComeAtOnce(&nudge->alarm_, queue, nudge);
  }

 private:
  void Complete(bool) override { delete this; }
  grpc::Alarm alarm_;
};

}  // namespace

void QueueThread::Start() {
  const MutexLock lock(mutex_);
  AddThread();
}

void QueueThread::AddThread() {
  threads_.emplace_back([this] {
    pthread_setname_np(pthread_self(), "tw-streams");
    Run();
  });
}

QueueThread::~QueueThread() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
    threads.swap(threads_);
  }
  queue_->Shutdown();
  for (auto& thread : threads) thread.join();
  ServeQueue(queue_.get());
}

bool QueueThread::asleep() const {
  const MutexLock lock(mutex_);
  return present_ == 0 && waiting_ == threads_.size();
}

void QueueThread::Enter() {
  const MutexLock lock(mutex_);
  if (++present_ == 1) changed_.NotifyAll();
}

void QueueThread::Leave() {
  const MutexLock lock(mutex_);
  if (--present_ == 0 && !ended_ && doing != this) Nudge::Send(queue_.get());
}

void QueueThread::LookAfter(TimePoint now) {
  const MutexLock lock(mutex_);
  if (serving_ != nullptr) {
    // In the middle of an event it is not gRPC that keeps it, and nobody else may do one.
    const bool stands = serving_->progress.Stands(now) && serving_->in_grpc.load(std::memory_order_relaxed);
    if (!stands) return;
    serving_->stands = true;
    standing_.fetch_add(1, std::memory_order_relaxed);
    serving_ = nullptr;
  }
  if (present_ == 0 || standing_.load(std::memory_order_relaxed) == 0) return;
  if (waiting_ > 0) return changed_.NotifyAll();
  if (threads_.size() >= kMostThreads) return;
  try {
    AddThread();
  } catch (const std::exception&) {  // the system has none: at the next look, perhaps
  }
}

bool QueueThread::AwaitTurn(Member* member) {
  const MutexLock lock(mutex_);
  if (member->stands) {
    member->stands = false;
    standing_.fetch_sub(1, std::memory_order_relaxed);
  } else if (serving_ == member) {
    serving_ = nullptr;
  }
  ++waiting_;
  while ((present_ == 0 || serving_ != nullptr) && !ended_) changed_.Wait(mutex_);
  --waiting_;
  if (ended_) return false;
  serving_ = member;
  return true;
}

bool QueueThread::DoNext(Member* member) {
  const bool beside = standing_.load(std::memory_order_relaxed) > 0;
  void* tag = nullptr;
  bool ok = false;
  member->progress.Made();
  member->in_grpc.store(true, std::memory_order_relaxed);
  const auto next = queue_->AsyncNext(&tag, &ok, After(beside ? Progress::kWaitsBeside : Progress::kWaits));
  member->in_grpc.store(false, std::memory_order_relaxed);
  member->progress.Made();
  if (next == grpc::CompletionQueue::GOT_EVENT) {
    const MutexLock alone(one_at_a_time_);
    doing = this;
    static_cast<Event*>(tag)->Complete(ok);
    doing = nullptr;
  }
  return next != grpc::CompletionQueue::SHUTDOWN;
}

void QueueThread::Run() {
  Member* member = nullptr;
  {
    const MutexLock lock(mutex_);
    member = &members_.emplace_back();
  }
  while (AwaitTurn(member)) {
    if (!DoNext(member)) return;
  }
}

}  // namespace tilewire::rpc
