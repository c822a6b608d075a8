// Gets a job what was planned for it.
#pragma once

#include "kernels/array/status.h"
#include "server/engine/admission/planner.h"
#include "server/engine/device/device.h"
#include "server/engine/job/job.h"

namespace tilewire::engine {

/// Thread-safe.
class Leaser {
 public:
  /// `device` outlives it.
  explicit Leaser(Device* device) : device_(device) {}
  /// What `memory` lacks: all but the ticket. Fails as allocating does; what was leased by then goes with
  /// `memory`.
  Status Lease(const Job& job, const MemoryPlan& plan, JobMemory* memory) const;

 private:
  Device* const device_;
};

}  // namespace tilewire::engine
