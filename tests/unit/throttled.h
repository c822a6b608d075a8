// A throttle with made up calls, clients and time: a server that does twenty calls a millisecond, and
// connections that send evenly, but for what they were asked to hold back.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include "server/rpc/calls/throttle.h"
#include "server/rpc/listener/account.h"

namespace tilewire::rpc {

inline constexpr int kDonePerMs = 20;

class Throttled : public ::testing::Test {
 protected:
  struct Connection {
    std::shared_ptr<Turn> turn = std::make_shared<Turn>();
    TimePoint held;
    TimePoint knows;  ///< that it is to hold back
  };
  struct Waiting {
    std::unique_ptr<Throttle::Passage> passage;
    TimePoint since;
  };
  /// What became of calls.
  struct Sum {
    int sent = 0, done = 0, asked = 0;
    Clock::duration longest{};  ///< that one of those that were done waited
  };

  explicit Throttled(int connections = 8, std::chrono::milliseconds late = std::chrono::milliseconds(20),
                     double crowd = 0)
      : throttle_(late, crowd), connections_(static_cast<size_t>(connections)) {}
  /// Calls that come in this tenth of a millisecond, one connection after the other.
  void Come(int calls) {
    for (; calls > 0; --calls) {
      Connection& connection = connections_[next_++ % connections_.size()];
      if (obey_ && now_ < connection.held) continue;
      ++sum_.sent;
      auto passage = std::make_unique<Throttle::Passage>(&throttle_, &connection.turn->waiting);
      throttle_.Look(now_);
      const auto hold = throttle_.Asks(connection.turn, now_);
      if (hold) {
        ++sum_.asked;
        connection.held = now_ + hold->hold;
        continue;
      }
      waiting_.push_back({std::move(passage), now_});
    }
  }
  /// Serves for a tenth of a millisecond.
  void Pass() {
    now_ += std::chrono::microseconds(100);
    for (int i = 0; i < kDonePerMs / 10 && !stands_ && !waiting_.empty(); ++i, waiting_.pop_front()) {
      waiting_.front().passage->Begins();
      sum_.longest = std::max(sum_.longest, now_ - waiting_.front().since);
      ++sum_.done;
    }
  }
  /// An open loop: `each` calls in a tenth of a millisecond.
  Sum Flood(int ms, int each) {
    sum_ = {};
    for (int i = 0; i < 10 * ms; ++i) {
      Come(each);
      Pass();
    }
    return sum_;
  }
  /// Callers who call again when they were answered.
  Sum CallAgain(int ms, int callers) {
    sum_ = {};
    for (int i = 0; i < 10 * ms; ++i) {
      Come(callers - static_cast<int>(waiting_.size()));
      Pass();
    }
    return sum_;
  }

  Throttle throttle_;
  TimePoint now_ = TimePoint{} + std::chrono::hours(1);
  bool obey_ = true;
  bool stands_ = false;  ///< nothing is done
  std::deque<Connection> connections_;
  std::deque<Waiting> waiting_;
  Sum sum_;
  size_t next_ = 0;
};

/// Light calls as they are on a socket: nobody is asked before one of his calls is read, behind all that came
/// before, and a server that is behind does less, since more of what it reads is not at hand any more.
class ThrottledSockets : public Throttled {
 protected:
  explicit ThrottledSockets(int connections) : Throttled(connections, std::chrono::milliseconds(5), 256) {}
  struct Sent {
    Connection* of;
    TimePoint since;
  };
  Sum Excess(int ms, double each) {
    sum_ = {};
    for (int i = 0; i < 10 * ms; ++i) {
      for (due_ += each; due_ >= 1; --due_) {
        Connection& one = connections_[next_++ % connections_.size()];
        if (!obey_ || now_ >= one.held || now_ < one.knows) unread_.push_back({&one, now_});
      }
      now_ += std::chrono::microseconds(100);
      for (able_ = std::min(able_, 0.0) + speed_ * (unread_.size() > 200 ? 1.2 : 2);
           able_ > 0 && !unread_.empty();) {
        able_ -= Read() ? 1 : 0.6;
        unread_.pop_front();
      }
    }
    return sum_;
  }

  double speed_ = 1;         ///< of the server, as a part of its usual one
  Clock::duration reply_{};  ///< until a client knows what it was told

 private:
  /// The first one; false: it was old.
  bool Read() {
    const auto [of, since] = unread_.front();
    Throttle::Passage passage(&throttle_, &of->turn->waiting);
    throttle_.Look(now_, static_cast<double>(unread_.size() - 1));
    if (const auto hold = throttle_.Asks(of->turn, now_)) {
      ++sum_.asked;
      of->knows = now_ + reply_;
      of->held = of->knows + hold->hold;
      return true;
    }
    if (throttle_.IsOld(now_ - since, now_)) return false;
    passage.Begins();
    ++sum_.done;
    sum_.longest = std::max(sum_.longest, now_ - since);
    return true;
  }

  std::deque<Sent> unread_;
  double able_ = 0, due_ = 0;  ///< calls
};

/// So many calls come that there are too many for a server that does `per_second`.
inline void FloodSlowly(Throttle* throttle, int per_second, TimePoint* now) {
  std::deque<Throttle::Passage> waiting;
  while (throttle->share() == 1) {
    *now += std::chrono::microseconds(1'000'000 / per_second);
    for (int i = 0; i < 3; ++i) waiting.emplace_back(throttle, nullptr);
    waiting.front().Begins();
    waiting.pop_front();
    throttle->Look(*now);
    ASSERT_LT(waiting.size(), 10'000U);
  }
}

}  // namespace tilewire::rpc
