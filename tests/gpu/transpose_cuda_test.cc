// The CUDA version against the host version, which the unit tests hold against a plain loop.
#include <cuda_runtime_api.h>

#include "kernels/transpose/transpose_cuda.h"
#include "tests/unit/transpose_reference.h"

namespace tilewire::transpose {
namespace {

/// Device bytes with guards on both sides, which Download() checks.
class DeviceBytes {
 public:
  explicit DeviceBytes(size_t size) : size_(size) {
    void* base = nullptr;
    if (cudaMalloc(&base, size + 2 * kGuard) != cudaSuccess) return;
    base_ = static_cast<char*>(base);
    EXPECT_EQ(cudaMemset(base_, kFill, size + 2 * kGuard), cudaSuccess);
  }
  ~DeviceBytes() { cudaFree(base_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  bool ok() const { return base_ != nullptr; }
  char* data() const { return base_ + kGuard; }
  void Upload(const std::vector<char>& from) {
    ASSERT_EQ(cudaMemcpy(data(), from.data(), size_, cudaMemcpyHostToDevice), cudaSuccess);
  }
  std::vector<char> Download() const {
    std::vector<char> all(size_ + 2 * kGuard);
    EXPECT_EQ(cudaMemcpy(all.data(), base_, all.size(), cudaMemcpyDeviceToHost), cudaSuccess);
    const auto filled = [](char c) { return c == static_cast<char>(kFill); };
    EXPECT_TRUE(std::all_of(all.begin(), all.begin() + kGuard, filled)) << "written before the output";
    EXPECT_TRUE(std::all_of(all.end() - kGuard, all.end(), filled)) << "written behind the output";
    return {all.begin() + kGuard, all.end() - kGuard};
  }

 private:
  static constexpr size_t kGuard = 1024;
  static constexpr int kFill = 0xa5;
  size_t size_;
  char* base_ = nullptr;
};

class TransposeCuda : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  void Check(const Case& c, uint64_t seed) {
    const Plan plan = MakePlan(c);
    const std::vector<char> in = RandomBytes(plan.input().bytes(), seed);
    std::vector<char> expected(in.size());
    HostRange(plan, plan.whole(), 0, HostItems(plan, plan.whole()), in.data(), expected.data());
    DeviceBytes from(in.size()), to(in.size()), whole(in.size());
    ASSERT_TRUE(from.ok() && to.ok() && whole.ok());
    from.Upload(in);
    for (int64_t k = plan.range_count(); k-- > 0;)
      ASSERT_EQ(CudaRange(plan, plan.range(k), from.data(), to.data(), stream_), cudaSuccess) << c.ToString();
    ASSERT_EQ(CudaRange(plan, plan.whole(), from.data(), whole.data(), stream_), cudaSuccess) << c.ToString();
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess) << c.ToString();
    ASSERT_TRUE(to.Download() == expected) << c.ToString() << " in " << plan.range_count() << " bands";
    ASSERT_TRUE(whole.Download() == expected) << c.ToString() << " as one band";
  }

  cudaStream_t stream_ = nullptr;
};

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
