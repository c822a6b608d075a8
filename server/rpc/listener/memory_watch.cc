#include "server/rpc/listener/memory_watch.h"

#include <unistd.h>

#include <fstream>
#include <utility>

#include "server/base/limits.h"
#include "server/base/memory.h"

namespace tilewire::rpc {
namespace {

/// More than this must have come to be worth another connection.
constexpr int64_t kStepBytes = 8 * kMiB;

std::optional<MemoryState> OfThisProcess() {
  const auto usable = ReadUsableMemoryBytes();
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  if (!usable || !(statm >> pages >> resident)) return std::nullopt;
  return MemoryState{.resident = resident * sysconf(_SC_PAGESIZE), .usable = *usable};
}

}  // namespace

MemoryWatch::MemoryWatch(int64_t most_resident, Read read)
    : most_resident_(most_resident),
      read_(read ? std::move(read) : Read(&OfThisProcess)),
      least_usable_(read_().value_or(MemoryState{}).usable / 8) {}

bool MemoryWatch::Short() {
  const std::optional<MemoryState> read = read_();
  over_ = false;
  if (!read) return false;
  const MemoryState& state = *read;
  over_ = state.usable < least_usable_ || (most_resident_ > 0 && state.resident > most_resident_);
  near_ = state.usable < 4 * least_usable_ || (most_resident_ > 0 && state.resident > most_resident_ / 2);
  if (!over_) {
    told_resident_ = 0;
    return false;
  }
  if (told_resident_ > 0 && state.resident < told_resident_ + kStepBytes) return false;
  told_resident_ = state.resident;
  return true;
}

}  // namespace tilewire::rpc
