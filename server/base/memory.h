// How much memory and how many processors this process may really use: what the machine has, less what its
// control groups withhold. Defaults follow from it; nothing here enforces anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tilewire {

/// Bytes that this process could still allocate before the machine or a memory limit of its control group (v1
/// or v2) or of any ancestor of it stops it: the minimum of MemAvailable and of each limit less what is used
/// under it, where reclaimable file cache does not count as used. 1 GiB where nothing can be read. Never
/// negative. `root` is the directory that holds `proc` and `sys`; other than "/" only in tests. Thread-safe.
int64_t UsableMemoryBytes(const std::string& root = "/");

/// The same; nothing where nothing can be read, as when no descriptor is left.
std::optional<int64_t> ReadUsableMemoryBytes(const std::string& root = "/");

/// Threads that can really run at once, 1 or more: the scheduling affinity of the calling thread, less what
/// `cpu.max` (v2) or `cpu.cfs_quota_us` (v1) of its control group and of its ancestors allow, rounded up.
/// Thread-safe.
int DefaultCpuThreads(const std::string& root = "/");

/// Default of `--pinned-bytes` for that much usable memory, bytes: an eighth of it, at most 1 GiB.
int64_t DefaultPinnedBytes(int64_t usable_bytes);

/// Default of `--distance-bytes` for that much usable memory, bytes: a sixteenth of it, at most 1 GiB.
int64_t DefaultDistanceBytes(int64_t usable_bytes);

}  // namespace tilewire
