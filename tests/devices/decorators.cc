#include "tests/devices/decorators.h"

#include <memory>
#include <utility>

#include "tests/devices/forwarding_device.h"

namespace tilewire::engine {
namespace {

// --- faulty ------------------------------------------------------------------------------------

class FaultyLane final : public ForwardingLane {
 public:
  FaultyLane(std::unique_ptr<Lane> lane, std::shared_ptr<Faults> faults)
      : ForwardingLane(lane.get()), faults_(std::move(faults)), owned_(std::move(lane)) {}

  void CopyIn(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) override {
    if (auto fault = faults_->Count(Submitted::kCopyIn)) return Fail(*fault, device, host, std::move(done));
    lane_->CopyIn(device, host, bytes, Watched(std::move(done)));
  }
  void CopyOut(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) override {
    if (auto fault = faults_->Count(Submitted::kCopyOut)) return Fail(*fault, host, device, std::move(done));
    lane_->CopyOut(host, device, bytes, Watched(std::move(done)));
  }
  void CopyInShared(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) override {
    if (auto fault = faults_->Count(Submitted::kCopyIn)) return Fail(*fault, device, host, std::move(done));
    lane_->CopyInShared(device, host, bytes, Watched(std::move(done)));
  }
  void CopyOutShared(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) override {
    if (auto fault = faults_->Count(Submitted::kCopyOut)) return Fail(*fault, host, device, std::move(done));
    lane_->CopyOutShared(host, device, bytes, Watched(std::move(done)));
  }
  void Launch(const Work& work, OnComplete done) override {
    if (auto fault = faults_->Count(Submitted::kLaunch)) {
      return Fail(*fault, nullptr, nullptr, std::move(done));
    }
    lane_->Launch(work, Watched(std::move(done)));
  }

 private:
  /// A copy of nothing keeps the failed submission's place in the lane's order.
  void Fail(const Faults::Fault& fault, std::byte* to, const std::byte* from, OnComplete done) {
    lane_->CopyIn(to, from, 0, [faults = faults_, fault, done = std::move(done)](Completion completion) {
      const Status health = faults->health();
      completion.status = health.ok() ? fault.status : health;
      if (fault.device_fails) faults->FailDevice(fault.status);
      done(completion);
    });
  }
  OnComplete Watched(OnComplete done) {
    return [faults = faults_, done = std::move(done)](Completion completion) {
      if (Status health = faults->health(); !health.ok()) completion.status = health;
      done(completion);
    };
  }

  const std::shared_ptr<Faults> faults_;
  const std::unique_ptr<Lane> owned_;
};

class FaultyDevice final : public ForwardingDevice {
 public:
  FaultyDevice(std::unique_ptr<Device> device, std::shared_ptr<Faults> faults)
      : ForwardingDevice(std::move(device)), faults_(std::move(faults)) {}
  Result<Memory> AllocateDevice(size_t bytes) override {
    TILEWIRE_RETURN_IF_ERROR(faults_->health());
    return device_->AllocateDevice(bytes);
  }
  Result<Memory> AllocatePinned(size_t bytes) override {
    TILEWIRE_RETURN_IF_ERROR(faults_->health());
    return device_->AllocatePinned(bytes);
  }
  Result<Memory> PinHost(std::byte* data, size_t bytes, bool writable) override {
    TILEWIRE_RETURN_IF_ERROR(faults_->health());
    return device_->PinHost(data, bytes, writable);
  }
  Result<std::unique_ptr<Lane>> MakeLane(LanePriority priority) override {
    TILEWIRE_RETURN_IF_ERROR(faults_->health());
    TILEWIRE_ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, device_->MakeLane(priority));
    return std::make_unique<FaultyLane>(std::move(lane), faults_);
  }
  Result<std::vector<KernelInfo>> DescribeWork(const Work& work) override {
    TILEWIRE_RETURN_IF_ERROR(faults_->health());
    return device_->DescribeWork(work);
  }
  Result<std::vector<LadderKernel>> DescribeLadder() override {
    TILEWIRE_RETURN_IF_ERROR(faults_->health());
    return device_->DescribeLadder();
  }
  Status health() const override {
    const Status own = faults_->health();
    return own.ok() ? device_->health() : own;
  }

 private:
  const std::shared_ptr<Faults> faults_;
};

// --- out of memory -----------------------------------------------------------------------------

class OutOfMemoryDevice final : public ForwardingDevice {
 public:
  OutOfMemoryDevice(std::unique_ptr<Device> device, std::shared_ptr<Shortage> shortage)
      : ForwardingDevice(std::move(device)), shortage_(std::move(shortage)) {}
  Result<Memory> AllocateDevice(size_t bytes) override {
    TILEWIRE_RETURN_IF_ERROR(shortage_->TakeDevice(static_cast<int64_t>(bytes)));
    Result<Memory> memory = device_->AllocateDevice(bytes);
    if (!memory) {
      shortage_->GiveDevice(static_cast<int64_t>(bytes));
      return memory;
    }
    auto inner = std::make_shared<Memory>(*std::move(memory));
    return Memory(inner->data(), bytes, [inner, shortage = shortage_](std::byte*, size_t released) {
      inner->Reset();
      shortage->GiveDevice(static_cast<int64_t>(released));
    });
  }
  Result<Memory> AllocatePinned(size_t bytes) override {
    TILEWIRE_RETURN_IF_ERROR(shortage_->TakePinned());
    return device_->AllocatePinned(bytes);
  }
  Result<Memory> PinHost(std::byte* data, size_t bytes, bool writable) override {
    TILEWIRE_RETURN_IF_ERROR(shortage_->TakePinned());
    return device_->PinHost(data, bytes, writable);
  }

 private:
  const std::shared_ptr<Shortage> shortage_;
};

// --- staged ------------------------------------------------------------------------------------

class StagedDevice final : public ForwardingDevice {
 public:
  StagedDevice(std::unique_ptr<Device> device, bool kernels_reach_pinned)
      : ForwardingDevice(std::move(device)), facts_(device_->facts()) {
    facts_.host_memory = false;
    facts_.kernels_reach_pinned = kernels_reach_pinned;
  }
  const DeviceFacts& facts() const override { return facts_; }

 private:
  DeviceFacts facts_;
};

}  // namespace

std::unique_ptr<Device> MakeFaulty(std::unique_ptr<Device> device, std::shared_ptr<Faults> faults) {
  return std::make_unique<FaultyDevice>(std::move(device), std::move(faults));
}

std::unique_ptr<Device> MakeOutOfMemory(std::unique_ptr<Device> device, std::shared_ptr<Shortage> shortage) {
  return std::make_unique<OutOfMemoryDevice>(std::move(device), std::move(shortage));
}

std::unique_ptr<Device> MakeStaged(std::unique_ptr<Device> device, bool kernels_reach_pinned) {
  return std::make_unique<StagedDevice>(std::move(device), kernels_reach_pinned);
}

}  // namespace tilewire::engine
