// Jobs that read operands from regions, write results into them, or both: the same bits as ever.
#include <gtest/gtest.h>

#include "tests/unit/engine_regions_testing.h"
#include "tests/unit/engine_window_testing.h"

namespace tilewire::engine {
namespace {

using testing::All;
using testing::Bytes;
using testing::Part;
using testing::Placed;
using testing::Problem;
using testing::SharedFile;

/// Every kind of memory and of scheduling that a job may meet.
std::vector<testing::Setup> RegionSetups() {
  std::vector<testing::Setup> setups = testing::SetupsOfEveryKind();
  for (auto& setup : setups) setup.options.regions = testing::RegionsOn();
  return setups;
}

std::vector<bool> Flags(const Problem& problem, unsigned mask) {
  std::vector<bool> flags;
  for (size_t i = 0; i < problem.operands.size(); ++i) flags.push_back((mask >> i & 1) != 0);
  return flags;
}

TEST(RegionJob, EveryMixHasTheSameBits) {
  for (const auto& setup : RegionSetups()) {
    const auto engine = testing::MakeEngine(setup);
    for (const Problem& problem : testing::ProblemsOfEveryKind())
      for (unsigned mask = 0; mask < 1U << problem.operands.size(); ++mask)
        for (const bool result_too : {false, true}) {
          SCOPED_TRACE(std::string(problem.make()->name()) + ", regions " + std::to_string(mask) +
                       (result_too ? ", result too" : ""));
          Placed placed(*engine, problem);
          const auto job = testing::Open(*engine, problem.make(), placed.Options(*engine, mask, result_too));
          ASSERT_TRUE(job) << job.error().ToString();
          const std::vector<bool> there = Flags(problem, mask);
          EXPECT_EQ((*job)->takes_input(), std::count(there.begin(), there.end(), false) > 0);
          const auto output = testing::Finish(*job, problem, there);
          ASSERT_TRUE(output) << output.error().ToString();
          const size_t size = problem.expected.size();
          if (result_too) {
            EXPECT_TRUE(output->empty());
            EXPECT_EQ(std::memcmp(placed.file().data() + placed.result_at(), problem.expected.data(), size),
                      0);
            EXPECT_EQ(placed.file().data()[placed.result_at() + size], std::byte{0}) << "nothing beyond it";
          } else {
            EXPECT_EQ(*output, problem.expected);
          }
          const Timing timing = (*job)->timing();
          const auto regions = static_cast<uint64_t>(std::count(there.begin(), there.end(), true));
          EXPECT_EQ(timing.region_bytes_in, regions * problem.operands[0].size());
          EXPECT_EQ(timing.bytes_in, (problem.operands.size() - regions) * problem.operands[0].size());
          EXPECT_EQ(timing.region_bytes_out, result_too ? size : 0);
          EXPECT_EQ(timing.bytes_out, result_too ? 0 : size);
          EXPECT_TRUE(engine->regions().Unregister(placed.id(), "anonymous").ok());
        }
    EXPECT_TRUE(testing::BecomesIdle(*engine));
    EXPECT_TRUE(testing::NoRegionsLeft(*engine));
  }
}

TEST(RegionJob, MeetsArraysThatStay) {
  for (const auto& setup : RegionSetups()) {
    const auto engine = testing::MakeEngine(setup);
    const Problem problem = testing::FineRmseProblem(4), turned = testing::FineTransposeProblem(5);
    Placed placed(*engine, problem), input(*engine, turned);
    const auto id = testing::Put(*engine, problem.operands[1], problem.make()->operands()[1]);
    ASSERT_TRUE(id) << id.error().ToString();
    JobOptions options = placed.Options(*engine, 1, true);
    options.residents = {nullptr, *engine->arrays().Use(*id, "anonymous", "array")};
    auto job = testing::Open(*engine, problem.make(), options);
    ASSERT_TRUE(job) << job.error().ToString();
    ASSERT_TRUE(testing::Collect(**job));
    EXPECT_EQ(std::memcmp(placed.file().data() + placed.result_at(), problem.expected.data(), 8), 0);
    // From a region into an array, and from there into a region.
    options = input.Options(*engine, 1, false);
    options.store.emplace();
    job = testing::Open(*engine, turned.make(), options);
    ASSERT_TRUE(job && testing::Collect(**job));
    const std::string stored = (*job)->stored_id();
    JobOptions get;
    get.residents = {*engine->arrays().Use(stored, "anonymous", "array")};
    get.result_region = Part(*engine, input.id(), input.result_at());
    job = testing::Open(*engine, MakePass(turned.make()->result(), "get"), get);
    ASSERT_TRUE(job && testing::Collect(**job));
    EXPECT_EQ(
        std::memcmp(input.file().data() + input.result_at(), turned.expected.data(), turned.expected.size()),
        0);
    options = get = {};
    job = Fail(Status());
    for (const auto& array : {stored, *id}) EXPECT_TRUE(engine->arrays().Delete(array, "anonymous").ok());
    EXPECT_TRUE(testing::BecomesIdle(*engine));
  }
}

TEST(RegionJob, BlocksAreLargerWhereNothingIsStaged) {
  testing::Setup setup;
  setup.options.regions = testing::RegionsOn();
  setup.options.block_bytes = 64 << 10;
  setup.options.fit_blocks = true;
  setup.options.measure_copies = true;
  const auto engine = testing::MakeEngine(setup);
  const auto block_of = [&](const Problem& problem, unsigned mask, bool result_too) {
    Placed placed(*engine, problem);
    const auto job = testing::Open(*engine, problem.make(), placed.Options(*engine, mask, result_too));
    EXPECT_TRUE(job) << job.error().ToString();
    if (!job) return int64_t{0};
    const auto output = testing::Finish(*job, problem, Flags(problem, mask));
    EXPECT_TRUE(output) << output.error().ToString();
    return (*job)->block_bytes();
  };
  const Problem rmse = testing::RmseProblem(DType::kF32, {2'000'000}, {}, 4);
  EXPECT_EQ(block_of(rmse, 3, false), BlockFor(8'000'000, 16 << 20, engine->copy_rates()));
  EXPECT_EQ(block_of(rmse, 1, false), 64 << 10) << "an operand is sent";
  const Problem turned = testing::TransposeProblem(DType::kF32, {1000, 2000}, {1, 0}, 8);
  EXPECT_EQ(block_of(turned, 1, true), BlockFor(8'000'000, 16 << 20, engine->copy_rates()));
  EXPECT_EQ(block_of(turned, 1, false), 64 << 10) << "the result is handed out";
}

TEST(RegionJob, WindowsTakeFromRegionsWhatTheyHaveRoomFor) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Problem problem = testing::LongProblem(random);
    testing::Setup setup;
    setup.staged = seed % 3 != 0;
    setup.options.regions = testing::RegionsOn();
    setup.options.device_bytes = testing::BytesOf(problem) * 6 / 10;
    const auto engine = testing::MakeEngine(setup);
    Placed placed(*engine, problem);
    const unsigned all = (1U << problem.operands.size()) - 1;
    const auto mask = static_cast<unsigned>(seed % 4 == 0 ? all : random() % (all + 1));
    JobOptions options = placed.Options(*engine, mask, random() % 2 == 0);
    options.may_window = true;
    const bool result_too = static_cast<bool>(options.result_region);
    const auto job = testing::Open(*engine, problem.make(), options);
    ASSERT_TRUE(job) << job.error().ToString();
    EXPECT_GT((*job)->window_bytes(), 0);
    testing::Chunks chunks;
    const auto plan = testing::WithinWindow(problem, **job, 1, random);
    for (const testing::Chunk& chunk : plan[0])
      if ((mask >> chunk.operand & 1) == 0) chunks.push_back(chunk);
    const testing::Feeders feeders(*job, problem, {chunks});
    const auto output = testing::Collect(**job);
    ASSERT_TRUE(output) << output.error().ToString();
    const std::byte* const bytes = result_too ? placed.file().data() + placed.result_at() : output->data();
    EXPECT_EQ(std::memcmp(bytes, problem.expected.data(), problem.expected.size()), 0);
  }
}

TEST(RegionJob, PlacesThatDoNotHoldTheArrayAreRefused) {
  testing::Setup setup;
  setup.options.regions = testing::RegionsOn();
  const auto engine = testing::MakeEngine(setup);
  const Problem problem = testing::TransposeProblem(DType::kF32, {100, 100}, {1, 0}, 8);  // 40,000 bytes
  SharedFile file(50'000);
  const auto region = testing::Register(engine->regions(), All(file, 0, false));
  ASSERT_TRUE(region);
  const auto refused = [&](uint64_t offset, bool result) {
    JobOptions options;
    (result ? options.result_region : options.regions.emplace_back()) = Part(*engine, region->id, offset);
    const auto job = testing::Open(*engine, problem.make(), options);
    EXPECT_FALSE(job);
    return job ? Status() : job.error();
  };
  for (const uint64_t offset : {uint64_t{10'001}, uint64_t{50'000}, ~uint64_t{0}, ~uint64_t{0} - 39'999}) {
    const Status status = refused(offset, false);
    EXPECT_EQ(status.reason(), "BAD_VALUE");
    EXPECT_EQ(status.detail()->field, "place.offset");
  }
  EXPECT_EQ(refused(0, true).detail()->field, "place.region") << "not registered as writable";
  JobOptions options;
  options.regions = {Part(*engine, region->id, 10'000)};
  const auto job = testing::Open(*engine, problem.make(), options);
  ASSERT_TRUE(job) << "the last place there is";
  EXPECT_TRUE(testing::Collect(**job));
}

}  // namespace
}  // namespace tilewire::engine
