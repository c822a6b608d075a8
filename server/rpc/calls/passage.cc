// A call on its way through the throttle: what is counted of it.
#include "server/rpc/calls/throttle.h"

namespace tilewire::rpc {

Throttle::Passage::Passage(Throttle* throttle, std::atomic<int>* line) : throttle_(throttle), line_(line) {
  if (line_ != nullptr && line_->fetch_add(1, std::memory_order_relaxed) == 0)
    throttle_->lines_.fetch_add(1, std::memory_order_relaxed);
  throttle_->came_.fetch_add(1, std::memory_order_relaxed);
  throttle_->waiting_.fetch_add(1, std::memory_order_relaxed);
}

Throttle::Passage::~Passage() {
  if (!runs_) {
    WaitsNoLonger();
    return;
  }
  throttle_->running_.fetch_sub(1, std::memory_order_relaxed);
  throttle_->done_.fetch_add(1, std::memory_order_relaxed);
}

void Throttle::Passage::Begins() {
  runs_ = true;
  throttle_->very_old_.store(0, std::memory_order_relaxed);
  throttle_->running_.fetch_add(1, std::memory_order_relaxed);
  WaitsNoLonger();
}

void Throttle::Passage::Leaves() {
  throttle_->came_.fetch_sub(1, std::memory_order_relaxed);
}

void Throttle::Passage::WaitsNoLonger() {
  if (line_ != nullptr && line_->fetch_sub(1, std::memory_order_relaxed) == 1)
    throttle_->lines_.fetch_sub(1, std::memory_order_relaxed);
  if (throttle_->waiting_.fetch_sub(1, std::memory_order_relaxed) == 1)
    throttle_->idle_.store(true, std::memory_order_relaxed);
}

}  // namespace tilewire::rpc
