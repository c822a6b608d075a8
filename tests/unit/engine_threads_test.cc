// Which thread does what: nothing is allocated or submitted where that could keep somebody waiting who must
// not wait.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/unit/engine_testing.h"

namespace tilewire::engine {
namespace {

/// Threads that must not block: those of a completion queue, of a lane, the timer's.
thread_local bool must_not_block = false;

/// Called before each allocation and each submission, on its thread.
using Before = std::function<void()>;

class AnnouncedLane final : public ForwardingLane {
 public:
  AnnouncedLane(std::unique_ptr<Lane> lane, const Before* before)
      : ForwardingLane(lane.get()), before_(before), owned_(std::move(lane)) {}
  void CopyIn(std::byte* device, const std::byte* host, size_t bytes, OnComplete done) override {
    (*before_)();
    ForwardingLane::CopyIn(device, host, bytes, std::move(done));
  }
  void CopyOut(std::byte* host, const std::byte* device, size_t bytes, OnComplete done) override {
    (*before_)();
    ForwardingLane::CopyOut(host, device, bytes, std::move(done));
  }
  void Launch(const Work& work, OnComplete done) override {
    (*before_)();
    ForwardingLane::Launch(work, std::move(done));
  }

 private:
  const Before* const before_;
  const std::unique_ptr<Lane> owned_;
};

class AnnouncedDevice final : public ForwardingDevice {
 public:
  AnnouncedDevice(std::unique_ptr<Device> device, const Before* before)
      : ForwardingDevice(std::move(device)), before_(before) {}
  Result<Memory> AllocateDevice(size_t bytes) override {
    (*before_)();
    return ForwardingDevice::AllocateDevice(bytes);
  }
  Result<Memory> AllocatePinned(size_t bytes) override {
    (*before_)();
    return ForwardingDevice::AllocatePinned(bytes);
  }
  Result<std::unique_ptr<Lane>> MakeLane(LanePriority priority) override {
    TILEWIRE_ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, device_->MakeLane(priority));
    return std::make_unique<AnnouncedLane>(std::move(lane), before_);
  }

 private:
  const Before* const before_;
};

class Threads : public ::testing::Test {
 protected:
  std::unique_ptr<Engine> Make(testing::Setup setup = {}) {
    setup.wrap = [this](std::unique_ptr<Device> device) {
      return std::make_unique<AnnouncedDevice>(std::move(device), &before_);
    };
    return testing::MakeEngine(setup);
  }
  /// An engine that runs one job at a time.
  std::unique_ptr<Engine> OneByOne() {
    testing::Setup setup;
    setup.options.max_in_flight = 1;
    return Make(setup);
  }
  /// Does it on a thread that must not block.
  static void Promptly(const std::function<void()>& act) {
    std::thread([&act] {
      must_not_block = true;
      act();
    }).join();
  }

  std::atomic<int> worked_{0}, misplaced_{0};
  Before before_ = [this] {
    ++worked_;
    misplaced_ += must_not_block;
  };
};

TEST_F(Threads, WhoReleasesAJobStartsNothingForThoseThatWait) {
  const auto engine = OneByOne();
  const testing::Problem problem = testing::FineRmseProblem(1);
  auto running = *testing::Open(*engine, problem.make());
  std::promise<Result<std::shared_ptr<Job>>> opened;
  auto waiting = opened.get_future();
  engine->Open(problem.make(), {}, [&opened](auto job) { opened.set_value(std::move(job)); });
  ASSERT_EQ(engine->stats().jobs_queued, 1U);
  const int worked = worked_;
  Promptly([&running] { running.reset(); });
  const auto next = waiting.get();
  ASSERT_TRUE(next) << next.error().ToString();
  EXPECT_GT(worked_, worked) << "nothing was allocated for the next one";
  EXPECT_EQ(misplaced_, 0);
}

TEST_F(Threads, WhoCancelsOneThatWaitsStartsNothingForThoseBehindIt) {
  testing::Setup setup;
  setup.options.device_bytes = 8 << 20;
  const auto engine = Make(setup);
  // 8 KiB a row for operand and result; bulk jobs have 7 MiB.
  const auto matrix = [](int64_t rows) {
    return transpose::MakeProblem(
        *transpose::Plan::Make(*MakeSpec(DType::kF32, std::vector<int64_t>{rows, 1024}), {}));
  };
  const auto running = *testing::Open(*engine, matrix(512));
  std::promise<Result<std::shared_ptr<Job>>> large, small;
  auto refused = large.get_future(), waiting = small.get_future();
  const auto id = engine->Open(matrix(768), {}, [&large](auto job) { large.set_value(std::move(job)); });
  engine->Open(matrix(256), {}, [&small](auto job) { small.set_value(std::move(job)); });
  ASSERT_EQ(engine->stats().jobs_queued, 2U);
  Promptly([&] { engine->CancelOpen(id, Status(Code::kCancelled, "GONE", "")); });
  EXPECT_EQ(refused.get().error().reason(), "GONE");
  ASSERT_TRUE(waiting.get());
  EXPECT_EQ(misplaced_, 0);
}

TEST_F(Threads, NothingIsSubmittedUnderAJobsLock) {
  const auto engine = Make();
  const testing::Problem problem = testing::FineTransposeProblem(1);
  const auto job = *testing::Open(*engine, problem.make());
  std::atomic<int> asked{0};
  std::atomic<bool> held{false};
  std::future<bool> late;
  before_ = [&] {
    ++asked;
    if (held) return;
    auto ok = std::async(std::launch::async, [&job] { return job->status().ok(); });
    if (ok.wait_for(std::chrono::seconds(60)) == std::future_status::ready) {
      EXPECT_TRUE(ok.get());
      return;
    }
    if (!held.exchange(true)) late = std::move(ok);
  };
  {
    const testing::Feeders feeders(job, problem, {testing::Ascending(problem, 50'000)});
    EXPECT_EQ(testing::Collect(*job).value(), problem.expected);
  }
  EXPECT_FALSE(held) << "somebody submitted while holding the job's lock";
  EXPECT_GT(asked, 3);  // copies in, kernels, copies out
}

}  // namespace
}  // namespace tilewire::engine
