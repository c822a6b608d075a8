// What devices that wrap another one have in common.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "server/engine/device.h"

namespace tilewire::engine {

/// Passes everything on.
class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}
  const DeviceFacts& facts() const override { return device_->facts(); }
  int64_t FreeBytes() const override { return device_->FreeBytes(); }
  void SetDeviceBudget(int64_t bytes) override { device_->SetDeviceBudget(bytes); }
  void SetPinnedBudget(int64_t bytes) override { device_->SetPinnedBudget(bytes); }
  int64_t cached_bytes() const override { return device_->cached_bytes(); }
  Result<Memory> AllocateDevice(size_t bytes) override { return device_->AllocateDevice(bytes); }
  Result<Memory> AllocatePinned(size_t bytes) override { return device_->AllocatePinned(bytes); }
  Result<Memory> PinHost(std::byte* data, size_t bytes, bool writable) override {
    return device_->PinHost(data, bytes, writable);
  }
  Result<Memory> OpenShared(std::string_view handle) override { return device_->OpenShared(handle); }
  Result<std::unique_ptr<Lane>> MakeLane(LanePriority priority) override {
    return device_->MakeLane(priority);
  }
  Result<std::vector<KernelInfo>> DescribeWork(const Work& work) override {
    return device_->DescribeWork(work);
  }
  Result<std::vector<LadderKernel>> DescribeLadder() override { return device_->DescribeLadder(); }
  Status health() const override { return device_->health(); }

 protected:
  const std::unique_ptr<Device> device_;
};

}  // namespace tilewire::engine
