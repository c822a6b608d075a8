#include "server/rpc/transport/crew.h"

#include "server/rpc/transport/awaited.h"
#include "server/rpc/transport/coroutine.h"

namespace tilewire::rpc {
namespace {

/// What the crew's thread that asks is doing.
struct Duty {
  Crew* crew = nullptr;
  bool behind = false;  ///< what it does had come before it was waited for
};
thread_local Duty duty;

}  // namespace

void Crew::Start(int most) {
  for (int i = 0; i < most; ++i) threads_.emplace_back([this] { Run(); });
}

Crew::~Crew() {
  if (threads_.empty()) Run();  // there were no threads for it
  for (auto& thread : threads_) thread.join();
}

int Crew::resting() const {
  const MutexLock lock(mutex_);
  return resting_ - calls_;
}

void Crew::Took(bool busy) {
  if (duty.crew != nullptr) duty.crew->CallAnother(busy || duty.behind);
}

void Crew::CallAnother(bool in_any_case) {
  const MutexLock lock(mutex_);
  if (waited_for_ || calls_ > 0 || resting_ == 0 || (!in_any_case && awake_ < 2)) return;
  ++calls_;
  called_.NotifyOne();
}

void Crew::End() {
  const MutexLock lock(mutex_);
  ended_ = true;
  called_.NotifyAll();
}

bool Crew::TakesTurn() {
  const MutexLock lock(mutex_);
  if (!waited_for_ && !ended_) {
    waited_for_ = true;
    return true;
  }
  ++resting_;
  --awake_;
  while (calls_ == 0 && !ended_) called_.Wait(mutex_);
  ++awake_;
  --resting_;
  if (calls_ > 0) --calls_;
  return false;
}

bool Crew::DoWhatIsThere(bool behind) {
  void* tag = nullptr;
  bool ok = false;
  for (;; behind = true) {
    switch (queue_->AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_REALTIME))) {
      case grpc::CompletionQueue::TIMEOUT:
        return true;
      case grpc::CompletionQueue::SHUTDOWN:
        return false;
      case grpc::CompletionQueue::GOT_EVENT:
        Awaited::OfThisThread().Leave();
        duty.behind = behind;
        static_cast<Event*>(tag)->Complete(ok);
    }
  }
}

bool Crew::DoNext() {
  void* tag = nullptr;
  bool ok = false;
  const bool got = queue_->Next(&tag, &ok);
  {
    const MutexLock lock(mutex_);
    waited_for_ = false;
  }
  duty.behind = false;
  if (got) static_cast<Event*>(tag)->Complete(ok);
  return got;
}

void Crew::Run() {
  {
    const MutexLock lock(mutex_);
    ++awake_;
  }
  duty.crew = this;
  Awaited& awaited = Awaited::OfThisThread();
  bool looked = false;
  while (DoWhatIsThere(!looked)) {
    looked = awaited.any();
    if (looked) {
      awaited.Look();
    } else if (TakesTurn() && !DoNext()) {
      break;
    }
  }
  duty.crew = nullptr;
  End();
}

}  // namespace tilewire::rpc
