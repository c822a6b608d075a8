// Owner of one piece of device or pinned host memory.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace tilewire::engine {

/// Move-only; gives the memory back to where it came from. Thread-compatible.
class Memory {
 public:
  using Release = std::function<void(std::byte* data, size_t bytes)>;

  Memory() = default;
  /// `bytes` is the usable size; `release` is called once with the same arguments, on any thread.
  Memory(std::byte* data, size_t bytes, Release release)
      : data_(data), bytes_(bytes), release_(std::move(release)) {}
  Memory(Memory&& other) noexcept { *this = std::move(other); }
  Memory& operator=(Memory&& other) noexcept {
    if (this != &other) {
      Reset();
      data_ = std::exchange(other.data_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
      release_ = std::exchange(other.release_, nullptr);
    }
    return *this;
  }
  ~Memory() { Reset(); }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }
  void Reset() {
    if (data_ && release_) release_(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
    release_ = nullptr;
  }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  Release release_;
};

}  // namespace tilewire::engine
