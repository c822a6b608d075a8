#include "server/engine/region.h"

namespace tilewire::engine {

Status RegionPart::Holds(int64_t bytes, bool write) const {
  if (write && !region->writable())
    return BadValue(field + ".region", region->id(), "a region that was registered as writable").value();
  const auto size = static_cast<uint64_t>(region->bytes()), wanted = static_cast<uint64_t>(bytes);
  if (wanted <= size && offset <= size - wanted) return {};
  return BadValue(field + ".offset", std::to_string(offset),
                  wanted > size ? "no offset: the array has " + std::to_string(wanted) +
                                      " bytes, the region " + std::to_string(size)
                                : "0 to " + std::to_string(size - wanted) + ": the array has " +
                                      std::to_string(wanted) + " bytes, the region " + std::to_string(size))
      .value();
}

}  // namespace tilewire::engine
