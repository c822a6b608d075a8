#include "server/engine/stores/region_count.h"

#include <sys/resource.h>

#include <algorithm>

#include "server/base/limits.h"

namespace tilewire::engine {

int64_t MostRegions() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return kMaxRegions;
  return static_cast<int64_t>(std::clamp<rlim_t>(files.rlim_cur / 8, 1, kMaxRegions));
}

}  // namespace tilewire::engine
