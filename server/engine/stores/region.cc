#include "server/engine/stores/region.h"

#include "server/engine/device/device.h"

namespace tilewire::engine {

Status RegionPart::Holds(int64_t bytes, bool write, const std::string& what) const {
  if (write && !region->writable())
    return BadId(field + ".region", region->id(), "a region that was registered as writable").value();
  const auto size = static_cast<uint64_t>(region->bytes()), wanted = static_cast<uint64_t>(bytes);
  if (wanted <= size && offset <= size - wanted) {
    if (!region->on_device() || offset % kForeignAlignment == 0) return {};
    return BadValue(
               field + ".offset", std::to_string(offset),
               "a multiple of " + std::to_string(kForeignAlignment) + ": the region is memory of a device")
        .value();
  }
  return BadValue(field + ".offset", std::to_string(offset),
                  (wanted > size ? "no offset" : "0 to " + std::to_string(size - wanted)) + ": " + what +
                      " " + std::to_string(wanted) + " bytes, the region " + std::to_string(size))
      .value();
}

Status RegionPart::LiesApart(int64_t bytes, const RegionPart& other, int64_t other_bytes) const {
  if (!on_device() || !other.on_device()) return {};
  const auto begin = reinterpret_cast<uintptr_t>(data()),
             other_begin = reinterpret_cast<uintptr_t>(other.data());
  const bool apart = begin + static_cast<uint64_t>(bytes) <= other_begin ||
                     other_begin + static_cast<uint64_t>(other_bytes) <= begin;
  if (apart) return {};
  return BadValue(field + ".offset", std::to_string(offset),
                  "bytes that overlap no operand of the call: kernels write them while they read")
      .value();
}

}  // namespace tilewire::engine
