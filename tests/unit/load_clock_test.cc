// What is on a load test's clock and what is not: latency by what the answer says, checks on threads of their
// own, places for results.
#include <atomic>
#include <cmath>
#include <latch>
#include <memory>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "client/load/checkers.h"
#include "client/load/random.h"
#include "client/load/result_buffers.h"
#include "client/load/window.h"
#include "tests/unit/load_testing.h"

namespace tilewire::load {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// An answer that took so long, and ended then.
Answer Took(milliseconds took, LoadClock::time_point ended) {
  Answer answer = Right();
  answer.began = ended - took;
  answer.ended = ended;
  return answer;
}

TEST(LoadClock, ClosedLoopsCountFromWhenTheCallBegan) {
  LoadOptions options = Options(1);
  options.requests = 20;
  const LoadResult result = RunLoad(options,
                                    [](const Request&, const std::stop_token&) {
                                      // Ended long before it returns: what lies between is not the call's.
                                      Answer answer = Took(milliseconds(7), LoadClock::now() + seconds(1));
                                      answer.held_up_seconds = 0.25;
                                      answer.check = [] { return true; };
                                      return answer;
                                    },
                                    {});
  const CallStats total = result.measured.total();
  EXPECT_EQ(total.good, 20u);
  EXPECT_NEAR(total.latency.min(), 7000, 1);
  EXPECT_NEAR(total.latency.max(), 7000, 1);
  EXPECT_NEAR(total.service.max(), 7000, 1);
  EXPECT_NEAR(result.held_up_seconds, 5, 1e-9);
  EXPECT_GE(result.measured.seconds, 1) << "the window lasts until the last one ended";
  EXPECT_NEAR(CheckingShare(result, 1), std::min(1.0, 5 / result.measured.seconds), 1e-9);
}

TEST(LoadClock, OpenLoopsCountFromWhenTheCallWasDue) {
  LoadOptions options = Options(1);
  options.rate = 1e6;
  options.arrivals = Arrivals::kConstant;
  options.seconds = 3600;
  Window window(options);
  Random random(1);
  for (int i = 0; i < 10; ++i) {
    const auto start = window.Next(0, &random);
    ASSERT_TRUE(start);
    window.Ended(*start, Took(milliseconds(3), start->due + milliseconds(5)));
  }
  window.Close();
  const CallStats total = window.Take().measured.total();
  EXPECT_EQ(total.good, 10u);
  EXPECT_NEAR(total.latency.min(), 5000, 1);
  EXPECT_NEAR(total.latency.max(), 5000, 1);
  EXPECT_NEAR(total.service.max(), 3000, 1);
}

TEST(LoadClock, AnAnswerCountsWhereItEndedHoweverLateItIsChecked) {
  LoadOptions options = Options(1);
  options.seconds = 3600;
  Window window(options);
  Random random(1);
  const auto start = window.Next(0, &random);
  ASSERT_TRUE(start);
  const LoadClock::time_point inside = LoadClock::now();
  window.Close();
  const LoadClock::time_point after = LoadClock::now() + seconds(1);
  Answer wrong_inside = Took(milliseconds(1), inside), wrong_after = Took(milliseconds(1), after);
  wrong_inside.right = wrong_after.right = false;
  window.Ended(*start, Took(milliseconds(1), inside));
  window.Ended(*start, Took(milliseconds(1), after));
  window.Ended(*start, wrong_inside);
  window.Ended(*start, wrong_after);
  const CallStats total = window.Take().measured.total();
  EXPECT_EQ(total.good, 1u) << "what ended after the window is none of its calls";
  EXPECT_EQ(total.wrong, 2u) << "unless it is wrong";
}

TEST(LoadClock, AnAnswerFromBeforeTheServerWentDoesNotBringItBack) {
  LoadOptions options = Options(1);
  options.seconds = 3600;
  Window window(options);
  Random random(1);
  const auto start = window.Next(0, &random);
  ASSERT_TRUE(start);
  const LoadClock::time_point gone = LoadClock::now() - seconds(10);
  for (int i = 0; i < 3; ++i) {
    Answer lost = Took(milliseconds(1), gone);
    lost.status = Status(Code::kUnavailable, "", "gone");
    window.Ended(*start, lost);
  }
  EXPECT_GE(window.lost_seconds(), 9);
  window.Ended(*start, Took(milliseconds(1), gone - seconds(1)));
  EXPECT_GE(window.lost_seconds(), 9) << "it was checked until now";
  window.Ended(*start, Took(milliseconds(1), gone + seconds(1)));
  EXPECT_EQ(window.lost_seconds(), 0);
}

TEST(LoadClock, CallersDoNotWaitForChecksAndTheRunDoes) {
  constexpr int kCalls = 24;
  LoadOptions options = Options(2);
  options.requests = kCalls;
  std::latch all_made(kCalls);
  std::atomic<int> checked = 0;
  std::set<std::thread::id> callers;
  Mutex mutex;
  const LoadResult result = RunLoad(options,
                                    [&](const Request&, const std::stop_token&) {
                                      {
                                        const MutexLock lock(mutex);
                                        callers.insert(std::this_thread::get_id());
                                      }
                                      all_made.count_down();
                                      Answer answer{.bytes = 8};
                                      answer.check = [&] {
                                        all_made.wait();  // for ever, did a caller wait for it
                                        const MutexLock lock(mutex);
                                        EXPECT_FALSE(callers.contains(std::this_thread::get_id()));
                                        return ++checked % 2 == 0;
                                      };
                                      return answer;
                                    },
                                    {});
  EXPECT_EQ(checked, kCalls);
  EXPECT_EQ(result.measured.total().good, static_cast<uint64_t>(kCalls) / 2);
  EXPECT_EQ(result.measured.total().wrong, static_cast<uint64_t>(kCalls) / 2);
}

TEST(LoadCheckers, DoAllThatCameAndDropWhatComesTooLate) {
  EXPECT_GE(CheckerCount(), 1u);
  EXPECT_LE(CheckerCount(), 4u);
  Checkers checkers(3);
  std::atomic<int> done = 0;
  for (int i = 0; i < 1000; ++i) checkers.Submit([&done] { ++done; });
  checkers.Finish();
  EXPECT_EQ(done, 1000);
  const auto held = std::make_shared<int>();
  checkers.Submit([&done, held] { ++done; });
  EXPECT_EQ(done, 1000);
  EXPECT_EQ(held.use_count(), 1) << "what it held is free";
}

std::vector<uint8_t> RandomBytes(size_t size, uint64_t seed) {
  Random random(seed);
  std::vector<uint8_t> bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next() >> 56);
  return bytes;
}

TEST(LoadPoison, LeavesNoRightAnswerOnAnyPageWhateverWasThere) {
  for (const size_t size : {0u, 1u, 8u, 4095u, 4096u, 4097u, 20'000u}) {
    std::vector<std::vector<uint8_t>> answers;
    std::vector<std::span<const uint8_t>> spans;
    for (uint64_t seed = 0; seed < 255; ++seed) answers.push_back(RandomBytes(size, seed));
    for (const auto& answer : answers) spans.emplace_back(answer);
    const Poison poison(spans);
    std::vector<uint8_t> place = answers[0];
    poison.Spread(place.data());
    poison.Spread(place.data());  // a call that failed may have left it as it was
    const auto half = static_cast<ptrdiff_t>(size / 2);
    std::copy_n(answers[1].begin(), half, place.begin());  // and another one wrote half of it
    poison.Spread(place.data());
    for (size_t page = 0; page < size; page += 4096) {
      const size_t bytes = std::min<size_t>(4096, size - page);
      for (const auto& answer : answers)
        EXPECT_NE(std::memcmp(&place[page], &answer[page], bytes), 0) << size << " " << page;
    }
  }
}

TEST(LoadResultBuffers, APoolIsBoundedAndWaits) {
  std::atomic<int> spoilt = 0;
  ResultBuffers buffers(100'000, 1, 3, ResultBuffers::Sharing::kPool, [&](uint8_t* data) {
    data[0] = 0xee;
    ++spoilt;
  });
  EXPECT_EQ(buffers.made(), 1u) << "more when they are needed";
  double waited = 0;
  std::vector<std::shared_ptr<const ResultPlace>> taken;
  std::set<const uint8_t*> places;
  for (uint32_t i = 0; i < 3; ++i) {
    taken.push_back(buffers.Take(0, {}, &waited));
    EXPECT_FALSE(taken.back()->region);
    places.insert(taken.back()->data);
    EXPECT_EQ(taken.back()->data[0], 0xee);
    taken.back()->data[0] = 1;
    taken.back()->data[99'999] = 1;
  }
  EXPECT_EQ(places.size(), 3u);
  EXPECT_EQ(buffers.made(), 3u);
  EXPECT_EQ(waited, 0);
  std::thread giver([one = std::move(taken.back())]() mutable { one.reset(); });
  taken.pop_back();
  const auto next = buffers.Take(1, {}, &waited);
  giver.join();
  ASSERT_TRUE(next);
  EXPECT_TRUE(places.contains(next->data));
  EXPECT_EQ(next->data[0], 0xee) << "clean again";
  EXPECT_EQ(spoilt, 4);
  EXPECT_EQ(buffers.made(), 3u);

  std::stop_source stop;
  double waited_in_vain = 0;
  std::thread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(buffers.Take(2, stop.get_token(), &waited_in_vain));
  stopper.join();
  EXPECT_FALSE(buffers.Take(2, stop.get_token(), &waited_in_vain)) << "at once";
  EXPECT_GT(waited_in_vain, 0);
}

TEST(LoadResultBuffers, CallersHaveTheirOwn) {
  std::vector<uint8_t> memory(300);
  std::vector<ResultPlace> places;
  for (size_t i = 0; i < 3; ++i) places.push_back({&memory[i * 100], client::RegionPlace{"r", i * 100}});
  ResultBuffers buffers(places, ResultBuffers::Sharing::kByCaller, [](uint8_t* data) { ++data[0]; });
  double waited = 0;
  for (uint32_t round = 1; round <= 3; ++round)
    for (uint32_t caller = 0; caller < 3; ++caller) {
      const auto place = buffers.Take(caller, {}, &waited);
      EXPECT_EQ(place->data, &memory[caller * 100]);
      EXPECT_EQ(place->region->offset, caller * 100);
      EXPECT_EQ(place->data[0], round) << "spoilt once for each call before, and once at first";
    }
  EXPECT_EQ(waited, 0);
}

}  // namespace
}  // namespace tilewire::load
