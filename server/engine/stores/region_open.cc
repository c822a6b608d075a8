// What a region is registered for: checking what a client asks, and getting hold of the memory.
#include <string>
#include <utility>

#include "server/base/limits.h"
#include "server/engine/stores/region_store.h"

namespace tilewire::engine {

Status RegionEntry::Map(Device* device) {
  // A device that cannot pin what may only be read needs it writable, and leaves it as it is.
  const bool open_writable = writable_ || !device->facts().pins_read_only;
  auto mapped = SharedMemory::Map(request.name, request.offset, request.bytes, open_writable);
  if (!mapped) return mapped.error();
  memory_ = *std::move(mapped);
  auto pinned = device->PinHost(memory_.pages(), memory_.page_bytes(), open_writable);
  if (!pinned) return pinned.error();
  pin_ = *std::move(pinned);
  return memory_.Check();  // what was cut off meanwhile is told now, not to the first job
}

/// The size is the driver's word, not the client's.
Status RegionEntry::OpenDevice(Device* device) {
  auto opened = device->OpenShared(*request.handle);
  if (!opened) return opened.error();
  const uint64_t there = opened->bytes();
  if (request.bytes > there || request.offset > there - request.bytes)
    return BadValue("device_memory.bytes",
                    std::to_string(request.bytes) + " from " + std::to_string(request.offset) + " on",
                    "the " + std::to_string(there) + " bytes from what was exported to its allocation's end")
        .value();
  if (reinterpret_cast<uintptr_t>(opened->data() + request.offset) % kForeignAlignment != 0)
    return BadValue("device_memory.offset", std::to_string(request.offset),
                    "where an address is a multiple of " + std::to_string(kForeignAlignment))
        .value();
  opened_ = *std::move(opened);
  opened_offset_ = static_cast<int64_t>(request.offset);
  opened_bytes_ = static_cast<int64_t>(request.bytes);
  return {};
}

void RegionEntry::Close() {
  pin_.Reset();
  memory_ = SharedMemory();
  opened_.Reset();
}

Status RegionStore::CheckRequest(const RegionRequest& request, const OwnQuota& own) const {
  TILEWIRE_RETURN_IF_ERROR(request.handle ? CheckDevice(request) : CheckShared(request));
  TILEWIRE_RETURN_IF_ERROR(
      CheckSeconds(RegionEntry::kWords, request.seconds, limits_.longest_seconds, "ttl_seconds"));
  return request.handle ? Status() : CheckSharedBytes(request, own);
}

Status RegionStore::CheckShared(const RegionRequest& request) const {
  constexpr size_t kLongestEcho = 64;
  if (limits_.prefix.empty())
    return Status(Code::kUnimplemented, "REGIONS_OFF",
                  "shared-memory regions are off; the operator allows them with --allow-regions");
  if (IsSharedName(request.name) && request.name.starts_with(limits_.prefix)) return {};
  const bool echo = request.name.size() <= kLongestEcho;
  return BadValue("shared_memory.name",
                  echo ? request.name : std::to_string(request.name.size()) + " characters long",
                  "a name of shared memory that begins with " + limits_.prefix +
                      " (--allow-regions): visible ASCII, no other slash, no \"..\", at most 255 characters")
      .value();
}

Status RegionStore::CheckSharedBytes(const RegionRequest& request, const OwnQuota& own) const {
  // In this order nothing overflows.
  const uint64_t bytes = request.bytes > static_cast<uint64_t>(limits_.bytes)
                             ? request.bytes
                             : SharedMemory::PageBytes(request.offset, request.bytes);
  return CheckQuotas(RegionEntry::kWords, bytes, limits_.bytes, OwnBytes(own), "shared_memory.bytes",
                     request.bytes);
}

Status RegionStore::CheckDevice(const RegionRequest& request) const {
  constexpr size_t kLongestEcho = 64;
  if (!limits_.device)
    return Status(Code::kUnimplemented, "REGIONS_OFF",
                  "regions of device memory are off; the operator allows them with --allow-device-regions");
  if (request.handle->size() != kExportHandleBytes)
    return BadValue("device_memory.handle", std::to_string(request.handle->size()) + " bytes",
                    std::to_string(kExportHandleBytes) + " bytes, as of cudaIpcGetMemHandle")
        .value();
  if (!request.device.empty() && request.device != device_->facts().id) {
    const bool echo = request.device.size() <= kLongestEcho;
    return BadValue("device_memory.device",
                    echo ? request.device : std::to_string(request.device.size()) + " characters long",
                    device_->facts().id + ", or empty")
        .value();
  }
  if (request.bytes == 0) return BadValue("device_memory.bytes", "0", "1 or more").value();
  return {};
}

}  // namespace tilewire::engine
