#include "client/load/checkers.h"

#include <algorithm>
#include <utility>

namespace tilewire::load {

uint32_t CheckerCount() {
  return std::min(4u, std::max(1u, std::thread::hardware_concurrency() / 4));
}

Checkers::Checkers(uint32_t threads) {
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

Checkers::~Checkers() {
  Finish();
}

void Checkers::Submit(std::function<void()> check) {
  {
    const MutexLock lock(mutex_);
    if (finished_) return;
    waiting_.push_back(std::move(check));
  }
  wake_.NotifyOne();
}

void Checkers::Finish() {
  {
    const MutexLock lock(mutex_);
    finished_ = true;
    wake_.NotifyAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Checkers::Work() {
  for (;;) {
    std::function<void()> check;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !finished_) wake_.Wait(mutex_);
      if (waiting_.empty()) return;
      check = std::move(waiting_.front());
      waiting_.pop_front();
    }
    check();
  }
}

}  // namespace tilewire::load
