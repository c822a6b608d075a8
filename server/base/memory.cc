#include "server/base/memory.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "server/base/limits.h"

namespace tilewire {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
/// v1 has no word for "no limit": it is a number near 2^63, rounded to pages. No machine has a quarter of
/// that.
constexpr int64_t kNoLimitV1 = int64_t{1} << 60;

std::optional<int64_t> ParseInt(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

/// The first line of a file; nothing where there is no such file.
std::optional<std::string> FirstLine(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) return std::nullopt;
  return line;
}

std::optional<int64_t> IntFile(const fs::path& path) {
  auto line = FirstLine(path);
  return line ? ParseInt(*line) : std::nullopt;
}

/// The number after `key` in a file of lines "key number ...", as memory.stat and meminfo are.
std::optional<int64_t> KeyedInt(const fs::path& path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name, number;
    if (words >> name >> number && name == key) return ParseInt(number);
  }
  return std::nullopt;
}

/// `mount`/`group`, its parent, ... down to `mount` itself. A container often sees its host's group name
/// although the mount begins at its own group: such directories do not exist here, and the mount itself holds
/// its limits.
std::vector<fs::path> SelfAndAncestors(const fs::path& mount, const std::string& group) {
  std::vector<fs::path> dirs;
  fs::path relative = fs::path(group).relative_path().lexically_normal();
  if (relative.empty() || relative == "." || *relative.begin() == "..") relative.clear();
  for (; !relative.empty(); relative = relative.parent_path()) dirs.push_back(mount / relative);
  dirs.push_back(mount);
  return dirs;
}

/// The directories of this process' groups that may hold files of `controller`.
struct Groups {
  std::vector<fs::path> v2, v1;
};

Groups FindGroups(const fs::path& root, std::string_view controller) {
  Groups groups;
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {  // "4:memory:/path"; "0::/path" is v2
    size_t first = line.find(':');
    size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    auto append = [&](std::vector<fs::path>* to, const fs::path& mount) {
      auto dirs = SelfAndAncestors(mount, group);
      to->insert(to->end(), dirs.begin(), dirs.end());
    };
    if (names.empty()) {
      append(&groups.v2, mounts);
      append(&groups.v2, mounts / "unified");
    } else if (("," + names + ",").find("," + std::string(controller) + ",") != std::string::npos) {
      append(&groups.v1, mounts / controller);
      if (names != controller) append(&groups.v1, mounts / names);
    }
  }
  return groups;
}

/// What a group leaves: its limit less what is used and could not be reclaimed at once.
int64_t Headroom(int64_t limit, std::optional<int64_t> used, std::optional<int64_t> cache) {
  const int64_t held = std::max<int64_t>(0, used.value_or(0) - cache.value_or(0));
  return std::max<int64_t>(0, limit - held);
}

/// Processors that a quota is worth; infinity where there is none.
double QuotaCpus(std::optional<int64_t> quota, std::optional<int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

int AffinityCount() {
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {  // the kernel says EINVAL to a set that is too small
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int failed = sched_getaffinity(0, bytes, set);
    const int count = failed == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (failed == 0) return std::max(1, count);
  }
  return 1;
}

}  // namespace

int64_t UsableMemoryBytes(const std::string& root) {
  return ReadUsableMemoryBytes(root).value_or(kGiB);
}

std::optional<int64_t> ReadUsableMemoryBytes(const std::string& root) {
  const fs::path base(root);
  int64_t usable = kUnlimited;
  auto kib = KeyedInt(base / "proc/meminfo", "MemAvailable:");
  if (!kib) kib = KeyedInt(base / "proc/meminfo", "MemFree:");
  if (kib && *kib <= kUnlimited / kKiB) usable = *kib * kKiB;

  const Groups groups = FindGroups(base, "memory");
  for (const fs::path& dir : groups.v2) {
    if (auto limit = IntFile(dir / "memory.max")) {  // "max" is no number: no limit
      usable = std::min(usable, Headroom(*limit, IntFile(dir / "memory.current"),
                                         KeyedInt(dir / "memory.stat", "inactive_file")));
    }
  }
  for (const fs::path& dir : groups.v1) {
    auto limit = IntFile(dir / "memory.limit_in_bytes");
    if (limit && *limit < kNoLimitV1) {
      usable = std::min(usable, Headroom(*limit, IntFile(dir / "memory.usage_in_bytes"),
                                         KeyedInt(dir / "memory.stat", "total_inactive_file")));
    }
  }
  if (usable == kUnlimited) return std::nullopt;
  return std::max<int64_t>(0, usable);
}

int DefaultCpuThreads(const std::string& root) {
  double cpus = AffinityCount();
  const Groups groups = FindGroups(fs::path(root), "cpu");
  for (const fs::path& dir : groups.v2) {
    auto line = FirstLine(dir / "cpu.max");  // "150000 100000", or "max 100000"
    if (!line) continue;
    const size_t space = line->find(' ');
    if (space == std::string::npos) continue;
    cpus = std::min(cpus, QuotaCpus(ParseInt(line->substr(0, space)), ParseInt(line->substr(space + 1))));
  }
  for (const fs::path& dir : groups.v1) {
    cpus = std::min(cpus, QuotaCpus(IntFile(dir / "cpu.cfs_quota_us"), IntFile(dir / "cpu.cfs_period_us")));
  }
  return std::max(1, static_cast<int>(std::ceil(cpus)));
}

int64_t DefaultPinnedBytes(int64_t usable_bytes) {
  return std::min(kGiB, std::max<int64_t>(0, usable_bytes / 8));
}

int64_t DefaultDistanceBytes(int64_t usable_bytes) {
  return std::min(kGiB, std::max<int64_t>(0, usable_bytes / 16));
}

}  // namespace tilewire
