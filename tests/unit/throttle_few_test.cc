// Light calls by few connections: one more of them that sends, or one less, is a large part of what can be
// done.
#include <algorithm>
#include <chrono>
#include <deque>
#include <random>

#include "tests/unit/throttled.h"

namespace tilewire::rpc {
namespace {

using std::chrono::milliseconds;

class ThrottledFew : public Throttled, public ::testing::WithParamInterface<int> {
 protected:
  ThrottledFew() : Throttled(GetParam(), milliseconds(5), 256) {}
};

TEST_P(ThrottledFew, WaitForNoLongerThanManyAndHaveMostlySomethingToDo) {
  for (const int each : {4, 6}) {
    (void)Flood(1000, each);
    const Sum sum = Flood(3000, each);
    EXPECT_GE(sum.done, 3000 * kDonePerMs * (GetParam() < 8 ? 80 : 90) / 100) << each;
    EXPECT_LE(sum.longest, milliseconds(2)) << each;
  }
}

/// What is told costs a call each time.
TEST_P(ThrottledFew, AreAskedInTurnsThatAreShortButNotShorter) {
  (void)Flood(1000, 6);
  const int asked = Flood(3000, 6).asked;
  EXPECT_GT(asked, 3000 / 9);
  EXPECT_LE(asked, 3000 / 8 + 3);
}

INSTANTIATE_TEST_SUITE_P(Connections, ThrottledFew, ::testing::Values(4, 5, 6, 7, 8, 12, 15, 16, 32));

class ThrottledHeavy : public Throttled {};

TEST_F(ThrottledHeavy, AreAskedHalfAsOftenHoweverFewTheyAre) {
  (void)Flood(1000, 6);
  const int asked = Flood(3000, 6).asked;
  EXPECT_GT(asked, 3000 / 40);
  EXPECT_LE(asked, 3000 / 15);
}

/// Of which others run meanwhile.
class ThrottledBeside : public ThrottledHeavy {
 public:
  void TestBody() override {}
  /// The share where few come at last, after so many milliseconds of too many.
  double ShareBeside(int others, int ms) {
    std::deque<Throttle::Passage> running;
    for (; others > 0; --others) running.emplace_back(&throttle_, nullptr).Begins();
    (void)Flood(ms, 6);
    (void)Flood(15, 1);
    return throttle_.share();
  }
};

/// Though nothing waits: or more would be let come at once.
TEST(ThrottledRunning, IsSomethingToDo) {
  double alone = 0, beside = 0;
  for (int ms = 1000; ms < 1050; ++ms) {
    alone += ThrottledBeside().ShareBeside(0, ms);
    beside += ThrottledBeside().ShareBeside(10 * kDonePerMs, ms);
  }
  EXPECT_LT(beside, 0.95 * alone);
}

/// Calls that run for long, as many at a time as there are places, each as fast as the others.
class ThrottledLong : public Throttled {
 protected:
  explicit ThrottledLong(int connections = 32) : Throttled(connections) {}
  /// So many times what can be done, one after the other; how many end.
  int Excess(int ms, double times = 3) {
    int done = 0;
    for (int i = 0; i < 10 * ms; ++i) {
      now_ += std::chrono::microseconds(100);
      const double speed =
          (tick_++ / 60 % 2 == 0 ? 1 - uneven_ : 1 + uneven_) * (running_.size() < 12 ? few_ : 1);
      const double part = speed * per_ms_ / 10 / static_cast<double>(std::max<size_t>(running_.size(), 1));
      for (Running& call : running_) call.left -= part;
      done += static_cast<int>(std::erase_if(running_, [](const Running& call) { return call.left <= 0; }));
      for (due_ += times * per_ms_ / 10; due_ >= 1; --due_) Come(1);
      for (; running_.size() < places_ && !waiting_.empty(); waiting_.pop_front()) {
        running_.push_back({std::move(waiting_.front().passage)});
        running_.back().passage->Begins();
      }
    }
    return done;
  }

  struct Running {
    std::unique_ptr<Throttle::Passage> passage;
    double left = 1;
  };
  size_t places_ = 4;
  double per_ms_ = 0.1, due_ = 0;
  double few_ = 1;     ///< where few run they are so much faster,
  double uneven_ = 0;  ///< and slower by such a part for six milliseconds, and faster for as many
  int tick_ = 0;       ///< tenths of milliseconds
  std::vector<Running> running_;
};

TEST_F(ThrottledLong, AreEnoughThoughAFewOfThemRun) {
  (void)Excess(1000);
  ASSERT_LT(throttle_.share(), 1);
  EXPECT_GE(Excess(4000), 0.97 * 4000 * per_ms_);
}

/// Though those that fill the places at the beginning are as many as can be done in a while.
TEST_F(ThrottledLong, AreFoundSoonWhereManyBeginAtOnce) {
  places_ = 48, per_ms_ = 4;
  (void)Excess(500, 0.9);
  (void)Excess(50, 0);
  int ms = 0;
  for (; ms < 100 && throttle_.share() == 1; ++ms) (void)Excess(1);
  EXPECT_LE(ms, 26);
  EXPECT_LE(waiting_.size(), 150u);
}

/// Nor are they taken for what can be done where few are.
TEST_F(ThrottledLong, AreFoundSoonThoughTheyTakeLongAndFillThePlacesAtOnce) {
  places_ = 48, per_ms_ = 1;
  constexpr int kRounds = 20;
  int waited_ms = 0;
  for (int round = 0; round < kRounds; ++round) {
    (void)Excess(3000, 0.3);
    ASSERT_EQ(throttle_.share(), 1);
    Come(96);
    for (int ms = 0; ms < 1000 && throttle_.share() == 1; ++ms, ++waited_ms) (void)Excess(1, 2);
    (void)Excess(2000 + round, 0);
  }
  EXPECT_LE(waited_ms, 80 * kRounds);
}

class ThrottledLongOfFew : public ThrottledLong {
 protected:
  ThrottledLongOfFew() : ThrottledLong(8) {}
};

/// Those that run side by side end all at once, and a few are faster: neither is what can be done.
TEST_F(ThrottledLongOfFew, AreHeldBackAsLongAsThereAreTooMany) {
  std::mt19937 random(1);
  std::poisson_distribution<int> calls(100);
  places_ = 48, per_ms_ = 5, few_ = 1.3, uneven_ = 0.8;
  for (const double times : {1.6, 2.0}) {
    (void)Excess(500, 0.8);
    (void)Excess(500, times);
    int free = 0, done = 0;
    constexpr int kParts = 1000, kMs = 5;
    for (int part = 0; part < kParts; ++part) {
      done += Excess(kMs, times * calls(random) / 100);
      free += throttle_.share() == 1 ? 1 : 0;
    }
    EXPECT_LE(free, kParts / 80) << times;
    EXPECT_GE(done, 0.95 * kParts * kMs * per_ms_) << times;
  }
}

class ThrottledFewOnSockets : public ThrottledSockets {
 protected:
  ThrottledFewOnSockets() : ThrottledSockets(8) { reply_ = milliseconds(2); }
};

/// Or those who come again send beside those who do not know yet that they are to hold back.
TEST_F(ThrottledFewOnSockets, EightAreServedSoonThoughEachSendsMostOfWhatCanBeDone) {
  for (const int times : {2, 3, 5}) {
    (void)Excess(1000, 1);
    (void)Excess(1000, 2 * times);
    const Sum sum = Excess(3000, 2 * times);
    EXPECT_GE(sum.done, 3000 * kDonePerMs * (times < 5 ? 93 : 80) / 100) << times;
    EXPECT_LE(sum.longest, milliseconds(3)) << times;
  }
}

TEST_F(ThrottledFewOnSockets, EightAreServedThoughEachSendsAllThatCanBeDone) {
  (void)Excess(1000, 1);
  (void)Excess(1000, 16);
  const Sum sum = Excess(3000, 16);
  EXPECT_GE(sum.done, 3000 * kDonePerMs * 85 / 100);
  EXPECT_LE(sum.longest, milliseconds(7));
}

class ThrottledVeryFew : public ThrottledFew {};

/// Turns that get longer and longer would leave nobody to send.
TEST_P(ThrottledVeryFew, DoNotHoldBackForTooLong) {
  (void)Flood(1000, 10);
  const Sum sum = Flood(3000, 10);
  EXPECT_GE(sum.done, 3000 * kDonePerMs * 68 / 100);
  EXPECT_LE(sum.longest, milliseconds(17));
}

INSTANTIATE_TEST_SUITE_P(Connections, ThrottledVeryFew, ::testing::Values(2, 3, 4, 5, 6, 7));

class ThrottledAlmost : public ThrottledSockets, public ::testing::WithParamInterface<int> {
 protected:
  ThrottledAlmost() : ThrottledSockets(GetParam()) {}
};

/// As if all might send after all: it would begin anew, and all that came be old.
TEST_P(ThrottledAlmost, TooManyAreStillHeldBack) {
  std::mt19937 random(1);
  std::poisson_distribution<int> calls(24);
  (void)Excess(1000, 1);
  int free = 0, done = 0;
  Clock::duration longest{};
  for (int ms = 0; ms < 4000; ++ms) {
    const Sum sum = Excess(1, calls(random) / 10.0);
    if (ms < 1000) continue;
    done += sum.done;
    longest = std::max(longest, sum.longest);
    free += throttle_.share() == 1 ? 1 : 0;
  }
  EXPECT_GE(done, 3000 * kDonePerMs * 90 / 100);
  EXPECT_LE(free, 10);
  EXPECT_LE(longest, milliseconds(4));
}

INSTANTIATE_TEST_SUITE_P(Connections, ThrottledAlmost, ::testing::Values(8, 16, 32, 64));

class ThrottledSlowlyServed : public ThrottledSockets {
 protected:
  ThrottledSlowlyServed() : ThrottledSockets(8) { obey_ = false; }
};

/// It did not stand: who is old is refused only at first, or nothing would be served.
TEST_F(ThrottledSlowlyServed, AServerThatDoesFewServesWhoeverHoldsNothingBack) {
  for (const double speed : {0.01, 0.02, 0.05, 1.0}) {
    speed_ = speed;
    (void)Excess(1000, speed);
    (void)Excess(2000, 6 * speed);
    EXPECT_GE(Excess(3000, 6 * speed).done, speed * 3000 * kDonePerMs * (speed < 0.1 ? 20 : 45) / 100)
        << speed;
  }
}

}  // namespace
}  // namespace tilewire::rpc
