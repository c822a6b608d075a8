// Several results that stay: arrays by themselves, all or none.
#include <gtest/gtest.h>

#include "server/engine/device/memory_pool.h"
#include "tests/unit/engine_arrays_testing.h"
#include "tests/unit/engine_extremes.h"

namespace tilewire::engine {
namespace {

using testing::Bytes;
using testing::kUnit;
using testing::Problem;
using testing::StoreTest;

/// Runs a job that stores its results, on operands that are sent: their ids.
Result<std::vector<std::string>> Store(Engine& engine, const Problem& problem,
                                       const StoreOptions& store = {}) {
  JobOptions options;
  options.store = store;
  TILEWIRE_ASSIGN_OR_RETURN(const std::shared_ptr<Job> job, testing::Open(engine, problem.make(), options));
  const testing::Feeders feeders(
      job, problem, {job->takes_input() ? testing::Ascending(problem, 5000) : testing::Chunks()});
  TILEWIRE_ASSIGN_OR_RETURN(const std::optional<OutputPiece> piece, testing::Next(*job));
  EXPECT_FALSE(piece);
  std::vector<std::string> ids;
  for (size_t i = 0; i < job->operation().results().size(); ++i) {
    ids.push_back(job->stored_id(i));
    EXPECT_EQ(job->operation().results()[i], problem.make()->results()[i]);
  }
  return ids;
}

uint64_t PoolBytes(const ArraySpec& spec) {
  return MemoryPool::RoundUp(static_cast<size_t>(spec.bytes()));
}

TEST(StoredResults, AreArraysByThemselves) {
  for (const bool staged : {true, false})
    for (const Problem& problem : {testing::BulkExtremes(1), testing::SmallExtremes(2)}) {
      testing::Setup setup;
      setup.staged = staged;
      const auto engine = testing::MakeEngine(setup);
      const auto operation = problem.make();
      const auto ids = Store(*engine, problem);
      ASSERT_TRUE(ids) << ids.error().ToString();
      EXPECT_NE((*ids)[0], (*ids)[1]);
      EXPECT_TRUE(testing::OnlyArraysLeft(*engine));
      const uint64_t first = PoolBytes(operation->results()[0]), second = PoolBytes(operation->results()[1]);
      EXPECT_EQ(engine->stats().array_bytes, first + second);
      for (size_t i = 0; i < 2; ++i) {
        const auto facts = engine->arrays().Stat((*ids)[i], "anonymous");
        ASSERT_TRUE(facts);
        EXPECT_EQ(facts->spec, operation->results()[i]);
        EXPECT_EQ(testing::Get(*engine, (*ids)[i]).value(),
                  testing::ResultOf(*operation, problem.expected, i));
      }
      // One goes, with its memory; the other is an operand as any.
      EXPECT_TRUE(engine->arrays().Delete((*ids)[0], "anonymous").ok());
      EXPECT_TRUE(testing::Becomes([&] { return engine->stats().device_bytes_in_use == second; }));
      EXPECT_FALSE(engine->arrays().Stat((*ids)[0], "anonymous"));
      const auto plan = *transpose::Plan::Make(operation->results()[1], {});
      JobOptions options;
      options.residents = {*engine->arrays().Use((*ids)[1], "anonymous", "array")};
      auto job = testing::Open(*engine, transpose::MakeProblem(plan), options);
      ASSERT_TRUE(job);
      EXPECT_EQ(testing::Collect(**job).value(), testing::ResultOf(*operation, problem.expected, 1));
      options = {};
      job = Fail(Status());
      EXPECT_TRUE(engine->arrays().Delete((*ids)[1], "anonymous").ok());
      EXPECT_TRUE(testing::BecomesIdle(*engine));
    }
}

TEST(StoredResults, AreOnePassUnderAKeyWhileAllAreThere) {
  testing::Setup setup;
  setup.faults = std::make_shared<Faults>();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::BulkExtremes(1);
  const StoreOptions key{.key = "k"};
  const auto first = Store(*engine, problem, key);
  ASSERT_TRUE(first);
  const int64_t launches = setup.faults->count(Submitted::kLaunch);
  EXPECT_EQ(Store(*engine, problem, key).value(), *first);
  EXPECT_EQ(setup.faults->count(Submitted::kLaunch), launches) << "nothing is computed again";
  EXPECT_TRUE(engine->arrays().Delete((*first)[1], "anonymous").ok());
  const auto again = Store(*engine, problem, key);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)[0], (*first)[0]) << "still there under the key";
  EXPECT_NE((*again)[1], (*first)[1]);
  EXPECT_EQ(testing::Get(*engine, (*again)[1]).value(),
            testing::ResultOf(*problem.make(), problem.expected, 1));
  EXPECT_TRUE(testing::OnlyArraysLeft(*engine));
  const auto other = Store(*engine, testing::SmallExtremes(2), key);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().detail()->field, "options.store.idempotency_key");
  EXPECT_EQ(other.error().detail()->value.find('\n'), std::string::npos);
  EXPECT_EQ(engine->stats().arrays_stored, 2U);
}

TEST(StoredResults, CountTogetherAgainstTheQuota) {
  const Problem problem = testing::BulkExtremes(1);
  const auto operation = problem.make();
  const auto together =
      static_cast<int64_t>(PoolBytes(operation->results()[0]) + PoolBytes(operation->results()[1]));
  for (const bool enough : {true, false}) {
    testing::Setup setup;
    setup.options.store.bytes = together - (enough ? 0 : 1);
    const auto engine = testing::MakeEngine(setup);
    const auto ids = Store(*engine, problem);
    EXPECT_EQ(ids.has_value(), enough);
    if (!enough) {
      EXPECT_EQ(ids.error().reason(), "LIMIT");
      EXPECT_EQ(engine->stats().arrays_stored, 0U);
      EXPECT_TRUE(testing::BecomesIdle(*engine));
    }
  }
}

TEST(StoredResults, FaultsStoreNone) {
  testing::Setup setup;
  setup.faults = std::make_shared<Faults>();
  setup.shortage = std::make_shared<Shortage>();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::BulkExtremes(1);
  setup.faults->FailNth(Submitted::kLaunch, problem.make()->range_count() + 1,
                        Status(Code::kInternal, "INTERNAL_ERROR", "told to fail"));
  EXPECT_EQ(Store(*engine, problem).error().reason(), "INTERNAL_ERROR") << "the finish";
  setup.shortage->FailNthDevice(3);
  EXPECT_EQ(Store(*engine, problem).error().reason(), "BUSY") << "memory of the second result";
  EXPECT_EQ(engine->stats().arrays_stored, 0U);
  EXPECT_TRUE(testing::BecomesIdle(*engine));
  EXPECT_EQ(engine->arrays().List("anonymous", 0, 9).held_bytes, 0);
}

TEST_F(StoreTest, ArraysOfOneJobAreReservedAllOrNone) {
  Make({.bytes = 10 * kUnit, .bytes_per_identity = 10 * kUnit});
  const auto idle = Add("a", 3, {.evictable = true});
  const auto kept = Add("a", 4);
  ASSERT_TRUE(idle && kept);
  EXPECT_EQ(AddAll("a", {4, 3}).error().reason(), "BUSY");
  EXPECT_TRUE(store->Stat(*idle, "a")) << "nothing went for what has no room";
  EXPECT_EQ(AddAll("a", {5, 6}).error().reason(), "LIMIT");
  const auto ids = AddAll("a", {1, 3, 2});
  ASSERT_TRUE(ids) << ids.error().ToString();
  EXPECT_FALSE(store->Stat(*idle, "a"));
  EXPECT_EQ(store->List("a", 0, 9).held_bytes, 10 * kUnit);
  EXPECT_TRUE(store->Delete((*ids)[1], "a").ok());
  EXPECT_EQ(store->List("a", 0, 9).held_bytes, 7 * kUnit);
  EXPECT_EQ(out.load(), 7 * kUnit);
}

TEST_F(StoreTest, AKeyStandsForAllArraysOfAJob) {
  Make({.bytes = 40 * kUnit, .bytes_per_identity = 40 * kUnit});
  const auto first = AddAll("a", {1, 2}, {.key = "k"});
  ASSERT_TRUE(first);
  EXPECT_EQ(AddAll("a", {1, 2}, {.key = "k"}).value(), *first);
  EXPECT_NE(AddAll("b", {1, 2}, {.key = "k"}).value(), *first);
  // Two that found nothing: the second to end gives its memory back and names the first's.
  const ArraySpec specs[] = {testing::SpecOf({kUnit}), testing::SpecOf({5})};
  auto one = store->Reserve("c", specs, {.key = "q"}), two = store->Reserve("c", specs, {.key = "q"});
  ASSERT_TRUE(one && two && *one && *two);
  const auto kept = one->Commit(std::vector<ArrayParts>(2)), same = two->Commit(std::vector<ArrayParts>(2));
  ASSERT_TRUE(kept && same);
  EXPECT_EQ(*kept, *same);
  // What one job left of another is used; what is there no more is made anew.
  EXPECT_TRUE(store->Delete((*first)[0], "a").ok());
  const auto again = AddAll("a", {1, 2}, {.key = "k"});
  ASSERT_TRUE(again);
  EXPECT_NE((*again)[0], (*first)[0]);
  EXPECT_EQ((*again)[1], (*first)[1]);
  EXPECT_EQ(store->List("a", 0, 9).held_bytes, 3 * kUnit);
}

}  // namespace
}  // namespace tilewire::engine
