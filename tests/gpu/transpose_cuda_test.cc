// The CUDA version against the host version, which the unit tests hold against a plain loop.
#include <set>
#include <string>
#include <vector>

#include "tests/gpu/transpose_device.h"

namespace tilewire::transpose {
namespace {

TEST_F(TransposeCuda, KnownHardCases) {
  for (const Case& c : KnownHardCases()) Check(c, 1);
}

TEST_F(TransposeCuda, EdgesOfTheTiles) {
  for (const DType dtype : {DType::kU8, DType::kI16, DType::kF32, DType::kF64, DType::kC128})
    for (const int64_t rows : {1, 3, 31, 32, 48, 63, 64, 65, 128, 132, 144, 257})
      for (const int64_t columns : {2, 33, 40, 64, 66, 127, 128, 129, 160})
        Check({dtype, {rows, columns}, {}}, static_cast<uint64_t>(rows * columns));
}

TEST_F(TransposeCuda, RandomSmallCases) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000 && !HasFatalFailure(); ++i) Check(RandomCase(random, 1 << (random() % 16)), seed);
}

TEST_F(TransposeCuda, RandomLargeCases) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 150 && !HasFatalFailure(); ++i) Check(RandomCase(random, 3 << 20), seed);
}

TEST_F(TransposeCuda, MoreTilesThanAGridAxisHolds) {
  Check({DType::kU8, {48, 70000 * 128 + 4}, {}}, 3);
  Check({DType::kF32, {70000 * 64, 33}, {}}, 3);
  Check({DType::kU8, {70001, 33, 41}, {0, 2, 1}}, 3);
  Check({DType::kF64, {7000001, 3}, {}}, 3);
}

TEST_F(TransposeCuda, SixteenAxes) {
  std::vector<int64_t> dims(16, 2);
  dims[0] = 3;
  dims[7] = 5;
  dims[15] = 7;
  std::vector<int32_t> axes = {15, 0, 14, 1, 13, 2, 12, 3, 11, 4, 10, 5, 9, 6, 8, 7};
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kF64, DType::kC128}) {
    Check({dtype, dims, axes}, 4);
    Check({dtype, dims, {}}, 4);
  }
}

/// A small box for every kernel, with edges inside and outside of its tiles.
std::vector<Case> OneOfEach() {
  std::vector<Case> cases;
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kF64, DType::kC128}) {
    cases.insert(cases.end(), {
                                  {dtype, {256, 256}, {}},                // aligned tiles
                                  {dtype, {509, 253}, {}},                // loose tiles
                                  {dtype, {389, 61}, {}},                 // of few columns
                                  {dtype, {61, 389}, {}},                 // of few rows
                                  {dtype, {5, 37, 3, 41}, {1, 0, 3, 2}},  // rows and columns of several axes
                                  {dtype, {5003, 3}, {}},                 // packed
                                  {dtype, {3, 5003}, {}},
                                  {dtype, {41, 53, 5}, {1, 0, 2}},   // packed short rows
                                  {dtype, {11, 7, 263}, {1, 0, 2}},  // loose rows
                                  {dtype, {11, 7, 256}, {1, 0, 2}},  // aligned rows
                                  {dtype, {3, 5, 9001}, {1, 0, 2}},  // long rows
                              });
  }
  return cases;
}

TEST_F(TransposeCuda, OneOfEachSanitized) {
  for (const Case& c : OneOfEach()) {
    Check(c, 5);
    if (HasFatalFailure()) return;
  }
}

TEST_F(TransposeCuda, ListsEveryKernel) {
  std::set<std::string> families;
  for (const Case& c : OneOfEach()) {
    const Plan plan = MakePlan(c);
    for (const OffsetBits bits : {OffsetBits::kWhatFits, OffsetBits::k64}) {
      std::vector<gpu::Launch> launches;
      ASSERT_EQ(
          CudaBox(MakeBox(plan.layout(), plan.whole()), nullptr, nullptr, bits, gpu::Launcher(&launches)),
          cudaSuccess);
      ASSERT_EQ(launches.size(), 1u) << c.ToString();
      EXPECT_GT(launches[0].grid.x, 0u);
      const char* name = nullptr;
      ASSERT_EQ(cudaFuncGetName(&name, launches[0].kernel), cudaSuccess);
      for (const char* family :
           {"TileKernel", "SkewKernel", "LineKernel", "StageKernel", "PackKernel", "RowKernel"})
        if (std::string(name).find(family) != std::string::npos)
          families.insert(family + std::to_string(plan.layout().element_bytes));
    }
  }
  for (const char* expected :
       {"TileKernel1", "TileKernel2", "TileKernel4", "TileKernel8", "TileKernel16", "SkewKernel1",
        "SkewKernel2", "SkewKernel4", "LineKernel8", "StageKernel1", "StageKernel2", "StageKernel4",
        "PackKernel8", "PackKernel16", "RowKernel1", "RowKernel16"})
    EXPECT_TRUE(families.contains(expected)) << expected << " is not among the launches";
}

TEST_F(TransposeCuda, ListingCopiesNothing) {
  const Plan plan = MakePlan({DType::kF32, {64, 64}, {0, 1}});
  std::vector<gpu::Launch> launches;
  EXPECT_EQ(CudaRange(plan, plan.whole(), nullptr, nullptr, gpu::Launcher(&launches)), cudaSuccess);
  EXPECT_TRUE(launches.empty());
}

TEST_F(TransposeCuda, ReportsErrors) {
  // Null arrays are the simplest mistake that leaves the context usable: the copy checks its arguments.
  const Plan plan = MakePlan({DType::kU8, {15}, {}});
  EXPECT_NE(CudaRange(plan, plan.range(0), nullptr, nullptr, stream_), cudaSuccess);
  cudaGetLastError();
}

/// More than 2^31 elements, forth and back: the round trip must give the input, and samples of the way there
/// must lie where the permutation says.
void CheckHuge(const Case& forth, const Case& back, cudaStream_t stream) {
  const Plan plan = MakePlan(forth), inverse = MakePlan(back);
  const auto bytes = static_cast<size_t>(plan.input().bytes());
  size_t free_bytes = 0, total_bytes = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
  if (free_bytes < 2 * bytes + (size_t{1} << 30))
    GTEST_SKIP() << "needs " << 2 * bytes << " bytes of device memory";
  DeviceBytes a(bytes), b(bytes);
  ASSERT_TRUE(a.ok() && b.ok());
  const std::vector<char> in = RandomBytes(plan.input().bytes(), 11);
  a.Upload(in);
  for (const bool banded : {false, true}) {
    ASSERT_EQ(cudaMemset(b.data(), 0, bytes), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    if (banded)
      for (int64_t k = 0; k < plan.range_count(); ++k)
        ASSERT_EQ(CudaRange(plan, plan.range(k), a.data(), b.data(), stream), cudaSuccess);
    else
      ASSERT_EQ(CudaRange(plan, plan.whole(), a.data(), b.data(), stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    const std::vector<char> out = b.Download();
    const auto rows = static_cast<size_t>(forth.dims[0]), columns = bytes / rows;
    size_t wrong = 0;
    for (size_t i = 0; i < bytes; i += 997) wrong += out[i % columns * rows + i / columns] != in[i];
    ASSERT_EQ(wrong, 0u) << forth.ToString() << (banded ? " in bands" : " as one");
  }
  ASSERT_EQ(cudaMemset(a.data(), 0, bytes), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_EQ(CudaRange(inverse, inverse.whole(), b.data(), a.data(), stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  ASSERT_TRUE(a.Download() == in) << back.ToString();
}

TEST_F(TransposeCuda, MoreThanTwoToThe31Elements) {
  CheckHuge({DType::kU8, {46349, 46351}, {}}, {DType::kU8, {46351, 46349}, {}}, stream_);
}

TEST_F(TransposeCuda, MoreThanTwoToThe31ElementsThin) {
  CheckHuge({DType::kU8, {3, 800000003}, {}}, {DType::kU8, {800000003, 3}, {}}, stream_);
}

}  // namespace
}  // namespace tilewire::transpose
