// What differs in a job whose operands are there already or in regions, or whose result stays on the device.
#include <utility>

#include "server/engine/job/job.h"

namespace tilewire::engine {

Status CheckPlaces(const Operation& operation, const JobOptions& options) {
  const RegionPart& result = options.result_region;
  const int64_t result_bytes = operation.result_bytes();
  if (result) TILEWIRE_RETURN_IF_ERROR(result.Holds(result_bytes, true));
  for (size_t i = 0; i < options.regions.size(); ++i) {
    const RegionPart& part = options.regions[i];
    const int64_t bytes = operation.operands()[i].bytes();
    if (!part) continue;
    TILEWIRE_RETURN_IF_ERROR(part.Holds(bytes, false));
    TILEWIRE_RETURN_IF_ERROR(result.LiesApart(result_bytes, part, bytes));
  }
  return {};
}

void Job::Begin() {
  Deferred later;
  {
    MutexLock lock(mutex_);
    if (!status_.ok()) return;
    if (!resources_.stored.empty()) {  // nothing to do: the result is there
      stored_id_ = resources_.stored;
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

std::string Job::stored_id() const {
  MutexLock lock(mutex_);
  return stored_id_;
}

/// Without the lock: what the store does with the memory may let other jobs in. Nobody else touches it any
/// more, since all work is done and nothing is sent.
void Job::StoreResult(const OnOutput& on_output) {
  Ticket ticket = resources_.ticket.Split(resources_.room.device_bytes());
  auto id = resources_.room.Commit(std::move(resources_.result), std::move(ticket));
  Deferred later;
  {
    MutexLock lock(mutex_);
    if (id) {
      stored_id_ = *id;
    } else {
      storing_ = false;
      FailLocked(id.error(), &later);
    }
  }
  RunAll(&later);
  if (id) return on_output(std::optional<OutputPiece>());
  on_output(tilewire::Fail(std::move(id).error()));
}

}  // namespace tilewire::engine
