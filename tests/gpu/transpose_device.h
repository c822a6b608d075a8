// What the CUDA transpose tests share: guarded device memory, and the comparison with the host version.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernels/transpose/box_cuda.h"
#include "kernels/transpose/transpose_cuda.h"
#include "tests/unit/transpose_reference.h"

namespace tilewire::transpose {

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

class TransposeCuda : public ::testing::Test {
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

  /// In bands, as one band, and as one band with 64-bit offsets.
  void Check(const Case& c, uint64_t seed) {
    const Plan plan = MakePlan(c);
    const std::vector<char> in = RandomBytes(plan.input().bytes(), seed);
    std::vector<char> expected(in.size());
    HostRange(plan, plan.whole(), 0, HostItems(plan, plan.whole()), in.data(), expected.data());
    DeviceBytes from(in.size()), bands(in.size()), whole(in.size()), wide(in.size());
    ASSERT_TRUE(from.ok() && bands.ok() && whole.ok() && wide.ok());
    from.Upload(in);
    for (int64_t k = plan.range_count(); k-- > 0;)
      ASSERT_EQ(CudaRange(plan, plan.range(k), from.data(), bands.data(), stream_), cudaSuccess)
          << c.ToString();
    ASSERT_EQ(CudaRange(plan, plan.whole(), from.data(), whole.data(), stream_), cudaSuccess) << c.ToString();
    ASSERT_EQ(
        CudaBox(MakeBox(plan.layout(), plan.whole()), from.data(), wide.data(), OffsetBits::k64, stream_),
        cudaSuccess)
        << c.ToString();
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess) << c.ToString();
    ASSERT_TRUE(bands.Download() == expected) << c.ToString() << " in " << plan.range_count() << " bands";
    ASSERT_TRUE(whole.Download() == expected) << c.ToString() << " as one band";
    ASSERT_TRUE(wide.Download() == expected) << c.ToString() << " with 64-bit offsets";
  }

  cudaStream_t stream_ = nullptr;
};

}  // namespace tilewire::transpose
