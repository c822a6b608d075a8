// Gauges and counters that the engine publishes; a snapshot, cheap to take.
#pragma once

#include <cstdint>

namespace tilewire {

struct EngineStats {
  // Budgets and what is leased of them, bytes.
  uint64_t device_bytes = 0, device_bytes_in_use = 0;
  uint64_t pinned_bytes = 0, pinned_bytes_in_use = 0;
  // Memory held for reuse although nobody leases it, bytes (part of no budget in use).
  uint64_t device_bytes_cached = 0;
  // Open are those of which nothing has come yet: they hold none of it.
  uint32_t jobs_in_flight = 0, jobs_queued = 0, jobs_open = 0;
  // Since start.
  uint64_t jobs_admitted = 0, jobs_refused_busy = 0, jobs_refused_limit = 0;
  // Of those admitted: run windowed, because their arrays do not fit the device budget.
  uint64_t jobs_windowed = 0;
  // And computed by the host beside a GPU, because a launch would take longer.
  uint64_t jobs_on_host = 0;
  uint64_t blocks_copied = 0, bytes_copied_in = 0, bytes_copied_out = 0, ranges_computed = 0;
  uint64_t bytes_copied_by_cpu = 0;  // out of messages and into them
  // Resident arrays: how many, the device bytes that they hold (part of those in use; forgotten ones that
  // jobs still use count), and how many bytes they may hold.
  uint32_t arrays_stored = 0;
  uint64_t array_bytes = 0, array_bytes_most = 0;
  // Since start: gone because their memory was needed, or because their time was over.
  uint64_t arrays_evicted = 0, arrays_expired = 0;
  // Regions: how many, the bytes that they hold (forgotten ones that jobs still use, and those on their way,
  // count), and how many bytes they may hold.
  uint32_t regions = 0;
  uint64_t region_bytes = 0, region_bytes_most = 0;
  uint64_t regions_expired = 0;  ///< since start: gone because nobody used them for their time
  bool device_failed = false;
};

}  // namespace tilewire
