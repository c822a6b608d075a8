// Orders: places in the line for memory, of those who have yet to send what it is for.
#include <gtest/gtest.h>

#include <list>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/admission/admission.h"
#include "tests/unit/engine_time_testing.h"
#include "tests/unit/executors.h"

namespace tilewire::engine {
namespace {

using std::chrono::seconds;

/// One job and what became of it.
struct OrderedJob {
  Admission::Id id = 0;
  std::optional<Ticket> ticket;
  Status refusal;
  int decisions = 0, turn = 0;
  std::optional<Order> order;  ///< last: where it goes before it has landed, the decision is told
};

class AdmissionOrders : public ::testing::Test {
 protected:
  ~AdmissionOrders() override { testing::Flush(timer_); }
  OrderedJob& Open(int64_t bytes, const std::string& owner = "a", const OwnLimits& own = {}) {
    OrderedJob& job = jobs_.emplace_back();
    job.id = admission_->RequestOrder({.device_bytes = bytes, .owner = owner, .own = own}, deadline_,
                                      [this, &job](Result<Order> order) {
                                        if (!order) {
                                          job.refusal = order.error();
                                          return;
                                        }
                                        job.order.emplace(*std::move(order));
                                        job.order->Bind([this, &job](Result<Ticket> ticket) {
                                          ++job.decisions;
                                          job.turn = ++turns_;
                                          if (ticket) {
                                            job.ticket = *std::move(ticket);
                                          } else {
                                            job.refusal = ticket.error();
                                          }
                                        });
                                      });
    return job;
  }
  EngineStats Stats() const {
    EngineStats stats;
    admission_->Snapshot(&stats);
    return stats;
  }
  void ExpectEmpty() {
    const EngineStats stats = Stats();
    EXPECT_EQ(stats.device_bytes_in_use, 0U);
    EXPECT_EQ(stats.jobs_in_flight + stats.jobs_queued + stats.jobs_open, 0U);
    EXPECT_FALSE(admission_->AnybodyWaits());
  }
  void Limit(const AdmissionLimits& limits) { admission_.emplace(limits, &timer_, &executor_); }
  void Pass(Clock::duration by) { testing::Pass(time_, timer_, by); }

  // Bulk has 700 bytes.
  static constexpr AdmissionLimits kLimits{
      .device_bytes = 800, .max_in_flight = 4, .queue_length = 4, .queue_seconds = 60};
  ManualTime time_;
  Timer timer_{&time_};
  tilewire::testing::AtOnce executor_;
  TimePoint deadline_ = TimePoint::max();
  std::optional<Admission> admission_{std::in_place, kLimits, &timer_, &executor_};
  std::list<OrderedJob> jobs_;  ///< after the admission: they go before it
  int turns_ = 0;
};

TEST_F(AdmissionOrders, HoldNoMemoryAndNoPlace) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Open(700).order);
  EXPECT_EQ(Stats().device_bytes_in_use, 0U);
  EXPECT_EQ(Stats().jobs_in_flight, 0U);
  EXPECT_EQ(Stats().jobs_open, 4U);
  EXPECT_FALSE(admission_->AnybodyWaits());
  bool granted = false;
  EXPECT_EQ(admission_->Request({.device_bytes = 700, .owner = "b"}, TimePoint::max(),
                                [&](Result<Ticket> ticket) { granted = ticket.has_value(); }),
            0U);
  EXPECT_TRUE(granted);
  jobs_.clear();
  ExpectEmpty();
}

TEST_F(AdmissionOrders, TheWholeDemandIsTakenInOneStepWhenItLands) {
  OrderedJob& job = Open(700);
  job.order->Land();
  ASSERT_TRUE(job.ticket) << "before that returns";
  EXPECT_EQ(Stats().device_bytes_in_use, 700U);
  EXPECT_EQ(Stats().jobs_in_flight, 1U);
  EXPECT_EQ(Stats().jobs_open, 0U);
  job.order->Land();
  job.order.reset();
  EXPECT_EQ(job.decisions, 1);
  EXPECT_EQ(Stats().device_bytes_in_use, 700U);
  job.ticket.reset();
  ExpectEmpty();
}

TEST_F(AdmissionOrders, TurnsComeInTheOrderInWhichOrdersWereGiven) {
  OrderedJob& running = Open(700);
  running.order->Land();
  OrderedJob *first = &Open(400), *second = &Open(400), *third = &Open(400);
  third->order->Land();
  second->order->Land();
  EXPECT_EQ(Stats().jobs_queued, 2U);
  EXPECT_TRUE(admission_->AnybodyWaits());
  first->order->Land();
  running.ticket.reset();
  ASSERT_TRUE(first->ticket);
  first->ticket.reset();
  ASSERT_TRUE(second->ticket);
  second->ticket.reset();
  EXPECT_TRUE(third->ticket);
}

TEST_F(AdmissionOrders, WhoHasNotLandedHoldsNobodyUp) {
  OrderedJob& running = Open(700);
  running.order->Land();
  Open(400);  // silent, and before
  OrderedJob& late = Open(400);
  late.order->Land();
  running.ticket.reset();
  EXPECT_TRUE(late.ticket);
}

TEST_F(AdmissionOrders, TheWaitForMemoryIsBounded) {
  OrderedJob& running = Open(700);
  running.order->Land();
  OrderedJob& job = Open(100);
  Pass(seconds(1000));  // as long as its client likes
  job.order->Land();
  Pass(seconds(59));
  EXPECT_EQ(job.decisions, 0);
  Pass(seconds(1));
  EXPECT_EQ(job.decisions, 1);
  EXPECT_EQ(job.refusal.reason(), "BUSY");
  EXPECT_EQ(job.refusal.detail()->retry_after_ms, 250);
  deadline_ = time_.Now() + seconds(5);
  OrderedJob& late = Open(100);
  late.order->Land();
  Pass(seconds(5));
  EXPECT_EQ(late.refusal.reason(), "DEADLINE");
  running.ticket.reset();
  ExpectEmpty();
}

TEST_F(AdmissionOrders, AreAsManyAsMayBeInFlightAndOthersWaitForOne) {
  std::vector<OrderedJob*> open;
  for (int i = 0; i < 4; ++i) open.push_back(&Open(100));
  OrderedJob &next = Open(100), &last = Open(100);
  EXPECT_FALSE(next.order);
  EXPECT_NE(next.id, 0U);
  EXPECT_EQ(Stats().jobs_queued, 2U);
  EXPECT_TRUE(admission_->AnybodyWaits()) << "who is slow to send keeps others waiting";
  EXPECT_TRUE(Open(100, "b").order) << "who has none is not kept out";
  EXPECT_FALSE(Open(100, "b").order);
  open[1]->order->Land();  // which it no longer needs once it has its memory
  ASSERT_TRUE(open[1]->ticket);
  EXPECT_FALSE(next.order) << "one more than there are places";
  open[0]->order.reset();
  EXPECT_TRUE(next.order);
  EXPECT_FALSE(last.order);
  admission_->Cancel(last.id, Status(Code::kCancelled, "GONE", ""));
  EXPECT_EQ(last.refusal.reason(), "GONE");
  Pass(seconds(60));
  EXPECT_EQ(jobs_.back().refusal.reason(), "BUSY") << "the wait for an order is bounded, too";
}

TEST_F(AdmissionOrders, AFullQueueIsBusyBeforeAnythingIsSent) {
  auto limits = kLimits;
  limits.queue_length = 1;
  Limit(limits);
  OrderedJob& running = Open(700);
  running.order->Land();
  OrderedJob& promised = Open(100);
  ASSERT_TRUE(promised.order) << "it has a place in the queue";
  OrderedJob& waiting = Open(100);
  waiting.order->Land();
  OrderedJob& refused = Open(100);
  EXPECT_FALSE(refused.order);
  EXPECT_EQ(refused.refusal.reason(), "BUSY");
  EXPECT_EQ(refused.refusal.detail()->retry_after_ms, 250);
  promised.order->Land();
  EXPECT_EQ(promised.decisions, 0) << "who has an order is not refused for want of a place";
  EXPECT_EQ(Stats().jobs_queued, 2U);
  running.ticket.reset();
  EXPECT_TRUE(promised.ticket);
  EXPECT_TRUE(waiting.ticket);
}

TEST_F(AdmissionOrders, WhatNeverFitsIsALimitAtOnce) {
  EXPECT_EQ(Open(701).refusal.reason(), "LIMIT");
  const OwnLimits own{.device_bytes = 300};
  OrderedJob& job = Open(200, "a", own);
  ASSERT_TRUE(job.order);
  EXPECT_EQ(Open(200, "a", own).refusal.reason(), "BUSY") << "his own bytes count from when he asks";
  job.order.reset();
  OrderedJob& again = Open(200, "a", own);
  ASSERT_TRUE(again.order);
  again.order->Land();
  again.order.reset();
  EXPECT_EQ(Open(200, "a", own).refusal.reason(), "BUSY");
  again.ticket.reset();
  EXPECT_TRUE(Open(200, "a", own).order);
  jobs_.clear();
  ExpectEmpty();
}

TEST_F(AdmissionOrders, GivenBackWhileItWaitsLetsOthersIn) {
  OrderedJob& running = Open(400);
  running.order->Land();
  OrderedJob &large = Open(700), &small = Open(300);
  large.order->Land();
  small.order->Land();
  EXPECT_FALSE(small.ticket) << "of one owner nobody overtakes";
  large.order.reset();
  EXPECT_EQ(large.refusal.code(), Code::kCancelled);
  EXPECT_TRUE(small.ticket);
  jobs_.clear();
  ExpectEmpty();
}

TEST_F(AdmissionOrders, ClosedRefusesWhatLandsLater) {
  OrderedJob& running = Open(700);
  running.order->Land();
  OrderedJob &silent = Open(100), &waiting = Open(100);
  waiting.order->Land();
  admission_->Close(Status(Code::kUnavailable, "OVER", ""));
  EXPECT_EQ(waiting.refusal.reason(), "OVER");
  EXPECT_EQ(silent.decisions, 0);
  silent.order->Land();
  EXPECT_EQ(silent.refusal.reason(), "OVER");
  EXPECT_EQ(Open(1).refusal.reason(), "OVER");
  EXPECT_TRUE(running.ticket);
  jobs_.clear();
  ExpectEmpty();
}

TEST_F(AdmissionOrders, GivenUpBetweenGrantAndUse) {
  for (int i = 0; i < 4; ++i) Open(100);
  std::optional<Order> order;
  const auto id = admission_->RequestOrder({.device_bytes = 100, .owner = "a"}, TimePoint::max(),
                                           [&](Result<Order> got) { order.emplace(*std::move(got)); });
  jobs_.front().order.reset();
  ASSERT_TRUE(order);
  admission_->Cancel(id, Status(Code::kCancelled, "GONE", ""));
  Status why;
  order->Bind([&](Result<Ticket> ticket) { why = ticket.error(); });
  EXPECT_EQ(why.code(), Code::kCancelled);
  order->Land();
  order.reset();
  jobs_.clear();
  ExpectEmpty();
}

}  // namespace
}  // namespace tilewire::engine
