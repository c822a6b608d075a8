// The teaching ladder: every step is right within what it states, the reproducible ones are, and the tables
// that people read are in order.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <utility>

#include "kernels/ladder/ladder_cuda.h"
#include "tests/gpu/ladder_fixture.h"

namespace tilewire::ladder {
namespace {

// --- tables; these need no GPU
// ------------------------------------------------------------------------------------

/// "3a_tree" -> {3, 'a'}; {-1, 0} where the name has no such beginning.
std::pair<int, char> Rank(std::string_view name) {
  size_t at = 0;
  int number = 0;
  while (at < name.size() && std::isdigit(static_cast<unsigned char>(name[at])) != 0) {
    number = 10 * number + (name[at] - '0');
    ++at;
  }
  const char letter = at < name.size() && name[at] >= 'a' && name[at] <= 'z' ? name[at++] : '\0';
  if (at == 0 || at + 1 >= name.size() || name[at] != '_') return {-1, '\0'};
  return {number, letter};
}

template <typename Steps>
void CheckTable(const Steps& steps) {
  ASSERT_GE(steps.size(), 3u);
  std::pair<int, char> last{0, '\0'};
  for (const auto& step : steps) {
    const StepInfo& info = step.info;
    SCOPED_TRACE(info.name);
    EXPECT_LT(last, Rank(info.name)) << "names ascend, so they are also unique";
    EXPECT_LE(Rank(info.name).first, last.first + 1) << "no number is left out";
    last = Rank(info.name);
    ASSERT_GT(info.idea.size(), 20u);
    EXPECT_EQ(info.idea.back(), '.') << info.idea;
    EXPECT_NE(step.run, nullptr);
    EXPECT_EQ(info.tolerance == 0, info.exactness == Exactness::kContract);
    EXPECT_LT(info.tolerance, 0.1);
    EXPECT_GE(info.tolerance_elements, int64_t{1} << 22);
  }
  EXPECT_EQ(steps.back().info.exactness, Exactness::kContract);
  EXPECT_NE(steps.back().info.name.find("ours"), std::string_view::npos);
}

TEST(LadderTables, RmseStepsAreInOrder) {
  CheckTable(RmseSteps());
  for (const RmseStep& step : RmseSteps()) {
    ASSERT_NE(step.scratch_bytes, nullptr) << step.info.name;
    EXPECT_GT(step.scratch_bytes(1), 0) << step.info.name;
  }
}

TEST(LadderTables, BatchedStepsAreInOrder) {
  CheckTable(BatchedSteps());
  for (const BatchedStep& step : BatchedSteps()) {
    ASSERT_NE(step.scratch_bytes, nullptr) << step.info.name;
    EXPECT_GE(step.scratch_bytes(3, 5, 7), 0) << step.info.name;
  }
}

TEST(LadderTables, MatrixStepsAreInOrder) {
  CheckTable(CopySteps());
  CheckTable(TransposeSteps());
  for (const MatrixStep& step : CopySteps()) EXPECT_FALSE(step.transposes) << step.info.name;
  for (const MatrixStep& step : TransposeSteps()) EXPECT_TRUE(step.transposes) << step.info.name;
}

TEST(LadderTables, LaunchesAreListedWithoutAGpu) {
  for (const auto& steps : {CopySteps(), TransposeSteps()})
    for (const MatrixStep& step : steps.first(steps.size() - 1)) {
      std::vector<gpu::Launch> listed;
      ASSERT_EQ(step.run(nullptr, nullptr, 100, 70, gpu::Launcher(&listed)), cudaSuccess) << step.info.name;
      ASSERT_EQ(listed.size(), 1u) << step.info.name;
      const dim3 grid = listed[0].grid, block = listed[0].block;
      EXPECT_GE(int64_t{16} * grid.x * grid.y * block.x * block.y, 7000) << step.info.name;
    }
}

// --- right values
// -------------------------------------------------------------------------------------------------

TEST_F(Ladder, RmseSanitizedSizes) {
  for (const int64_t n : {1, 2, 3, 4, 5, 31, 33, 255, 256, 257, 351, 353, 1021, 4099}) CheckRmse(n);
}

TEST_F(Ladder, RmseLargerSizes) {
  for (const int64_t n : {65536, 99991, 1048573, 1 << 20, (1 << 22) - 1, 1 << 22}) CheckRmse(n);
}

TEST_F(Ladder, BatchedSanitizedShapes) {
  const int64_t shapes[][3] = {{1, 1, 1},    {3, 5, 1},    {1, 1, 40},  {7, 11, 3},   {31, 33, 16},
                               {16, 64, 32}, {13, 17, 67}, {300, 1, 5}, {1, 257, 20}, {2, 3, 1000}};
  for (const auto& [rows, columns, batch] : shapes) CheckBatched(rows, columns, batch);
}

TEST_F(Ladder, BatchedLargerShapes) {
  CheckBatched(256, 256, 16);
  CheckBatched(1024, 1024, 16);
  CheckBatched(1009, 211, 13);
  CheckBatched(2, 3, 70001);
  CheckBatched(50000, 20, 2);
}

TEST_F(Ladder, MatrixSanitizedShapes) {
  const int64_t shapes[][2] = {{1, 1},   {1, 7},   {7, 1},    {31, 33},  {32, 32},
                               {33, 31}, {64, 96}, {100, 67}, {3, 1100}, {1100, 3}};
  for (const auto& [rows, columns] : shapes) CheckMatrix(rows, columns);
}

TEST_F(Ladder, MatrixLargerShapes) {
  const int64_t shapes[][2] = {{2048, 2048}, {1023, 1025}, {1009, 2003}, {1, 1000003}, {1000003, 1}};
  for (const auto& [rows, columns] : shapes) CheckMatrix(rows, columns);
}

TEST_F(Ladder, MatrixTallerThanAGrid) {
  CheckMatrix(65536, 5);
  CheckMatrix(65535 * 32 + 33, 3);  // also for tiles
}

TEST_F(Ladder, EveryStepListsItsLaunchesAndTouchesNothing) {
  const auto listed = [](std::string_view name, auto run) {
    std::vector<gpu::Launch> list;
    EXPECT_EQ(run(gpu::Launcher(&list)), cudaSuccess) << name;
    for (const gpu::Launch& launch : list) EXPECT_GT(launch.grid.x * launch.block.x, 0u) << name;
    return list.size();
  };
  for (const RmseStep& step : RmseSteps()) {
    const auto run = [&](const auto& to) {
      return step.run(nullptr, nullptr, 1 << 20, nullptr, nullptr, to);
    };
    EXPECT_GE(listed(step.info.name, run), 2u) << step.info.name;
  }
  for (const BatchedStep& step : BatchedSteps()) {
    const auto run = [&](const auto& to) {
      return step.run(nullptr, nullptr, 1000, 10, 16, nullptr, nullptr, to);
    };
    EXPECT_GE(listed(step.info.name, run), 1u) << step.info.name;
  }
  for (const auto& steps : {CopySteps(), TransposeSteps()})
    for (const MatrixStep& step : steps) {
      const auto run = [&](const auto& to) { return step.run(nullptr, nullptr, 1000, 160, to); };
      const bool copies = step.info.name == CopySteps().back().info.name && !step.transposes;
      EXPECT_EQ(listed(step.info.name, run), copies ? 0u : 1u) << step.info.name;
    }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

// --- what the README teaches
// --------------------------------------------------------------------------------------

TEST_F(Ladder, SubnormalSquaresAreLostInFastMathAndInAtomics) {
  const std::vector<float> a(1000, 3e-20f), b(1000, 2e-20f);  // (10^-20)^2 is subnormal in f32
  const double truth = 3e-20f - static_cast<double>(2e-20f);
  for (const RmseStep& step : RmseSteps()) {
    const double value = RunRmse(step, a, b);
    // f32 additions by the memory flush subnormals whatever the compiler was told. A block's sum is normal
    // again.
    const bool flushes = step.info.name == "1_atomic" || step.info.name == "2_thread_sums";
    if (flushes || step.info.name == "6b_fast_math") {
      EXPECT_EQ(value, 0) << step.info.name;
    } else {
      EXPECT_NEAR(value / truth, 1, 1e-4) << step.info.name;
    }
  }
}

TEST_F(Ladder, OneRunningSumStopsGrowing) {
  const size_t n = size_t{1} << 26;
  const std::vector<float> a(n, 3), b(n, 2);
  // At 2^24 the sum's neighbours are 1 below and 2 above: adding 1 changes nothing any more.
  EXPECT_NEAR(RunRmse(RmseSteps().front(), a, b), 0.5, 1e-3);
  for (const RmseStep& step : RmseSteps().subspan(1))
    EXPECT_NEAR(RunRmse(step, a, b), 1, step.info.tolerance) << step.info.name;
}

TEST_F(Ladder, MoreThanTwoToThe31Elements) {
  const int64_t n = (int64_t{1} << 31) + 5, bytes = n * 4;
  if (!Fits(2 * bytes)) GTEST_SKIP() << "needs " << 2 * bytes << " bytes of device memory";
  Buffer a(bytes), b(bytes);
  Fill(a, 0);
  Fill(b, 0);
  const float two = 2;
  for (const int64_t at : {int64_t{0}, (int64_t{1} << 31) + 1, n - 1})
    ASSERT_EQ(cudaMemcpy(a.floats() + at, &two, sizeof two, cudaMemcpyHostToDevice), cudaSuccess);
  const double truth = std::sqrt(12 / static_cast<double>(n));
  for (const RmseStep& step : RmseSteps())
    EXPECT_NEAR(RunRmse(step, a.floats(), b.floats(), n) / truth, 1, 1e-6) << step.info.name;
  // As three batches, all but the last element: the first two marks lie in batch 0.
  const double of_batch = std::sqrt(8 / static_cast<double>(n / 3));
  for (const BatchedStep& step : BatchedSteps()) {
    const auto values = RunBatched(step, a.floats(), b.floats(), n / 3, 1, 3);
    EXPECT_NEAR(values[0] / of_batch, 1, 1e-6) << step.info.name;
    EXPECT_EQ(values[1], 0) << step.info.name;
    EXPECT_EQ(values[2], 0) << step.info.name;
  }
}

TEST_F(Ladder, MatricesOfMoreThanTwoToThe31Elements) {
  const int64_t rows = 46349, columns = 46351, bytes = rows * columns * 4;
  if (!Fits(3 * bytes)) GTEST_SKIP() << "needs " << 3 * bytes << " bytes of device memory";
  Buffer in(bytes), expected(bytes), out(bytes);
  FillWithPattern(in);
  for (const auto& steps : {CopySteps(), TransposeSteps()}) {
    ASSERT_EQ(steps.back().run(in.floats(), expected.floats(), rows, columns, stream_), cudaSuccess);
    for (const MatrixStep& step : steps.first(steps.size() - 1)) {
      Fill(out, 0xff);  // NaN
      ASSERT_EQ(step.run(in.floats(), out.floats(), rows, columns, stream_), cudaSuccess) << step.info.name;
      EXPECT_EQ(RunRmse(RmseSteps().back(), out.floats(), expected.floats(), rows * columns), 0)
          << step.info.name;
    }
  }
}

}  // namespace
}  // namespace tilewire::ladder
