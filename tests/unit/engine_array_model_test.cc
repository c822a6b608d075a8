// The store alone, beside a model that is too simple to be wrong.
#include "server/engine/stores/array_store.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/unit/engine_arrays_testing.h"

namespace tilewire::engine {
namespace {

using std::string_literals::operator""s;
using testing::kUnit;
using testing::StoreTest;

struct ModelArray {
  std::string who;
  int64_t units;
  bool evictable;
  uint64_t last_used;
  std::vector<ArrayUse> uses;
};

/// The store in a page: what is there, what is still held, and who goes first.
struct Model {
  std::map<std::string, ModelArray> arrays;
  std::vector<ModelArray> lingering;  ///< forgotten, still used
  int64_t all = 0, each = 0;
  uint64_t clock = 0, evicted = 0;

  int64_t Held(const std::string& who = "") const {
    int64_t units = 0;
    for (const auto& [id, array] : arrays) units += who.empty() || array.who == who ? array.units : 0;
    for (const auto& array : lingering) units += who.empty() || array.who == who ? array.units : 0;
    return units;
  }
  /// The id of the idle evictable array that was not used for longest.
  std::string Oldest(const std::string& who = "") const {
    std::string oldest;
    for (const auto& [id, array] : arrays)
      if (array.evictable && array.uses.empty() && (who.empty() || array.who == who) &&
          (oldest.empty() || array.last_used < arrays.at(oldest).last_used))
        oldest = id;
    return oldest;
  }
  /// Makes room as the store should; false: BUSY, and nothing happened.
  bool MakeRoom(const std::string& who, int64_t units) {
    const auto kept = arrays;
    const uint64_t count = evicted;
    const auto evict = [&](const std::string& of) {
      const std::string oldest = Oldest(of);
      if (!oldest.empty()) ++evicted, arrays.erase(oldest);
      return !oldest.empty();
    };
    while (Held(who) + units > each)
      if (!evict(who)) return arrays = kept, evicted = count, false;
    while (Held() + units > all)
      if (!evict("")) return arrays = kept, evicted = count, false;
    return true;
  }
};

TEST_F(StoreTest, RandomSequencesAgreeWithAModel) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Make({.bytes = 24 * kUnit, .bytes_per_identity = 14 * kUnit});
    Model model{.all = 24, .each = 14};
    const auto any = [&]() -> std::string {
      if (model.arrays.empty()) return "me-0";
      return std::next(model.arrays.begin(), static_cast<int64_t>(random() % model.arrays.size()))->first;
    };
    for (int step = 0; step < 150; ++step) {
      time.Advance(std::chrono::microseconds(1));  // so that one was used before the other
      const std::string who = "abc"s.substr(random() % 3, 1);
      const std::string id = any();
      const auto found = model.arrays.find(id);
      const bool mine = found != model.arrays.end() && found->second.who == who;
      switch (random() % 5) {
        case 0:
        case 1: {
          const auto units = static_cast<int64_t>(1 + random() % 16);
          const bool evictable = random() % 2 == 0;
          const auto added = Add(who, units, {.evictable = evictable});
          if (units > 14) {
            ASSERT_FALSE(added);
            EXPECT_EQ(added.error().reason(), "LIMIT");
          } else if (model.MakeRoom(who, units)) {
            ASSERT_TRUE(added) << added.error().ToString();
            model.arrays[*added] = {who, units, evictable, ++model.clock, {}};
          } else {
            ASSERT_FALSE(added);
            EXPECT_EQ(added.error().reason(), "BUSY");
          }
          break;
        }
        case 2: {
          auto use = store->Use(id, who, "array");
          ASSERT_EQ(use.has_value(), mine);
          if (use) found->second.uses.push_back(*std::move(use));
          break;
        }
        case 3:
          ASSERT_EQ(store->Delete(id, who).ok(), mine);
          if (mine && !found->second.uses.empty()) model.lingering.push_back(std::move(found->second));
          if (mine) model.arrays.erase(found);
          break;
        default:
          if (found != model.arrays.end() && !found->second.uses.empty()) {
            found->second.uses.pop_back();
            found->second.last_used = ++model.clock;
          } else if (!model.lingering.empty()) {
            model.lingering.pop_back();
          }
      }
      const EngineStats now = stats();
      ASSERT_EQ(now.arrays_stored, model.arrays.size());
      ASSERT_EQ(now.array_bytes, static_cast<uint64_t>(model.Held() * kUnit));
      ASSERT_EQ(out.load(), model.Held() * kUnit);
      ASSERT_EQ(now.arrays_evicted, model.evicted);
      for (const auto& [kept, array] : model.arrays) {
        const auto facts = store->Stat(kept, array.who);
        ASSERT_TRUE(facts);
        EXPECT_EQ(facts->users, array.uses.size());
      }
      for (const std::string each : {"a", "b", "c"}) {
        std::set<std::string> listed, owned;
        for (uint64_t from = 0;;) {
          const ArrayPage page = store->List(each, from, 2);
          for (const auto& facts : page.items) listed.insert(facts.id);
          if ((from = page.next) == 0) break;
        }
        for (const auto& [kept, array] : model.arrays)
          if (array.who == each) owned.insert(kept);
        ASSERT_EQ(listed, owned);
        ASSERT_EQ(store->List(each, 0, 1).held_bytes, model.Held(each) * kUnit);
      }
    }
    model = {};  // ends every use
    TearDown();
  }
}

}  // namespace
}  // namespace tilewire::engine
