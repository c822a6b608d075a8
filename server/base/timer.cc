#include "server/base/timer.h"

#include <utility>

namespace tilewire {

Timer::Timer(TimeSource* time) : time_(time), thread_([this] { Run(); }) {
  time_->Watch(this, [this] {
    const MutexLock lock(mutex_);  // so that the thread does not look just before and sleep just after
    if (wakes_at_ <= Now()) wake_.NotifyOne();  // where it would wake by itself, whatever is due by now
  });
}

Timer::~Timer() {
  time_->Unwatch(this);
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.NotifyOne();
  thread_.join();
  // What a dropped function owns may arm or cancel timers as it goes, so this timer must still be whole.
  for (auto dropped = std::exchange(due_, {}); !dropped.empty(); dropped = std::exchange(due_, {})) {
    times_.clear();
    dropped.clear();
  }
}

Timer::Id Timer::At(TimePoint when, std::function<void()> function) {
  MutexLock lock(mutex_);
  const Id id = ++last_id_;
  due_.emplace(std::pair(when, id), std::move(function));
  times_.emplace(id, when);
  if (when < wakes_at_) wake_.NotifyOne();
  return id;
}

void Timer::Cancel(Id id) {
  std::function<void()> dropped;  // destroyed after the lock is gone: it may own things that call back
  MutexLock lock(mutex_);
  const auto it = times_.find(id);
  if (it == times_.end()) return;
  const auto due = due_.find({it->second, id});
  dropped = std::move(due->second);
  due_.erase(due);
  times_.erase(it);
}

void Timer::Run() {
  RelockableMutexLock lock(mutex_);
  while (!stop_) {
    if (due_.empty()) {
      wakes_at_ = TimePoint::max();
      wake_.Wait(mutex_);
      continue;
    }
    const auto first = due_.begin();
    const TimePoint when = first->first.first;
    if (when > Now()) {
      wakes_at_ = when;
      wake_.WaitUntil(mutex_, time_->SleepUntil(when));
      continue;
    }
    wakes_at_ = TimePoint::min();  // awake: it looks again before it sleeps
    auto function = std::move(first->second);
    times_.erase(first->first.second);
    due_.erase(first);
    lock.Unlock();
    function();
    function = nullptr;
    lock.Lock();
  }
}

}  // namespace tilewire
