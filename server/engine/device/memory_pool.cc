#include "server/engine/device/memory_pool.h"

#include <algorithm>
#include <bit>
#include <string>

namespace tilewire::engine {
namespace {

constexpr size_t kSmallestStep = 512;
constexpr size_t kStepsPerDoubling = 16;
constexpr size_t kUnallocatable = size_t{1} << 62;
constexpr int64_t kMemoryRetryMs = 100;

}  // namespace

MemoryPool::MemoryPool(RawAllocate raw_allocate, RawFree raw_free, int64_t cap_bytes)
    : raw_allocate_(std::move(raw_allocate)),
      raw_free_(std::move(raw_free)),
      cap_(std::max<int64_t>(cap_bytes, 0)) {}

MemoryPool::~MemoryPool() {
  Trim();
}

size_t MemoryPool::RoundUp(size_t bytes) {
  if (bytes > kUnallocatable) return bytes;
  // A size in (2^k, 2^(k+1)] is rounded up to a multiple of 2^k / 16.
  const size_t floor = std::bit_floor(std::max<size_t>(bytes, 2) - 1);
  const size_t step = std::max(kSmallestStep, floor / kStepsPerDoubling);
  return std::max(step, (bytes + step - 1) / step * step);
}

Result<Memory> MemoryPool::Allocate(size_t bytes) {
  const size_t size = RoundUp(bytes);
  const auto need = static_cast<int64_t>(size);
  auto release = [this](std::byte* data, size_t usable) { Release(data, usable); };
  if (size > kUnallocatable) return Fail(Busy(std::to_string(bytes) + " bytes are more than any memory", -1));
  std::vector<Piece> evicted;
  {
    MutexLock lock(mutex_);
    if (auto it = free_.find(size); it != free_.end() && !it->second.empty()) {
      std::byte* data = it->second.back();
      it->second.pop_back();
      cached_ -= need;
      leased_ += need;
      return Memory(data, bytes, release);
    }
    if (cap_ > 0) {
      if (need > cap_ - leased_) {
        return Fail(Busy("out of memory for now: " + std::to_string(need) + " bytes wanted, " +
                             std::to_string(leased_) + " of " + std::to_string(cap_) + " leased",
                         kMemoryRetryMs));
      }
      evicted = Evict(cap_ - leased_ - need);
    }
    leased_ += need;  // reserved before the lock goes, so that no other thread takes the same room
  }
  Free(evicted);
  Result<std::byte*> raw = raw_allocate_(size);
  if (!raw && raw.error().code() == Code::kResourceExhausted) {
    Trim();
    raw = raw_allocate_(size);
  }
  if (!raw) {
    MutexLock lock(mutex_);
    leased_ -= need;
    return Fail(raw.error());
  }
  return Memory(*raw, bytes, release);
}

void MemoryPool::Release(std::byte* data, size_t bytes) {
  const size_t size = RoundUp(bytes);
  const auto freed = static_cast<int64_t>(size);
  {
    MutexLock lock(mutex_);
    leased_ -= freed;
    // After the cap was lowered a piece may be one too many.
    if (cap_ == 0 || leased_ + cached_ + freed <= cap_) {
      cached_ += freed;
      free_[size].push_back(data);
      return;
    }
  }
  raw_free_(data, size);
}

std::vector<MemoryPool::Piece> MemoryPool::Evict(int64_t keep) {
  std::vector<Piece> pieces;
  while (cached_ > std::max<int64_t>(keep, 0)) {
    auto largest = std::prev(free_.end());
    if (largest->second.empty()) {
      free_.erase(largest);
      continue;
    }
    pieces.push_back({largest->second.back(), largest->first});
    largest->second.pop_back();
    cached_ -= static_cast<int64_t>(largest->first);
  }
  return pieces;
}

void MemoryPool::Free(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) raw_free_(piece.data, piece.bytes);
}

void MemoryPool::SetCap(int64_t cap_bytes) {
  std::vector<Piece> evicted;
  {
    MutexLock lock(mutex_);
    cap_ = std::max<int64_t>(cap_bytes, 0);
    if (cap_ > 0) evicted = Evict(cap_ - leased_);
  }
  Free(evicted);
}

void MemoryPool::Trim() {
  std::vector<Piece> evicted;
  {
    MutexLock lock(mutex_);
    evicted = Evict(0);
  }
  Free(evicted);
}

int64_t MemoryPool::cap_bytes() const {
  MutexLock lock(mutex_);
  return cap_;
}

int64_t MemoryPool::leased_bytes() const {
  MutexLock lock(mutex_);
  return leased_;
}

int64_t MemoryPool::cached_bytes() const {
  MutexLock lock(mutex_);
  return cached_;
}

}  // namespace tilewire::engine
