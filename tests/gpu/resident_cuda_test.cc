// Jobs on arrays that lie on the GPU: the bits of the CPU, and small results where the host reads them.
#include <gtest/gtest.h>

#include "server/base/limits.h"
#include "server/engine/device/cuda/device.h"
#include "tests/unit/engine_arrays_testing.h"

namespace tilewire::engine {
namespace {

using testing::Problem;

/// Skips its tests by name where no GPU works.
class CudaResident : public ::testing::Test {
 protected:
  void SetUp() override {
    if (CudaDeviceCount() == 0) GTEST_SKIP() << "no CUDA device";
    auto device = OpenCudaDevice(0);
    ASSERT_TRUE(device) << device.error().ToString();
    const EngineOptions options{
        .lanes = 4, .block_bytes = kMiB, .device_bytes = kGiB, .pinned_bytes = 256 * kMiB};
    engine_ = Engine::Make(*std::move(device), options).value();
  }
  std::unique_ptr<Engine> engine_;
};

/// Every way in which an RMSE's last kernel writes its values: one, some, many, from short segments and long
/// ones, in rows and in columns; and results that are copied.
TEST_F(CudaResident, ResultsHaveTheBitsOfTheCpu) {
  std::vector<Problem> problems;
  for (const DType dtype : {DType::kF32, DType::kU8, DType::kF64, DType::kBF16}) {
    problems.push_back(testing::RmseProblem(dtype, {3'000'001}, {}, 1));
    problems.push_back(testing::RmseProblem(dtype, {37, 50'001}, {1}, 2));
    problems.push_back(testing::RmseProblem(dtype, {2000, 400}, {1}, 3));
    problems.push_back(testing::RmseProblem(dtype, {300, 1999}, {0}, 4));
    problems.push_back(testing::RmseProblem(dtype, {100, 20, 301}, {0, 2}, 5));
    problems.push_back(testing::RmseProblem(dtype, {2049, 200}, {1}, 6));  // over 16 KiB: copied
  }
  problems.push_back(testing::TransposeProblem(DType::kF32, {1310, 549}, {1, 0}, 8));
  problems.push_back(testing::GaussianProblem(DType::kF32, {900'001}, 0.25, 1.5, 9));
  for (size_t i = 0; i < problems.size(); ++i) {
    const Problem& problem = problems[i];
    const JobOptions options{.residents = testing::PutOperands(*engine_, problem)};
    for (int again = 0; again < 20; ++again) {
      const auto job = testing::Open(*engine_, problem.make(), options);
      ASSERT_TRUE(job) << job.error().ToString();
      const auto output = testing::Collect(**job);
      ASSERT_TRUE(output) << output.error().ToString();
      ASSERT_EQ(*output, problem.expected) << i;
      EXPECT_EQ((*job)->timing().of(Stage::kD2H) >= 0, problem.expected.size() > 16 * kKiB) << i;
    }
  }
  EXPECT_TRUE(testing::BecomesIdle(*engine_));
}

}  // namespace
}  // namespace tilewire::engine
