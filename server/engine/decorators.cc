#include "server/engine/decorators.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace tilewire::engine {
namespace {

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

// --- slow --------------------------------------------------------------------------------------

/// A thread that sleeps, submits to the real lane, waits for it and calls back: one submission at a time.
class SlowLane final : public Lane {
 public:
  SlowLane(std::unique_ptr<Lane> lane, const SlowOptions& options, uint64_t number)
      : lane_(std::move(lane)), options_(options), number_(number), thread_([this] { Serve(); }) {}
  ~SlowLane() override {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  void CopyIn(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) override {
    Submit(options_.copy_in, std::move(done),
           [=, this](OnComplete inner) { lane_->CopyIn(device, host, bytes, std::move(inner)); });
  }
  void CopyOut(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) override {
    Submit(options_.copy_out, std::move(done),
           [=, this](OnComplete inner) { lane_->CopyOut(host, device, bytes, std::move(inner)); });
  }
  void Launch(const Work& work, OnComplete done) override {
    Submit(options_.launch, std::move(done),
           [=, this](OnComplete inner) { lane_->Launch(work, std::move(inner)); });
  }

 private:
  struct Submission {
    std::chrono::microseconds delay{0};
    OnComplete done;
    std::function<void(OnComplete)> submit;
  };

  void Submit(std::chrono::microseconds delay, OnComplete done, std::function<void(OnComplete)> submit) {
    {
      std::lock_guard lock(mutex_);
      delay += SlowJitter(options_, number_, submitted_++);
      queue_.push_back({delay, std::move(done), std::move(submit)});
    }
    wake_.notify_all();
  }

  void Serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      Submission submission = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      const TimePoint begin = Clock::now();
      std::this_thread::sleep_for(submission.delay);
      Completion completion = Run(submission);
      completion.begin = begin;  // the delay is part of the execution
      submission.done(completion);
      submission = {};
      lock.lock();
    }
  }

  Completion Run(const Submission& submission) {
    std::optional<Completion> result;
    submission.submit([this, &result](const Completion& completion) {
      // Notified under the lock: `result` is gone as soon as the waiting thread sees it.
      std::lock_guard lock(mutex_);
      result = completion;
      wake_.notify_all();
    });
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return result.has_value(); });
    return *std::move(result);
  }

  const std::unique_ptr<Lane> lane_;
  const SlowOptions options_;
  const uint64_t number_;  ///< of the lane
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Submission> queue_;
  uint64_t submitted_ = 0;
  bool stop_ = false;
  std::thread thread_;  ///< last: it uses all the others
};

class SlowDevice final : public ForwardingDevice {
 public:
  SlowDevice(std::unique_ptr<Device> device, const SlowOptions& options)
      : ForwardingDevice(std::move(device)), options_(options) {}
  Result<std::unique_ptr<Lane>> MakeLane(LanePriority priority) override {
    TILEWIRE_ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, device_->MakeLane(priority));
    return std::make_unique<SlowLane>(std::move(lane), options_, lanes_.fetch_add(1));
  }

 private:
  const SlowOptions options_;
  std::atomic<uint64_t> lanes_{0};
};

// --- faulty ------------------------------------------------------------------------------------

class FaultyLane final : public Lane {
 public:
  FaultyLane(std::unique_ptr<Lane> lane, std::shared_ptr<Faults> faults)
      : faults_(std::move(faults)), lane_(std::move(lane)) {}

  void CopyIn(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) override {
    if (auto fault = faults_->Count(Submitted::kCopyIn)) return Fail(*fault, device, host, std::move(done));
    lane_->CopyIn(device, host, bytes, Watched(std::move(done)));
  }
  void CopyOut(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) override {
    if (auto fault = faults_->Count(Submitted::kCopyOut)) return Fail(*fault, host, device, std::move(done));
    lane_->CopyOut(host, device, bytes, Watched(std::move(done)));
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
  const std::unique_ptr<Lane> lane_;
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

std::chrono::microseconds SlowJitter(const SlowOptions& options, uint64_t lane, uint64_t submission) {
  // Hashed, not drawn: the k-th submission gets the same however threads interleave.
  uint64_t x = options.seed;
  for (uint64_t part : {lane, submission}) {
    x = (x + part + 1) * 0x9e3779b97f4a7c15;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 32;
  }
  const auto bound = static_cast<uint64_t>(std::max<int64_t>(options.jitter.count(), 0)) + 1;
  return std::chrono::microseconds(x % bound);
}

std::unique_ptr<Device> MakeSlow(std::unique_ptr<Device> device, const SlowOptions& options) {
  return std::make_unique<SlowDevice>(std::move(device), options);
}

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
