// Where every operand is on the device and the result is small, kernels write it into pinned memory: nothing
// is copied behind them. Where results go otherwise they go as ever.
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <memory>
#include <mutex>

#include "tests/devices/forwarding_device.h"
#include "tests/unit/engine_arrays_testing.h"
#include "tests/unit/held_device.h"

namespace tilewire::engine {
namespace {

using testing::Bytes;
using testing::Problem;

/// Which pinned memory is leased, and what kernels of RMSEs have there. Thread-safe.
class PinnedPlaces {
 public:
  void Leased(const std::byte* data, size_t bytes) {
    const std::lock_guard lock(mutex_);
    leases_[data] = {data + bytes, ++last_lease_};
  }
  void Returned(const std::byte* data) {
    const std::lock_guard lock(mutex_);
    leases_.erase(data);
  }
  /// Of a step that leaves values. The lease that the result lies in, 0: none.
  int64_t Launched(const Buffers& work) {
    const std::lock_guard lock(mutex_);
    const int64_t lease = LeaseOf(work.results[0]);
    ++launches_;
    results_pinned_ += lease > 0 ? 1 : 0;
    others_pinned_ +=
        LeaseOf(work.scratch) + LeaseOf(work.operands[0]) + LeaseOf(work.operands[1]) > 0 ? 1 : 0;
    return lease;
  }
  void Completed(const Buffers& work, int64_t lease) {
    const std::lock_guard lock(mutex_);
    returned_early_ += LeaseOf(work.results[0]) != lease ? 1 : 0;
  }
  int pieces_leased() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(leases_.size());
  }
  int launches() const { return Locked(launches_); }
  int results_pinned() const { return Locked(results_pinned_); }
  int others_pinned() const { return Locked(others_pinned_); }
  /// Results whose memory was given back while the kernel that writes them ran.
  int returned_early() const { return Locked(returned_early_); }

 private:
  struct Lease {
    const std::byte* end;
    int64_t number;
  };
  int Locked(const int& count) const {
    const std::lock_guard lock(mutex_);
    return count;
  }
  int64_t LeaseOf(const void* place) const {
    const auto* at = static_cast<const std::byte*>(place);
    const auto after = leases_.upper_bound(at);
    if (after == leases_.begin()) return 0;
    const Lease& lease = std::prev(after)->second;
    return at < lease.end ? lease.number : 0;
  }

  mutable std::mutex mutex_;
  std::map<const std::byte*, Lease> leases_;  ///< by their first byte
  int64_t last_lease_ = 0;
  int launches_ = 0, results_pinned_ = 0, others_pinned_ = 0, returned_early_ = 0;
};

class PlacedLane final : public ForwardingLane {
 public:
  PlacedLane(std::unique_ptr<Lane> lane, PinnedPlaces* places)
      : ForwardingLane(lane.get()), places_(places), owned_(std::move(lane)) {}
  void Launch(const Work& work, OnComplete done) override {
    if (!work.problem->range_finishes()) return lane_->Launch(work, std::move(done));
    const int64_t lease = places_->Launched(work.buffers);
    lane_->Launch(work, [places = places_, buffers = work.buffers, lease,
                         done = std::move(done)](const Completion& completion) {
      places->Completed(buffers, lease);
      done(completion);
    });
  }

 private:
  PinnedPlaces* const places_;
  const std::unique_ptr<Lane> owned_;
};

class PlacedDevice final : public ForwardingDevice {
 public:
  PlacedDevice(std::unique_ptr<engine::Device> device, PinnedPlaces* places)
      : ForwardingDevice(std::move(device)), places_(places) {}
  Result<Memory> AllocatePinned(size_t bytes) override {
    TILEWIRE_ASSIGN_OR_RETURN(Memory memory, device_->AllocatePinned(bytes));
    const auto inner = std::make_shared<Memory>(std::move(memory));
    places_->Leased(inner->data(), bytes);
    return Memory(inner->data(), bytes, [inner, places = places_](std::byte* data, size_t) {
      places->Returned(data);
      inner->Reset();
    });
  }
  Result<std::unique_ptr<Lane>> MakeLane(LanePriority priority) override {
    TILEWIRE_ASSIGN_OR_RETURN(std::unique_ptr<Lane> lane, device_->MakeLane(priority));
    return std::make_unique<PlacedLane>(std::move(lane), places_);
  }

 private:
  PinnedPlaces* const places_;
};

/// An engine whose kernels reach pinned memory, and all that watches it.
class ResidentResult : public ::testing::Test {
 protected:
  void Make(const SlowOptions& slow = {}) {
    testing::Setup setup{.reach_pinned = true, .slow = slow, .faults = faults_, .shortage = shortage_};
    setup.wrap = [this](auto device) {
      device = std::make_unique<tilewire::testing::HeldDevice>(std::move(device), gate_);
      return std::make_unique<PlacedDevice>(std::move(device), &places_);
    };
    engine_ = testing::MakeEngine(setup);
  }
  void TearDown() override {
    gate_->Open();
    engine_.reset();
    EXPECT_EQ(places_.returned_early(), 0);
    EXPECT_EQ(places_.pieces_leased(), 0);
  }
  /// Its operands are stored; options of a job on them.
  JobOptions Stored(const Problem& problem) { return {.residents = testing::PutOperands(*engine_, problem)}; }
  int64_t copies_out() const { return faults_->count(Submitted::kCopyOut); }

  const std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
  const std::shared_ptr<Shortage> shortage_ = std::make_shared<Shortage>();
  const std::shared_ptr<tilewire::testing::Gate> gate_ = std::make_shared<tilewire::testing::Gate>();
  PinnedPlaces places_;
  std::unique_ptr<Engine> engine_;
};

/// Bulk by its operands; 300 values of many tiles each, or 1000 of one.
Problem OfTiles() {
  return testing::RmseProblem(DType::kU8, {300, 5000}, {1}, 1);
}
Problem OfColumns() {
  return testing::RmseProblem(DType::kF32, {300, 1000}, {0}, 2);
}

TEST_F(ResidentResult, IsWrittenWhereItIsReadAndCopiedByNobody) {
  Make({.launch = std::chrono::milliseconds(3)});  // a result that is read too early is wrong
  for (const Problem& problem :
       {OfTiles(), OfColumns(), testing::RmseProblem(DType::kF64, {700'001}, {}, 3)}) {
    JobOptions options = Stored(problem);
    const uint64_t stored = engine_->stats().device_bytes_in_use;
    const int64_t copies = copies_out();
    const int seen = places_.results_pinned();
    {
      const auto job = testing::Open(*engine_, problem.make(), options);
      ASSERT_TRUE(job) << job.error().ToString();
      const auto result = static_cast<uint64_t>(problem.expected.size());
      const EngineStats stats = engine_->stats();
      EXPECT_GE(stats.pinned_bytes_in_use, result);
      EXPECT_LE(stats.pinned_bytes_in_use, result * 107 / 100 + 1024) << "and nothing else";
      const auto scratch = static_cast<uint64_t>(problem.make()->scratch_bytes());
      EXPECT_LE(stats.device_bytes_in_use, stored + scratch * 107 / 100 + 1024);
      const auto output = testing::Collect(**job);
      ASSERT_TRUE(output) << output.error().ToString();
      EXPECT_EQ(*output, problem.expected);
      EXPECT_LT((*job)->timing().of(Stage::kD2H), 0) << "no copy to tell of";
      EXPECT_EQ((*job)->timing().bytes_out, result);
    }
    EXPECT_EQ(copies_out(), copies);
    EXPECT_EQ(places_.results_pinned(), seen + 1);
    EXPECT_EQ(places_.others_pinned(), 0) << "partial sums cross no bus";
    options = {};
    EXPECT_TRUE(testing::BecomesIdle(*engine_));
  }
}

TEST_F(ResidentResult, LargeOnesAreCopied) {
  Make();
  const Problem problem = testing::RmseProblem(DType::kU8, {2049, 200}, {1}, 4);  // 8 bytes over 16 KiB
  JobOptions options = Stored(problem);
  const auto output = testing::Collect(**testing::Open(*engine_, problem.make(), options));
  ASSERT_TRUE(output) << output.error().ToString();
  EXPECT_EQ(*output, problem.expected);
  EXPECT_GT(copies_out(), 0);
  EXPECT_EQ(places_.launches(), 1);
  EXPECT_EQ(places_.results_pinned(), 0);
}

TEST_F(ResidentResult, ThatIsStoredLiesOnTheDevice) {
  Make();
  const Problem problem = OfTiles();
  JobOptions options = Stored(problem);
  options.store.emplace();
  std::string id;
  {
    const auto job = testing::Open(*engine_, problem.make(), options);
    ASSERT_TRUE(job) << job.error().ToString();
    EXPECT_EQ(engine_->stats().pinned_bytes_in_use, 0U);
    ASSERT_TRUE(testing::Collect(**job));
    id = (*job)->stored_id();
  }
  EXPECT_EQ(places_.launches(), 1);
  EXPECT_EQ(places_.results_pinned(), 0);
  EXPECT_EQ(testing::Get(*engine_, id).value(), problem.expected);
}

TEST_F(ResidentResult, IsStagedWhereAnyOperandIsSent) {
  Make();
  const Problem problem = OfTiles();
  JobOptions options = Stored(problem);
  options.residents[0] = nullptr;
  const auto job = testing::Open(*engine_, problem.make(), options);
  ASSERT_TRUE(job) << job.error().ToString();
  const auto output = testing::Finish(*job, problem, {false, true});
  ASSERT_TRUE(output) << output.error().ToString();
  EXPECT_EQ(*output, problem.expected);
  EXPECT_EQ(copies_out(), 1);
}

TEST_F(ResidentResult, FailuresGiveItBack) {
  Make();
  const Problem problem = OfColumns();
  JobOptions options = Stored(problem);
  faults_->FailNth(Submitted::kLaunch, 1, Status(Code::kInternal, "INTERNAL_ERROR", "told to fail"));
  const auto failed = testing::Collect(**testing::Open(*engine_, problem.make(), options));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().reason(), "INTERNAL_ERROR");
  EXPECT_TRUE(testing::Becomes([&] { return engine_->stats().pinned_bytes_in_use == 0; }));

  shortage_->FailNthPinned(1);
  const auto refused = testing::Open(*engine_, problem.make(), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().reason(), "BUSY");
  EXPECT_EQ(engine_->stats().pinned_bytes_in_use, 0U);

  EXPECT_EQ(testing::Collect(**testing::Open(*engine_, problem.make(), options)).value(), problem.expected);
  options = {};
  EXPECT_TRUE(testing::BecomesIdle(*engine_));
}

TEST_F(ResidentResult, AJobGivenUpWhileItsKernelRunsKeepsItUntilThen) {
  Make();
  const Problem problem = OfColumns();
  JobOptions options = Stored(problem);
  gate_->Close();
  {
    const auto job = testing::Open(*engine_, problem.make(), options);
    ASSERT_TRUE(job) << job.error().ToString();
    ASSERT_TRUE(testing::Becomes([&] { return places_.launches() == 1; }));
    (*job)->Fail(Status(Code::kCancelled, "CANCELLED", "told to"));
    EXPECT_EQ(testing::Collect(**job).error().reason(), "CANCELLED");
  }
  EXPECT_EQ(places_.pieces_leased(), 1) << "the kernel is still to write it";
  EXPECT_GE(engine_->stats().pinned_bytes_in_use, problem.expected.size());
  {
    const auto next = testing::Open(*engine_, problem.make(), options);
    ASSERT_TRUE(next) << next.error().ToString();
    EXPECT_EQ(places_.pieces_leased(), 2) << "the next job has one of its own";
    gate_->Open();
    EXPECT_EQ(testing::Collect(**next).value(), problem.expected);
  }
  options = {};
  EXPECT_TRUE(testing::BecomesIdle(*engine_));
  EXPECT_EQ(places_.pieces_leased(), 0);
}

/// Two in a row take the same piece: the second must not find the first one's values in what it hands out.
TEST_F(ResidentResult, ManyAtOnceDoNotMeet) {
  Make({.jitter = std::chrono::microseconds(200), .seed = 4});
  const Problem problems[] = {OfTiles(), OfColumns()};
  JobOptions options[] = {Stored(problems[0]), Stored(problems[1])};
  std::vector<std::thread> callers;
  for (int t = 0; t < 6; ++t)
    callers.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const auto output =
            testing::Collect(**testing::Open(*engine_, problems[t % 2].make(), options[t % 2]));
        ASSERT_TRUE(output) << output.error().ToString();
        EXPECT_EQ(*output, problems[t % 2].expected);
      }
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(copies_out(), 0);
  EXPECT_EQ(places_.results_pinned(), 120);
  options[0] = options[1] = {};
  EXPECT_TRUE(testing::BecomesIdle(*engine_));
}

}  // namespace
}  // namespace tilewire::engine
