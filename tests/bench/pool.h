// Memory that a sink copies into, round and round: more than caches hold.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

namespace tilewire::bench {

/// Thread-safe: each message has a place of its own, until the pool has come round.
class Pool {
 public:
  explicit Pool(size_t bytes)
      : bytes_(bytes),
        memory_(static_cast<char*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::memset(memory_, 1, bytes);
  }
  ~Pool() { munmap(memory_, bytes_); }
  Pool(const Pool&) = delete;

  void Copy(const grpc::ByteBuffer& message) {
    std::vector<grpc::Slice> slices;
    (void)message.Dump(&slices);
    size_t at = next_.fetch_add(message.Length());
    for (const auto& slice : slices) {
      const size_t start = at % bytes_;
      const size_t first = std::min(slice.size(), bytes_ - start);
      std::memcpy(memory_ + start, slice.begin(), first);
      std::memcpy(memory_, slice.begin() + first, slice.size() - first);
      at += slice.size();
    }
  }

 private:
  const size_t bytes_;
  char* const memory_;
  std::atomic<size_t> next_{0};
};

}  // namespace tilewire::bench
