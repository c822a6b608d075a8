// Loops over calls that do as they are told. What is asserted of times is what must be longer than what.
#include "client/load/generator.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "tests/unit/load_testing.h"

namespace tilewire::load {
namespace {

using std::chrono::milliseconds;

Answer Failing(Code code, int64_t retry_ms = -1) {
  return {.status =
              Status({.code = code, .reason = "TOLD", .message = "told to", .retry_after_ms = retry_ms})};
}

/// How many calls an open loop owes to its window.
uint64_t Due(const LoadOptions& options) {
  Schedule schedule(options.arrivals, *options.rate, options.seed);
  uint64_t due = 0;
  for (double at; (at = schedule.Next()) < options.warmup_seconds + *options.seconds;)
    due += at >= options.warmup_seconds;
  return due;
}

/// Answers at once, but for one pause that holds up everybody, from its `nth` call on.
class Stalling {
 public:
  Stalling(int nth, milliseconds pause) : nth_(nth), pause_(pause) {}
  Answer operator()() {
    std::unique_lock lock(mutex_);
    if (++calls_ == nth_) until_ = std::chrono::steady_clock::now() + pause_;
    const auto until = until_;
    lock.unlock();
    std::this_thread::sleep_until(until);
    return Right();
  }

 private:
  const int nth_;
  const milliseconds pause_;
  std::mutex mutex_;
  int calls_ = 0;
  std::chrono::steady_clock::time_point until_;
};

TEST(LoadGenerator, MakesExactlyTheRequestsAskedFor) {
  for (const bool open : {false, true}) {
    LoadOptions options = Options(4);
    if (open) options.rate = 20'000;
    options.requests = 500;
    std::atomic<int> made = 0;
    const LoadResult result = RunLoad(options,
                                      [&](const Request&, const std::stop_token&) {
                                        ++made;
                                        return Right();
                                      },
                                      {});
    EXPECT_EQ(made, 500) << open;
    EXPECT_EQ(result.measured.total().good, 500u);
    EXPECT_EQ(result.measured.total().bytes, 4000u);
    EXPECT_EQ(result.reason, StopReason::kRequests);
    EXPECT_GT(result.measured.seconds, 0);
    EXPECT_EQ(result.started.size(), 20u) << result.started;
    uint64_t in_timeline = 0;
    for (const auto& step : result.measured.timeline.steps()) in_timeline += step.good;
    EXPECT_EQ(in_timeline, 500u);
  }
}

TEST(LoadGenerator, AnOpenLoopShowsAStallThatAClosedLoopHides) {
  constexpr milliseconds kPause(600);
  LoadOptions options = Options(2);
  options.rate = 200;
  options.arrivals = Arrivals::kConstant;
  options.seconds = 1.5;
  options.patience_seconds = 60;
  const auto open_call = std::make_shared<Stalling>(20, kPause);
  const LoadResult open =
      RunLoad(options, [open_call](const Request&, const std::stop_token&) { return (*open_call)(); }, {});
  const CallStats total = open.measured.total();
  EXPECT_EQ(total.good, Due(options)) << "every due call started";
  EXPECT_EQ(total.good, 300u);
  // Some 120 calls fall due in the stall; those of its first two thirds wait for at least a third of it.
  const double third_us = std::chrono::duration<double, std::micro>(kPause).count() / 3;
  uint64_t waited = 0;
  for (const auto& [upper, count] : total.latency.Buckets(10'000)) waited += upper >= third_us ? count : 0;
  EXPECT_GE(waited, 75u);
  EXPECT_GE(total.latency.Percentile(0.9), third_us);
  EXPECT_GE(open.punctuality.late, 75u);
  EXPECT_GE(open.punctuality.max_late_us, third_us);
  EXPECT_EQ(open.punctuality.starts, 300u);
  EXPECT_LE(total.service.Percentile(0.9), total.latency.Percentile(0.9));

  LoadOptions closed_options = Options(2);
  closed_options.requests = 3000;
  const auto closed_call = std::make_shared<Stalling>(20, kPause);
  const LoadResult closed = RunLoad(
      closed_options, [closed_call](const Request&, const std::stop_token&) { return (*closed_call)(); }, {});
  EXPECT_GE(closed.measured.total().latency.max(), third_us);
  EXPECT_LT(closed.measured.total().latency.Percentile(0.9), third_us) << "two calls of 3000 saw it";
}

TEST(LoadGenerator, CallsThatNeverStartAreErrors) {
  LoadOptions options = Options(1);
  options.rate = 1000;
  options.seconds = 0.3;
  options.patience_seconds = 0.05;
  const LoadResult result = RunLoad(options,
                                    [](const Request&, const std::stop_token&) {
                                      std::this_thread::sleep_for(milliseconds(40));
                                      return Right();
                                    },
                                    {});
  const CallStats total = result.measured.total();
  EXPECT_GT(result.punctuality.never, 0u);
  EXPECT_EQ(total.errors.at("NOT_STARTED"), result.punctuality.never);
  EXPECT_EQ(total.calls(), Due(options)) << "none is forgotten";
}

TEST(LoadGenerator, AWindowThatNoCallEndsInLastsUntilTheFirstThatDoes) {
  LoadOptions options = Options(2);
  options.seconds = 1;
  std::atomic<int> made = 0;
  const auto call = [&](const Request&, const std::stop_token&) {
    Answer answer = made++ == 0 ? Failing(Code::kInternal) : Right();
    answer.ended = (answer.began = LoadClock::now()) + std::chrono::hours(1);  // so they say
    std::this_thread::sleep_for(milliseconds(20));
    return answer;
  };
  for (const double warmup : {0.0, 0.05}) {
    options.warmup_seconds = warmup;
    const Measured measured = RunLoad(options, call, {}).measured;
    EXPECT_TRUE(measured.total().good > 0 && measured.seconds > 3590) << warmup;
  }
}

TEST(LoadGenerator, WarmUpIsVerifiedButNotMeasured) {
  LoadOptions options = Options(2);
  options.warmup_seconds = 0.3;
  options.requests = 50;
  std::atomic<int> made = 0;
  std::atomic<bool> early = false;  // a call in the warm-up, if the machine came to it
  const auto start = std::chrono::steady_clock::now();
  const LoadResult result = RunLoad(options,
                                    [&](const Request&, const std::stop_token&) {
                                      ++made;
                                      std::this_thread::sleep_for(milliseconds(1));
                                      if (std::chrono::steady_clock::now() - start < milliseconds(250))
                                        early = true;
                                      return Answer{.right = false};
                                    },
                                    {});
  EXPECT_EQ(result.measured.total().wrong, 50u);
  EXPECT_EQ(result.outside_wrong, static_cast<uint64_t>(made - 50));
  if (early) EXPECT_GT(result.outside_wrong, 0u);
}

TEST(LoadGenerator, AStopEndsWaitingAndCalling) {
  for (const bool open : {false, true}) {
    LoadOptions options = Options(3);
    options.seconds = 3600;
    if (open) options.rate = 0.01;  // the next call is due in a minute or more
    std::stop_source stop;
    std::atomic<int> begun = 0;
    std::thread stopper([&] {
      while (!open && begun < 3) std::this_thread::sleep_for(milliseconds(1));
      stop.request_stop();
    });
    const LoadResult result = RunLoad(
        options,
        [&](const Request&, const std::stop_token& token) {
          ++begun;
          while (!token.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
          return Failing(Code::kCancelled);
        },
        stop.get_token());
    stopper.join();
    EXPECT_EQ(result.reason, StopReason::kInterrupted);
    EXPECT_FALSE(result.abandoned);
    EXPECT_EQ(result.measured.total().failed, 0u) << "what we cancelled is no error";
  }
}

TEST(LoadGenerator, CallsThatDoNotEndAreLeftBehind) {
  struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false;
    std::atomic<int> waiting = 0;
  };
  auto gate = std::make_shared<Gate>();
  LoadOptions options = Options(2);
  options.seconds = 3600;
  options.stop_seconds = 0.05;
  std::stop_source stop;
  std::thread stopper([&] {
    while (gate->waiting < 2) std::this_thread::sleep_for(milliseconds(1));
    stop.request_stop();
  });
  const LoadResult result = RunLoad(
      options,
      [gate](const Request&, const std::stop_token&) {
        std::unique_lock lock(gate->mutex);
        ++gate->waiting;
        gate->opened.wait(lock, [&] { return gate->open; });
        Answer answer = Right();
        answer.check = [gate] { return true; };  // comes too late: nobody checks it, and it lets go
        return answer;
      },
      stop.get_token());
  stopper.join();
  EXPECT_TRUE(result.abandoned);
  EXPECT_EQ(result.reason, StopReason::kInterrupted);
  {
    const std::lock_guard lock(gate->mutex);
    gate->open = true;
  }
  gate->opened.notify_all();
  while (gate.use_count() > 1) std::this_thread::sleep_for(milliseconds(1));  // the callers let go of it
}

TEST(LoadGenerator, AServerThatHasLostItsArraysEndsTheRunAtOnce) {
  LoadOptions options = Options(1);  // else a good call may end after the other caller's run is over
  options.seconds = 3600;
  options.lost_seconds = 3600;
  std::atomic<int> made = 0;
  const LoadResult result = RunLoad(options,
                                    [&](const Request&, const std::stop_token&) {
                                      Answer gone = Failing(Code::kNotFound);
                                      gone.lost = true;
                                      return ++made <= 10 ? Right() : gone;
                                    },
                                    {});
  EXPECT_EQ(result.reason, StopReason::kServerLost);
  EXPECT_NE(result.text.find("no longer has the arrays"), std::string::npos) << result.text;
  const CallStats total = result.measured.total();
  EXPECT_EQ(total.good, 10u);
  EXPECT_GE(total.errors.at("NOT_FOUND/TOLD"), 1u);
}

TEST(LoadGenerator, AServerThatIsGoneEndsTheRun) {
  LoadOptions options = Options(1);
  options.seconds = 3600;
  options.lost_seconds = 0.3;
  std::atomic<int> made = 0;
  const LoadResult result = RunLoad(options,
                                    [&](const Request&, const std::stop_token&) {
                                      return ++made <= 10 ? Right() : Failing(Code::kUnavailable);
                                    },
                                    {});
  EXPECT_EQ(result.reason, StopReason::kServerLost);
  const CallStats total = result.measured.total();
  EXPECT_EQ(total.good, 10u) << "what was measured stays";
  EXPECT_GE(total.errors.at("UNAVAILABLE/TOLD"), 3u);
  EXPECT_LT(total.failed, 10'000u) << "it does not spin";
}

TEST(LoadGenerator, ABusyServerIsNoLostOne) {
  LoadOptions options = Options(2);
  options.requests = 30;
  options.lost_seconds = 0;
  std::atomic<int> made = 0;
  const LoadResult result =
      RunLoad(options,
              [&](const Request&, const std::stop_token&) {
                return ++made % 2 == 0 ? Failing(Code::kUnavailable) : Failing(Code::kResourceExhausted, 1);
              },
              {});
  EXPECT_EQ(result.reason, StopReason::kRequests);
  EXPECT_EQ(result.measured.total().failed, 30u);
}

TEST(LoadGenerator, StableMeansSoAndHasAnEnd) {
  LoadOptions options = Options(1);
  options.stable = StableRule{.within = 1e9, .windows = 3, .window_seconds = 0.05, .max_seconds = 3600};
  const Call call = [](const Request&, const std::stop_token&) {
    std::this_thread::sleep_for(milliseconds(1));
    return Right();
  };
  const LoadResult stable = RunLoad(options, call, {});
  EXPECT_EQ(stable.reason, StopReason::kStable);
  EXPECT_GE(stable.measured.seconds, 0.15);
  options.stable->within = 0;
  options.stable->max_seconds = 0.4;
  const LoadResult restless = RunLoad(options, call, {});
  EXPECT_EQ(restless.reason, StopReason::kSeconds);
  EXPECT_EQ(restless.text, "not stable when the time was over");
}

}  // namespace
}  // namespace tilewire::load
