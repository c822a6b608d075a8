// Which unary calls a server refuses that is behind: what comes and goes is made up, and so is the time.
#include "server/rpc/calls/backlog.h"

#include <gtest/gtest.h>

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
    if (backlog_.Refuses(job, owner, now_)) return false;
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
  Backlog backlog_{milliseconds(20)};
  std::deque<Place> waiting_, running_;

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
  EXPECT_FALSE(backlog_.Refuses(JobClass::kBulk, "ann", now_));
}

TEST_F(BehindWithCalls, AsManyMayWaitAsRunHoweverLongThatTakes) {
  std::deque<Place> calls;
  for (int i = 0; i < 10; ++i) {
    calls.push_back(std::make_unique<Backlog::Place>(&backlog_, JobClass::kBulk, "ann", now_));
    calls.back()->Admitted(now_);
  }
  for (int second = 0; second < 60; ++second) {
    now_ += std::chrono::seconds(1);
    ASSERT_FALSE(backlog_.Refuses(JobClass::kBulk, "ann", now_));
    if (calls.size() < 20)
      calls.push_back(std::make_unique<Backlog::Place>(&backlog_, JobClass::kBulk, "ann", now_));
  }
}

/// Of machines that others use, too: threads wait for a core between a call's coming and its place.
TEST_F(BehindWithCalls, SmallOnesAreNotRefusedWhereThereArePlacesHoweverSlowlyTheyGo) {
  const auto refused = [this](int calls, JobClass job) {
    Backlog backlog(milliseconds(20));
    std::deque<Place> waiting;
    int count = 0;
    for (int i = 0; i < 1000; ++i) {
      now_ += milliseconds(100);
      if (backlog.Refuses(job, "ann", now_, 16)) {
        ++count;
      } else {
        waiting.push_back(std::make_unique<Backlog::Place>(&backlog, job, "ann", now_));
      }
      if (static_cast<int>(waiting.size()) < calls) continue;
      waiting.front()->Admitted(now_);
      waiting.pop_front();
    }
    return count;
  };
  EXPECT_EQ(refused(15, JobClass::kSmall), 0);
  EXPECT_GT(refused(40, JobClass::kSmall), 0);
  EXPECT_GT(refused(16, JobClass::kBulk), 0) << "who wait for a place";
}

TEST_F(BehindWithCalls, WhoIsRefusedIsToldHowLongOthersWaited) {
  Flood(1000, 3);
  FillUp();
  const auto waited = backlog_.Refuses(JobClass::kSmall, "ann", now_);
  ASSERT_TRUE(waited);
  EXPECT_GE(*waited, milliseconds(10));
  EXPECT_LE(*waited, milliseconds(30));
}

TEST_F(BehindWithCalls, WithoutALimitNobodyIsRefused) {
  Backlog any(Clock::duration{});
  std::deque<Place> calls;
  for (int i = 0; i < 100; ++i) {
    now_ += std::chrono::seconds(1);
    ASSERT_FALSE(any.Refuses(JobClass::kBulk, "ann", now_));
    calls.push_back(std::make_unique<Backlog::Place>(&any, JobClass::kBulk, "ann", now_));
  }
}

}  // namespace
}  // namespace tilewire::rpc
