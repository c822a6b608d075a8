#include "server/rpc/listener/memory_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "server/base/limits.h"
#include "server/base/memory.h"

namespace tilewire::rpc {
namespace {

/// More than this must have come to be worth another look, or another connection.
constexpr int64_t kStepBytes = 8 * kMiB;

/// Of this process, from its /proc/self/statm.
std::optional<int64_t> ReadResident(const FileDescriptor& statm) {
  std::array<char, 128> text{};
  const ssize_t bytes = pread(statm.get(), text.data(), text.size() - 1, 0);
  int64_t pages = 0, resident = 0;
  if (bytes <= 0 || std::sscanf(text.data(), "%ld %ld", &pages, &resident) != 2) return std::nullopt;
  return resident * sysconf(_SC_PAGESIZE);
}

std::optional<MemoryState> ReadOwn(const FileDescriptor& statm) {
  const auto usable = ReadUsableMemoryBytes();
  const auto resident = ReadResident(statm);
  if (!usable || !resident) return std::nullopt;
  return MemoryState{.resident = *resident, .usable = *usable};
}

}  // namespace

MemoryWatch::MemoryWatch(int64_t most_resident, Read read)
    : most_resident_(most_resident),
      statm_(read ? -1 : open("/proc/self/statm", O_RDONLY | O_CLOEXEC)),
      read_(read ? std::move(read) : [this] { return ReadOwn(statm_); }),
      least_usable_(read_().value_or(MemoryState{}).usable / 8) {}

bool MemoryWatch::Short() {
  const std::optional<MemoryState> read = read_();
  over_ = false;
  if (!read) return false;
  const MemoryState& state = *read;
  seen_resident_ = state.resident;
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

bool MemoryWatch::HasGrown() const {
  std::optional<int64_t> resident;
  if (statm_) {
    resident = ReadResident(statm_);
  } else if (const auto state = read_()) {
    resident = state->resident;
  }
  return resident && *resident >= seen_resident_ + kStepBytes;
}

}  // namespace tilewire::rpc
