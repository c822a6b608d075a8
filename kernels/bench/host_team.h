// Threads that measure together: they start and end each pass at one barrier.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/figures/statistics.h"

namespace tilewire::bench {

/// Zeroed memory as the CPU device gets it: mapped, on huge pages where the system grants them. Move-only.
class HostBuffer {
 public:
  /// `bytes` > 0. Throws std::bad_alloc when there is no memory.
  explicit HostBuffer(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    madvise(data_, bytes_, MADV_HUGEPAGE);
  }
  HostBuffer(HostBuffer&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  HostBuffer& operator=(HostBuffer&&) = delete;
  ~HostBuffer() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }

 private:
  size_t bytes_;
  void* data_;
};

/// [begin, end) of `items` for one of `parts`, cut at multiples of `unit`.
inline std::pair<int64_t, int64_t> Share(int64_t items, int64_t part, int64_t parts, int64_t unit = 1) {
  const int64_t units = (items + unit - 1) / unit;
  return {std::min(items, units * part / parts * unit), std::min(items, units * (part + 1) / parts * unit)};
}

/// A fixed number of threads, the caller among them. Not thread-safe.
class HostTeam {
 public:
  using Body = std::function<void(int thread)>;

  /// `threads` >= 1.
  explicit HostTeam(int threads) : threads_(threads), barrier_(threads) {
    for (int i = 1; i < threads; ++i)
      helpers_.emplace_back([this, i] {
        for (;;) {
          barrier_.arrive_and_wait();
          if (stop_) return;
          (*body_)(i);
          barrier_.arrive_and_wait();
        }
      });
  }
  ~HostTeam() {
    stop_ = true;
    if (threads_ > 1) barrier_.arrive_and_wait();
    for (auto& helper : helpers_) helper.join();
  }
  HostTeam(const HostTeam&) = delete;
  HostTeam& operator=(const HostTeam&) = delete;

  int threads() const { return threads_; }

  /// Calls body(0) to body(threads - 1) at once, each on its own thread, and waits for all.
  void Run(const Body& body) {
    body_ = &body;
    if (threads_ > 1) barrier_.arrive_and_wait();
    body(0);
    if (threads_ > 1) barrier_.arrive_and_wait();
  }

  /// Median seconds of `passes` passes (>= 1), after one that warms up.
  double Seconds(const Body& body, int passes) {
    std::vector<double> seconds;
    for (int pass = 0; pass <= passes; ++pass) {
      const auto start = std::chrono::steady_clock::now();
      Run(body);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      if (pass > 0) seconds.push_back(took.count());
    }
    return Median(std::move(seconds));
  }

 private:
  const int threads_;
  std::barrier<> barrier_;
  const Body* body_ = nullptr;  // published by the barrier, like stop_
  bool stop_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace tilewire::bench
