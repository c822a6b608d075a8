// One answer, bit for bit, however bytes arrive and wherever they go.
#include "server/engine/job/job.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/unit/engine_testing.h"

namespace tilewire::engine {
namespace {

using testing::Chunks;
using testing::Problem;

/// A random engine: blocks, lanes, overlap, staging, jitter.
testing::Setup RandomSetup(std::mt19937_64& random, int64_t block_bytes) {
  testing::Setup setup;
  setup.options.block_bytes = block_bytes;
  setup.options.lanes = static_cast<int>(1 + random() % 5);
  setup.options.overlap = random() % 4 != 0;
  setup.staged = random() % 3 != 0;
  setup.reach_pinned = random() % 2 == 0;
  if (random() % 2 == 0) setup.slow = SlowOptions{.jitter = std::chrono::microseconds(50), .seed = random()};
  return setup;
}

/// Ascending, or scattered over one to three streams.
std::vector<Chunks> RandomStreams(const Problem& problem, int64_t block_bytes, std::mt19937_64& random) {
  const auto bytes = static_cast<int64_t>(problem.operands[0].size());
  if (random() % 4 == 0)
    return {testing::Ascending(problem, 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(bytes)))};
  return testing::Scattered(problem, block_bytes, 1 + random() % 3, random);
}

void Check(const Problem& problem, std::mt19937_64& random, int64_t block_bytes, const std::string& what) {
  const testing::Setup setup = RandomSetup(random, block_bytes);
  const auto engine = testing::MakeEngine(setup);
  const auto output = testing::RunJob(*engine, problem, RandomStreams(problem, block_bytes, random));
  ASSERT_TRUE(output) << what << ": " << output.error().ToString();
  EXPECT_EQ(*output, problem.expected)
      << what << ", blocks of " << block_bytes << ", lanes " << setup.options.lanes << ", overlap "
      << setup.options.overlap << ", staged " << setup.staged << ", kernels reach pinned memory "
      << setup.reach_pinned;
  EXPECT_TRUE(testing::BecomesIdle(*engine)) << what;
}

DType RandomReal(std::mt19937_64& random) {
  for (;;) {
    const DTypeInfo& info = AllDTypes()[random() % AllDTypes().size()];
    if (IsReal(info.dtype)) return info.dtype;
  }
}

std::vector<int64_t> RandomDims(std::mt19937_64& random, int64_t max_elements) {
  std::vector<int64_t> dims(1 + random() % 4);
  int64_t left = max_elements;
  for (int64_t& dim : dims) {
    dim = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(std::min<int64_t>(left, 90)));
    left = std::max<int64_t>(1, left / dim);
  }
  return dims;
}

TEST(JobBits, RandomRmse) {
  std::mt19937_64 random(11);
  for (uint64_t round = 0; round < 60; ++round) {
    const std::vector<int64_t> dims = RandomDims(random, 60'000);
    std::vector<int32_t> axes;
    for (size_t axis = 0; axis < dims.size(); ++axis)
      if (random() % 2 == 0) axes.push_back(static_cast<int32_t>(axis));
    const DType dtype = RandomReal(random);
    const Problem problem = testing::RmseProblem(dtype, dims, axes, round);
    const auto bytes = static_cast<int64_t>(problem.operands[0].size());
    const int64_t block_bytes = std::max<int64_t>(1 + bytes / 40, 1 + static_cast<int64_t>(random() % 9'000));
    Check(problem, random, block_bytes, "round " + std::to_string(round) + " " + std::string(Name(dtype)));
  }
}

TEST(JobBits, RmseOfManyRanges) {
  std::mt19937_64 random(12);
  for (uint64_t round = 0; round < 30; ++round) {
    const auto elements = static_cast<int64_t>(1 + random() % (40 * 4096));
    const auto tiles = static_cast<int64_t>(1 + random() % 3);
    const Problem problem =
        testing::RmseProblem(round % 2 == 0 ? DType::kU8 : DType::kF16, {elements}, {}, round, tiles);
    const auto bytes = static_cast<int64_t>(problem.operands[0].size());
    const int64_t block_bytes = 1 + bytes / 50 + static_cast<int64_t>(random() % 10'000);
    Check(problem, random, block_bytes, "round " + std::to_string(round));
  }
}

TEST(JobBits, RandomTranspose) {
  std::mt19937_64 random(13);
  for (uint64_t round = 0; round < 60; ++round) {
    const std::vector<int64_t> dims = RandomDims(random, 60'000);
    std::vector<int32_t> axes(dims.size());
    for (size_t axis = 0; axis < axes.size(); ++axis) axes[axis] = static_cast<int32_t>(axis);
    std::shuffle(axes.begin(), axes.end(), random);
    const DType dtype = AllDTypes()[random() % AllDTypes().size()].dtype;
    const Problem problem = testing::TransposeProblem(dtype, dims, axes, round);
    const auto bytes = static_cast<int64_t>(problem.operands[0].size());
    const int64_t block_bytes = std::max<int64_t>(1 + bytes / 40, 1 + static_cast<int64_t>(random() % 9'000));
    Check(problem, random, block_bytes, "round " + std::to_string(round) + " " + std::string(Name(dtype)));
  }
}

TEST(JobBits, TransposeOfManyRangesWhoseOutputLeavesEarly) {
  std::mt19937_64 random(14);
  for (uint64_t round = 0; round < 20; ++round) {
    const auto count = static_cast<int64_t>(2 + random() % 30),
               rows = static_cast<int64_t>(2 + random() % 80);
    const Problem problem =
        testing::TransposeProblem(DType::kU16, {count, rows, 51}, {0, 2, 1}, round, /*fine=*/true);
    const auto bytes = static_cast<int64_t>(problem.operands[0].size());
    Check(problem, random, 1 + bytes / 50 + static_cast<int64_t>(random() % 10'000),
          "round " + std::to_string(round));
  }
}

TEST(JobBits, RandomGaussian) {
  std::mt19937_64 random(16);
  for (uint64_t round = 0; round < 40; ++round) {
    const DType dtype = round % 2 == 0 ? DType::kF32 : DType::kF64;
    const double mean = static_cast<double>(random() % 1000) / 100 - 5;
    const double stddev = static_cast<double>(1 + random() % 1000) / 100;
    // Half of them in ranges of odd lengths, so that blocks cut ranges and ranges cut blocks.
    const auto elements = round % 4 < 2 ? int64_t{0} : static_cast<int64_t>(1000 + random() % 5000);
    const Problem problem =
        testing::GaussianProblem(dtype, RandomDims(random, 60'000), mean, stddev, round, elements);
    const auto bytes = static_cast<int64_t>(problem.operands[0].size());
    // Blocks of odd lengths cut elements.
    Check(problem, random, 1 + bytes / 50 + static_cast<int64_t>(random() % 10'000),
          "round " + std::to_string(round) + " " + std::string(Name(dtype)));
  }
}

// The real plans' ranges are megabytes, so a few arrays that have several of them.
TEST(JobBits, RangesOfTheRealPlans) {
  std::mt19937_64 random(15);
  const Problem problems[] = {
      testing::RmseProblem(DType::kF32, {1'500'001}, {}, 1),
      testing::RmseProblem(DType::kF32, {1200, 1031}, {0}, 2),
      testing::RmseProblem(DType::kU8, {5, 1000, 1000}, {1}, 3),
      testing::TransposeProblem(DType::kF32, {1500, 999}, {}, 4),
      testing::TransposeProblem(DType::kU16, {40, 300, 250}, {0, 2, 1}, 5),
      testing::GaussianProblem(DType::kF32, {3'000'017}, 1, 2, 6),
      testing::GaussianProblem(DType::kF64, {1'500'007}, 0, 1e100, 7),
  };
  int many = 0;
  for (const Problem& problem : problems) {
    many += problem.make()->range_count() > 1;
    for (const int64_t block_bytes : {100'000, 262'144}) Check(problem, random, block_bytes, "large");
  }
  EXPECT_GE(many, 6);
}

}  // namespace
}  // namespace tilewire::engine
