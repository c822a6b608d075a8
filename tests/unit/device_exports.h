// Memory of a device as other processes export it, for tests without a GPU: it is this process's, under
// handles that a device opens as a driver would.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "tests/devices/forwarding_device.h"

namespace tilewire::testing {

/// Who exports what. Thread-safe.
class DeviceExports {
 public:
  /// Exports `bytes` bytes from `data` on: the handle.
  std::string Add(std::byte* data, size_t bytes) {
    std::lock_guard lock(mutex_);
    const std::string handle = HandleOf(++last_);
    exports_[handle] = {data, bytes};
    return handle;
  }
  /// From now on a driver opens none of them, as where a handle is of the process itself; or does again.
  void Refuse(bool refuse) {
    std::lock_guard lock(mutex_);
    refuse_ = refuse;
  }
  /// How many are open.
  int open() const {
    std::lock_guard lock(mutex_);
    return open_;
  }
  /// A handle of nothing.
  static std::string None() { return HandleOf(0); }

  Result<engine::Memory> Open(std::string_view handle) {
    std::lock_guard lock(mutex_);
    if (refuse_) return Fail(Status(Code::kFailedPrecondition, "REGION_UNPINNABLE", "the driver does not"));
    const auto found = exports_.find(std::string(handle));
    if (found == exports_.end())
      return BadValue("device_memory.handle", "a handle of nothing", "one of memory");
    ++open_;
    return engine::Memory(found->second.first, found->second.second, [this](std::byte*, size_t) {
      std::lock_guard inner(mutex_);
      --open_;
    });
  }

 private:
  static std::string HandleOf(int number) {
    std::string handle = "export " + std::to_string(number);
    handle.resize(engine::kExportHandleBytes);
    return handle;
  }
  mutable std::mutex mutex_;
  std::map<std::string, std::pair<std::byte*, size_t>> exports_;
  int last_ = 0, open_ = 0;
  bool refuse_ = false;
};

/// A device that opens what `exports` has; that outlives it.
class ExportsDevice final : public engine::ForwardingDevice {
 public:
  ExportsDevice(std::unique_ptr<Device> device, DeviceExports* exports)
      : ForwardingDevice(std::move(device)), exports_(exports) {}
  Result<engine::Memory> OpenShared(std::string_view handle) override { return exports_->Open(handle); }

 private:
  DeviceExports* const exports_;
};

/// An allocation that begins at a multiple of 256, zeros. Behind its end come bytes that nobody may write.
class ExportedMemory {
 public:
  ExportedMemory(DeviceExports* exports, size_t bytes)
      : bytes_(bytes), data_(static_cast<std::byte*>(std::aligned_alloc(kAlignment, Padded(bytes)))) {
    std::fill(data_.get(), data_.get() + bytes, std::byte{0});
    std::fill(data_.get() + bytes, data_.get() + Padded(bytes), kRim);
    handle_ = exports->Add(data_.get(), bytes);
  }
  std::byte* data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }
  const std::string& handle() const { return handle_; }
  bool RimIntact() const {
    return std::all_of(data_.get() + bytes_, data_.get() + Padded(bytes_),
                       [](std::byte b) { return b == kRim; });
  }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  static constexpr size_t kAlignment = 256;
  static constexpr std::byte kRim{0xa7};
  static size_t Padded(size_t bytes) { return (bytes / kAlignment + 2) * kAlignment; }
  const size_t bytes_;
  const std::unique_ptr<std::byte, Free> data_;
  std::string handle_;
};

}  // namespace tilewire::testing
