// Memory that a client shares with a server on its host, or on its device: operands and results that cross no
// wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "client/cpp/source.h"
#include "kernels/array/shape.h"
#include "kernels/array/status.h"

namespace tilewire::client {

/// How memory is shared.
struct RegionOptions {
  bool writable = true;  ///< results may be written there; the server opens it for writing too
  double seconds = 0;  ///< it stays registered so long without being used by a call; 0: the server's default
  /// What its name begins with, as --allow-regions of the server says; empty: the server is asked.
  std::string prefix;
  unsigned permissions = 0600;  ///< of the memory; more for a server that runs as another user
};

/// POSIX shared memory of this process that is registered with a server; unregistered and unmapped with this
/// object. Its name is gone as soon as the server has it, so that nothing is left however the process ends.
/// Move-only; may outlive the Client that made it. data() may be written and read by any thread; what a call
/// reads must not change while it runs (else its result is of whatever bytes it saw), and where it writes is
/// its own until it returns.
class SharedRegion {
 public:
  /// Unregisters the region of that id at the server.
  using Unregisterer = std::function<Status(const std::string& id)>;

  SharedRegion() = default;
  SharedRegion(SharedRegion&& other) noexcept { *this = std::move(other); }
  SharedRegion& operator=(SharedRegion&& other) noexcept;
  /// Unregisters as well as it can be done within two seconds. Where that fails, the server forgets the
  /// region when its time is over.
  ~SharedRegion();

  /// Whether there is memory.
  explicit operator bool() const { return data_ != nullptr; }
  uint8_t* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  const std::string& id() const { return id_; }
  /// An array that lies there from byte `offset` on, as an operand.
  ArraySource source(const ArraySpec& spec, uint64_t offset = 0) const {
    return ArraySource::Region({id_, offset}, spec);
  }
  /// Where a result may go.
  RegionPlace place(uint64_t offset = 0) const { return {id_, offset}; }

  /// Unregisters now and says what came of it; OK where that was done. The memory stays until this object
  /// goes.
  Status Unregister();

 private:
  friend class Client;
  /// New memory of `bytes` bytes, not registered yet, under the name `name`. RESOURCE_EXHAUSTED `BUSY` where
  /// there is no room for it.
  static Result<SharedRegion> Make(const std::string& name, uint64_t bytes, unsigned permissions);

  std::string id_;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
  Unregisterer unregister_;
};

/// Memory of the server's device that this or another process allocated and exports by CUDA IPC handle.
struct DeviceMemory {
  std::string handle;   ///< what cudaIpcGetMemHandle gave: the 64 bytes of a cudaIpcMemHandle_t
  uint64_t offset = 0;  ///< from the address that was exported; a multiple of 256
  uint64_t bytes = 0;   ///< from there on, within the allocation
  std::string device;   ///< the server's name of its device, as "cuda:0"; empty: whichever it has
};
struct DeviceRegionOptions {
  bool writable = true;  ///< results may be written there
  double seconds = 0;    ///< as RegionOptions::seconds; a dead client's memory may stay taken so long
};

/// Memory of the server's device that is registered with it: kernels read operands and write results where
/// they are. Unregistered with this object. The allocation must stay until then: the server has it open, and
/// CUDA leaves undefined what comes of freeing it earlier. Whoever writes there with the device waits for
/// that to be done before a call reads it; a call is done with it when it returns, unless it fails: then
/// Unregister() says when. Arrays begin at multiples of 256 bytes; where a result goes may not overlap an
/// operand of the same call. Move-only; may outlive the Client that made it.
class DeviceRegion {
 public:
  DeviceRegion() = default;
  DeviceRegion(DeviceRegion&& other) noexcept { *this = std::move(other); }
  DeviceRegion& operator=(DeviceRegion&& other) noexcept;
  /// Unregisters as well as it can be done within two seconds. Who must know that the memory may be freed
  /// calls Unregister() before.
  ~DeviceRegion();

  /// Whether it was registered, and not unregistered since.
  explicit operator bool() const { return unregister_ != nullptr; }
  uint64_t bytes() const { return bytes_; }
  const std::string& id() const { return id_; }
  /// An array that lies there from byte `offset` on, as an operand.
  ArraySource source(const ArraySpec& spec, uint64_t offset = 0) const {
    return ArraySource::Region({id_, offset}, spec);
  }
  /// Where a result may go.
  RegionPlace place(uint64_t offset = 0) const { return {id_, offset}; }

  /// Unregisters now and waits until no call uses the memory and the server has closed it, two seconds at
  /// most (DEADLINE_EXCEEDED): where that is OK it may be freed.
  Status Unregister();

 private:
  friend class Client;
  std::string id_;
  uint64_t bytes_ = 0;
  std::function<Status(const std::string& id)> unregister_;
};

}  // namespace tilewire::client
