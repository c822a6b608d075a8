// Between owners: turns, places in flight and in the queue, and who may overtake whom.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/admission/admission.h"
#include "tests/unit/engine_admission_share_testing.h"

namespace tilewire::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(AdmissionShare, NineWithOneEachBesideOneWhoFillsTheQueue) {
  // One job at a time, all of the same size: with ten who are active each of the nine has ended after ten
  // more jobs at the latest, wherever in the long line he came.
  for (const bool small : {false, true}) {
    const int64_t bytes = small ? 64 * kMega : 700 * kMega;
    Ask("greedy", bytes, small);
    for (int i = 0; i < 240; ++i) Ask("greedy", bytes, small);
    std::vector<const Wish*> nine;
    for (int i = 0; i < 9; ++i) nine.push_back(&Ask("one of nine: " + std::to_string(i), bytes, small));
    const int before = granted_;
    EndAll();
    for (const Wish* wish : nine) EXPECT_LE(wish->order - before, 10) << wish->owner;
    EXPECT_EQ(granted_ - before, 249) << "nobody is passed over";
    EXPECT_EQ(Stats().jobs_in_flight, 0U);
  }
}

TEST_F(AdmissionShare, NobodyWaitsForMoreThanHisShareOfWhatIsDrawn) {
  // Drawn sizes and orders, one owner with a full queue: what is let in before one of nine is at most as many
  // bytes as his own from each of the others, and their largest.
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    wishes_.clear();
    Limit({.device_bytes = 764 * kMega, .max_in_flight = 4, .queue_length = 256, .queue_seconds = 3600});
    struct Job {
      Wish* wish;
      int64_t bytes;
    };
    std::vector<Job> jobs;
    const auto ask = [&](const std::string& owner) {
      const auto bytes = static_cast<int64_t>(1 + random() % 700) * kMega;
      jobs.push_back({&Ask(owner, bytes), bytes});
    };
    Ask("somebody", 700 * kMega);
    std::vector<std::string> owners(240, "greedy");
    for (int i = 0; i < 9; ++i) owners.push_back("one of nine: " + std::to_string(i));
    std::shuffle(owners.begin(), owners.end(), random);
    for (const auto& owner : owners) ask(owner);
    EndAll();
    std::sort(jobs.begin(), jobs.end(),
              [](const Job& a, const Job& b) { return a.wish->order < b.wish->order; });
    int64_t others = 0;
    for (const Job& job : jobs) {
      ASSERT_TRUE(job.wish->granted());
      if (job.wish->owner != "greedy") {
        EXPECT_LE(others, 9 * (job.bytes + 700 * kMega)) << "seed " << seed << " " << job.wish->owner;
      }
      others += job.bytes;
    }
  }
}

TEST_F(AdmissionShare, OverACertainTimeNobodyOvertakesWhoWaitsForMemory) {
  Wish& running = Ask("a", 600 * kMega);
  Wish& head = Ask("b", 200 * kMega);
  Wish& second = Ask("b", kMega);
  EXPECT_TRUE(Ask("c", 10 * kMega).granted()) << "there is room for it, and not for the head";
  EXPECT_FALSE(second.granted()) << "of one owner nobody overtakes";
  time_.Advance(kOvertakenAtMost - milliseconds(1));
  EXPECT_TRUE(Ask("d", 10 * kMega).granted());
  time_.Advance(milliseconds(1));
  Wish& late = Ask("e", 10 * kMega);
  EXPECT_FALSE(late.granted());
  running.ticket.reset();
  EXPECT_TRUE(head.granted() && second.granted() && late.granted());
  EXPECT_LT(head.order, late.order);
}

TEST_F(AdmissionShare, AFullQueueHasAPlaceForEverybody) {
  Limit({.device_bytes = 764 * kMega, .queue_length = 4, .queue_seconds = 3600});
  Wish& running = Ask("greedy", 700 * kMega);
  std::array<Wish*, 4> greedy{};
  for (auto& wish : greedy) wish = &Ask("greedy", 700 * kMega);
  Wish& fifth = Ask("greedy", 700 * kMega);
  EXPECT_EQ(fifth.refusal.reason(), "BUSY") << "he has all there are";
  Wish& other = Ask("other", 700 * kMega);
  EXPECT_TRUE(other.refusal.ok());
  EXPECT_EQ(greedy[3]->refusal.code(), Code::kResourceExhausted) << "his last one had to go";
  EXPECT_EQ(greedy[3]->refusal.reason(), "BUSY");
  EXPECT_EQ(greedy[3]->refusal.detail()->field, "requests of yours that wait");
  EXPECT_EQ(greedy[3]->refusal.detail()->retry_after_ms, 250);
  Wish& third = Ask("third", 700 * kMega);
  EXPECT_TRUE(third.refusal.ok());
  EXPECT_FALSE(greedy[2]->refusal.ok());
  EXPECT_TRUE(Ask("fourth", 700 * kMega).refusal.ok());
  EXPECT_FALSE(greedy[1]->refusal.ok());
  EXPECT_FALSE(Ask("fifth", 700 * kMega).refusal.ok()) << "everybody has one place";
  EXPECT_EQ(Stats().jobs_queued, 4U);
  EXPECT_TRUE(greedy[0]->refusal.ok()) << "who has one place keeps it";
  running.ticket.reset();
  EXPECT_TRUE(greedy[0]->granted());
}

TEST_F(AdmissionShare, WhoHasAllHisPlacesInFlightWaitsAndNobodyBehindHim) {
  Limit({.device_bytes = 764 * kMega,
         .queue_length = 16,
         .queue_seconds = 3600,
         .max_in_flight_per_identity = 2});
  Wish &bulk = Ask("a", kMega), &small = Ask("a", kMega, true), &third = Ask("a", kMega),
       &fourth = Ask("a", kMega, true);
  EXPECT_TRUE(bulk.granted() && small.granted());
  EXPECT_FALSE(third.granted() || fourth.granted());
  Wish &other = Ask("b", kMega), &others = Ask("b", kMega, true);
  EXPECT_TRUE(other.granted() && others.granted());
  small.ticket.reset();
  EXPECT_TRUE(fourth.granted());
  EXPECT_FALSE(third.granted());
  bulk.ticket.reset();
  EXPECT_TRUE(third.granted());
  for (Wish& wish : wishes_) wish.ticket.reset();
  Wish &again = Ask("a", kMega), &twice = Ask("a", kMega);
  EXPECT_TRUE(again.granted() && twice.granted());
  Wish& waits = Ask("a", kMega);
  admission_->Cancel(waits.id, Status(Code::kCancelled, "GONE", ""));
  EXPECT_EQ(waits.refusal.reason(), "GONE");
}

TEST_F(AdmissionShare, PlacesInTheQueueOfOneOwner) {
  Limit({.device_bytes = 764 * kMega,
         .queue_length = 16,
         .queue_seconds = 3600,
         .queue_length_per_identity = 2});
  Wish& running = Ask("a", 700 * kMega);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Ask("a", kMega * 700).refusal.ok());
  const Status refused = Ask("a", 700 * kMega).refusal;
  EXPECT_EQ(refused.reason(), "BUSY");
  EXPECT_EQ(refused.detail()->value, "2");
  EXPECT_EQ(refused.detail()->allowed, "2 (--queue-length-per-identity)");
  EXPECT_TRUE(Ask("b", 700 * kMega).refusal.ok());
  EXPECT_EQ(Stats().jobs_refused_busy, 1U);
  running.ticket.reset();
}

TEST_F(AdmissionShare, LimitsOfOnesOwnAreInsteadOfThoseOfAll) {
  Limit({.device_bytes = 764 * kMega,
         .queue_length = 16,
         .queue_seconds = 3600,
         .max_in_flight_per_identity = 1,
         .queue_length_per_identity = 1});
  const OwnLimits own{.max_in_flight = 2, .queue_length = 2};
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Ask("a", kMega, false, own).granted());
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Ask("a", kMega, false, own).refusal.ok());
  const Status refused = Ask("a", kMega, false, own).refusal;
  EXPECT_EQ(refused.detail()->field, "requests of yours that wait");
  EXPECT_EQ(refused.detail()->allowed, "2 (queue_length in --policy)");
  EXPECT_TRUE(Ask("b", kMega).granted());
  EXPECT_FALSE(Ask("b", kMega).granted());
  EXPECT_EQ(Ask("b", kMega).refusal.detail()->allowed, "1 (--queue-length-per-identity)");
}

TEST_F(AdmissionShare, ABoundThatChangesHoldsFromTheNextRequestOn) {
  Limit({.device_bytes = 764 * kMega, .queue_length = 16, .queue_seconds = 3600});
  const auto most = [](int jobs) { return OwnLimits{.max_in_flight = jobs}; };
  Ask("a", kMega, false, most(1));
  const Wish &second = Ask("a", kMega, false, most(1)), &small = Ask("a", kMega, true, most(1));
  EXPECT_FALSE(second.granted() || small.granted());
  const Wish& third = Ask("a", kMega, true, most(3));
  EXPECT_TRUE(second.granted() && small.granted()) << "of both classes";
  EXPECT_FALSE(third.granted()) << "three run";
  const Wish& fourth = Ask("a", kMega, false, most(1));
  EXPECT_TRUE(Ask("b", kMega).granted() && Ask("b", kMega, true).granted()) << "nobody waits behind him";
  Wish* running[] = {&wishes_.front(), &*std::next(wishes_.begin()), &*std::next(wishes_.begin(), 2)};
  for (Wish* wish : {running[0], running[1]}) {
    wish->ticket.reset();
    EXPECT_FALSE(third.granted() || fourth.granted()) << "one at a time";
  }
  running[2]->ticket.reset();
  EXPECT_TRUE(third.granted() != fourth.granted());
  EXPECT_TRUE(Ask("a", kMega).granted() || third.granted()) << "no bound: all go";
  EXPECT_TRUE(third.granted() && fourth.granted());
  for (Wish& wish : wishes_) wish.ticket.reset();
  EXPECT_EQ(Stats().jobs_in_flight, 0U);
  EXPECT_TRUE(Ask("a", kMega, false, most(1)).granted()) << "nothing is left behind";
}

TEST_F(AdmissionShare, ChargesAreRefusedAndCounted) {
  Limit({.device_bytes = 764 * kMega, .rates = {.calls_per_second = 1}});
  EXPECT_TRUE(admission_->Charge("a", 0).ok());
  EXPECT_EQ(admission_->Charge("a", 0).reason(), "BUSY");
  EXPECT_EQ(Stats().jobs_refused_busy, 1U);
  time_.Advance(seconds(1));
  EXPECT_TRUE(admission_->Charge("a", 0).ok());
}

TEST_F(AdmissionShare, BytesOnTheDeviceOfOneOwnerHaveABoundWhereHisRuleSaysOne) {
  Limit({.device_bytes = 764 * kMega, .max_in_flight = 3, .queue_length = 2, .queue_seconds = 3600});
  const OwnLimits own{.device_bytes = 100 * kMega};
  EXPECT_EQ(Ask("ann", 101 * kMega, false, own).refusal.reason(), "LIMIT");
  Wish& first = Ask("ann", 60 * kMega, false, own);
  ASSERT_TRUE(first.granted());
  const Wish& second = Ask("ann", 41 * kMega, false, own);
  EXPECT_EQ(second.refusal.detail()->allowed, "104857600 (device_bytes in --policy)");
  EXPECT_GT(second.refusal.detail()->retry_after_ms, 0);
  EXPECT_TRUE(Ask("bob", 300 * kMega).granted());
  // Who waits for a place has his bytes counted; who is taken out of the queue has them back.
  Wish& waits = Ask("ann", 40 * kMega, false, own);
  EXPECT_FALSE(waits.granted());
  EXPECT_EQ(Ask("ann", kMega, true, own).refusal.reason(), "BUSY");
  admission_->Cancel(waits.id, Status(Code::kCancelled, "CANCELLED", ""));
  EXPECT_FALSE(Ask("ann", 40 * kMega, false, own).granted()) << "in its place";
  EXPECT_EQ(Ask("ann", kMega, true, own).refusal.reason(), "BUSY");
  // What stays when its job ends is held on.
  Ticket array = first.ticket->Split(50 * kMega);
  EndAll();
  EXPECT_EQ(Ask("ann", 51 * kMega, false, own).refusal.reason(), "BUSY");
  array = Ticket();
  EXPECT_TRUE(Ask("ann", 100 * kMega, false, own).granted());
  EXPECT_EQ(Ask("ann", kMega, false, own).refusal.reason(), "BUSY");
  EndAll();
  EXPECT_TRUE(Ask("ann", 700 * kMega).granted()) << "without the rule there is no bound";
}

TEST_F(AdmissionShare, WhoTakesNoBytesOnTheDeviceIsNotAmongThoseWhoDo) {
  // As jobs do that the host computes beside a GPU.
  Limit({.device_bytes = 764 * kMega, .max_in_flight = 4, .queue_length = 2, .queue_seconds = 3600});
  const OwnLimits own{.device_bytes = 100 * kMega};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Ask("ann", 0, true, own).granted());
  EndAll();
  Demand none{.small = true, .owner = "ann", .own = own};
  EXPECT_TRUE(admission_->AtOnce(&none));
  // Nor who is left with none, whoever goes first.
  Wish& job = Ask("ann", 60 * kMega, false, own);
  { const Ticket array = job.ticket->Split(60 * kMega); }
  EXPECT_TRUE(Ask("ann", 100 * kMega, false, own).granted());
  EndAll();
  EXPECT_TRUE(Ask("ann", 100 * kMega, false, own).granted());
}

}  // namespace
}  // namespace tilewire::engine
