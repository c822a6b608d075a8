#include "server/rpc/listener/limits.h"

#include <sys/resource.h>

#include <algorithm>

namespace tilewire::rpc {

uint64_t OpenFilesLimit() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<uint64_t>(limit.rlim_cur) : 1024;
}

uint64_t DescriptorReserve(uint64_t open_files) {
  // Half is for regions (engine/stores/region_count.h). The upper bound: as many as there may be, and what a
  // server without any has open.
  return std::clamp<uint64_t>(open_files / 4, 32, 1280);
}

ConnectionLimits WithDefaults(ConnectionLimits limits, uint64_t open_files) {
  const uint64_t reserve = std::min(DescriptorReserve(open_files), open_files);
  const auto possible = static_cast<int>(std::clamp<uint64_t>((open_files - reserve) / 2, 1, 1'000'000));
  limits.most =
      limits.most > 0 ? std::min(limits.most, possible) : std::min(possible, kMostConnectionsByDefault);
  if (limits.most_per_peer <= 0) limits.most_per_peer = (limits.most + 1) / 2;
  return limits;
}

}  // namespace tilewire::rpc
