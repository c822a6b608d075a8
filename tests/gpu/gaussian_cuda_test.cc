// The CUDA version against the host version, which the unit tests hold against correctly rounded values.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "kernels/gaussian/gaussian_cuda.h"
#include "kernels/gaussian/golden.h"
#include "tests/unit/gaussian_reference.h"

namespace tilewire::gaussian {
namespace {

using reference::Distribution;
using reference::ToBits;

constexpr Distribution kDistributions[] = {
    {0, 1},           {0.1, 1.1},  {1e6, 1.3},       {-3e-5, 2e-7}, {1e30, 3e29},      {0, 1e-40},
    {1e-310, 1e-311}, {0, 5e-324}, {1e-322, 2e-323}, {0, 1e-290},   {-1e308, 1.7e308}, {1e300, 1e299},
};

/// Device elements with a guard on both sides, `offset` elements behind a 256-byte boundary.
template <typename T>
class DeviceArray {
 public:
  DeviceArray(int64_t count, int64_t offset) : count_(count), offset_(kGuard + offset) {
    void* base = nullptr;
    const size_t bytes = static_cast<size_t>(offset_ + count + kGuard) * sizeof(T);
    if (cudaMalloc(&base, bytes) != cudaSuccess) return;
    base_ = static_cast<T*>(base);
    EXPECT_EQ(cudaMemset(base_, kFill, bytes), cudaSuccess);
  }
  ~DeviceArray() { cudaFree(base_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  bool ok() const { return base_ != nullptr; }
  T* data() const { return base_ + offset_; }
  void Upload(const std::vector<T>& from) {
    ASSERT_EQ(cudaMemcpy(data(), from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  /// The elements; fails where a guard has changed.
  std::vector<T> Download() const {
    std::vector<T> all(static_cast<size_t>(offset_ + count_ + kGuard));
    EXPECT_EQ(cudaMemcpy(all.data(), base_, all.size() * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    uint64_t filled = 0;
    std::memset(&filled, kFill, sizeof(T));
    const auto is_filled = [filled](T value) { return ToBits(value) == filled; };
    EXPECT_TRUE(std::all_of(all.begin(), all.begin() + offset_, is_filled)) << "written before the array";
    EXPECT_TRUE(std::all_of(all.end() - kGuard, all.end(), is_filled)) << "written behind the array";
    return {all.begin() + offset_, all.end() - kGuard};
  }

 private:
  static constexpr int64_t kGuard = 64;
  static constexpr int kFill = 0xa5;
  int64_t count_, offset_;
  T* base_ = nullptr;
};

template <typename T>
void ExpectSame(const std::vector<T>& x, const std::vector<T>& y, const std::vector<T>& expected,
                const std::string& what) {
  ASSERT_EQ(y.size(), expected.size());
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(ToBits(y[i]), ToBits(expected[i])) << what << ", element " << i << ", x " << x[i];
}

template <typename T>
std::vector<T> HostResult(const Plan& plan, const std::vector<T>& x) {
  std::vector<T> y(x.size());
  HostRange(plan, plan.whole(), 0, HostItems(plan, plan.whole()), x.data(), y.data());
  return y;
}

class GaussianCuda : public ::testing::Test {
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

  /// As ranges from the last to the first, then as a whole in place.
  template <typename T>
  void Check(Distribution d, const std::vector<T>& x, int64_t in_offset, int64_t out_offset) {
    const auto count = static_cast<int64_t>(x.size());
    const Plan plan = reference::MakePlan(reference::kDTypeOf<T>, count, d);
    const std::vector<T> expected = HostResult(plan, x);
    DeviceArray<T> in(count, in_offset), out(count, out_offset);
    ASSERT_TRUE(in.ok() && out.ok());
    in.Upload(x);
    for (int64_t i = plan.range_count(); i-- > 0;)
      ASSERT_EQ(CudaRange(plan, plan.range(i), in.data(), out.data(), stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    const std::string what = d.ToString() + ", " + std::to_string(count) + " elements at " +
                             std::to_string(in_offset) + " and " + std::to_string(out_offset);
    ExpectSame(x, out.Download(), expected, what);
    ASSERT_EQ(CudaRange(plan, plan.whole(), in.data(), in.data(), stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    ExpectSame(x, in.Download(), expected, what + " in place");
  }

  template <typename T>
  void CheckGolden(const GoldenCase& golden) {
    std::vector<T> x(kGoldenElements), expected(kGoldenElements);
    FillGoldenInput(golden, x.data());
    FillGoldenResult(golden, expected.data());
    const Plan plan = reference::MakePlan(golden.dtype, kGoldenElements, {golden.mean, golden.stddev});
    DeviceArray<T> in(kGoldenElements, 0), out(kGoldenElements, 0);
    ASSERT_TRUE(in.ok() && out.ok());
    in.Upload(x);
    ASSERT_EQ(CudaRange(plan, plan.whole(), in.data(), out.data(), stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    ExpectSame(x, out.Download(), expected, std::string(golden.name));
  }

  template <typename T>
  void CheckSizesAndOffsets() {
    constexpr int64_t kWidth = 16 / sizeof(T);
    for (const int64_t count : {1, 2, 3, 4, 5, 7, 8, 511, 513, 1023, 2047, 2048, 2049, 4099, 8191, 10007}) {
      const std::vector<T> x = reference::RandomInput<T>({0.5, 2}, count, static_cast<uint64_t>(count));
      for (int64_t in = 0; in < kWidth; ++in)
        for (int64_t out = 0; out < kWidth; ++out) Check({0.5, 2}, x, in, out);
    }
  }

  cudaStream_t stream_ = nullptr;
};

TEST_F(GaussianCuda, Golden) {
  for (const GoldenCase& golden : GoldenCases())
    golden.dtype == DType::kF32 ? CheckGolden<float>(golden) : CheckGolden<double>(golden);
}

TEST_F(GaussianCuda, SizesAndOffsets) {
  CheckSizesAndOffsets<float>();
  CheckSizesAndOffsets<double>();
}

TEST_F(GaussianCuda, EveryMagnitude) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (const Distribution& d : kDistributions) {
    Check(d, reference::RandomInput<float>(d, 1300001, seed), 0, 0);
    Check(d, reference::RandomInput<double>(d, 700001, seed), 0, 0);
  }
}

TEST_F(GaussianCuda, CorrectlyRoundedPoints) {
  for (const reference::PointBlock& block : reference::CorrectlyRoundedPoints()) {
    if (block.dtype == DType::kF32) {
      std::vector<float> x;
      for (const reference::Point& point : block.points) x.push_back(reference::FromBits<float>(point.x));
      Check(block.distribution, x, 0, 1);
    } else {
      std::vector<double> x;
      for (const reference::Point& point : block.points) x.push_back(reference::FromBits<double>(point.x));
      Check(block.distribution, x, 0, 1);
    }
  }
}

/// All 2^32 of them, NaNs included.
TEST_F(GaussianCuda, EveryF32) {
  constexpr int64_t kSlice = int64_t{1} << 26;
  const Plan plan = reference::MakePlan(DType::kF32, kSlice, {0.1, 1.1});
  DeviceArray<float> in(kSlice, 0), out(kSlice, 0);
  if (!in.ok() || !out.ok()) GTEST_SKIP() << "needs 512 MiB of device memory";
  std::vector<float> x(kSlice), y(kSlice);
  for (uint64_t base = 0; base < uint64_t{1} << 32; base += kSlice) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = reference::FromBits<float>(base + i);
    in.Upload(x);
    ASSERT_EQ(CudaRange(plan, plan.whole(), in.data(), out.data(), stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(y.data(), out.data(), y.size() * sizeof(float), cudaMemcpyDeviceToHost),
              cudaSuccess);
    const std::vector<float> expected = HostResult(plan, x);
    if (std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)) != 0)
      ExpectSame(x, y, expected, "bits from " + std::to_string(base));
    ASSERT_FALSE(HasFatalFailure());
  }
}

TEST_F(GaussianCuda, MoreThanTwoToThe31Elements) {
  constexpr int64_t kCount = (int64_t{1} << 31) + 4099, kSlice = int64_t{1} << 26;
  size_t free_bytes = 0, total_bytes = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
  if (free_bytes < kCount * sizeof(float) + (size_t{1} << 30))
    GTEST_SKIP() << "needs 9.6 GB of device memory";
  const Plan plan = reference::MakePlan(DType::kF32, kCount, {0.5, 0.75});
  DeviceArray<float> array(kCount, 0);
  ASSERT_TRUE(array.ok());
  // One value everywhere but at the last element: a wrong index shows as an untouched or a doubly mapped one.
  ASSERT_EQ(cudaMemset(array.data(), 0x3f, kCount * sizeof(float)), cudaSuccess);
  const std::vector<float> x = {reference::FromBits<float>(0x3f3f3f3f), 2.0f};
  ASSERT_EQ(cudaMemcpy(array.data() + kCount - 1, &x[1], sizeof(float), cudaMemcpyHostToDevice), cudaSuccess);
  const std::vector<float> expected = HostResult(reference::MakePlan(DType::kF32, 2, {0.5, 0.75}), x);
  ASSERT_EQ(CudaRange(plan, plan.whole(), array.data(), array.data(), stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  std::vector<float> y(kSlice);
  for (int64_t begin = 0; begin < kCount; begin += kSlice) {
    const auto count = static_cast<size_t>(std::min(kSlice, kCount - begin));
    ASSERT_EQ(cudaMemcpy(y.data(), array.data() + begin, count * sizeof(float), cudaMemcpyDeviceToHost),
              cudaSuccess);
    const bool last = begin + static_cast<int64_t>(count) == kCount;
    const auto wrong = static_cast<int64_t>(count) -
                       std::count(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(count), expected[0]);
    ASSERT_EQ(wrong, last ? 1 : 0) << "from element " << begin;
    EXPECT_EQ(y[count - 1], expected[last ? 1 : 0]);
  }
}

TEST_F(GaussianCuda, ListsItsLaunches) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (const double stddev : {1.0, 5e-324}) {
      const Plan plan = reference::MakePlan(dtype, 1 << 20, {0, stddev});
      std::vector<gpu::Launch> launches;
      ASSERT_EQ(CudaRange(plan, plan.whole(), nullptr, nullptr, gpu::Launcher(&launches)), cudaSuccess);
      ASSERT_EQ(launches.size(), 1u);
      EXPECT_NE(launches[0].kernel, nullptr);
      const int64_t threads = int64_t{launches[0].grid.x} * launches[0].block.x;
      EXPECT_GE(threads * 2 * 16, plan.input().bytes()) << "two packs of 16 bytes a thread";
    }
  }
}

TEST_F(GaussianCuda, AnEmptyRangeLaunchesNothing) {
  const Plan plan = reference::MakePlan(DType::kF32, 16, {0, 1});
  std::vector<gpu::Launch> launches;
  EXPECT_EQ(CudaRange(plan, {4, 4}, nullptr, nullptr, gpu::Launcher(&launches)), cudaSuccess);
  EXPECT_TRUE(launches.empty());
}

}  // namespace
}  // namespace tilewire::gaussian
