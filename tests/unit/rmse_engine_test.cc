// The same bits from the engine's CPU device, whatever the threads, lanes and blocks.
#include <gtest/gtest.h>

#include "server/engine/device/cpu/device.h"
#include "server/engine/device/cpu/worker_pool.h"
#include "tests/unit/engine_testing.h"
#include "tests/unit/rmse_reference.h"

namespace tilewire::engine {
namespace {

namespace reference = rmse::reference;

/// An RMSE whose expected bytes come from the contract written out plainly, not from the kernels.
testing::Problem PlainProblem(DType dtype, const std::vector<int64_t>& dims, const std::vector<int32_t>& axes,
                              std::mt19937_64& random) {
  const ArraySpec spec = *MakeSpec(dtype, dims);
  const rmse::Plan plan = *rmse::Plan::Make(spec, axes, rmse::Output::kRmse);
  testing::Problem problem;
  reference::Bytes operands[2];
  for (reference::Bytes& bytes : operands) {
    bytes = reference::RandomOperand(spec, true, random);
    const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
    problem.operands.emplace_back(data, data + bytes.size());
  }
  const std::vector<double> expected =
      reference::Rmse(spec, axes, rmse::Output::kRmse, operands[0], operands[1]);
  problem.expected.resize(8 * expected.size());
  std::memcpy(problem.expected.data(), expected.data(), problem.expected.size());
  problem.make = [plan] { return rmse::MakeProblem(plan); };
  return problem;
}

std::vector<testing::Problem> Problems(std::mt19937_64& random) {
  std::vector<testing::Problem> all;
  all.push_back(PlainProblem(DType::kF32, {1'100'003}, {}, random));        // several ranges
  all.push_back(PlainProblem(DType::kF64, {9000, 33}, {0}, random));        // columns over tiles
  all.push_back(PlainProblem(DType::kBF16, {700, 1300}, {0}, random));      // wide columns
  all.push_back(PlainProblem(DType::kF16, {20'000, 17}, {1}, random));      // short segments
  all.push_back(PlainProblem(DType::kU8, {6, 300, 260}, {1}, random));      // a middle axis
  all.push_back(PlainProblem(DType::kI64, {40, 12, 150}, {0, 2}, random));  // runs
  return all;
}

TEST(RmseEngine, TheSameBitsOnAnyThreadsLanesAndBlocks) {
  std::mt19937_64 random(31);
  const std::vector<testing::Problem> problems = Problems(random);
  for (int threads = 1; threads <= 8; ++threads) {
    for (const int lanes : {1, 4}) {
      for (const int64_t block_bytes : {65'536, 300'001}) {
        EngineOptions options{
            .lanes = lanes, .block_bytes = block_bytes, .device_bytes = 64 << 20, .pinned_bytes = 64 << 20};
        auto engine = Engine::Make(OpenCpuDevice(threads), options);
        ASSERT_TRUE(engine) << engine.error().ToString();
        for (size_t i = 0; i < problems.size(); ++i) {
          const auto streams = testing::Scattered(problems[i], block_bytes, 1 + random() % 3, random);
          const auto output = testing::RunJob(**engine, problems[i], streams);
          ASSERT_TRUE(output) << output.error().ToString();
          EXPECT_EQ(*output, problems[i].expected) << "problem " << i << ", " << threads << " threads, "
                                                   << lanes << " lanes, blocks of " << block_bytes;
        }
      }
    }
  }
}

// The pool's own splits, with more threads than this machine may have.
TEST(RmseEngine, TheSameBitsFromPoolsOfAnySize) {
  std::mt19937_64 random(32);
  for (int workers = 0; workers < 8; ++workers) {
    WorkerPool pool(workers);
    for (int i = 0; i < 25; ++i) {
      const auto one = reference::MakeRandomCase(60'000, random);
      const rmse::Plan plan = *rmse::Plan::Make(one.spec, one.axes, one.output);
      const auto a = reference::RandomOperand(one.spec, true, random),
                 b = reference::RandomOperand(one.spec, true, random);
      std::vector<double> sums(static_cast<size_t>(plan.scratch_bytes() / 8), -1e300);
      const rmse::Range whole = plan.whole();
      pool.ParallelFor(whole.items(), rmse::HostGrain(plan, whole, workers + 1),
                       [&](int64_t begin, int64_t end) {
                         rmse::HostRange(plan, whole, begin, end, a.data(), b.data(), sums.data());
                       });
      std::vector<double> result(static_cast<size_t>(plan.layout().segments), -1e300);
      pool.ParallelFor(plan.layout().segments, 7, [&](int64_t begin, int64_t end) {
        rmse::HostFinish(plan, begin, end, sums.data(), result.data());
      });
      const std::vector<double> expected = reference::Rmse(one.spec, one.axes, one.output, a, b);
      for (size_t s = 0; s < expected.size(); ++s)
        ASSERT_EQ(reference::Bits(result[s]), reference::Bits(expected[s]))
            << reference::Describe(one) << ", " << workers << " workers, segment " << s;
    }
  }
}

}  // namespace
}  // namespace tilewire::engine
