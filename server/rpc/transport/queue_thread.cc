#include "server/rpc/transport/queue_thread.h"

#include <grpcpp/alarm.h>
#include <pthread.h>

#include "server/rpc/transport/coroutine.h"

namespace tilewire::rpc {
namespace {

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
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "tw-streams");
}

QueueThread::~QueueThread() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyOne();
  }
  queue_->Shutdown();
  if (thread_.joinable()) thread_.join();
  ServeQueue(queue_.get());
}

bool QueueThread::asleep() const {
  const MutexLock lock(mutex_);
  return asleep_;
}

void QueueThread::Enter() {
  const MutexLock lock(mutex_);
  if (++present_ == 1) changed_.NotifyOne();
}

void QueueThread::Leave() {
  const MutexLock lock(mutex_);
  if (--present_ == 0 && !ended_ && std::this_thread::get_id() != thread_.get_id()) Nudge::Send(queue_.get());
}

bool QueueThread::AwaitSomebody() {
  const MutexLock lock(mutex_);
  asleep_ = true;
  while (present_ == 0 && !ended_) changed_.Wait(mutex_);
  asleep_ = false;
  return !ended_;
}

void QueueThread::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (AwaitSomebody()) {
    if (!queue_->Next(&tag, &ok)) return;
    static_cast<Event*>(tag)->Complete(ok);
  }
}

}  // namespace tilewire::rpc
