// Gets a job what was planned for it.
#pragma once

#include "kernels/array/status.h"
#include "server/engine/admission/planner.h"
#include "server/engine/device/device.h"

namespace tilewire::engine {

/// Thread-safe.
class Leaser {
 public:
  /// `device` outlives it.
  explicit Leaser(Device* device) : device_(device) {}
  /// What `resources` lacks: all but the ticket. Fails as allocating does; what was leased by then goes with
  /// `resources`.
  Status Lease(const Operation& operation, JobPlan plan, JobResources* resources) const;

 private:
  Device* const device_;
};

}  // namespace tilewire::engine
