// How a job comes by its memory, and what it does first with it.
#include <memory>
#include <utility>

#include "server/engine/job/job.h"

namespace tilewire::engine {

void Job::AwaitLanding(Order order, Admission::Decision decide) {
  auto shared = std::make_shared<Order>(std::move(order));
  {
    const MutexLock lock(mutex_);
    if (!status_.ok()) return;  // by its deadline
    order_ = shared;
  }
  shared->Bind(std::move(decide));
}

bool Job::Land() {
  if (has_memory()) return true;
  std::shared_ptr<Order> order;
  {
    const MutexLock lock(mutex_);
    if (!order_ || phase_.load() != Phase::kOpen) return false;
    phase_.store(Phase::kLanded);
    landed_ = Clock::now();
    order = order_;
  }
  order->Land();
  return has_memory();
}

void Job::Begin(JobMemory memory) {
  Deferred later;
  std::shared_ptr<Order> done;  // without the lock, as memory that comes too late
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) return;
    memory_ = std::move(memory);
    if (phase_.load() == Phase::kLanded)
      spans_.Add({.stage = Stage::kQueue, .begin = landed_, .end = Clock::now()});
    phase_.store(Phase::kHasMemory);
    done.swap(order_);
    input_.Open();
    input_.Wake(&later.calls);
    if (const auto* before = std::get_if<StoredBefore>(&places().result)) {  // nothing to do
      for (const ArrayUse& array : before->arrays) stored_ids_.push_back(array->id());
      storing_ = true;
      ResultReadyLocked(operation_->result_bytes(), &later);
    } else if (arriving_ == 0) {
      for (int64_t i = 0; i < operation_->range_count(); ++i) LaunchRangeLocked(i, &later);
    } else {
      PumpRegionsLocked(&later);
    }
  }
  RunAll(&later);
}

}  // namespace tilewire::engine
