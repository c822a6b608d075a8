// POSIX shared memory of a client on this host, mapped here. Nothing that the client says of it is believed:
// its size is asked of the system, also later, since the client may change it at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/array/status.h"

namespace tilewire::engine {

/// Whether `name` could name shared memory: one leading slash, then 1 to 254 visible ASCII characters, no
/// slash and no ".." among them.
bool IsSharedName(std::string_view name);

/// FAILED_PRECONDITION `REGION_SHRUNK`: memory that was there is there no more.
Status RegionShrunk(const std::string& message);

/// A mapping. Move-only; unmaps when destroyed, which may take milliseconds a GiB. Thread-compatible.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory() { Unmap(); }

  /// Maps bytes [offset, offset + bytes) of the object of that name, a good one. INVALID_ARGUMENT: no shared
  /// memory, nothing asked for, or more than it has; NOT_FOUND `REGION`: there is none; PERMISSION_DENIED
  /// `REGION_ACCESS`: it may not be opened; `BUSY`: descriptors or address space are out. Fields are those of
  /// a Register request.
  static Result<SharedMemory> Map(const std::string& name, uint64_t offset, uint64_t bytes, bool writable);

  std::byte* data() const { return pages_ + (offset_ - page_offset_); }
  int64_t bytes() const { return bytes_; }
  /// The whole pages around these, which are what is mapped.
  std::byte* pages() const { return pages_; }
  size_t page_bytes() const { return page_bytes_; }
  /// REGION_SHRUNK where the object no longer has all these bytes. Any thread; a system call.
  Status Check() const;

  /// Bytes of the pages that a mapping of [offset, offset + bytes) takes.
  static uint64_t PageBytes(uint64_t offset, uint64_t bytes);

 private:
  void Unmap();
  int descriptor_ = -1;
  std::byte* pages_ = nullptr;
  size_t page_bytes_ = 0;
  int64_t offset_ = 0, page_offset_ = 0, bytes_ = 0;
};

}  // namespace tilewire::engine
