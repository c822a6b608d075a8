// Turns between owners, and who has most of a queue.
#include "server/engine/admission/fair_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "server/engine/admission/waiting_room.h"

namespace tilewire::engine {
namespace {

constexpr int64_t kUnit = FairQueue::kQuantum;

/// Serves heads until nobody waits.
std::vector<FairQueue::Id> ServeAll(FairQueue& queue) {
  std::vector<FairQueue::Id> order;
  while (const FairQueue::Id id = queue.Head()) {
    order.push_back(id);
    queue.Serve(id);
  }
  return order;
}

TEST(FairQueue, OneOwnerIsServedInTheOrderInWhichHeCame) {
  FairQueue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.Head(), 0U);
  const int64_t costs[] = {5 * kUnit, 1, 900 * kUnit, kUnit};
  for (size_t i = 0; i < std::size(costs); ++i) queue.Push(i + 1, "a", costs[i]);
  EXPECT_EQ(ServeAll(queue), (std::vector<FairQueue::Id>{1, 2, 3, 4}));
  EXPECT_TRUE(queue.empty());
}

TEST(FairQueue, WhoHasALowerIdStandsBefore) {
  FairQueue queue;
  for (const FairQueue::Id id : {5, 2, 9, 1, 7}) queue.Push(id, "a", id == 9 ? 900 * kUnit : 1);
  EXPECT_EQ(queue.Head(), 1U);
  EXPECT_EQ(ServeAll(queue), (std::vector<FairQueue::Id>{1, 2, 5, 7, 9}));
}

TEST(FairQueue, OwnersTakeTurns) {
  FairQueue queue;
  for (FairQueue::Id id = 1; id <= 4; ++id) queue.Push(id, "a", 1);
  queue.Push(5, "b", 1);
  queue.Push(6, "b", 1);
  queue.Push(7, "c", 1);
  EXPECT_EQ(ServeAll(queue), (std::vector<FairQueue::Id>{1, 5, 7, 2, 6, 3, 4}));
}

TEST(FairQueue, TurnsAreWorthBytesAndNotRequests) {
  FairQueue queue;
  for (FairQueue::Id id = 1; id <= 3; ++id) queue.Push(id, "large", 10 * kUnit);
  for (FairQueue::Id id = 11; id <= 40; ++id) queue.Push(id, "small", kUnit);
  const auto order = ServeAll(queue);
  for (size_t served = 0, large = 0; served < order.size(); ++served) {
    large += order[served] <= 3;
    const size_t small = served + 1 - large;
    EXPECT_LE(large * 10, small + 10) << served;
    EXPECT_LE(small, large * 10 + 10) << served;
  }
}

TEST(FairQueue, TheHeadStaysTheHeadWhoeverComes) {
  FairQueue queue;
  queue.Push(1, "a", 1000 * kUnit);
  ASSERT_EQ(queue.Head(), 1U);
  for (FairQueue::Id id = 2; id < 100; ++id) {
    queue.Push(id, "b" + std::to_string(id), 1);
    EXPECT_EQ(queue.Head(), 1U);
  }
  queue.Remove(2);
  queue.Serve(3);  // out of turn
  EXPECT_EQ(queue.Head(), 1U);
  EXPECT_EQ(queue.Firsts().size(), 97U);
  EXPECT_EQ(queue.Firsts().front(), 1U);
}

TEST(FairQueue, WhoIsServedOutOfTurnPaysForIt) {
  FairQueue queue;
  queue.Push(1, "a", kUnit);
  queue.Push(2, "b", 10 * kUnit);
  for (FairQueue::Id id = 3; id <= 12; ++id) queue.Push(id, id % 2 ? "a" : "b", kUnit);
  ASSERT_EQ(queue.Head(), 1U);
  queue.Serve(2);
  const auto order = ServeAll(queue);
  EXPECT_EQ(std::vector(order.begin(), order.begin() + 6), (std::vector<FairQueue::Id>{1, 3, 5, 7, 9, 11}));
}

TEST(FairQueue, CreditThatWasSavedForARequestGoesWithIt) {
  FairQueue queue;
  queue.Push(1, "saver", 100 * kUnit);
  for (FairQueue::Id id = 2; id <= 20; ++id) queue.Push(id, "saver", kUnit);
  for (FairQueue::Id id = 101; id <= 199; ++id) queue.Push(id, "b", kUnit);
  for (int i = 0; i < 50; ++i) queue.Serve(queue.Head());
  queue.Remove(1);
  const auto order = ServeAll(queue);
  for (size_t i = 0; i + 1 < 38; ++i) EXPECT_NE(order[i] < 100, order[i + 1] < 100) << i << ": in turns";
}

TEST(FairQueue, WhoIsHeldHasNoTurns) {
  FairQueue queue;
  queue.Hold("a");
  queue.Push(1, "a", 1);
  EXPECT_EQ(queue.Head(), 0U);
  EXPECT_TRUE(queue.empty());
  queue.Push(2, "b", 1);
  EXPECT_EQ(queue.Head(), 2U);
  queue.Resume("a");
  queue.Resume("nobody");
  EXPECT_EQ(ServeAll(queue), (std::vector<FairQueue::Id>{2, 1}));
  queue.Push(3, "a", 1);
  ASSERT_EQ(queue.Head(), 3U);
  queue.Hold("a");
  EXPECT_EQ(queue.Head(), 0U);
  queue.Remove(3);
  queue.Resume("a");
  EXPECT_EQ(queue.Head(), 0U);
}

TEST(FairQueue, AtAnyTimeOwnersWhoAllWaitedHaveHadTheSame) {
  // Whatever the order of coming, costs and cancellations: between two who wait all along, what one was
  // served is never more than what the other was by more than their largest requests and a turn each.
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    FairQueue queue;
    struct Of {
      int64_t served = 0, largest = 0;
      size_t waits = 0;
    };
    std::map<std::string, Of> owners;
    std::map<FairQueue::Id, std::pair<std::string, int64_t>> waiting;
    FairQueue::Id last = 0;
    const size_t count = 2 + random() % 8;
    const auto push = [&](const std::string& owner) {
      const int64_t cost = kUnit << random() % 10;
      queue.Push(++last, owner, cost);
      waiting[last] = {owner, cost};
      ++owners[owner].waits;
      owners[owner].largest = std::max(owners[owner].largest, cost);
    };
    for (size_t o = 0; o < count; ++o) push("owner " + std::to_string(o));
    for (int step = 0; step < 500; ++step) {
      const FairQueue::Id id = queue.Head();
      ASSERT_NE(id, 0U);
      const auto [owner, cost] = waiting.extract(id).mapped();
      if (owners[owner].waits == 1) push(owner);  // he never stops waiting
      if (random() % 3 == 0) push("owner " + std::to_string(random() % count));
      queue.Serve(id);
      owners[owner].served += cost;
      --owners[owner].waits;
      for (const auto& [one, a] : owners)
        for (const auto& [other, b] : owners)
          ASSERT_LE(a.served - b.served, a.largest + b.largest + 2 * kUnit)
              << "seed " << seed << " step " << step << ": " << one << " and " << other;
    }
  }
}

TEST(WaitingRoom, TheLastOfWhoHasMostMakesRoom) {
  WaitingRoom room;
  EXPECT_EQ(room.WhoMakesRoomFor("a"), 0U);
  for (WaitingRoom::Id id = 1; id <= 3; ++id) room.Add(id, "a");
  room.Add(4, "b");
  EXPECT_EQ(room.size(), 4U);
  EXPECT_EQ(room.Count("a"), 3U);
  EXPECT_EQ(room.WhoMakesRoomFor("a"), 0U) << "not for himself";
  EXPECT_EQ(room.WhoMakesRoomFor("c"), 3U);
  EXPECT_EQ(room.WhoMakesRoomFor("b"), 3U);
  room.Remove(3, "a");
  room.Remove(3, "a");
  room.Remove(9, "nobody");
  EXPECT_EQ(room.WhoMakesRoomFor("b"), 0U) << "they would only change places";
  EXPECT_EQ(room.WhoMakesRoomFor("c"), 2U);
  room.Remove(2, "a");
  EXPECT_EQ(room.WhoMakesRoomFor("c"), 0U) << "everybody has one";
  room.Remove(1, "a");
  room.Remove(4, "b");
  EXPECT_EQ(room.size(), 0U);
}

}  // namespace
}  // namespace tilewire::engine
