#include "server/engine/device/cuda/device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "server/engine/device/cuda/error.h"
#include "server/engine/device/cuda/kernels.h"
#include "server/engine/device/cuda/lane.h"
#include "server/engine/device/cuda/shared.h"
#include "server/engine/device/memory_pool.h"

namespace tilewire::engine {
namespace {

constexpr size_t kPageBytes = 4096;  // the alignment that the seam promises for pinned memory

/// 13000 is 13.0.
std::string VersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

class CudaDevice final : public Device {
 public:
  CudaDevice(int ordinal, DeviceFacts facts) : ordinal_(ordinal), facts_(std::move(facts)) {}

  const DeviceFacts& facts() const override { return facts_; }
  int64_t FreeBytes() const override;
  void SetDeviceBudget(int64_t bytes) override { device_memory_.SetCap(bytes); }
  void SetPinnedBudget(int64_t bytes) override { pinned_memory_.SetCap(bytes); }
  int64_t cached_bytes() const override { return device_memory_.cached_bytes(); }
  Result<Memory> AllocateDevice(size_t bytes) override {
    TILEWIRE_RETURN_IF_ERROR(health());
    return device_memory_.Allocate(bytes);
  }
  Result<Memory> AllocatePinned(size_t bytes) override {
    TILEWIRE_RETURN_IF_ERROR(health());
    return pinned_memory_.Allocate(bytes);
  }
  Result<Memory> PinHost(std::byte* data, size_t bytes, bool writable) override;
  Result<Memory> OpenShared(std::string_view handle) override {
    TILEWIRE_RETURN_IF_ERROR(health());
    TILEWIRE_RETURN_IF_ERROR(health_.Note(TILEWIRE_CUDA_STATUS(cudaSetDevice(ordinal_))));
    return OpenCudaShared(ordinal_, handle);
  }
  Result<std::unique_ptr<Lane>> MakeLane(LanePriority priority) override {
    return CudaLane::Make(ordinal_, priority, &health_);
  }
  Result<std::vector<KernelInfo>> DescribeWork(const Work& work) override {
    return DescribeCudaWork(ordinal_, work, &health_);
  }
  Result<std::vector<LadderKernel>> DescribeLadder() override {
    return DescribeCudaLadder(ordinal_, &health_);
  }
  Status health() const override { return health_.status(); }

  /// A small allocation, there and back: whether this device works at all.
  Status Try();

 private:
  Status CheckReach() const;
  Result<std::byte*> RawDevice(size_t bytes);
  Result<std::byte*> RawPinned(size_t bytes);
  static void RawFreePinned(std::byte* data);

  const int ordinal_;
  const DeviceFacts facts_;
  mutable CudaHealth health_;
  MemoryPool device_memory_{[this](size_t bytes) { return RawDevice(bytes); },
                            [this](std::byte* data, size_t) {
                              IgnoreCudaError(cudaSetDevice(ordinal_));
                              IgnoreCudaError(cudaFree(data));
                            },
                            0};
  MemoryPool pinned_memory_{[this](size_t bytes) { return RawPinned(bytes); },
                            [](std::byte* data, size_t) { RawFreePinned(data); }, 0};
};

int64_t CudaDevice::FreeBytes() const {
  size_t free = 0, total = 0;
  Status status = health_.Note(TILEWIRE_CUDA_STATUS(cudaSetDevice(ordinal_)));
  if (status.ok()) status = health_.Note(TILEWIRE_CUDA_STATUS(cudaMemGetInfo(&free, &total)));
  if (!status.ok()) return 0;
  const int64_t possible = static_cast<int64_t>(free) + device_memory_.cached_bytes();
  const int64_t cap = device_memory_.cap_bytes();
  return cap > 0 ? std::clamp<int64_t>(cap - device_memory_.leased_bytes(), 0, possible) : possible;
}

Result<std::byte*> CudaDevice::RawDevice(size_t bytes) {
  void* data = nullptr;
  TILEWIRE_RETURN_IF_ERROR(health_.Note(TILEWIRE_CUDA_STATUS(cudaSetDevice(ordinal_))));
  TILEWIRE_RETURN_IF_ERROR(health_.Note(TILEWIRE_CUDA_STATUS(cudaMalloc(&data, bytes))));
  return static_cast<std::byte*>(data);
}

Result<std::byte*> CudaDevice::RawPinned(size_t bytes) {
  void* base = nullptr;
  TILEWIRE_RETURN_IF_ERROR(health_.Note(TILEWIRE_CUDA_STATUS(cudaSetDevice(ordinal_))));
  // Portable: copies from every device of the process run at full speed. Small pieces come from the driver's
  // own pages at any 512 bytes, so one page more leaves room for a page boundary and, just before it, the
  // address to free.
  TILEWIRE_RETURN_IF_ERROR(
      health_.Note(TILEWIRE_CUDA_STATUS(cudaHostAlloc(&base, bytes + kPageBytes, cudaHostAllocPortable))));
  const size_t past_boundary = reinterpret_cast<uintptr_t>(base) % kPageBytes;
  std::byte* data = static_cast<std::byte*>(base) + (kPageBytes - past_boundary);
  std::memcpy(data - sizeof(base), &base, sizeof(base));
  return data;
}

void CudaDevice::RawFreePinned(std::byte* data) {
  void* base = nullptr;
  std::memcpy(&base, data - sizeof(base), sizeof(base));
  IgnoreCudaError(cudaFreeHost(base));
}

Status Unpinnable(const std::string& why) {
  return Status(Code::kFailedPrecondition, "REGION_UNPINNABLE", "the device cannot have this memory: " + why);
}

/// Whether the device reaches what is pinned by itself, at the host's address and by page tables of its own.
/// Elsewhere the CPU would take part in copies, or kernels fail, where a client takes its memory away.
Status CudaDevice::CheckReach() const {
  int own_address = 0, host_tables = 0;
  TILEWIRE_RETURN_IF_ERROR(health_.Note(TILEWIRE_CUDA_STATUS(
      cudaDeviceGetAttribute(&own_address, cudaDevAttrCanUseHostPointerForRegisteredMem, ordinal_))));
  TILEWIRE_RETURN_IF_ERROR(health_.Note(TILEWIRE_CUDA_STATUS(
      cudaDeviceGetAttribute(&host_tables, cudaDevAttrPageableMemoryAccessUsesHostPageTables, ordinal_))));
  if (!facts_.kernels_reach_pinned || own_address == 0)
    return Unpinnable(facts_.id + " does not reach pinned memory at the host's address");
  if (host_tables != 0)
    return Unpinnable(facts_.id + " uses the host's page tables, so it would lose what its owner takes away");
  return {};
}

/// Errors are the memory's, not the device's: a client may shrink its file meanwhile, and what the driver
/// then says must not count as a failure of the device.
Result<Memory> CudaDevice::PinHost(std::byte* data, size_t bytes, bool writable) {
  TILEWIRE_RETURN_IF_ERROR(health());
  TILEWIRE_RETURN_IF_ERROR(health_.Note(TILEWIRE_CUDA_STATUS(cudaSetDevice(ordinal_))));
  TILEWIRE_RETURN_IF_ERROR(CheckReach());
  const unsigned flags =
      cudaHostRegisterPortable | cudaHostRegisterMapped | (writable ? 0 : cudaHostRegisterReadOnly);
  const cudaError_t error = cudaHostRegister(data, bytes, flags);
  if (error == cudaSuccess)
    return Memory(data, bytes, [ordinal = ordinal_](std::byte* pinned, size_t) {
      IgnoreCudaError(cudaSetDevice(ordinal));
      IgnoreCudaError(cudaHostUnregister(pinned));
    });
  Status status = ToStatus(error, "cudaHostRegister", __FILE__, __LINE__);
  if (Classify(error) == CudaErrorClass::kOutOfMemory) return Fail(std::move(status));
  return Fail(Unpinnable(std::string(status.message())));
}

Status CudaDevice::Try() {
  constexpr size_t kBytes = 4096;
  TILEWIRE_ASSIGN_OR_RETURN(Memory device, AllocateDevice(kBytes));
  TILEWIRE_ASSIGN_OR_RETURN(Memory host, AllocatePinned(2 * kBytes));
  std::byte *sent = host.data(), *received = host.data() + kBytes;
  for (size_t i = 0; i < kBytes; ++i) {
    sent[i] = static_cast<std::byte>(i * 131 + 7);
    received[i] = ~sent[i];
  }
  TILEWIRE_RETURN_IF_ERROR(
      TILEWIRE_CUDA_STATUS(cudaMemcpy(device.data(), sent, kBytes, cudaMemcpyHostToDevice)));
  TILEWIRE_RETURN_IF_ERROR(
      TILEWIRE_CUDA_STATUS(cudaMemcpy(received, device.data(), kBytes, cudaMemcpyDeviceToHost)));
  if (!std::equal(sent, sent + kBytes, received)) {
    return Status(Code::kInternal, "DEVICE_FAILED", "copied bytes came back changed");
  }
  device.Reset();
  host.Reset();
  device_memory_.Trim();
  pinned_memory_.Trim();
  return {};
}

/// Reads the facts, which also makes the primary context.
Result<DeviceFacts> ReadFacts(int ordinal) {
  int count = 0;
  TILEWIRE_RETURN_IF_ERROR(TILEWIRE_CUDA_STATUS(cudaGetDeviceCount(&count)));
  if (ordinal < 0 || ordinal >= count) {
    return Fail(
        Status(Code::kUnavailable, "NO_DEVICE", "there are " + std::to_string(count) + " CUDA devices"));
  }
  TILEWIRE_RETURN_IF_ERROR(TILEWIRE_CUDA_STATUS(cudaSetDevice(ordinal)));
  cudaDeviceProp properties{};
  TILEWIRE_RETURN_IF_ERROR(TILEWIRE_CUDA_STATUS(cudaGetDeviceProperties(&properties, ordinal)));
  int driver = 0, runtime = 0;
  TILEWIRE_RETURN_IF_ERROR(TILEWIRE_CUDA_STATUS(cudaDriverGetVersion(&driver)));
  TILEWIRE_RETURN_IF_ERROR(TILEWIRE_CUDA_STATUS(cudaRuntimeGetVersion(&runtime)));
  int pins_read_only = 0;
  TILEWIRE_RETURN_IF_ERROR(TILEWIRE_CUDA_STATUS(
      cudaDeviceGetAttribute(&pins_read_only, cudaDevAttrHostRegisterReadOnlySupported, ordinal)));
  return DeviceFacts{
      .id = "cuda:" + std::to_string(ordinal),
      .name = properties.name,
      .memory_bytes = static_cast<int64_t>(properties.totalGlobalMem),
      .processors = properties.multiProcessorCount,
      .compute_capability = std::to_string(properties.major) + "." + std::to_string(properties.minor),
      .driver_version = VersionText(driver),
      .runtime_version = VersionText(runtime),
      .host_memory = false,
      .kernels_reach_pinned = properties.unifiedAddressing != 0 && properties.canMapHostMemory != 0,
      .pins_read_only = pins_read_only != 0,
  };
}

/// Whatever the cause, the caller's question was whether there is such a device.
Status Unusable(int ordinal, const Status& cause) {
  return Status(Code::kUnavailable, "NO_DEVICE",
                "cuda:" + std::to_string(ordinal) + " cannot be used: " + std::string(cause.message()));
}

}  // namespace

Result<std::unique_ptr<Device>> OpenCudaDevice(int ordinal) {
  Result<DeviceFacts> facts = ReadFacts(ordinal);
  if (!facts) return Fail(Unusable(ordinal, facts.error()));
  auto device = std::make_unique<CudaDevice>(ordinal, *std::move(facts));
  if (Status status = device->Try(); !status.ok()) return Fail(Unusable(ordinal, status));
  return device;
}

int CudaDeviceCount() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  IgnoreCudaError(error);
  return error == cudaSuccess ? count : 0;
}

}  // namespace tilewire::engine
