#include "server/engine/measure/copy_rates.h"

#include <gtest/gtest.h>

#include "tests/unit/engine_testing.h"

namespace tilewire::engine {
namespace {

constexpr int64_t kKibi = 1024, kMebi = 1024 * kKibi;

TEST(CopyRates, BlocksFollowTheArrayWithinWhatIsCopiedFast) {
  const CopyRates unknown;
  EXPECT_EQ(BlockFor(1, 4 * kMebi, unknown), 256 * kKibi);
  EXPECT_EQ(BlockFor(8 * kMebi, 4 * kMebi, unknown), 512 * kKibi);
  EXPECT_EQ(BlockFor(17 * kMebi - 1, 4 * kMebi, unknown), kMebi) << "rounded down to a power of two";
  EXPECT_EQ(BlockFor(64 * kMebi, 4 * kMebi, unknown), 4 * kMebi);
  EXPECT_EQ(BlockFor(int64_t{1} << 40, 4 * kMebi, unknown), 4 * kMebi);
  const CopyRates measured{.in = 50e9, .out = 50e9, .least_block = kMebi};
  EXPECT_EQ(BlockFor(8 * kMebi, 4 * kMebi, measured), kMebi) << "smaller ones would copy too slowly";
  EXPECT_EQ(BlockFor(8 * kMebi, 64 * kKibi, measured), 64 * kKibi) << "never over what is allowed";
}

TEST(CopyRates, AreMeasuredWhereSomethingIsCopied) {
  const auto device = MakeStaged(OpenCpuDevice(1));
  const auto lane = *device->MakeLane(LanePriority::kBulk);
  const auto rates = MeasureCopies(device.get(), lane.get(), kMebi);
  ASSERT_TRUE(rates) << rates.error().ToString();
  EXPECT_GT(rates->in, 0);
  EXPECT_GT(rates->out, 0);
  EXPECT_GE(rates->least_block, 256 * kKibi);
  EXPECT_LE(rates->least_block, kMebi);

  const auto host = OpenCpuDevice(1);
  const auto host_lane = *host->MakeLane(LanePriority::kBulk);
  const auto none = MeasureCopies(host.get(), host_lane.get(), kMebi);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->in, 0);
  EXPECT_EQ(none->least_block, 0);
}

TEST(CopyRates, FailAsTheDeviceDoes) {
  const auto shortage = std::make_shared<Shortage>();
  const auto faults = std::make_shared<Faults>();
  const auto device = MakeStaged(MakeOutOfMemory(MakeFaulty(OpenCpuDevice(1), faults), shortage));
  const auto lane = *device->MakeLane(LanePriority::kBulk);
  shortage->FailNthPinned(1);
  EXPECT_EQ(MeasureCopies(device.get(), lane.get(), kMebi).error().reason(), "BUSY");
  faults->FailNth(Submitted::kCopyOut, 2, Status(Code::kInternal, "INTERNAL_ERROR", "told to fail"));
  EXPECT_EQ(MeasureCopies(device.get(), lane.get(), kMebi).error().reason(), "INTERNAL_ERROR");
}

TEST(CopyRates, JobsGetBlocksThatFitThem) {
  testing::Setup setup;
  setup.options.block_bytes = 4 * kMebi;
  setup.options.fit_blocks = true;
  setup.options.measure_copies = true;
  setup.options.pinned_bytes = 64 * kMebi;
  const auto engine = testing::MakeEngine(setup);
  EXPECT_GT(engine->copy_rates().in, 0);
  const auto problem = testing::GaussianProblem(DType::kF32, {2'000'003}, 0, 1, 3);
  const auto job = testing::Open(*engine, problem.make());
  ASSERT_TRUE(job) << job.error().ToString();
  EXPECT_EQ((*job)->block_bytes(), BlockFor(8'000'012, 4 * kMebi, engine->copy_rates()));
  const testing::Feeders feeders(*job, problem, {testing::Ascending(problem, 1 << 20)});
  const auto output = testing::Collect(**job);
  ASSERT_TRUE(output) << output.error().ToString();
  EXPECT_EQ(*output, problem.expected);
}

TEST(CopyRates, TheBottleneckIsComparedWithThem) {
  testing::Setup setup;
  setup.options.measure_copies = true;
  setup.slow = SlowOptions{.copy_in = std::chrono::milliseconds(2)};  // so that it is the longest stage
  const auto engine = testing::MakeEngine(setup);
  const auto problem = testing::RmseProblem(DType::kF32, {100'000}, {}, 3);
  const auto job = testing::Open(*engine, problem.make());
  ASSERT_TRUE(job) << job.error().ToString();
  const testing::Feeders feeders(*job, problem, {testing::Ascending(problem, 1 << 20)});
  ASSERT_TRUE(testing::Collect(**job));
  const Timing timing = (*job)->timing();
  ASSERT_EQ(timing.bottleneck, "h2d");
  EXPECT_NEAR(timing.bottleneck_share, 800'000 / (timing.of(Stage::kH2D) * 1e-6) / engine->copy_rates().in,
              1e-9);
}

}  // namespace
}  // namespace tilewire::engine
