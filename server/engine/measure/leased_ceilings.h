// Who may measure the machine's limits, and with what memory.
#pragma once

#include <cstdint>
#include <functional>

#include "server/base/time_source.h"
#include "server/engine/admission/admission.h"
#include "server/engine/device/device.h"
#include "server/engine/measure/ceilings.h"

namespace tilewire::engine {

/// Rests for nine times as long as the last measurement took, half a second at least, so that whoever asks in
/// a loop takes a tenth of the machine from others. Thread-safe.
class LeasedCeilings {
 public:
  /// `device_bytes`, `pinned_bytes`: the budgets. `on_device_failure` is called where a measurement finds the
  /// device gone. Device, admission and `time` outlive it.
  LeasedCeilings(Device* device, Admission* admission, TimeSource* time, int64_t device_bytes,
                 int64_t pinned_bytes, std::function<void()> on_device_failure);

  /// As Engine::MeasureCeilings.
  void Measure(CeilingMeter::OnMeasured on_measured);

 private:
  Device* const device_;
  Admission* const admission_;
  TimeSource* const time_;
  const int64_t device_bytes_, pinned_bytes_;
  const std::function<void()> on_device_failure_;
  CeilingMeter meter_;
  TimePoint rests_until_;  ///< touched only by whose turn it is
};

}  // namespace tilewire::engine
