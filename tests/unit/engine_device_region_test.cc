// Regions of device memory: jobs compute where it is, without a copy, and nothing a client says of it is
// believed.
#include <gtest/gtest.h>

#include "tests/unit/device_exports.h"
#include "tests/unit/engine_regions_testing.h"
#include "tests/unit/engine_window_testing.h"

namespace tilewire::engine {
namespace {

using testing::Part;
using testing::Problem;
using tilewire::testing::DeviceExports;
using tilewire::testing::ExportedMemory;
using tilewire::testing::ExportsDevice;

constexpr size_t kAlign = kForeignAlignment;

std::unique_ptr<Engine> MakeEngine(const testing::Setup& setup, DeviceExports* exports) {
  std::unique_ptr<Device> device = OpenCpuDevice(2);
  if (setup.slow) device = MakeSlow(std::move(device), *setup.slow);
  if (setup.faults) device = MakeFaulty(std::move(device), setup.faults);
  if (setup.staged) device = MakeStaged(std::move(device), setup.reach_pinned);
  EngineOptions options = setup.options;
  options.regions = testing::DeviceOn();
  return Engine::Make(std::make_unique<ExportsDevice>(std::move(device), exports), options).value();
}

size_t Up(size_t bytes) {
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

/// A problem's operands in device memory, and room for the result at its very end.
class OnDevice {
 public:
  OnDevice(Engine& engine, DeviceExports* exports, const Problem& problem)
      : bytes_(Up(problem.operands[0].size())),
        memory_(exports, kAlign + problem.operands.size() * bytes_ + problem.expected.size()) {
    for (const auto& operand : problem.operands) {
      std::copy(operand.begin(), operand.end(), memory_.data() + kAlign + count_++ * bytes_);
    }
    const auto region = testing::Register(engine.regions(), testing::All(memory_));
    EXPECT_TRUE(region) << region.error().ToString();
    if (region) id_ = region->id;
  }
  const std::string& id() const { return id_; }
  const ExportedMemory& memory() const { return memory_; }
  size_t result_at() const { return kAlign + count_ * bytes_; }
  bool HasResult(const Problem& problem) const {
    return std::equal(problem.expected.begin(), problem.expected.end(), memory_.data() + result_at()) &&
           memory_.RimIntact();
  }
  JobOptions Options(Engine& engine, unsigned mask, bool result_too) const {
    JobOptions options;
    for (size_t i = 0; i < count_; ++i)
      options.regions.push_back((mask >> i & 1) != 0 ? Part(engine, id_, kAlign + i * bytes_) : RegionPart());
    if (result_too) options.result_region = Part(engine, id_, result_at());
    return options;
  }

 private:
  const size_t bytes_;
  ExportedMemory memory_;
  size_t count_ = 0;
  std::string id_;
};

std::vector<testing::Setup> DeviceRegionSetups() {
  std::vector<testing::Setup> setups(4);
  setups[1].reach_pinned = true;
  setups[2].options.lanes = 1;
  setups[3].options.overlap = false;
  for (auto& setup : setups) setup.faults = std::make_shared<Faults>();
  return setups;
}

TEST(DeviceRegionJob, EveryMixHasTheSameBitsAndWhatIsThereIsNotCopied) {
  DeviceExports exports;
  for (const auto& setup : DeviceRegionSetups()) {
    const auto engine = MakeEngine(setup, &exports);
    for (const Problem& problem : testing::ProblemsOfEveryKind())
      for (unsigned mask = 0; mask < 1U << problem.operands.size(); ++mask)
        for (const bool result_too : {false, true}) {
          SCOPED_TRACE(std::string(problem.make()->name()) + std::to_string(mask) +
                       std::to_string(result_too));
          const OnDevice placed(*engine, &exports, problem);
          std::vector<bool> there;
          for (size_t i = 0; i < problem.operands.size(); ++i) there.push_back((mask >> i & 1) != 0);
          const int64_t in = setup.faults->count(Submitted::kCopyIn),
                        out = setup.faults->count(Submitted::kCopyOut);
          {
            const auto job =
                testing::Open(*engine, problem.make(), placed.Options(*engine, mask, result_too));
            ASSERT_TRUE(job) << job.error().ToString();
            const auto output = testing::Finish(*job, problem, there);
            ASSERT_TRUE(output) << output.error().ToString();
            if (result_too) {
              EXPECT_TRUE(output->empty());
              EXPECT_TRUE(placed.HasResult(problem));
              EXPECT_EQ(setup.faults->count(Submitted::kCopyOut), out);
            } else {
              EXPECT_EQ(*output, problem.expected);
            }
            if (mask == (1U << problem.operands.size()) - 1) {
              EXPECT_FALSE((*job)->takes_input());
              EXPECT_EQ(setup.faults->count(Submitted::kCopyIn), in);
            }
            const Timing timing = (*job)->timing();
            EXPECT_EQ(timing.region_bytes_in + timing.region_bytes_out, 0U);
            EXPECT_EQ(timing.bytes_out, result_too ? 0 : problem.expected.size());
          }
          EXPECT_TRUE(engine->regions().Unregister(placed.id(), "anonymous").ok());
          EXPECT_TRUE(testing::Becomes([&] { return exports.open() == 0; }));
        }
    EXPECT_TRUE(testing::BecomesIdle(*engine));
    EXPECT_TRUE(testing::NoRegionsLeft(*engine));
  }
}

/// What is only passed on is copied from device to device, either way.
TEST(DeviceRegionJob, ArraysAreStoredFromItAndGotIntoIt) {
  DeviceExports exports;
  for (const auto& setup : DeviceRegionSetups()) {
    const auto engine = MakeEngine(setup, &exports);
    const Problem problem = testing::FineGaussianProblem(6);
    const OnDevice placed(*engine, &exports, problem);
    const ArraySpec spec = problem.make()->operands()[0];
    JobOptions put = placed.Options(*engine, 1, false);
    put.store.emplace();
    auto job = testing::Open(*engine, MakePass(spec, "put"), put);
    ASSERT_TRUE(job) << job.error().ToString();
    ASSERT_TRUE(testing::Collect(**job));
    const std::string id = (*job)->stored_id();
    std::fill(placed.memory().data(), placed.memory().data() + placed.result_at(),
              std::byte{9});  // a copy stays
    JobOptions get;
    get.residents = {*engine->arrays().Use(id, "anonymous", "array")};
    get.result_region = Part(*engine, placed.id(), kAlign);
    job = testing::Open(*engine, MakePass(spec, "get"), get);
    ASSERT_TRUE(job) << job.error().ToString();
    ASSERT_TRUE(testing::Collect(**job));
    EXPECT_TRUE(
        std::equal(problem.operands[0].begin(), problem.operands[0].end(), placed.memory().data() + kAlign));
    EXPECT_EQ(placed.memory().data()[0], std::byte{9});
    put = get = {};
    job = Fail(Status());
    EXPECT_TRUE(engine->arrays().Delete(id, "anonymous").ok());
  }
}

TEST(DeviceRegionJob, WindowedJobsUseItWhole) {
  DeviceExports exports;
  int windowed = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const Problem problem = testing::LongProblem(random);
    testing::Setup setup;
    setup.options.device_bytes = testing::BytesOf(problem) * 6 / 10;
    const auto engine = MakeEngine(setup, &exports);
    const OnDevice placed(*engine, &exports, problem);
    const unsigned mask = problem.operands.size() > 1 ? static_cast<unsigned>(seed % 2) : 0;
    JobOptions options = placed.Options(*engine, mask, seed % 3 != 0);
    options.may_window = true;
    const bool result_too = static_cast<bool>(options.result_region);
    const auto job = testing::Open(*engine, problem.make(), options);
    if (!job) {  // its ranges do not begin where arrays in place may
      EXPECT_EQ(job.error().reason(), "LIMIT") << job.error().ToString();
      continue;
    }
    windowed += (*job)->window_bytes() > 0 ? 1 : 0;
    const testing::Chunks plan = (*job)->window_bytes() > 0
                                     ? testing::WithinWindow(problem, **job, 1, random)[0]
                                     : testing::Ascending(problem, 5000);
    testing::Chunks chunks;
    for (const testing::Chunk& chunk : plan)
      if ((mask >> chunk.operand & 1) == 0) chunks.push_back(chunk);
    const testing::Feeders feeders(*job, problem, {chunks});
    const auto output = testing::Collect(**job);
    ASSERT_TRUE(output) << output.error().ToString();
    if (result_too) {
      EXPECT_TRUE(placed.HasResult(problem));
    } else {
      EXPECT_EQ(*output, problem.expected);
    }
  }
  EXPECT_GT(windowed, 5);
}

TEST(DeviceRegionJob, PlacesThatDoNotSuitAreRefused) {
  DeviceExports exports;
  const auto engine = MakeEngine({}, &exports);
  const Problem problem = testing::TransposeProblem(DType::kF32, {100, 100}, {1, 0}, 8);  // 40,000 bytes
  const ExportedMemory memory(&exports, 120'000), fixed(&exports, 40'000);
  const auto region = testing::Register(engine->regions(), testing::All(memory));
  const auto again = testing::Register(engine->regions(), testing::All(memory));
  const auto read_only = testing::Register(engine->regions(), testing::All(fixed, false));
  ASSERT_TRUE(region && again && read_only);
  const auto tried_by = [&](const Problem& by, const std::string& from, uint64_t at, const std::string& to,
                            uint64_t result_at) {
    JobOptions options;
    options.regions = {Part(*engine, from, at)};
    options.result_region = Part(*engine, to, result_at);
    options.result_region.field = "result";
    const auto job = testing::Open(*engine, by.make(), options);
    return job ? testing::Collect(**job) ? std::string() : "failed" : job.error().detail()->field;
  };
  const auto tried = [&](const auto&... places) { return tried_by(problem, places...); };
  EXPECT_EQ(tried(region->id, 0, region->id, 40'192), "");
  EXPECT_EQ(tried(region->id, 79'872, region->id, 0), "");
  const Problem even = testing::TransposeProblem(DType::kF32, {64, 100}, {1, 0}, 8);  // 25,600 bytes
  EXPECT_EQ(tried_by(even, region->id, 0, region->id, 25'600), "") << "side by side";
  EXPECT_EQ(tried_by(even, region->id, 25'600, region->id, 0), "");
  EXPECT_EQ(tried(region->id, 0, region->id, 40'000), "result.offset") << "no multiple of 256";
  EXPECT_EQ(tried(region->id, 16, region->id, 40'192), "place.offset");
  EXPECT_EQ(tried(region->id, 80'128, region->id, 0), "place.offset") << "beyond the end";
  EXPECT_EQ(tried(region->id, ~uint64_t{255}, region->id, 0), "place.offset");
  for (const uint64_t at : {uint64_t{0}, uint64_t{256}, uint64_t{39'936}}) {
    EXPECT_EQ(tried(region->id, 0, region->id, at), "result.offset") << "overlaps its operand";
    EXPECT_EQ(tried(region->id, at, region->id, 0), "result.offset");
    EXPECT_EQ(tried(region->id, 0, again->id, at), "result.offset") << "the same memory, registered twice";
  }
  EXPECT_EQ(tried(region->id, 0, read_only->id, 0), "result.region");
  EXPECT_TRUE(memory.RimIntact());
}

TEST(DeviceRegionJob, CancelledAndFailedJobsLetGoOfIt) {
  DeviceExports exports;
  testing::Setup setup;
  setup.faults = std::make_shared<Faults>();
  setup.slow = SlowOptions{.copy_in = std::chrono::milliseconds(2), .copy_out = std::chrono::milliseconds(2)};
  const auto engine = MakeEngine(setup, &exports);
  const Problem problem = testing::TransposeProblem(DType::kF32, {310, 549}, {1, 0}, 8);
  for (const int way : {0, 1, 2}) {
    const OnDevice placed(*engine, &exports, problem);
    if (way == 1)
      setup.faults->FailNth(Submitted::kLaunch, 1, Status(Code::kInternal, "INTERNAL_ERROR", "launch"));
    auto job = testing::Open(*engine, problem.make(), placed.Options(*engine, way == 0 ? 0 : 1, true));
    ASSERT_TRUE(job);
    EXPECT_TRUE(engine->regions().Unregister(placed.id(), "anonymous").ok()) << "while it is in use";
    EXPECT_EQ(exports.open(), 1);
    if (way == 0) (*job)->Fail(Status(Code::kCancelled, "CANCELLED", "gone"));
    EXPECT_EQ(testing::Collect(**job).has_value(), way == 2) << way;
    EXPECT_TRUE(way != 2 || placed.HasResult(problem));
    job = Fail(Status());
    EXPECT_TRUE(testing::BecomesIdle(*engine));
    EXPECT_TRUE(testing::Becomes([&] { return exports.open() == 0; })) << way;
  }
  EXPECT_TRUE(testing::NoRegionsLeft(*engine));
}

}  // namespace
}  // namespace tilewire::engine
