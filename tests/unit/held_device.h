// A device whose work waits until the test lets it go: everything behind staging stands still meanwhile,
// however fast or busy the machine is.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/devices/forwarding_device.h"

namespace tilewire::testing {

/// Passes submissions on, or keeps them in order until it opens. Thread-safe.
class Gate {
 public:
  /// After `more` submissions.
  void Close(int64_t more = 0) {
    const std::lock_guard lock(mutex_);
    more_ = more;
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    more_ = kAll;
    for (const auto& submit : std::exchange(held_, {})) submit();
  }
  /// Submissions so far.
  int64_t came() const {
    const std::lock_guard lock(mutex_);
    return came_;
  }
  /// Waits until there were so many, or until `given_up` was set and Wake called.
  void Await(int64_t total, const std::atomic<bool>& given_up) {
    std::unique_lock lock(mutex_);
    coming_.wait(lock, [&] { return came_ >= total || given_up; });
  }
  void Wake() {
    const std::lock_guard lock(mutex_);
    coming_.notify_all();
  }
  /// `submit` only submits, so it may run under the lock.
  void Pass(std::function<void()> submit) {
    const std::lock_guard lock(mutex_);
    ++came_;
    coming_.notify_all();
    if (more_ > 0) {
      --more_;
      return submit();
    }
    held_.push_back(std::move(submit));
  }

 private:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

  mutable std::mutex mutex_;
  std::condition_variable coming_;
  int64_t more_ = kAll, came_ = 0;
  std::vector<std::function<void()>> held_;
};

/// Does something, on a thread of its own, once the device was given `more` submissions, or when this goes: a
/// moment in the life of a job that does not depend on how fast the machine is.
class AtSubmission {
 public:
  AtSubmission(std::shared_ptr<Gate> gate, int64_t more, std::function<void()> act)
      : gate_(std::move(gate)), actor_([this, total = gate_->came() + more, act = std::move(act)] {
          gate_->Await(total, gone_);
          act();
        }) {}
  ~AtSubmission() {
    gone_ = true;
    gate_->Wake();
    actor_.join();
  }
  AtSubmission(const AtSubmission&) = delete;
  AtSubmission& operator=(const AtSubmission&) = delete;

 private:
  const std::shared_ptr<Gate> gate_;
  std::atomic<bool> gone_{false};
  std::thread actor_;
};

/// Its lanes must not end while the gate is closed.
class HeldDevice final : public engine::ForwardingDevice {
 public:
  HeldDevice(std::unique_ptr<engine::Device> device, std::shared_ptr<Gate> gate)
      : ForwardingDevice(std::move(device)), gate_(std::move(gate)) {}
  Result<std::unique_ptr<engine::Lane>> MakeLane(engine::LanePriority priority) override {
    TILEWIRE_ASSIGN_OR_RETURN(std::unique_ptr<engine::Lane> lane, device_->MakeLane(priority));
    return std::make_unique<HeldLane>(std::move(lane), gate_);
  }

 private:
  class HeldLane final : public engine::Lane {
   public:
    HeldLane(std::unique_ptr<engine::Lane> lane, std::shared_ptr<Gate> gate)
        : gate_(std::move(gate)), lane_(std::move(lane)) {}
    void CopyIn(std::byte* device, const std::byte* host, size_t bytes, engine::OnComplete done) override {
      gate_->Pass([=, this, done = std::move(done)] { lane_->CopyIn(device, host, bytes, done); });
    }
    void CopyOut(std::byte* host, const std::byte* device, size_t bytes, engine::OnComplete done) override {
      gate_->Pass([=, this, done = std::move(done)] { lane_->CopyOut(host, device, bytes, done); });
    }
    void CopyInShared(std::byte* device, const std::byte* host, size_t bytes,
                      engine::OnComplete done) override {
      gate_->Pass([=, this, done = std::move(done)] { lane_->CopyInShared(device, host, bytes, done); });
    }
    void CopyOutShared(std::byte* host, const std::byte* device, size_t bytes,
                       engine::OnComplete done) override {
      gate_->Pass([=, this, done = std::move(done)] { lane_->CopyOutShared(host, device, bytes, done); });
    }
    void Launch(const engine::Work& work, engine::OnComplete done) override {
      gate_->Pass([=, this, done = std::move(done)] { lane_->Launch(work, done); });
    }

   private:
    const std::shared_ptr<Gate> gate_;
    const std::unique_ptr<engine::Lane> lane_;
  };

  const std::shared_ptr<Gate> gate_;
};

/// Makes a device one that `gate` holds.
inline auto HeldBy(std::shared_ptr<Gate> gate) {
  return [gate = std::move(gate)](std::unique_ptr<engine::Device> device) {
    return std::make_unique<HeldDevice>(std::move(device), gate);
  };
}

}  // namespace tilewire::testing
