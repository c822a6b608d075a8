// Places in flight between owners.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "server/engine/admission/shares.h"
#include "tests/unit/engine_admission_share_testing.h"

namespace tilewire::engine {
namespace {

using std::chrono::milliseconds;

class AdmissionPlaces : public AdmissionShare {};

TEST_F(AdmissionPlaces, WhileSeveralAreActiveEachHasAnEvenShareOfThePlaces) {
  for (const bool small : {false, true}) {
    SCOPED_TRACE(small);
    wishes_.clear();
    time_.Advance(Shares::kRecent);
    Limit({.device_bytes = 764 * kMega, .max_in_flight = 64, .queue_seconds = 3600, .shared_in_flight = 12});
    const auto in_flight = [&](const std::string& owner) {
      return std::count_if(wishes_.begin(), wishes_.end(),
                           [&](const Wish& wish) { return wish.owner == owner && wish.ticket; });
    };
    const auto end_one = [&](const std::string& owner) {
      for (Wish& wish : wishes_)
        if (wish.owner == owner && wish.ticket) return wish.ticket.reset();
    };
    for (int i = 0; i < 100; ++i) Ask("greedy", kMega / 4, small);
    const auto alone = in_flight("greedy");
    EXPECT_EQ(alone, small ? 64 : 48) << "who is alone has as many as there are";
    Wish& first = Ask("other", kMega / 4, small);
    while (in_flight("greedy") > 7) end_one("greedy");
    EXPECT_TRUE(first.granted());
    end_one("greedy");
    end_one("greedy");
    EXPECT_EQ(in_flight("greedy"), 6) << "half of 12";
    EXPECT_TRUE(Ask("greedy", kMega, !small).granted()) << "the other class has shares of its own";
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(Ask("one of more: " + std::to_string(i), 1, small).granted());
    for (int i = 0; i < 4; ++i) end_one("greedy");
    EXPECT_EQ(in_flight("greedy"), 3) << "two at least, and one of the other class";
    wishes_.remove_if([](const Wish& wish) { return wish.ticket && wish.owner != "greedy"; });
    time_.Advance(Shares::kRecent - milliseconds(1));
    end_one("greedy");
    EXPECT_LE(in_flight("greedy"), 3) << "they were here a moment ago";
    time_.Advance(milliseconds(1));
    end_one("greedy");
    EXPECT_GT(in_flight("greedy"), 12) << "alone again";
    EXPECT_EQ(Stats().jobs_refused_busy, 0U);
  }
}

}  // namespace
}  // namespace tilewire::engine
