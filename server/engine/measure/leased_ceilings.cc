#include "server/engine/measure/leased_ceilings.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "server/base/limits.h"
#include "server/engine/device/memory_pool.h"

namespace tilewire::engine {
namespace {

// Of one piece of memory that is copied: larger copies are no faster.
constexpr int64_t kCeilingBytes = 32 * kMiB;
constexpr int64_t kPage = 4096;
constexpr int64_t kRetryMs = 500;
constexpr auto kLeastRest = std::chrono::milliseconds(kRetryMs);
constexpr int kRests = 9;  // for each span of measuring

}  // namespace

LeasedCeilings::LeasedCeilings(Device* device, Admission* admission, TimeSource* time, int64_t device_bytes,
                               int64_t pinned_bytes, std::function<void()> on_device_failure)
    : device_(device),
      admission_(admission),
      time_(time),
      device_bytes_(device_bytes),
      pinned_bytes_(pinned_bytes),
      on_device_failure_(std::move(on_device_failure)),
      meter_(device) {}

void LeasedCeilings::Measure(CeilingMeter::OnMeasured on_measured) {
  if (!meter_.TryAcquire())
    return on_measured(Fail(Busy("the ceilings are being measured for somebody else", kRetryMs)));
  if (const auto rest = rests_until_ - time_->Now(); rest > Clock::duration::zero()) {
    meter_.Release();
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(rest).count();
    return on_measured(Fail(Busy("the ceilings were measured a moment ago", ms)));
  }
  const bool host_memory = device_->facts().host_memory;
  int64_t unit = std::min(kCeilingBytes, device_bytes_ / 8);
  if (!host_memory) unit = std::min(unit, pinned_bytes_ / 8);
  const CeilingMemory memory{std::max(unit / kPage * kPage, kPage)};
  const auto pieces = 2 * static_cast<int64_t>(MemoryPool::RoundUp(static_cast<size_t>(memory.unit)));
  const Demand demand{.device_bytes = host_memory ? 2 * pieces : pieces,
                      .pinned_bytes = host_memory ? 0 : pieces};
  const auto measure = [this, memory, on_measured = std::move(on_measured)](Result<Ticket> ticket) {
    if (!ticket) {
      meter_.Release();
      return on_measured(Fail(std::move(ticket).error()));
    }
    auto held = std::make_shared<Ticket>(*std::move(ticket));
    meter_.Measure(memory,
                   [this, held, on_measured, began = time_->Now()](Result<std::vector<Ceiling>> ceilings) {
                     if (!ceilings && !device_->health().ok())
                       on_device_failure_();  // an idle server may notice here first
                     *held = Ticket();
                     const TimePoint now = time_->Now();
                     rests_until_ = now + std::max<Clock::duration>(kLeastRest, kRests * (now - began));
                     meter_.Release();
                     on_measured(std::move(ceilings));
                   });
  };
  admission_->Request(demand, TimePoint::max(), measure);
}

}  // namespace tilewire::engine
