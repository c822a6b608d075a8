// Keeps freed memory for the next job, so that repeated jobs pay neither page faults nor cudaMalloc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "kernels/array/status.h"
#include "server/base/mutex.h"
#include "server/engine/device/memory.h"

namespace tilewire::engine {

/// Pieces come in size classes; a freed piece serves the next request of its class. Leased and cached bytes
/// together never exceed the cap: cached pieces make room first, and what then does not fit is BUSY.
/// Thread-safe, and raw allocation runs outside the lock. The pool outlives the memory that it gave, which
/// may be released on any thread.
class MemoryPool {
 public:
  /// Allocates exactly that many bytes. RESOURCE_EXHAUSTED means out of memory; other errors are passed on.
  using RawAllocate = std::function<Result<std::byte*>(size_t bytes)>;
  using RawFree = std::function<void(std::byte* data, size_t bytes)>;

  /// `cap_bytes` ≤ 0: no cap.
  MemoryPool(RawAllocate raw_allocate, RawFree raw_free, int64_t cap_bytes);
  /// Everything must have been released.
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// What a piece of `bytes` really takes: a multiple of 512 bytes, above 8 KiB in sixteen steps a power of
  /// two (so at most 6.25% more than asked for; multiples of 2 MiB above 32 MiB). 512 for 0. Monotone, and
  /// RoundUp(RoundUp(n)) is RoundUp(n). Sizes beyond 2^62 are returned as they are: nothing can allocate
  /// them.
  static size_t RoundUp(size_t bytes);

  /// A piece with exactly `bytes` usable bytes; its contents are whatever they were. RESOURCE_EXHAUSTED
  /// `BUSY` where the cap or the machine has no room for it now.
  Result<Memory> Allocate(size_t bytes);

  /// Cached pieces go at once as far as needed; leased ones are not touched, even if they exceed the new cap.
  void SetCap(int64_t cap_bytes);
  /// Frees all cached pieces.
  void Trim();

  int64_t cap_bytes() const;
  /// Both as RoundUp() counts.
  int64_t leased_bytes() const;
  int64_t cached_bytes() const;

 private:
  struct Piece {
    std::byte* data;
    size_t bytes;
  };

  void Release(std::byte* data, size_t bytes);
  /// Takes cached pieces out, the largest first, until at most `keep` bytes stay cached. Under the lock; the
  /// caller frees them after it.
  std::vector<Piece> Evict(int64_t keep) TILEWIRE_REQUIRES(mutex_);
  void Free(const std::vector<Piece>& pieces);

  const RawAllocate raw_allocate_;
  const RawFree raw_free_;
  mutable Mutex mutex_;
  int64_t cap_ TILEWIRE_GUARDED_BY(mutex_);
  int64_t leased_ TILEWIRE_GUARDED_BY(mutex_) = 0, cached_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  std::map<size_t, std::vector<std::byte*>> free_ TILEWIRE_GUARDED_BY(mutex_);  ///< by size class
};

}  // namespace tilewire::engine
