// What differs in a job whose result stays on the device.
#include <string>
#include <utility>
#include <vector>

#include "server/engine/job/job.h"

namespace tilewire::engine {

std::string Job::stored_id(size_t result) const {
  MutexLock lock(mutex_);
  return result < stored_ids_.size() ? stored_ids_[result] : "";
}

/// Without the lock: what the store does with the memory may let other jobs in. Nobody else touches it any
/// more, since all work is done and nothing is sent.
void Job::StoreResult(const OnOutput& on_output) {
  Reservation& room = *std::get<Stored>(places().result).room;
  std::vector<ArrayParts> parts;
  for (const int64_t bytes : room.device_bytes())
    parts.push_back({memory_.ticket.Split(bytes), std::move(memory_.results[parts.size()])});
  auto ids = room.Commit(std::move(parts));
  Deferred later;
  {
    MutexLock lock(mutex_);
    if (ids) {
      stored_ids_ = *ids;
    } else {
      storing_ = false;
      FailLocked(ids.error(), &later);
    }
  }
  RunAll(&later);
  if (ids) return on_output(std::optional<OutputPiece>());
  on_output(tilewire::Fail(std::move(ids).error()));
}

}  // namespace tilewire::engine
