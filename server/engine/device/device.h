// The device seam: all that the pipelines know of a device. CpuDevice and CudaDevice implement it, test
// decorators wrap it (tests/devices/decorators.h), and every pipeline is written once against it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/array/kernel_info.h"
#include "kernels/array/status.h"
#include "kernels/operation/problem.h"
#include "server/base/timing.h"
#include "server/engine/device/memory.h"

namespace tilewire::engine {

/// Bytes of what another process exports an allocation by: CUDA's cudaIpcMemHandle_t.
inline constexpr size_t kExportHandleBytes = 64;
/// An array in memory that is not the server's own begins at a multiple of this, as its own do. Kernels read
/// aligned 16-byte words that hold a byte of an operand, hence at most to the end of the 256 bytes that its
/// last byte is in, which no allocation ends within; they write no byte outside the result.
inline constexpr uint64_t kForeignAlignment = 256;

/// What a device is. Immutable.
struct DeviceFacts {
  std::string id;                  ///< "cpu" or "cuda:N"
  std::string name;                ///< "NVIDIA H200"
  int64_t memory_bytes = 0;        ///< all of it
  int processors = 0;              ///< multiprocessors or CPU threads
  std::string compute_capability;  ///< "9.0", empty for the CPU
  std::string driver_version, runtime_version;
  /// Device memory is ordinary host memory: payloads go straight to their place, results are sent from it.
  bool host_memory = false;
  /// Kernels can read and write pinned memory where it is, slowly: worth it for what is too small to copy.
  bool kernels_reach_pinned = false;
  /// PinHost() takes memory that may only be read.
  bool pins_read_only = true;
};

/// What a lane can launch: a step of an operation's problem. `buffers` are of the device. Problem and memory
/// outlive the completion.
struct Work {
  const Problem* problem = nullptr;
  Step step;
  Buffers buffers;
};

/// How a submission ended. `begin` and `end` bound its execution on the host's steady clock (on a GPU: what
/// events measured, placed between its submission and its being noticed; see LaneClock).
struct Completion {
  Status status;
  TimePoint begin, end;
};
using OnComplete = std::function<void(const Completion&)>;

/// One stream of a device. Submissions run in order, asynchronously. Each callback is called exactly once,
/// never from within the submitting call, on a thread of the device or of Help that holds no lock; it must
/// not block. Thread-safe. The destructor waits for everything submitted.
class Lane {
 public:
  virtual ~Lane() = default;
  /// Host (pinned on a GPU) to device.
  virtual void CopyIn(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) = 0;
  /// Device to host (pinned on a GPU).
  virtual void CopyOut(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) = 0;
  /// The same from and to memory of another process: host memory that it may take away, see Device::PinHost,
  /// or memory of this device, see Device::OpenShared. Where it is noticed that memory is gone, the copy ends
  /// with FAILED_PRECONDITION `REGION_SHRUNK`; a device that copies from pinned pages does not notice.
  virtual void CopyInShared(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) = 0;
  virtual void CopyOutShared(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) = 0;
  virtual void Launch(const Work& work, OnComplete done) = 0;
  /// Lends the calling thread to the lane for about `budget`: does what the lane's own thread would do next,
  /// callbacks included, until nothing is left, time is up or another thread is at it. Spares a small request
  /// the wake-up of a sleeping thread. Without effect where a lane has no use for it. The caller holds no
  /// lock and keeps the lane alive.
  virtual void Help(std::chrono::microseconds budget) { (void)budget; }
  /// The caller is about to submit, will Help() soon and perhaps repeatedly, doing only short things in
  /// between, and then WithdrawHelp(), after some milliseconds at most: until then the lane's own thread is
  /// woken for nobody's submission. What is left at the end wakes it.
  virtual void AnnounceHelp() {}
  virtual void WithdrawHelp() {}
  /// How often the lane's own thread was woken by submissions; 0 where that is not counted.
  virtual uint64_t wakes() const { return 0; }
};

/// Lanes of small requests come first where the hardware has stream priorities.
enum class LanePriority : uint8_t { kBulk, kSmall };

/// A step of the teaching ladder (kernels/ladder) and one of its launches.
struct LadderKernel {
  std::string group;  ///< "ladder/rmse"
  std::string step;   ///< "2_shared_tree: f32 (2048, 2048)"
  KernelInfo kernel;
};

/// A device. Thread-safe. Outlives its lanes and memory.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceFacts& facts() const = 0;
  /// Bytes of device memory that could be allocated now: what the device has free or cached, within the
  /// budget.
  virtual int64_t FreeBytes() const = 0;
  /// Bounds device memory, leased and cached together, as MemoryPool::RoundUp() counts it; 0: no bound.
  virtual void SetDeviceBudget(int64_t bytes) = 0;
  /// The same for pinned host memory.
  virtual void SetPinnedBudget(int64_t bytes) = 0;
  /// Device bytes that nobody leases, held for reuse.
  virtual int64_t cached_bytes() const = 0;
  /// Device memory, aligned to 256 bytes. RESOURCE_EXHAUSTED `BUSY` when out of memory.
  virtual Result<Memory> AllocateDevice(size_t bytes) = 0;
  /// Host memory that copies may run to and from at full speed, aligned to 4 KiB. `BUSY` when out of memory.
  virtual Result<Memory> AllocatePinned(size_t bytes) = 0;
  /// Makes whole pages of host memory that the caller has mapped ready for the copies of every lane at full
  /// speed, until the piece that is returned is gone. `writable`: for copies out too, else for copies in
  /// alone. Takes long, up to some 0.5 s a GiB. `BUSY` when out of memory; FAILED_PRECONDITION
  /// `REGION_UNPINNABLE` where the device cannot have this memory, which does it no harm. The memory must
  /// stay mapped; it may be shrunk by others.
  virtual Result<Memory> PinHost(std::byte* data, size_t bytes, bool writable) = 0;
  /// Device memory that another process allocated and exports by `handle`, kExportHandleBytes long: from the
  /// address that was exported to the end of its allocation, as the driver knows it. Opened until the piece
  /// is gone; one that is opened twice has one address and stays until both are gone. The exporter must keep
  /// its allocation until then. INVALID_ARGUMENT `BAD_VALUE` (of device_memory.handle): a handle of nothing;
  /// FAILED_PRECONDITION `REGION_UNPINNABLE`: the device or its driver does not have it, which does it no
  /// harm: the other process gone, not on this host, this very process; `BUSY` when out of memory.
  virtual Result<Memory> OpenShared(std::string_view handle) = 0;
  virtual Result<std::unique_ptr<Lane>> MakeLane(LanePriority priority) = 0;
  /// The kernels that launching `work` would run, in order; nothing is launched and the pointers of `work`
  /// may be null. Empty where the device has no kernels of its own (the CPU). May take milliseconds a kernel
  /// the first time, because it loads them: not for threads that others wait for.
  virtual Result<std::vector<KernelInfo>> DescribeWork(const Work& work) = 0;
  /// The same for every step of the teaching ladder, at one documented shape a group.
  virtual Result<std::vector<LadderKernel>> DescribeLadder() = 0;
  /// Not OK once the device is unusable for good (INTERNAL, reason DEVICE_FAILED). Stays so.
  virtual Status health() const = 0;
};

}  // namespace tilewire::engine
