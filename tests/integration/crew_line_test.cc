// Calls that wait in line for the crew's threads, and whose turn it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <string>
#include <vector>

#include "tests/integration/crew_fixture.h"

namespace tilewire::rpc {
namespace {

Detached Call(std::function<void()> begins, const void* whose = nullptr, bool busy = false) {
  Crew::Took(busy);
  if (Crew::IsBehind()) co_await Crew::Turn(whose);
  begins();
}

/// Calls, of which each is long to take, or none.
class CrewsCalls : public CrewTest, public ::testing::WithParamInterface<bool> {};

/// Of a hundred calls at once, and what goes on of others behind them.
TEST_P(CrewsCalls, ManyWaitInLineAndWhatHasBegunGoesFirst) {
  constexpr int kCalls = 100;
  std::vector<int> order;
  Works works;
  Crew crew(&queue_);
  const Ended ended{&queue_};
  std::promise<void> all;
  const auto begins = [&](int i) {
    order.push_back(i);
    if (order.size() == kCalls + 1) all.set_value();
  };
  for (int i = 0; i < kCalls; ++i)
    works.Post(&queue_, [&, i] { Call([&, i] { begins(i); }, nullptr, GetParam()); });
  works.Post(&queue_, [&] { begins(kCalls); });
  crew.Start(1);
  all.get_future().wait();
  const auto begun = std::find(order.begin(), order.end(), kCalls) - order.begin();
  EXPECT_GE(begun, 32) << "as many are served as they come";
  EXPECT_LT(begun, kCalls / 2) << "before those in line";
  order.erase(order.begin() + begun);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << "each in his turn";
}

INSTANTIATE_TEST_SUITE_P(QuickAndLong, CrewsCalls, ::testing::Bool());

/// Of sixty calls at once of three, all but the first of the first one wait in line.
TEST_F(CrewTest, OneOfEachCanGoFirst) {
  std::string order;
  Works works;
  Crew crew(&queue_);
  const Ended ended{&queue_};
  std::promise<void> all;
  const std::string callers = std::string(50, 'a') + "bbbbbccccc";
  for (const char& who : callers)
    works.Post(&queue_, [&] {
      Call(
          [&] {
            order.push_back(who);
            if (order.size() == callers.size()) all.set_value();
          },
          &callers[callers.find(who)]);
    });
  works.Post(&queue_, [] { Crew::OneOfEachFirst(); });
  crew.Start(1);
  all.get_future().wait();
  const size_t at = order.find('b');
  ASSERT_GE(at, 33U) << "as many are served as they come, and one of the first in line";
  EXPECT_EQ(order.substr(at), "bc" + std::string(49 - at + 1, 'a') + "bbbbcccc") << order;
}

TEST_F(CrewTest, WhoWaitsInLineIsTakenByAnyThreadAndNobodyIsForgotten) {
  constexpr int kCalls = 2000;
  std::atomic<int> begun{0};
  std::promise<void> all;
  Works works;
  Crew crew(&queue_);
  const Ended ended{&queue_};
  for (int i = 0; i < kCalls; ++i)
    works.Post(&queue_, [&] {
      Call([&] {
        if (++begun == kCalls) all.set_value();
      });
    });
  crew.Start(4);
  all.get_future().wait();
  EXPECT_EQ(begun, kCalls);
}

/// Else what has begun would go before it for as long as anything comes.
TEST_F(CrewTest, TheMoreWaitInLineTheMoreGoOn) {
  constexpr int kCalls = 3000;
  int begun = 0, in_the_end = 0;
  Works works;
  Crew crew(&queue_);
  const Ended ended{&queue_};
  std::promise<void> all;
  const auto begins = [&] {
    if (++begun == kCalls) all.set_value();
  };
  for (int i = 0; i < kCalls; ++i) works.Post(&queue_, [&] { Call(begins); });
  works.Post(&queue_, [&] { in_the_end = begun; });
  crew.Start(1);
  all.get_future().wait();
  EXPECT_GE(in_the_end, kCalls / 2);
}

TEST_F(CrewTest, NobodyWaitsOnOtherThreads) {
  EXPECT_FALSE(Crew::IsBehind());
  Crew::OneOfEachFirst();
}

}  // namespace
}  // namespace tilewire::rpc
