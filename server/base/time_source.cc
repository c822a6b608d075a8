#include "server/base/time_source.h"

#include <utility>

namespace tilewire {
namespace {

class SteadyTimeSource final : public TimeSource {
 public:
  TimePoint Now() const override { return Clock::now(); }
  TimePoint SleepUntil(TimePoint when) const override { return when; }
  void Watch(const void*, std::function<void()>) override {}
  void Unwatch(const void*) override {}
};

}  // namespace

TimeSource* SteadyTime() {
  static SteadyTimeSource steady;
  return &steady;
}

void ManualTime::Watch(const void* watcher, std::function<void()> on_jump) {
  const MutexLock lock(mutex_);
  watchers_[watcher] = std::move(on_jump);
}

void ManualTime::Unwatch(const void* watcher) {
  const MutexLock lock(mutex_);
  watchers_.erase(watcher);
}

void ManualTime::Advance(Clock::duration by) {
  const MutexLock lock(mutex_);
  now_ = now_.load() + by;
  for (const auto& [watcher, on_jump] : watchers_) on_jump();
}

}  // namespace tilewire
