// What devices and lanes that wrap another one have in common.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "server/engine/device/device.h"

namespace tilewire::engine {

/// Passes everything on to a lane that the derived class owns, as its last member: that lane drains in its
/// destructor, and callbacks that submit meanwhile must find a whole object.
class ForwardingLane : public Lane {
 public:
  explicit ForwardingLane(Lane* lane) : lane_(lane) {}
  void CopyIn(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) override {
    lane_->CopyIn(device, host, bytes, std::move(done));
  }
  void CopyOut(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) override {
    lane_->CopyOut(host, device, bytes, std::move(done));
  }
  void CopyInShared(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) override {
    lane_->CopyInShared(device, host, bytes, std::move(done));
  }
  void CopyOutShared(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) override {
    lane_->CopyOutShared(host, device, bytes, std::move(done));
  }
  void Launch(const Work& work, OnComplete done) override { lane_->Launch(work, std::move(done)); }
  void Help(std::chrono::microseconds budget) override { lane_->Help(budget); }
  void AnnounceHelp() override { lane_->AnnounceHelp(); }
  void WithdrawHelp() override { lane_->WithdrawHelp(); }
  uint64_t wakes() const override { return lane_->wakes(); }

 protected:
  Lane* const lane_;
};

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
