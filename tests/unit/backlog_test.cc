// Which unary calls a server refuses that is behind: what comes and goes is made up, and so is the time.
#include "server/rpc/calls/backlog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

/// Serves ten calls at a time, each for ten milliseconds.
class BehindWithCalls : public ::testing::Test {
 protected:
  using Place = std::unique_ptr<Backlog::Place>;

  /// A call, unless it is refused.
  bool Comes(const std::string& owner = "ann", JobClass job = JobClass::kSmall) {
    if (backlog_.Refuses(job, owner, {}, now_, &told_)) return false;
    waiting_.push_back(std::make_unique<Backlog::Place>(&backlog_, job, owner, now_));
    Admit();
    return true;
  }
  void Pass(int ms) {
    for (; ms > 0; --ms) {
      now_ += milliseconds(1);
      if (!running_.empty()) running_.pop_front();
      Admit();
    }
  }
  /// Milliseconds that pass with so many calls each; how many were let in.
  int Flood(int ms, int each, const std::string& owner = "ann") {
    int let_in = 0;
    for (; ms > 0; --ms) {
      for (int i = 0; i < each; ++i) let_in += Comes(owner);
      Pass(1);
    }
    return let_in;
  }
  /// Until the next one is refused.
  void FillUp() {
    for (int calls = 0; Comes(); ++calls) ASSERT_LT(calls, 100);
  }
  int waiting() const { return static_cast<int>(waiting_.size()); }

  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
  Backlog backlog_{milliseconds(20), 256};
  std::deque<Place> waiting_, running_;
  std::atomic<TimePoint> told_{TimePoint{}};

 private:
  void Admit() {
    for (; running_.size() < 10 && !waiting_.empty(); waiting_.pop_front()) {
      waiting_.front()->Admitted(now_);
      running_.push_back(std::move(waiting_.front()));
    }
  }
};

TEST_F(BehindWithCalls, WhatComesAtOnceIsServed) {
  EXPECT_EQ(Flood(1, 500), 500);
  Pass(1000);
  EXPECT_EQ(waiting(), 0);
  EXPECT_TRUE(Comes());
}

TEST_F(BehindWithCalls, WhatItCanDoIsNeverRefused) {
  EXPECT_EQ(Flood(1000, 1), 1000);
}

TEST_F(BehindWithCalls, ThreeTimesThatWaitsNoLongerThanTheLimit) {
  Flood(100, 3);
  const int let_in = Flood(1000, 3);
  EXPECT_GE(let_in, 990) << "and what is let in is what it can do";
  EXPECT_LE(let_in, 1010);
  EXPECT_LE(waiting(), 25) << "20 ms of a call a millisecond";
  EXPECT_GE(waiting(), 15);
}

TEST_F(BehindWithCalls, WhenFewerComeNobodyIsRefusedAnyMore) {
  Flood(1000, 3);
  Pass(30);
  EXPECT_EQ(Flood(100, 1), 100);
}

TEST_F(BehindWithCalls, WhoHasASmallerShareOfTheWaitIsLetIn) {
  Flood(500, 3);
  FillUp();
  EXPECT_TRUE(Comes("bob"));
  ASSERT_FALSE(Comes("ann"));
  EXPECT_TRUE(Comes("bob")) << "two of more than twenty";
}

TEST_F(BehindWithCalls, ClassesAreApart) {
  Flood(500, 3);
  FillUp();
  EXPECT_FALSE(backlog_.Refuses(JobClass::kBulk, "ann", {}, now_, &told_));
}

TEST_F(BehindWithCalls, AsManyMayWaitAsRunHoweverLongThatTakes) {
  std::deque<Place> calls;
  for (int i = 0; i < 10; ++i) {
    calls.push_back(std::make_unique<Backlog::Place>(&backlog_, JobClass::kBulk, "ann", now_));
    calls.back()->Admitted(now_);
  }
  for (int second = 0; second < 60; ++second) {
    now_ += std::chrono::seconds(1);
    ASSERT_FALSE(backlog_.Refuses(JobClass::kBulk, "ann", {}, now_, &told_));
    if (calls.size() < 20)
      calls.push_back(std::make_unique<Backlog::Place>(&backlog_, JobClass::kBulk, "ann", now_));
  }
}

TEST_F(BehindWithCalls, OneThatIsRefusedIsToldOfOthersAndTheNextOnlyWhenToComeAgain) {
  Flood(1000, 3);
  FillUp();
  std::atomic<TimePoint> told{TimePoint{}};
  const auto first = backlog_.Refuses(JobClass::kSmall, "ann", {}, now_, &told);
  const auto second = backlog_.Refuses(JobClass::kSmall, "ann", {}, now_, &told);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->others);
  EXPECT_FALSE(second->others);
  EXPECT_GE(second->waits, milliseconds(10));
  EXPECT_LE(second->waits, milliseconds(30));
  EXPECT_EQ(second->hold, 2 * second->waits);
}

TEST_F(BehindWithCalls, AShortQueueIsNeverNearlyFull) {
  for (const int queue_length : {0, 1, 15}) {
    Backlog backlog(milliseconds(20), queue_length);
    const Backlog::Place place(&backlog, JobClass::kSmall, "ann", now_);
    for (int ms = 0; ms < 100; ++ms, now_ += milliseconds(1))
      ASSERT_FALSE(backlog.Refuses(JobClass::kSmall, "bob", {}, now_, &told_));
    EXPECT_FALSE(backlog.Full(JobClass::kSmall, now_, &told_));
  }
}

/// Calls that waited for a thread.
class BehindWithThreads : public BehindWithCalls {
 protected:
  Clock::duration Begins(int waited_ms) { return BeginsOf(&told_, waited_ms); }
  Clock::duration BeginsOf(std::atomic<TimePoint>* told, int waited_ms) {
    const auto refusal = backlog_.Refuses(JobClass::kSmall, "ann", milliseconds(waited_ms), now_, told);
    return refusal ? refusal->hold : milliseconds(0);
  }
  std::atomic<TimePoint> others_{TimePoint{}};
};

TEST_F(BehindWithThreads, WhoWaitedNoLongerThanTheLimitIsServed) {
  for (int ms = 0; ms < 1000; ++ms, Pass(1)) ASSERT_EQ(Begins(20), milliseconds(0));
}

TEST_F(BehindWithThreads, WhatComesAtOnceIsServedHoweverLongThatTakes) {
  for (int calls = 0; calls < 1000; ++calls) ASSERT_EQ(Begins(100), milliseconds(0));
  Pass(9);
  EXPECT_EQ(Begins(100), milliseconds(0)) << "not for half the limit yet";
}

TEST_F(BehindWithThreads, OneCallOfAConnectionIsAskedToHoldBackWhileThatLasts) {
  (void)Begins(25);
  Pass(15);
  const Clock::duration hold = Begins(25);
  EXPECT_GE(hold, milliseconds(40) * 75 / 100) << "what it waits, and has waited too long";
  EXPECT_LE(hold, milliseconds(40) * 225 / 100);
  EXPECT_EQ(Begins(25), milliseconds(0)) << "told already";
  EXPECT_GT(BeginsOf(&others_, 25), milliseconds(0));
  now_ += hold;
  EXPECT_GT(Begins(25), milliseconds(0)) << "again, for calls still wait";
}

TEST_F(BehindWithThreads, OneThatWaitedLittleEndsIt) {
  (void)Begins(25);
  Pass(15);
  EXPECT_EQ(Begins(5), milliseconds(0));
  EXPECT_EQ(Begins(25), milliseconds(0)) << "begins anew";
}

TEST_F(BehindWithThreads, NobodyIsAskedToHoldBackForLongerThanAQuarterOfASecond) {
  (void)Begins(5000);
  now_ += std::chrono::minutes(1);
  EXPECT_EQ(Begins(5000), milliseconds(250));
}

TEST_F(BehindWithThreads, WhereTheQueueIsNearlyFullAConnectionIsAskedToo) {
  std::deque<Place> calls;
  for (int i = 0; i < 223; ++i)
    calls.push_back(std::make_unique<Backlog::Place>(&backlog_, JobClass::kSmall, "ann", now_));
  for (int ms = 0; ms < 100; ++ms, now_ += milliseconds(1)) ASSERT_EQ(Begins(1), milliseconds(0));
  calls.push_back(std::make_unique<Backlog::Place>(&backlog_, JobClass::kSmall, "ann", now_));
  ASSERT_EQ(Begins(1), milliseconds(0)) << "not for half the limit yet";
  now_ += milliseconds(10);
  EXPECT_GT(Begins(1), milliseconds(0));
  EXPECT_FALSE(backlog_.Refuses(JobClass::kBulk, "ann", milliseconds(1), now_, &others_));
}

TEST_F(BehindWithThreads, WhereNoPlaceIsLeftAConnectionIsAskedAtOnce) {
  std::deque<Place> calls;
  EXPECT_FALSE(backlog_.Full(JobClass::kSmall, now_, &told_)) << "for another reason";
  for (int i = 0; i < 256; ++i)
    calls.push_back(std::make_unique<Backlog::Place>(&backlog_, JobClass::kSmall, "ann", now_));
  Pass(12);
  calls.front()->Admitted(now_);
  const auto refusal = backlog_.Full(JobClass::kSmall, now_, &told_);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->waits, milliseconds(12));
  EXPECT_GE(refusal->hold, milliseconds(9));
  EXPECT_LE(refusal->hold, milliseconds(27));
  EXPECT_FALSE(backlog_.Full(JobClass::kSmall, now_, &told_)) << "told already";
  EXPECT_FALSE(backlog_.Full(JobClass::kBulk, now_, &others_));
  EXPECT_TRUE(backlog_.Full(JobClass::kSmall, now_, &others_));
}

TEST_F(BehindWithThreads, WithoutALimitNobodyIsAsked) {
  Backlog any(Clock::duration{}, 256);
  for (int second = 0; second < 10; ++second, now_ += std::chrono::seconds(1))
    ASSERT_FALSE(any.Refuses(JobClass::kSmall, "ann", std::chrono::seconds(5), now_, &told_));
}

TEST_F(BehindWithCalls, WithoutALimitNobodyIsRefused) {
  Backlog any(Clock::duration{}, 256);
  std::deque<Place> calls;
  for (int i = 0; i < 100; ++i) {
    now_ += std::chrono::seconds(1);
    ASSERT_FALSE(any.Refuses(JobClass::kBulk, "ann", {}, now_, &told_));
    calls.push_back(std::make_unique<Backlog::Place>(&any, JobClass::kBulk, "ann", now_));
  }
}

}  // namespace
}  // namespace tilewire::rpc
