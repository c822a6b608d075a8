// The lanes of an engine, and which of them a job runs on.
#include <algorithm>
#include <utility>

#include "server/engine/device/cpu/device.h"
#include "server/engine/engine.h"

namespace tilewire::engine {

Status Engine::MakeLanes() {
  std::vector<Lane*> bulk;
  for (int i = 0; i < options_.lanes; ++i) {
    TILEWIRE_ASSIGN_OR_RETURN(auto lane, device_->MakeLane(LanePriority::kBulk));
    bulk.push_back(lane.get());
    lanes_.push_back(std::move(lane));
  }
  bulk_ = ContextOn(std::move(bulk));
  for (int i = 0; i < options_.small_lanes; ++i) {
    TILEWIRE_ASSIGN_OR_RETURN(auto lane, device_->MakeLane(LanePriority::kSmall));
    AddSmallLane(std::move(lane), &small_);
    if (options_.host_bytes == 0 || !facts().kernels_reach_pinned) continue;
    AddSmallLane(MakeHostLane(), &on_host_);
    on_host_.back()->context.device_id = "cpu";
  }
  if (!options_.measure_copies) return {};
  TILEWIRE_ASSIGN_OR_RETURN(copy_rates_,
                            MeasureCopies(device_.get(), lanes_.front().get(), options_.block_bytes));
  bulk_.copy_rates = copy_rates_;
  planner_.SetCopyRates(copy_rates_);
  for (auto& small : small_) small->context.copy_rates = copy_rates_;
  return {};
}

void Engine::AddSmallLane(std::unique_ptr<Lane> lane, SmallLanes* to) {
  auto& small = to->emplace_back(std::make_unique<SmallLane>());
  small->context = ContextOn({lane.get()});
  small->context.small = true;
  lanes_.push_back(std::move(lane));
}

JobContext Engine::ContextOn(std::vector<Lane*> lanes) {
  JobContext context{.lanes = std::move(lanes), .overlap = options_.overlap, .device_id = facts().id};
  context.host_memory = facts().host_memory;
  context.device_health = [this] { return device_->health(); };
  context.on_device_failure = [this] { DeviceFailed(); };
  context.count = [this](int64_t blocks, int64_t bytes_in, int64_t bytes_out, int64_t ranges) {
    blocks_.fetch_add(blocks, std::memory_order_relaxed);
    bytes_in_.fetch_add(bytes_in, std::memory_order_relaxed);
    bytes_out_.fetch_add(bytes_out, std::memory_order_relaxed);
    ranges_.fetch_add(ranges, std::memory_order_relaxed);
  };
  context.count_copied = [this](uint64_t bytes) {
    bytes_copied_.fetch_add(bytes, std::memory_order_relaxed);
  };
  return context;
}

Engine::SmallLane* Engine::TakeLane(const JobLayout& layout) {
  if (!layout.small) return nullptr;
  const SmallLanes& lanes = layout.on_host ? on_host_ : small_;
  // The first of those with the fewest: a lane that was just used is warm. Two callers may come to the same
  // one, which then serves them in turn.
  const auto fewest = std::min_element(lanes.begin(), lanes.end(), [](const auto& a, const auto& b) {
    return a->jobs.load(std::memory_order_relaxed) < b->jobs.load(std::memory_order_relaxed);
  });
  (*fewest)->jobs.fetch_add(1, std::memory_order_relaxed);
  return fewest->get();
}

}  // namespace tilewire::engine
