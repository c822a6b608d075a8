// Runs ladder steps on device buffers with guards, and holds their answers against the host.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/ladder/ladder_cuda.h"
#include "kernels/rmse/rmse.h"

namespace tilewire::ladder {

/// Device bytes, all ones at first (NaN as floats and doubles), between guards that Intact() looks at.
class Buffer {
 public:
  explicit Buffer(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    EXPECT_EQ(cudaMalloc(&base_, bytes_ + 2 * kGuard), cudaSuccess);
    EXPECT_EQ(cudaMemset(base_, 0xff, bytes_ + 2 * kGuard), cudaSuccess);
  }
  ~Buffer() { cudaFree(base_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  char* data() const { return static_cast<char*>(base_) + kGuard; }
  float* floats() const { return reinterpret_cast<float*>(data()); }
  double* doubles() const { return reinterpret_cast<double*>(data()); }
  size_t bytes() const { return bytes_; }

  template <typename T>
  void Upload(const std::vector<T>& from) {
    ASSERT_EQ(cudaMemcpy(data(), from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  template <typename T>
  std::vector<T> Download() const {
    std::vector<T> to(bytes_ / sizeof(T));
    EXPECT_EQ(cudaMemcpy(to.data(), data(), bytes_, cudaMemcpyDeviceToHost), cudaSuccess);
    return to;
  }
  bool Intact() const {
    std::vector<unsigned char> guards(2 * kGuard);
    EXPECT_EQ(cudaMemcpy(guards.data(), base_, kGuard, cudaMemcpyDeviceToHost), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(guards.data() + kGuard, data() + bytes_, kGuard, cudaMemcpyDeviceToHost),
              cudaSuccess);
    for (const unsigned char byte : guards)
      if (byte != 0xff) return false;
    return true;
  }

 private:
  static constexpr size_t kGuard = 512;
  size_t bytes_;
  void* base_ = nullptr;
};

class Ladder : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      GTEST_SKIP() << "no CUDA device works here";
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
  }

  static bool Fits(int64_t bytes) {
    size_t free_bytes = 0, total_bytes = 0;
    return cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess &&
           free_bytes >= static_cast<size_t>(bytes) + (size_t{1} << 30);
  }
  void Fill(const Buffer& buffer, int byte) {
    ASSERT_EQ(cudaMemsetAsync(buffer.data(), byte, buffer.bytes(), stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
  /// Finite floats, repeated with a prime period, so that no two rows or columns of a tile are alike.
  void FillWithPattern(const Buffer& buffer) {
    constexpr size_t kPeriod = 1048573;
    const std::vector<float> pattern = Random(kPeriod, 5);
    for (size_t at = 0; at < buffer.bytes(); at += kPeriod * sizeof(float))
      ASSERT_EQ(cudaMemcpy(buffer.data() + at, pattern.data(),
                           std::min(kPeriod * sizeof(float), buffer.bytes() - at), cudaMemcpyHostToDevice),
                cudaSuccess);
  }

  static std::vector<float> Random(size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(n);
    for (float& value : values) value = uniform(random);
    return values;
  }

  /// The contract's bits, from the host.
  static std::vector<double> Contract(const std::vector<int64_t>& dims, const std::vector<int32_t>& axes,
                                      const std::vector<float>& a, const std::vector<float>& b) {
    const auto plan = *rmse::Plan::Make(*MakeSpec(DType::kF32, dims), axes, rmse::Output::kRmse);
    const rmse::Range all = plan.whole();
    std::vector<double> sums(static_cast<size_t>(all.items()));
    std::vector<double> result(static_cast<size_t>(plan.layout().segments));
    rmse::HostRange(plan, all, 0, all.items(), a.data(), b.data(), sums.data());
    rmse::HostFinish(plan, 0, plan.layout().segments, sums.data(), result.data());
    return result;
  }

  double RunRmse(const RmseStep& step, const float* a, const float* b, int64_t n) {
    Buffer scratch(step.scratch_bytes(n)), result(sizeof(double));
    EXPECT_EQ(step.run(a, b, n, result.doubles(), scratch.data(), stream_), cudaSuccess) << step.info.name;
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess) << step.info.name;
    EXPECT_TRUE(scratch.Intact() && result.Intact()) << step.info.name << " wrote where it must not, n " << n;
    return result.Download<double>()[0];
  }
  double RunRmse(const RmseStep& step, const std::vector<float>& a, const std::vector<float>& b) {
    const auto bytes = static_cast<int64_t>(a.size() * sizeof(float));
    Buffer device_a(bytes), device_b(bytes);
    device_a.Upload(a);
    device_b.Upload(b);
    return RunRmse(step, device_a.floats(), device_b.floats(), static_cast<int64_t>(a.size()));
  }
  std::vector<double> RunBatched(const BatchedStep& step, const float* a, const float* b, int64_t rows,
                                 int64_t columns, int64_t batch) {
    Buffer scratch(step.scratch_bytes(rows, columns, batch)), result(batch * 8);
    EXPECT_EQ(step.run(a, b, rows, columns, batch, result.doubles(), scratch.data(), stream_), cudaSuccess)
        << step.info.name;
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess) << step.info.name;
    EXPECT_TRUE(scratch.Intact() && result.Intact()) << step.info.name << " wrote where it must not";
    return result.Download<double>();
  }

  /// Two runs' values against the contract's, as the step's exactness says.
  static void Compare(const StepInfo& info, int64_t elements, const std::vector<double>& values,
                      const std::vector<double>& again, const std::vector<double>& truth) {
    ASSERT_EQ(values.size(), truth.size());
    ASSERT_LE(elements, info.tolerance_elements) << "the test is too large for the step's tolerance";
    const size_t bytes = truth.size() * sizeof(double);
    if (info.exactness != Exactness::kTolerance) {
      EXPECT_EQ(std::memcmp(values.data(), again.data(), bytes), 0) << info.name << " gave other bits";
    }
    if (info.exactness == Exactness::kContract) {
      EXPECT_EQ(std::memcmp(values.data(), truth.data(), bytes), 0) << info.name << " is not the contract's";
    }
    for (const auto* run : {&values, &again})
      for (size_t i = 0; i < truth.size(); ++i)
        ASSERT_LE(std::abs((*run)[i] - truth[i]), info.tolerance * truth[i])
            << info.name << ", " << elements << " elements, batch " << i;
  }

  void CheckRmse(int64_t n) {
    const auto a = Random(static_cast<size_t>(n), 1), b = Random(static_cast<size_t>(n), 2);
    const std::vector<double> truth = Contract({n}, {}, a, b);
    Buffer device_a(n * 4), device_b(n * 4);
    device_a.Upload(a);
    device_b.Upload(b);
    for (const RmseStep& step : RmseSteps())
      Compare(step.info, n, {RunRmse(step, device_a.floats(), device_b.floats(), n)},
              {RunRmse(step, device_a.floats(), device_b.floats(), n)}, truth);
  }

  void CheckBatched(int64_t rows, int64_t columns, int64_t batch) {
    const int64_t n = rows * columns * batch;
    const auto a = Random(static_cast<size_t>(n), 3), b = Random(static_cast<size_t>(n), 4);
    const std::vector<double> truth = Contract({rows, columns, batch}, {0, 1}, a, b);
    Buffer device_a(n * 4), device_b(n * 4);
    device_a.Upload(a);
    device_b.Upload(b);
    for (const BatchedStep& step : BatchedSteps())
      Compare(step.info, rows * columns,
              RunBatched(step, device_a.floats(), device_b.floats(), rows, columns, batch),
              RunBatched(step, device_a.floats(), device_b.floats(), rows, columns, batch), truth);
  }

  void CheckMatrix(int64_t rows, int64_t columns) {
    const std::vector<float> from = Random(static_cast<size_t>(rows * columns), 7);
    std::vector<float> turned(from.size());
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        turned[static_cast<size_t>(column * rows + row)] = from[static_cast<size_t>(row * columns + column)];
    Buffer in(rows * columns * 4), out(rows * columns * 4);
    in.Upload(from);
    for (const auto& steps : {CopySteps(), TransposeSteps()})
      for (const MatrixStep& step : steps) {
        Fill(out, 0xff);
        ASSERT_EQ(step.run(in.floats(), out.floats(), rows, columns, stream_), cudaSuccess) << step.info.name;
        ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess) << step.info.name;
        EXPECT_TRUE(out.Download<float>() == (step.transposes ? turned : from))
            << step.info.name << " " << rows << " x " << columns;
        EXPECT_TRUE(out.Intact()) << step.info.name << " wrote where it must not, " << rows << " x "
                                  << columns;
      }
  }

  cudaStream_t stream_ = nullptr;
};

}  // namespace tilewire::ladder
