// The store alone: its rules, and many threads.
#include "server/engine/stores/array_store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <future>
#include <thread>

#include "tests/unit/engine_arrays_testing.h"

namespace tilewire::engine {
namespace {

using std::string_literals::operator""s;
using testing::kUnit;
using testing::SpecOf;
using testing::StoreTest;

TEST_F(StoreTest, ManyThreadsLeaveNothingBehind) {
  Make({.bytes = 40 * kUnit, .bytes_per_identity = 20 * kUnit, .seconds = 60}, 48 * kUnit);
  std::vector<std::thread> threads;
  for (uint64_t seed = 1; seed <= 6; ++seed)
    threads.emplace_back([this, seed] {
      std::mt19937_64 random(seed);
      const std::string who = "abc"s.substr(seed % 3, 1);
      std::vector<ArrayUse> uses;
      for (int step = 0; step < 300; ++step) {
        time.Advance(std::chrono::microseconds(random() % 200));
        const ArrayPage page = store->List(who, 0, 50);
        const std::string id = page.items.empty() ? "me-0" : page.items[random() % page.items.size()].id;
        StoreOptions options{.evictable = random() % 4 != 0};
        if (random() % 3 == 0) options.seconds = 0.001 * static_cast<double>(1 + random() % 3);
        if (random() % 4 == 0) options.key = "k"s + std::to_string(random() % 3);
        switch (random() % 4) {
          case 0:
            (void)Add(who, static_cast<int64_t>(1 + random() % 8), options).has_value();
            break;
          case 1:
            if (auto use = store->Use(id, who, "array")) uses.push_back(*std::move(use));
            break;
          case 2:
            (void)store->Delete(id, who).ok();
            break;
          default:
            uses.clear();
        }
      }
    });
  for (auto& thread : threads) thread.join();
  // What was listed may have expired when it is to be deleted.
  for (const std::string who : {"a", "b", "c"})
    for (ArrayPage page = store->List(who, 0, 1); !page.items.empty(); page = store->List(who, 0, 1))
      (void)store->Delete(page.items[0].id, who).ok();
  EXPECT_TRUE(testing::Becomes([this] { return stats().array_bytes == 0 && out.load() == 0; }));
}

/// D7: one caller takes all the places that there are.
TEST_F(StoreTest, OneOwnerHasNoMoreThanHisNumber) {
  Make({.bytes = 40 * kUnit, .bytes_per_identity = 40 * kUnit, .count_per_identity = 3});
  const auto kept = Add("a", 1);
  const auto first = Add("a", 1, {.evictable = true}), second = Add("a", 1, {.evictable = true});
  ASSERT_TRUE(kept && first && second);
  EXPECT_TRUE(Add("b", 1)) << "others are not concerned";
  EXPECT_TRUE(Add("a", 1)) << "the evictable one that was not used for longest makes room";
  EXPECT_FALSE(store->Stat(*first, "a"));
  EXPECT_TRUE(store->Stat(*second, "a"));
  EXPECT_TRUE(Add("a", 1));
  const auto over = Add("a", 1);
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().reason(), "BUSY");
  EXPECT_NE(std::string(over.error().message()).find("allowed: 3 (--arrays-per-identity)"), std::string::npos)
      << over.error().message();
  EXPECT_TRUE(store->Delete(*kept, "a").ok());
  EXPECT_TRUE(Add("a", 1));
  EXPECT_TRUE(Add("b", 1) && Add("b", 1));
  EXPECT_FALSE(Add("b", 1));
}

TEST(OwnedCount, HalfForWhoHasANameAndAllForThoseWhoHaveNone) {
  EXPECT_EQ(MostOfOne("token:ann", 1024), 512);
  EXPECT_EQ(MostOfOne("token:ann", 1), 1);
  EXPECT_EQ(MostOfOne("anonymous", 1024), 1024);
}

TEST_F(StoreTest, ArraysExpireAndWhatIsUsedGoesWithItsLastUse) {
  Make({.bytes = 40 * kUnit, .bytes_per_identity = 40 * kUnit});
  const auto used = Add("a", 2), plain = Add("a", 3, {.seconds = 60});
  ASSERT_TRUE(used && plain);
  testing::Pass(time, timer, std::chrono::seconds(60) - std::chrono::nanoseconds(1));
  EXPECT_TRUE(store->Stat(*plain, "a"));
  testing::Pass(time, timer, std::chrono::nanoseconds(1));
  EXPECT_EQ(stats().arrays_expired, 1U);
  EXPECT_EQ(store->Stat(*plain, "a").error().reason(), "ARRAY");
  EXPECT_EQ(out.load(), 2 * kUnit) << "the timer's thread freed it";
  auto use = store->Use(*used, "a", "array");
  ASSERT_TRUE(use);
  EXPECT_TRUE(store->Delete(*used, "a").ok());
  EXPECT_EQ(store->Use(*used, "a", "array").error().reason(), "ARRAY");
  EXPECT_EQ(stats().arrays_stored, 0U);
  EXPECT_EQ(out.load(), 2 * kUnit);
  use = Fail(Status());
  EXPECT_EQ(out.load(), 0);
  EXPECT_EQ(stats().array_bytes, 0U);
}

TEST_F(StoreTest, KeysNameArraysWhileTheyAreThere) {
  Make({.bytes = 40 * kUnit, .bytes_per_identity = 40 * kUnit});
  const auto first = Add("a", 2, {.key = "k"}), again = Add("a", 2, {.key = "k"}),
             other = Add("b", 2, {.key = "k"});
  ASSERT_TRUE(first && again && other);
  EXPECT_EQ(*first, *again);
  EXPECT_NE(*first, *other);
  const auto differs = Add("a", 3, {.key = "k"});
  ASSERT_FALSE(differs);
  EXPECT_EQ(differs.error().detail()->field, "options.store.idempotency_key");
  EXPECT_TRUE(store->Delete(*first, "a").ok());
  EXPECT_TRUE(Add("a", 3, {.key = "k"}));
  // Two that found nothing: the second to end gives its memory back and names the first.
  const ArraySpec spec = SpecOf({kUnit});
  auto one = store->Reserve("c", {&spec, 1}, {.key = "q"}),
       two = store->Reserve("c", {&spec, 1}, {.key = "q"});
  ASSERT_TRUE(one && two && *one && *two);
  const auto kept = one->Commit(std::vector<ArrayParts>(1)), same = two->Commit(std::vector<ArrayParts>(1));
  ASSERT_TRUE(kept && same);
  EXPECT_EQ(*kept, *same);
  *two = Reservation();
  EXPECT_EQ(store->List("c", 0, 9).held_bytes, kUnit);
}

TEST_F(StoreTest, AnExpiredArrayThatGoesLateLeavesItsKeyToTheNext) {
  Make({.bytes = 40 * kUnit, .bytes_per_identity = 40 * kUnit});
  const auto first = Add("a", 2, {.seconds = 60, .key = "k"});
  std::promise<void> go;
  timer.At(timer.Now(), [late = go.get_future().share()] { late.wait(); });  // so that its timer comes late
  time.Advance(std::chrono::seconds(60));
  const auto second = Add("a", 3, {.key = "k"});
  EXPECT_EQ(stats().arrays_expired, 0U);
  go.set_value();
  testing::Flush(timer);
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_EQ(stats().arrays_expired, 1U);
  const auto again = Add("a", 3, {.key = "k"});
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *second);
}

TEST_F(StoreTest, WhoWaitsForMemoryIsGivenAnEvictableArraysAsSoonAsItIsStored) {
  Make({.bytes = 40 * kUnit, .bytes_per_identity = 40 * kUnit}, 48 * kUnit);
  const ArraySpec spec = SpecOf({30 * kUnit});
  auto room = store->Reserve("a", {&spec, 1}, {.evictable = true});
  ASSERT_TRUE(room);
  std::vector<Result<Ticket>> tickets;
  const auto ask = [&](int64_t units) {
    admission->Request({.device_bytes = units * kUnit}, TimePoint::max(),
                       [&](Result<Ticket> ticket) { tickets.push_back(std::move(ticket)); });
  };
  ask(30);
  ask(40);
  ASSERT_EQ(tickets.size(), 1U);
  ASSERT_TRUE(tickets[0]);
  out += 30 * kUnit;
  std::vector<ArrayParts> parts;
  parts.push_back({tickets[0]->Split(30 * kUnit),
                   Memory(place, 30 * kUnit, [this](auto*, size_t n) { out -= static_cast<int64_t>(n); })});
  EXPECT_TRUE(room->Commit(std::move(parts)));
  ASSERT_EQ(tickets.size(), 2U) << "though the job that stored it goes on";
  EXPECT_TRUE(tickets[1]);
  EXPECT_EQ(stats().arrays_evicted, 1U);
}

TEST_F(StoreTest, RefusesWhatIsNeverRight) {
  Make({.bytes = 40 * kUnit, .bytes_per_identity = 20 * kUnit, .longest_seconds = 100});
  for (const double seconds : {-1.0, 0.0001, 101.0, std::nan("")})
    EXPECT_EQ(Add("a", 1, {.seconds = seconds}).error().detail()->field, "options.store.ttl_seconds")
        << seconds;
  EXPECT_EQ(Add("a", 21).error().reason(), "LIMIT");
  EXPECT_EQ(store->Use("you-1", "a", "array").error().reason(), "WRONG_INSTANCE");
  EXPECT_EQ(store->Use("you-1", "a", "array").error().code(), Code::kNotFound);
  EXPECT_EQ(store->Use("me-1", "a", "array").error().reason(), "ARRAY");
  EXPECT_EQ(store->Use(std::string(65, 'x'), "a", "array").error().reason(), "BAD_VALUE");
  const auto id = Add("a", 1);
  ASSERT_TRUE(id);
  EXPECT_EQ(store->Use(*id, "b", "array").error().reason(), "ARRAY") << "another's";
}

TEST_F(StoreTest, WhoWaitsForMemoryGetsThatOfIdleArrays) {
  Make({.bytes = 900 * 1024, .bytes_per_identity = 900 * 1024});
  // The bulk class has 7/8 of 1 MiB: 224 units.
  const auto stays = Add("a", 40), goes = Add("a", 100, {.evictable = true}),
             held = Add("a", 60, {.evictable = true});
  ASSERT_TRUE(stays && goes && held);
  auto use = store->Use(*held, "a", "array");
  const auto ask = [this](int64_t units) {
    auto granted = std::make_shared<std::promise<Ticket>>();
    admission->Request({.device_bytes = units * kUnit}, TimePoint::max(),
                       [granted](Result<Ticket> ticket) { granted->set_value(*std::move(ticket)); });
    return granted->get_future();
  };
  auto first = ask(100);  // 24 are free: `goes` has to
  EXPECT_EQ(first.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_FALSE(store->Stat(*goes, "a"));
  auto second = ask(50);  // 24 still: waits for `held`, which is in use
  EXPECT_NE(second.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  use = Fail(Status());
  EXPECT_EQ(second.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_FALSE(store->Stat(*held, "a"));
  EXPECT_TRUE(store->Stat(*stays, "a"));
  EXPECT_EQ(stats().arrays_evicted, 2U);
}

}  // namespace
}  // namespace tilewire::engine
