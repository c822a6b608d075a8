// Who may run, who waits and who is refused: the rules of admission, one by one.
#include "server/engine/admission/admission.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/engine_time_testing.h"
#include "tests/unit/executors.h"

namespace tilewire::engine {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;
constexpr TimePoint kNoDeadline = TimePoint::max();

// Small requests own an eighth: 100 device and 10 staging bytes; bulk has 700 and 70.
constexpr AdmissionLimits kLimits{
    .device_bytes = 800, .pinned_bytes = 80, .max_in_flight = 8, .queue_length = 4, .queue_seconds = 60};

Demand Bulk(int64_t device, int64_t pinned = 0) {
  return {false, device, pinned};
}
Demand Small(int64_t device, int64_t pinned = 0) {
  return {true, device, pinned};
}

/// One request and what was decided.
struct Asked {
  Admission::Id id = 0;
  int decisions = 0;
  std::optional<Ticket> ticket;
  Status refusal;
  int order = 0;  ///< among all decisions of the test
  bool granted() const { return ticket.has_value(); }
};

class AdmissionTest : public ::testing::Test {
 protected:
  /// No timer function may still be inside an admission that goes.
  ~AdmissionTest() override { testing::Flush(timer_); }
  void Ask(Asked& asked, Demand demand, TimePoint deadline = kNoDeadline) {
    asked.id = admission_->Request(demand, deadline, [this, &asked](Result<Ticket> ticket) {
      ++asked.decisions;
      asked.order = ++decided_;
      if (ticket) {
        asked.ticket = *std::move(ticket);
      } else {
        asked.refusal = ticket.error();
      }
    });
  }
  EngineStats Stats() const {
    EngineStats stats;
    admission_->Snapshot(&stats);
    return stats;
  }
  void Limit(const AdmissionLimits& limits) { admission_.emplace(limits, &timer_, &executor_); }
  void Pass(Clock::duration by) { testing::Pass(time_, timer_, by); }

  ManualTime time_;
  Timer timer_{&time_};
  tilewire::testing::AtOnce executor_;
  std::optional<Admission> admission_{std::in_place, kLimits, &timer_, &executor_};
  std::atomic<int> decided_{0};
};

TEST_F(AdmissionTest, GrantsAtOnceWhatFitsAndTakesItBack) {
  Asked a;
  Ask(a, Bulk(300, 30));
  EXPECT_EQ(a.id, 0U);
  ASSERT_TRUE(a.granted());
  EngineStats stats = Stats();
  EXPECT_EQ(stats.device_bytes, 800U);
  EXPECT_EQ(stats.pinned_bytes, 80U);
  EXPECT_EQ(stats.device_bytes_in_use, 300U);
  EXPECT_EQ(stats.pinned_bytes_in_use, 30U);
  EXPECT_EQ(stats.jobs_in_flight, 1U);
  EXPECT_EQ(stats.jobs_admitted, 1U);
  Ticket moved = *std::move(a.ticket);
  a.ticket.reset();
  EXPECT_EQ(Stats().jobs_in_flight, 1U);  // the moved-from ticket gives nothing back
  moved = Ticket();
  stats = Stats();
  EXPECT_EQ(stats.device_bytes_in_use, 0U);
  EXPECT_EQ(stats.pinned_bytes_in_use, 0U);
  EXPECT_EQ(stats.jobs_in_flight, 0U);
}

TEST_F(AdmissionTest, RefusesForGoodWhatIsLargerThanAWholeBudget) {
  Asked device, pinned, exact;
  Ask(device, Bulk(701));
  Ask(pinned, Bulk(1, 71));
  Ask(exact, Bulk(700, 70));
  for (const Asked* asked : {&device, &pinned}) {
    EXPECT_EQ(asked->refusal.code(), Code::kResourceExhausted);
    EXPECT_EQ(asked->refusal.reason(), "LIMIT");
    EXPECT_LT(asked->refusal.detail()->retry_after_ms, 0);
    EXPECT_EQ(asked->id, 0U);
  }
  EXPECT_EQ(device.refusal.detail()->value, "701");
  EXPECT_TRUE(exact.granted());
  EXPECT_EQ(Stats().jobs_refused_limit, 2U);
  EXPECT_EQ(Stats().jobs_refused_busy, 0U);
}

TEST_F(AdmissionTest, IsFirstComeFirstServedWithinAClass) {
  Asked first, large, fits, third;
  Ask(first, Bulk(500));
  Ask(large, Bulk(400));
  Ask(fits, Bulk(100));  // would fit, but must not overtake
  Ask(third, Bulk(100));
  EXPECT_FALSE(large.granted() || fits.granted() || third.granted());
  EXPECT_EQ(Stats().jobs_queued, 3U);
  first.ticket.reset();
  ASSERT_TRUE(large.granted() && fits.granted() && third.granted());
  EXPECT_LT(large.order, fits.order);
  EXPECT_LT(fits.order, third.order);
  EXPECT_EQ(Stats().jobs_queued, 0U);
}

TEST_F(AdmissionTest, SmallRequestsOvertakeBulkButNotEachOther) {
  Asked running, waiting, s1, s2, s3;
  Ask(running, Bulk(700));
  Ask(waiting, Bulk(100));
  Ask(s1, Small(60));
  EXPECT_TRUE(s1.granted());
  Ask(s2, Small(60));
  Ask(s3, Small(10));  // would fit, but must not overtake s2
  EXPECT_FALSE(waiting.granted() || s2.granted() || s3.granted());
  running.ticket.reset();
  EXPECT_TRUE(waiting.granted());
  EXPECT_FALSE(s2.granted() || s3.granted());
  s1.ticket.reset();
  ASSERT_TRUE(s2.granted() && s3.granted());
  EXPECT_LT(s2.order, s3.order);
}

TEST_F(AdmissionTest, WhatIsTooWideForTheSmallSliceGoesWithTheBulk) {
  Asked wide, staging, bulk, second, small;
  Ask(wide, Small(101));
  Ask(staging, Small(1, 11));
  ASSERT_TRUE(wide.granted() && staging.granted());
  Ask(bulk, Bulk(598));  // exactly the rest of the bulk
  EXPECT_TRUE(bulk.granted());
  Ask(second, Small(101));
  EXPECT_FALSE(second.granted());
  Ask(small, Small(100, 10));  // the slice is untouched
  EXPECT_TRUE(small.granted());
  wide.ticket.reset();
  EXPECT_TRUE(second.granted());
  Asked hopeless;
  Ask(hopeless, Small(701));
  EXPECT_EQ(hopeless.refusal.reason(), "LIMIT");
}

TEST_F(AdmissionTest, BulkLeavesPlacesInFlightToSmallRequests) {
  std::vector<Asked> bulk(7), small(3);
  for (Asked& asked : bulk) Ask(asked, Bulk(1));
  EXPECT_TRUE(bulk[5].granted());
  EXPECT_FALSE(bulk[6].granted());  // three quarters of 8
  for (Asked& asked : small) Ask(asked, Small(1));
  EXPECT_TRUE(small[1].granted());
  EXPECT_FALSE(small[2].granted());  // all 8
  bulk[0].ticket.reset();            // one place: small ones come first
  EXPECT_TRUE(small[2].granted());
  EXPECT_FALSE(bulk[6].granted());
  small[0].ticket.reset();
  EXPECT_TRUE(bulk[6].granted());
}

TEST_F(AdmissionTest, SmallRequestsLeavePlacesToBulkThatWaits) {
  std::vector<Asked> small(9);
  Asked bulk;
  for (int i = 0; i < 8; ++i) Ask(small[i], Small(1));
  EXPECT_TRUE(small[7].granted());  // all 8: no bulk waits
  Ask(bulk, Bulk(1));
  Ask(small[8], Small(1));
  small[0].ticket.reset();
  EXPECT_TRUE(bulk.granted());
  EXPECT_FALSE(small[8].granted());
  small[1].ticket.reset();
  EXPECT_TRUE(small[8].granted());
}

TEST_F(AdmissionTest, RefusesWhatFindsTheQueueFull) {
  Asked running, waiting[4], refused, small;
  Ask(running, Bulk(700));
  for (Asked& asked : waiting) Ask(asked, Bulk(1));
  Ask(refused, Bulk(1));
  EXPECT_EQ(refused.refusal.code(), Code::kResourceExhausted);
  EXPECT_EQ(refused.refusal.reason(), "BUSY");
  EXPECT_GT(refused.refusal.detail()->retry_after_ms, 0);
  Ask(small, Small(1));  // needs no place in the queue
  EXPECT_TRUE(small.granted());
  EXPECT_EQ(Stats().jobs_refused_busy, 1U);
  for (Asked& asked : waiting) admission_->Cancel(asked.id, Status(Code::kCancelled, "GONE", ""));
}

TEST_F(AdmissionTest, RefusesWhatWaitedTooLongAndLetsTheNextOnesPass) {
  AdmissionLimits limits = kLimits;
  limits.queue_seconds = 10;
  Limit(limits);
  Asked running, large, behind;
  Ask(running, Bulk(300));
  Ask(large, Bulk(500));
  Pass(seconds(4));
  Ask(behind, Bulk(100));
  Pass(seconds(6) - nanoseconds(1));
  EXPECT_EQ(large.decisions + behind.decisions, 0);
  Pass(nanoseconds(1));
  EXPECT_EQ(large.decisions, 1);
  EXPECT_EQ(large.refusal.reason(), "BUSY");
  EXPECT_GT(large.refusal.detail()->retry_after_ms, 0);
  EXPECT_EQ(Stats().jobs_refused_busy, 1U);
  EXPECT_TRUE(behind.granted()) << "as soon as it came to the front";
  Pass(seconds(100));
  EXPECT_EQ(large.decisions + behind.decisions, 2);
}

TEST_F(AdmissionTest, ADeadlineInTheQueueIsNoBusyRefusal) {
  Asked running, late, behind;
  Ask(running, Bulk(300));
  Ask(late, Bulk(500), time_.Now() + seconds(5));
  Ask(behind, Bulk(100));
  Pass(seconds(5) - nanoseconds(1));
  EXPECT_EQ(late.decisions + behind.decisions, 0);
  Pass(nanoseconds(1));
  EXPECT_EQ(late.decisions, 1);
  EXPECT_EQ(late.refusal.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(late.refusal.reason(), "DEADLINE");
  EXPECT_TRUE(behind.granted());
  EXPECT_EQ(Stats().jobs_refused_busy, 0U);
}

TEST_F(AdmissionTest, CancelTakesOutOnceAndLetsTheNextOnesPass) {
  Asked running, large, behind;
  Ask(running, Bulk(300));
  Ask(large, Bulk(500));
  Ask(behind, Bulk(100));
  admission_->Cancel(large.id, Status(Code::kCancelled, "GONE", "the client left"));
  EXPECT_EQ(large.refusal.reason(), "GONE");
  EXPECT_TRUE(behind.granted());
  admission_->Cancel(large.id, Status(Code::kCancelled, "TWICE", ""));
  admission_->Cancel(behind.id, Status(Code::kCancelled, "LATE", ""));
  admission_->Cancel(0, Status(Code::kCancelled, "NOBODY", ""));
  EXPECT_EQ(large.decisions + behind.decisions, 2);
}

TEST_F(AdmissionTest, CloseRefusesWhatWaitsAndWhatComesButLetsRunningOnesGoOn) {
  Asked running, bulk, small[2], later;
  Ask(running, Bulk(700));
  Ask(bulk, Bulk(1));
  Ask(small[0], Small(100));
  Ask(small[1], Small(1));
  admission_->Close(Status(Code::kUnavailable, "DRAINING", ""));
  Ask(later, Bulk(1));
  for (const Asked* asked : {&bulk, &small[1], &later}) {
    EXPECT_EQ(asked->decisions, 1);
    EXPECT_EQ(asked->refusal.reason(), "DRAINING");
  }
  EXPECT_TRUE(running.granted() && small[0].granted());
  running.ticket.reset();
  small[0].ticket.reset();
  EXPECT_EQ(Stats().jobs_in_flight, 0U);
  EXPECT_EQ(Stats().device_bytes_in_use, 0U);
}

TEST_F(AdmissionTest, ADecisionMayDropItsTicketAtOnce) {
  // As when memory runs out right after admission: each decision lets the next one in.
  Asked running;
  Ask(running, Bulk(700));
  int granted = 0;
  for (int i = 0; i < 4; ++i)
    admission_->Request(Bulk(700), kNoDeadline,
                        [&](Result<Ticket> ticket) { granted += ticket.has_value(); });
  running.ticket.reset();
  EXPECT_EQ(granted, 4);
  EXPECT_EQ(Stats().jobs_in_flight, 0U);
}

}  // namespace
}  // namespace tilewire::engine
