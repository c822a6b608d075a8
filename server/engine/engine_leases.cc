// What a job needs, and how it gets it.
#include <algorithm>
#include <utility>

#include "server/base/limits.h"
#include "server/engine/engine.h"
#include "server/engine/memory_pool.h"

namespace tilewire::engine {
namespace {

// Staging blocks of one operand or of the result beside the one that each stream fills: one being copied, one
// to spare. Every stream may hold one that is half full, so with fewer they could wait for each other.
constexpr int64_t kSpareBlocks = 2;
constexpr int64_t kAlignment = 256;

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}
int64_t Rounded(int64_t bytes) {
  return static_cast<int64_t>(MemoryPool::RoundUp(static_cast<size_t>(bytes)));
}

}  // namespace

bool Engine::IsSmallJob(const Operation& operation) {
  int64_t bytes = operation.result().bytes();
  for (const ArraySpec& operand : operation.operands()) bytes += operand.bytes();
  return bytes <= kSmallJobBytes;
}

int64_t Engine::StagingBlockBytes(int64_t array_bytes) const {
  // An array of less than a block needs no whole one.
  return Rounded(std::min(options_.block_bytes, std::max(array_bytes, int64_t{4096})));
}

int64_t Engine::StagingBlocks(int64_t array_bytes, int streams) const {
  return std::min(streams + kSpareBlocks, (array_bytes + options_.block_bytes - 1) / options_.block_bytes);
}

int64_t Engine::StagingBytes(const Operation& operation, int streams) const {
  if (facts().host_memory) return 0;
  const auto staging = [&](const ArraySpec& spec) {
    return StagingBlocks(spec.bytes(), streams) * StagingBlockBytes(spec.bytes());
  };
  int64_t bytes = staging(operation.result());
  for (const ArraySpec& operand : operation.operands()) bytes += staging(operand);
  return bytes;
}

/// As many streams as wanted and allowed, but no more than leave three quarters of the staging budget to
/// others.
int Engine::GrantStreams(const Operation& operation, int wanted) const {
  int streams = std::clamp(wanted, 1, options_.max_streams);
  while (streams > 1 && StagingBytes(operation, streams) > options_.pinned_bytes / 4) --streams;
  return streams;
}

Demand Engine::DemandOf(const Operation& operation, int streams) const {
  Demand demand{.small = IsSmallJob(operation), .pinned_bytes = StagingBytes(operation, streams)};
  int64_t packed = 0;
  for (const ArraySpec& operand : operation.operands()) {
    demand.device_bytes += Rounded(operand.bytes());
    packed += Aligned(operand.bytes());
  }
  demand.device_bytes += Rounded(operation.result().bytes());
  if (operation.scratch_bytes() > 0) demand.device_bytes += Rounded(operation.scratch_bytes());
  packed += Aligned(operation.result().bytes()) + Aligned(operation.scratch_bytes());
  if (demand.small) demand.device_bytes = Rounded(packed);
  return demand;
}

Result<JobResources> Engine::Lease(const Operation& operation, int streams, Ticket ticket) {
  JobResources resources{
      .streams = streams, .block_bytes = options_.block_bytes, .in_place = facts().host_memory};
  resources.ticket = std::move(ticket);
  std::vector<int64_t> sizes;
  for (const ArraySpec& operand : operation.operands()) sizes.push_back(operand.bytes());
  sizes.push_back(operation.result().bytes());
  sizes.push_back(operation.scratch_bytes());
  std::vector<std::byte*> addresses;
  if (IsSmallJob(operation)) {  // one piece for all: one lease, and copies can be packed
    int64_t packed = 0;
    for (const int64_t size : sizes) packed += Aligned(size);
    TILEWIRE_ASSIGN_OR_RETURN(Memory memory, device_->AllocateDevice(packed));
    std::byte* next = memory.data();
    for (const int64_t size : sizes) addresses.push_back(std::exchange(next, next + Aligned(size)));
    resources.arrays.push_back(std::move(memory));
  } else {
    for (const int64_t size : sizes) {
      addresses.push_back(nullptr);
      if (size == 0) continue;
      TILEWIRE_ASSIGN_OR_RETURN(Memory memory, device_->AllocateDevice(size));
      addresses.back() = memory.data();
      resources.arrays.push_back(std::move(memory));
    }
  }
  resources.buffers.scratch = addresses.back();
  resources.buffers.result = addresses[addresses.size() - 2];
  resources.buffers.operands.assign(addresses.begin(), addresses.end() - 2);
  if (facts().host_memory) return resources;

  const auto stage = [&](int64_t bytes, std::vector<Memory>* blocks) -> Status {
    for (int64_t i = 0; i < StagingBlocks(bytes, streams); ++i) {
      TILEWIRE_ASSIGN_OR_RETURN(Memory memory, device_->AllocatePinned(StagingBlockBytes(bytes)));
      blocks->push_back(std::move(memory));
    }
    return {};
  };
  for (const ArraySpec& operand : operation.operands())
    TILEWIRE_RETURN_IF_ERROR(stage(operand.bytes(), &resources.input_blocks));
  TILEWIRE_RETURN_IF_ERROR(stage(operation.result().bytes(), &resources.output_blocks));
  return resources;
}

}  // namespace tilewire::engine
