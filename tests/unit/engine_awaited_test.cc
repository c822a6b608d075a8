// Jobs of which only a kernel is left to wait for, awaited by the thread that opened them: it serves their
// lane, and whoever gives up leaves them to the lane's own thread.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/unit/engine_arrays_testing.h"

namespace tilewire::engine {
namespace {

using testing::Problem;

/// How often the lanes' own threads were woken, how many announcements stand, and who brought kernels' ends.
/// Thread-safe, but for Add().
class Watch {
 public:
  /// Before any of them has work.
  void Add(const Lane* lane) { lanes_.push_back(lane); }
  uint64_t wakes() const {
    uint64_t wakes = 0;
    for (const Lane* lane : lanes_) wakes += lane->wakes();
    return wakes;
  }
  std::atomic<int> announced{0};
  std::atomic<std::thread::id> last_served_by;  ///< a kernel

 private:
  std::vector<const Lane*> lanes_;
};

class ServedLane final : public ForwardingLane {
 public:
  ServedLane(std::unique_ptr<Lane> lane, Watch* watch)
      : ForwardingLane(lane.get()), watch_(watch), owned_(std::move(lane)) {
    watch_->Add(lane_);
  }
  void Launch(const Work& work, OnComplete done) override {
    lane_->Launch(work, [watch = watch_, done = std::move(done)](const Completion& completion) {
      watch->last_served_by = std::this_thread::get_id();
      done(completion);
    });
  }
  void AnnounceHelp() override {
    ++watch_->announced;
    lane_->AnnounceHelp();
  }
  void WithdrawHelp() override {
    --watch_->announced;
    lane_->WithdrawHelp();
  }

 private:
  Watch* const watch_;
  const std::unique_ptr<Lane> owned_;
};

/// A bulk RMSE on stored arrays, opened by a thread that says it will help.
class Awaited : public ::testing::Test {
 protected:
  void Make(int lanes, bool host_memory = false) {
    watch_ = std::make_unique<Watch>();
    testing::Setup setup{.staged = !host_memory, .reach_pinned = true, .faults = faults_};
    setup.options.lanes = lanes;
    setup.wrap = [this](auto device) {
      return std::make_unique<testing::LaneWrapper>(std::move(device), [this](auto lane) {
        return std::make_unique<ServedLane>(std::move(lane), watch_.get());
      });
    };
    engine_ = testing::MakeEngine(setup);
    options_ = {.helped = true, .residents = testing::PutOperands(*engine_, problem_)};
  }
  std::shared_ptr<Job> OpenJob() { return testing::Open(*engine_, problem_.make(), options_).value(); }
  void ExpectIdle() {
    options_ = {};
    EXPECT_TRUE(testing::BecomesIdle(*engine_));
    EXPECT_EQ(watch_->announced, 0);
  }

  Problem problem_ = testing::RmseProblem(DType::kF32, {300, 1000}, {0}, 2);
  const std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
  std::unique_ptr<Watch> watch_;
  std::unique_ptr<Engine> engine_;
  JobOptions options_;
};

TEST_F(Awaited, ByItsOpenerItWakesNobody) {
  for (const int lanes : {1, 2, 4}) {
    Make(lanes);
    // A machine that stands still for a millisecond in between leaves it to the lane's thread: not every
    // time.
    for (int i = 0; i < 5; ++i)
      ASSERT_TRUE(testing::Becomes([&] {
        const uint64_t wakes = watch_->wakes();
        const auto job = OpenJob();
        EXPECT_TRUE(job->awaited());
        EXPECT_EQ(watch_->announced, 1);
        while (job->Await()) {
        }
        EXPECT_FALSE(job->awaited());
        EXPECT_EQ(testing::Collect(*job).value(), problem_.expected);
        return watch_->wakes() == wakes && watch_->last_served_by.load() == std::this_thread::get_id();
      }));
    ExpectIdle();
    engine_.reset();
  }
}

TEST_F(Awaited, GivenUpItIsTheLanes) {
  Make(4);
  for (int i = 0; i < 20; ++i) {
    const auto job = OpenJob();
    ASSERT_TRUE(job->awaited());
    job->Help();
    EXPECT_FALSE(job->awaited());
    EXPECT_FALSE(job->Await());
    EXPECT_EQ(testing::Collect(*job).value(), problem_.expected);
  }
  ExpectIdle();
}

TEST_F(Awaited, FailedThereIsNothingToWaitFor) {
  Make(4);
  auto job = OpenJob();
  job->Fail(Status(Code::kCancelled, "CANCELLED", "told to"));
  EXPECT_FALSE(job->Await());
  EXPECT_EQ(testing::Collect(*job).error().reason(), "CANCELLED");
  job.reset();
  ExpectIdle();
}

TEST_F(Awaited, WithItsKernelFailedItIsOver) {
  Make(4);
  faults_->FailNth(Submitted::kLaunch, 1, Status(Code::kInternal, "BROKEN", "told to fail"));
  auto job = OpenJob();
  ASSERT_TRUE(job->awaited());
  while (job->Await()) {
  }
  EXPECT_EQ(testing::Collect(*job).error().reason(), "BROKEN");
  job.reset();
  ExpectIdle();
}

/// Lanes that an announcement was left on would serve nobody any more.
TEST_F(Awaited, KernelsBehindCopiesNoLongerThanTheirJobLasts) {
  Make(4);
  const Problem problem = testing::FineTransposeProblem(3);
  const std::vector<testing::Chunks> all = {testing::Ascending(problem, 5000)};
  for (const auto kind : {Submitted::kCopyIn, Submitted::kLaunch, Submitted::kCopyOut})
    for (const int nth : {1, 2, 5}) {
      faults_->FailNth(kind, nth, Status(Code::kInternal, "BROKEN", "told to fail"));
      const auto failed = testing::RunJob(*engine_, problem, all);
      ASSERT_FALSE(failed) << static_cast<int>(kind) << ' ' << nth;
      EXPECT_EQ(failed.error().reason(), "BROKEN");
      faults_->Clear();
      EXPECT_EQ(testing::RunJob(*engine_, problem, all).value(), problem.expected);
    }
  ExpectIdle();
}

TEST_F(Awaited, WhoNeedsOrTakesNoHelpIsNot) {
  Make(4);
  options_.helped = false;
  EXPECT_FALSE(OpenJob()->awaited());
  options_.helped = true;
  JobOptions sent = options_;
  sent.residents[0] = nullptr;
  EXPECT_FALSE(testing::Open(*engine_, problem_.make(), sent).value()->awaited()) << "copies come first";
  sent = {};
  JobOptions stored = options_;
  stored.store.emplace();
  EXPECT_FALSE(testing::Open(*engine_, problem_.make(), stored).value()->awaited());
  stored = {};
  ExpectIdle();
  engine_.reset();
  Make(4, true);
  EXPECT_FALSE(OpenJob()->awaited()) << "where the lane computes, helping it takes too long";
  ExpectIdle();
}

TEST_F(Awaited, ByManyAtOnceAllAreServed) {
  Make(4);
  std::vector<std::thread> callers;
  for (int t = 0; t < 6; ++t)
    callers.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        const auto job = OpenJob();
        // One awaits, one gives up at once, one after a glance.
        if (t % 3 == 0) {
          while (job->Await()) {
          }
        } else {
          if (t % 3 == 1) job->Await();
          job->Help();
        }
        ASSERT_EQ(testing::Collect(*job).value(), problem_.expected);
      }
    });
  for (auto& caller : callers) caller.join();
  ExpectIdle();
}

}  // namespace
}  // namespace tilewire::engine
