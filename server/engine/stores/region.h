// A region: memory of a client on this host that jobs read operands from and write results into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kernels/array/status.h"
#include "server/engine/device/memory.h"
#include "server/engine/device/shared_memory.h"

namespace tilewire::engine {

/// What a client would like to register.
struct RegionRequest {
  std::string name;  ///< of POSIX shared memory
  uint64_t offset = 0, bytes = 0;
  bool writable = false;  ///< results may go there
  double seconds = 0;     ///< without use until it expires; 0: RegionLimits::seconds
  /// Memory of a device instead: what it is exported by, see Device::OpenShared.
  std::optional<std::string> handle = {};
  std::string device = {};  ///< DeviceFacts::id of the device that is to open it; empty: whatever it is
};

/// Memory of a client that is mapped and pinned, or of a device and opened. Immutable, but for what the
/// client does with its bytes.
class Region {
 public:
  Region(const Region&) = delete;
  virtual ~Region() = default;
  const std::string& id() const { return id_; }
  bool writable() const { return writable_; }
  /// Whether it is memory of the device: kernels use it where it is.
  bool on_device() const { return on_device_; }
  std::byte* data() const { return on_device_ ? opened_.data() + opened_offset_ : memory_.data(); }
  int64_t bytes() const { return on_device_ ? opened_bytes_ : memory_.bytes(); }
  /// FAILED_PRECONDITION `REGION_SHRUNK` once its memory is not all there any more, which memory of a device
  /// always is. A system call. Thread-safe.
  Status Check() const { return on_device_ ? Status() : memory_.Check(); }

 protected:
  Region(std::string id, bool writable, bool on_device)
      : id_(std::move(id)), writable_(writable), on_device_(on_device) {}
  const std::string id_;
  const bool writable_, on_device_;
  SharedMemory memory_;
  Memory pin_;  // after the mapping, so that it goes first
  Memory opened_;
  int64_t opened_offset_ = 0, opened_bytes_ = 0;
};
/// The right to use a region: while it is there, so is the mapping.
using RegionUse = std::shared_ptr<const Region>;

/// Bytes of a region from `offset` on: where an operand is, or a result goes.
struct RegionPart {
  RegionUse region;  ///< null: none
  uint64_t offset = 0;
  std::string field;  ///< of the request, to blame

  explicit operator bool() const { return region != nullptr; }
  std::byte* data() const { return region->data() + offset; }
  bool on_device() const { return region && region->on_device(); }
  /// INVALID_ARGUMENT unless `bytes` bytes from there on are in the region, begin where an array may, and,
  /// where `write`, it is writable. `what` takes them: "the array has".
  Status Holds(int64_t bytes, bool write, const std::string& what = "the array has") const;
  /// INVALID_ARGUMENT where `bytes` bytes from there on overlap `other_bytes` of `other`, both of the device:
  /// kernels write while they read. Both parts hold what they are to.
  Status LiesApart(int64_t bytes, const RegionPart& other, int64_t other_bytes) const;
};

}  // namespace tilewire::engine
