// A region: memory of a client on this host that jobs read operands from and write results into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "kernels/array/status.h"
#include "server/engine/memory.h"
#include "server/engine/shared_memory.h"

namespace tilewire::engine {

/// What a client would like to register.
struct RegionRequest {
  std::string name;  ///< of POSIX shared memory
  uint64_t offset = 0, bytes = 0;
  bool writable = false;  ///< results may go there
  double seconds = 0;     ///< without use until it expires; 0: RegionLimits::seconds
};

/// Memory of a client that is mapped and pinned. Immutable, but for what the client does with its bytes.
class Region {
 public:
  Region(const Region&) = delete;
  virtual ~Region() = default;
  const std::string& id() const { return id_; }
  bool writable() const { return writable_; }
  std::byte* data() const { return memory_.data(); }
  int64_t bytes() const { return memory_.bytes(); }
  /// FAILED_PRECONDITION `REGION_SHRUNK` once its memory is not all there any more. A system call.
  /// Thread-safe.
  Status Check() const { return memory_.Check(); }

 protected:
  Region(std::string id, bool writable) : id_(std::move(id)), writable_(writable) {}
  const std::string id_;
  const bool writable_;
  SharedMemory memory_;
  Memory pin_;  // after the mapping, so that it goes first
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
  /// INVALID_ARGUMENT unless `bytes` bytes from there on are in the region and, where `write`, it is
  /// writable.
  Status Holds(int64_t bytes, bool write) const;
};

}  // namespace tilewire::engine
