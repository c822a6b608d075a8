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

/// Operands in order, then the result.
std::vector<int64_t> ArraySizes(const Operation& operation) {
  std::vector<int64_t> sizes;
  for (const ArraySpec& operand : operation.operands()) sizes.push_back(operand.bytes());
  sizes.push_back(operation.result().bytes());
  return sizes;
}

/// `addresses`: operands in order, result, scratch.
void SetBuffers(const std::vector<std::byte*>& addresses, Buffers* buffers) {
  buffers->scratch = addresses.back();
  buffers->result = addresses[addresses.size() - 2];
  buffers->operands.assign(addresses.begin(), addresses.end() - 2);
}

int64_t StagingBlockBytes(int64_t array_bytes, int64_t block_bytes) {
  // An array of less than a block needs no whole one.
  return Rounded(std::min(block_bytes, std::max(array_bytes, int64_t{4096})));
}

int64_t StagingBlocks(int64_t array_bytes, int64_t block_bytes, int streams) {
  return std::min(streams + kSpareBlocks, (array_bytes + block_bytes - 1) / block_bytes);
}

}  // namespace

bool Engine::IsSmallJob(const Operation& operation) {
  int64_t bytes = operation.result().bytes();
  for (const ArraySpec& operand : operation.operands()) bytes += operand.bytes();
  return bytes <= kSmallJobBytes;
}

int64_t Engine::BlockBytes(const Operation& operation) const {
  if (!options_.fit_blocks) return options_.block_bytes;
  return BlockFor(operation.operands()[0].bytes(), options_.block_bytes, copy_rates_);
}

int64_t Engine::StagingBytes(const Operation& operation, int streams) const {
  const int64_t block = BlockBytes(operation);
  const auto staging = [&](const ArraySpec& spec) {
    return StagingBlocks(spec.bytes(), block, streams) * StagingBlockBytes(spec.bytes(), block);
  };
  int64_t bytes = staging(operation.result());
  for (const ArraySpec& operand : operation.operands()) bytes += staging(operand);
  return bytes;
}

/// As many streams as wanted and allowed, but no more than leave three quarters of the staging budget to
/// others.
int Engine::GrantStreams(const Operation& operation, int wanted) const {
  int streams = std::clamp(wanted, 1, options_.max_streams);
  if (InPlace(operation)) return streams;
  while (streams > 1 && StagingBytes(operation, streams) > options_.pinned_bytes / 4) --streams;
  return streams;
}

/// Small jobs whose kernels reach pinned memory need neither staging nor copies.
bool Engine::InPlace(const Operation& operation) const {
  return facts().host_memory || (facts().kernels_reach_pinned && IsSmallJob(operation));
}

Demand Engine::DemandOf(const Operation& operation, int streams) const {
  Demand demand{.small = IsSmallJob(operation)};
  int64_t arrays = 0;
  for (const int64_t size : ArraySizes(operation))
    arrays += demand.small ? Aligned(size) : size > 0 ? Rounded(size) : 0;
  const int64_t scratch = operation.scratch_bytes();
  if (!InPlace(operation)) demand.pinned_bytes = StagingBytes(operation, streams);
  if (!demand.small) {
    demand.device_bytes = arrays + (scratch > 0 ? Rounded(scratch) : 0);
  } else if (InPlace(operation) && !facts().host_memory) {
    demand.pinned_bytes = Rounded(arrays);
    demand.device_bytes = scratch > 0 ? Rounded(scratch) : 0;
  } else {
    demand.device_bytes = Rounded(arrays + Aligned(scratch));
  }
  return demand;
}

/// Device arrays of a bulk job: a piece each.
Status Engine::LeaseApart(const Operation& operation, JobResources* resources) {
  std::vector<std::byte*> addresses;
  const auto lease = [&](int64_t bytes) -> Status {
    addresses.push_back(nullptr);
    if (bytes == 0) return {};
    TILEWIRE_ASSIGN_OR_RETURN(Memory memory, device_->AllocateDevice(bytes));
    addresses.back() = memory.data();
    resources->arrays.push_back(std::move(memory));
    return {};
  };
  for (const int64_t size : ArraySizes(operation)) TILEWIRE_RETURN_IF_ERROR(lease(size));
  TILEWIRE_RETURN_IF_ERROR(lease(operation.scratch_bytes()));
  SetBuffers(addresses, &resources->buffers);
  return {};
}

/// A small job's arrays: one piece for all, so one lease; scratch, which only kernels touch, on the device.
Status Engine::LeasePacked(const Operation& operation, JobResources* resources) {
  const bool pinned = resources->in_place && !facts().host_memory;
  const std::vector<int64_t> sizes = ArraySizes(operation);
  int64_t packed = pinned ? 0 : Aligned(operation.scratch_bytes());
  for (const int64_t size : sizes) packed += Aligned(size);
  TILEWIRE_ASSIGN_OR_RETURN(Memory memory,
                            pinned ? device_->AllocatePinned(packed) : device_->AllocateDevice(packed));
  std::vector<std::byte*> addresses;
  std::byte* next = memory.data();
  for (const int64_t size : sizes) addresses.push_back(std::exchange(next, next + Aligned(size)));
  addresses.push_back(operation.scratch_bytes() > 0 ? next : nullptr);
  resources->arrays.push_back(std::move(memory));
  if (pinned && operation.scratch_bytes() > 0) {
    TILEWIRE_ASSIGN_OR_RETURN(Memory scratch, device_->AllocateDevice(operation.scratch_bytes()));
    addresses.back() = scratch.data();
    resources->arrays.push_back(std::move(scratch));
  }
  SetBuffers(addresses, &resources->buffers);
  return {};
}

Result<JobResources> Engine::Lease(const Operation& operation, int streams, Ticket ticket) {
  JobResources resources{
      .streams = streams, .block_bytes = BlockBytes(operation), .in_place = InPlace(operation)};
  resources.ticket = std::move(ticket);
  TILEWIRE_RETURN_IF_ERROR(IsSmallJob(operation) ? LeasePacked(operation, &resources)
                                                 : LeaseApart(operation, &resources));
  if (resources.in_place) return resources;

  const auto stage = [&](int64_t bytes, std::vector<Memory>* blocks) -> Status {
    const int64_t block = resources.block_bytes, block_bytes = StagingBlockBytes(bytes, block);
    for (int64_t i = 0; i < StagingBlocks(bytes, block, streams); ++i) {
      TILEWIRE_ASSIGN_OR_RETURN(Memory memory, device_->AllocatePinned(block_bytes));
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
