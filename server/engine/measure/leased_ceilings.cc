// Who may measure the machine's limits, and with what memory.
#include <algorithm>
#include <memory>
#include <utility>

#include "server/base/limits.h"
#include "server/engine/device/memory_pool.h"
#include "server/engine/engine.h"

namespace tilewire::engine {
namespace {

// Of one piece of memory that is copied: larger copies are no faster.
constexpr int64_t kCeilingBytes = 32 * kMiB;
constexpr int64_t kPage = 4096;
constexpr int64_t kRetryMs = 500;

}  // namespace

void Engine::MeasureCeilings(CeilingMeter::OnMeasured on_measured) {
  if (!ceiling_meter_.TryAcquire())
    return on_measured(Fail(Busy("the ceilings are being measured for somebody else", kRetryMs)));
  const bool host_memory = facts().host_memory;
  int64_t unit = std::min(kCeilingBytes, options_.device_bytes / 8);
  if (!host_memory) unit = std::min(unit, options_.pinned_bytes / 8);
  const CeilingMemory memory{std::max(unit / kPage * kPage, kPage)};
  const auto pieces = 2 * static_cast<int64_t>(MemoryPool::RoundUp(static_cast<size_t>(memory.unit)));
  const Demand demand{.device_bytes = host_memory ? 2 * pieces : pieces,
                      .pinned_bytes = host_memory ? 0 : pieces};
  const auto measure = [this, memory, on_measured = std::move(on_measured)](Result<Ticket> ticket) {
    if (!ticket) {
      ceiling_meter_.Release();
      return on_measured(Fail(std::move(ticket).error()));
    }
    auto held = std::make_shared<Ticket>(*std::move(ticket));
    ceiling_meter_.Measure(memory, [this, held, on_measured](Result<std::vector<Ceiling>> ceilings) {
      if (!ceilings && !device_->health().ok()) DeviceFailed();  // an idle server may notice here first
      *held = Ticket();
      ceiling_meter_.Release();
      on_measured(std::move(ceilings));
    });
  };
  admission_.Request(demand, TimePoint::max(), measure);
}

}  // namespace tilewire::engine
