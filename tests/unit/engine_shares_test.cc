// Shares of the places in flight: who is alone has all, who has company an even part.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <optional>
#include <string>
#include <utility>

#include "server/engine/admission/admission.h"
#include "tests/unit/engine_time_testing.h"
#include "tests/unit/executors.h"

namespace tilewire::engine {
namespace {

using std::chrono::milliseconds;

/// Of either class: small or not.
class SharesOfPlaces : public ::testing::TestWithParam<bool> {
 protected:
  struct Wish {
    std::string owner;
    std::optional<Ticket> ticket;
    bool refused = false;
  };
  ~SharesOfPlaces() override {
    // Tickets that go let nobody in whose wish is gone already.
    admission_->Close(Status(Code::kUnavailable, "OVER", ""));
    testing::Flush(timer_);
  }
  void Limit(int places, int queue_length = 256) {
    admission_.emplace(AdmissionLimits{.device_bytes = 764 << 20,
                                       .max_in_flight = 64,
                                       .queue_length = queue_length,
                                       .queue_seconds = 3600,
                                       .shared_in_flight = places},
                       &timer_, &executor_);
  }
  Wish& Ask(const std::string& owner, bool small) {
    Wish& wish = wishes_.emplace_back();
    wish.owner = owner;
    admission_->Request({.small = small, .device_bytes = 256 << 10, .owner = owner}, TimePoint::max(),
                        [&wish](Result<Ticket> ticket) {
                          wish.refused = !ticket;
                          if (ticket) wish.ticket = *std::move(ticket);
                        });
    return wish;
  }
  Wish& Ask(const std::string& owner) { return Ask(owner, GetParam()); }
  void AskOften(const std::string& owner, int count) {
    for (int i = 0; i < count; ++i) Ask(owner);
  }
  int64_t InFlight(const std::string& owner) const {
    return std::count_if(wishes_.begin(), wishes_.end(),
                         [&](const Wish& wish) { return wish.owner == owner && wish.ticket; });
  }
  void EndOne(const std::string& owner) {
    for (Wish& wish : wishes_)
      if (wish.owner == owner && wish.ticket) return wish.ticket.reset();
  }
  /// What was due by then has been done: on the timer's thread, hence no test may look before.
  void Pass(Clock::duration by) { testing::Pass(time_, timer_, by); }
  /// Of the class, for who is alone.
  static int64_t All() { return GetParam() ? 64 : 48; }

  ManualTime time_;
  Timer timer_{&time_};
  tilewire::testing::AtOnce executor_;
  std::optional<Admission> admission_;
  std::list<Wish> wishes_;  ///< goes before the admission, which tickets give back to
};

TEST_P(SharesOfPlaces, AreEvenWhileSeveralAreActive) {
  Limit(12);
  AskOften("greedy", 100);
  EXPECT_EQ(InFlight("greedy"), All()) << "who is alone has as many as there are";
  const Wish& first = Ask("other");
  while (InFlight("greedy") > 7) EndOne("greedy");
  EXPECT_TRUE(first.ticket);
  EndOne("greedy");
  EndOne("greedy");
  EXPECT_EQ(InFlight("greedy"), 6) << "half of 12";
  EXPECT_TRUE(Ask("greedy", !GetParam()).ticket) << "the other class has shares of its own";
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(Ask("one of more: " + std::to_string(i)).ticket);
  for (int i = 0; i < 4; ++i) EndOne("greedy");
  EXPECT_EQ(InFlight("greedy"), 3) << "two at least, and one of the other class";
}

TEST_P(SharesOfPlaces, WhoIsAloneAgainHasAllThoughNothingEndsOrComes) {
  Limit(4);
  Ask("other");
  AskOften("greedy", 80);
  EXPECT_EQ(InFlight("greedy"), 2);
  EndOne("other");
  Pass(Shares::kRecent - milliseconds(1));
  EXPECT_EQ(InFlight("greedy"), 2) << "he was here a moment ago";
  Pass(milliseconds(1));
  EXPECT_EQ(InFlight("greedy"), All());
}

TEST_P(SharesOfPlaces, WhoComesAgainAndAgainIsThereBetween) {
  Limit(4);
  Ask("other");
  AskOften("greedy", 80);
  for (int i = 0; i < 5; ++i) {
    EndOne("other");
    Pass(Shares::kRecent - milliseconds(1));
    EXPECT_TRUE(Ask("other").ticket);
    EXPECT_EQ(InFlight("greedy"), 2);
  }
}

TEST_P(SharesOfPlaces, NobodyIsRefusedForAQueueThatNeedNotBe) {
  // Time has passed and the timer did not come to look yet: the request itself does.
  Limit(4, 20);
  Ask("other");
  AskOften("greedy", 22);
  EndOne("other");
  timer_.Post([this] {
    time_.Advance(Shares::kRecent);
    EXPECT_FALSE(Ask("greedy").refused);
  });
  testing::Flush(timer_);
  EXPECT_EQ(InFlight("greedy"), 23);
}

INSTANTIATE_TEST_SUITE_P(Classes, SharesOfPlaces, ::testing::Bool());

}  // namespace
}  // namespace tilewire::engine
