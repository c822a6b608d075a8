#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "server/base/mutex.h"
#include "tests/devices/decorators.h"
#include "tests/devices/forwarding_device.h"

namespace tilewire::engine {
namespace {

/// A thread that sleeps, submits to the real lane, waits for it and calls back: one submission at a time.
class SlowLane final : public Lane {
 public:
  SlowLane(std::unique_ptr<Lane> lane, std::shared_ptr<const Slowness> slowness, uint64_t number)
      : lane_(std::move(lane)),
        slowness_(std::move(slowness)),
        number_(number),
        thread_([this] { Serve(); }) {}
  ~SlowLane() override {
    {
      MutexLock lock(mutex_);
      stop_ = true;
    }
    wake_.NotifyAll();
    thread_.join();
  }

  void CopyIn(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) override {
    Submit(&SlowOptions::copy_in, std::move(done),
           [=, this](OnComplete inner) { lane_->CopyIn(device, host, bytes, std::move(inner)); });
  }
  void CopyOut(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) override {
    Submit(&SlowOptions::copy_out, std::move(done),
           [=, this](OnComplete inner) { lane_->CopyOut(host, device, bytes, std::move(inner)); });
  }
  void CopyInShared(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) override {
    Submit(&SlowOptions::copy_in, std::move(done),
           [=, this](OnComplete inner) { lane_->CopyInShared(device, host, bytes, std::move(inner)); });
  }
  void CopyOutShared(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) override {
    Submit(&SlowOptions::copy_out, std::move(done),
           [=, this](OnComplete inner) { lane_->CopyOutShared(host, device, bytes, std::move(inner)); });
  }
  void Launch(const Work& work, OnComplete done) override {
    Submit(&SlowOptions::launch, std::move(done),
           [=, this](OnComplete inner) { lane_->Launch(work, std::move(inner)); });
  }

 private:
  struct Submission {
    std::chrono::microseconds delay{0};
    OnComplete done;
    std::function<void(OnComplete)> submit;
  };

  void Submit(std::chrono::microseconds SlowOptions::*kind, OnComplete done,
              std::function<void(OnComplete)> submit) {
    const SlowOptions options = slowness_->options();
    {
      MutexLock lock(mutex_);
      const auto delay = options.*kind + SlowJitter(options, number_, submitted_++);
      queue_.push_back({delay, std::move(done), std::move(submit)});
    }
    wake_.NotifyAll();
  }

  void Serve() {
    RelockableMutexLock lock(mutex_);
    while (true) {
      while (!stop_ && queue_.empty()) wake_.Wait(mutex_);
      if (queue_.empty()) return;
      Submission submission = std::move(queue_.front());
      queue_.pop_front();
      lock.Unlock();
      const TimePoint begin = Clock::now();
      std::this_thread::sleep_for(submission.delay);
      Completion completion = Run(submission);
      completion.begin = begin;  // the delay is part of the execution
      submission.done(completion);
      submission = {};
      lock.Lock();
    }
  }

  Completion Run(const Submission& submission) {
    std::optional<Completion> result;
    submission.submit([this, &result](const Completion& completion) {
      // Notified under the lock: `result` is gone as soon as the waiting thread sees it.
      MutexLock lock(mutex_);
      result = completion;
      wake_.NotifyAll();
    });
    MutexLock lock(mutex_);
    while (!result) wake_.Wait(mutex_);
    return *std::move(result);
  }

  const std::unique_ptr<Lane> lane_;
  const std::shared_ptr<const Slowness> slowness_;
  const uint64_t number_;  ///< of the lane
  Mutex mutex_;
  CondVar wake_;
  std::deque<Submission> queue_ TILEWIRE_GUARDED_BY(mutex_);
  uint64_t submitted_ TILEWIRE_GUARDED_BY(mutex_) = 0;
  bool stop_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;  ///< last: it uses all the others
};

class SlowDevice final : public ForwardingDevice {
 public:
  SlowDevice(std::unique_ptr<Device> device, std::shared_ptr<const Slowness> slowness)
      : ForwardingDevice(std::move(device)), slowness_(std::move(slowness)) {}
  Result<std::unique_ptr<Lane>> MakeLane(LanePriority priority) override {
    TILEWIRE_ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, device_->MakeLane(priority));
    return std::make_unique<SlowLane>(std::move(lane), slowness_, lanes_.fetch_add(1));
  }

 private:
  const std::shared_ptr<const Slowness> slowness_;
  std::atomic<uint64_t> lanes_{0};
};

}  // namespace

void Slowness::Set(const SlowOptions& options) {
  const MutexLock lock(mutex_);
  options_ = options;
}

SlowOptions Slowness::options() const {
  const MutexLock lock(mutex_);
  return options_;
}

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
  return MakeSlow(std::move(device), std::make_shared<const Slowness>(options));
}

std::unique_ptr<Device> MakeSlow(std::unique_ptr<Device> device, std::shared_ptr<const Slowness> slowness) {
  return std::make_unique<SlowDevice>(std::move(device), std::move(slowness));
}

}  // namespace tilewire::engine
