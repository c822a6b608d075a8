// The CUDA kernels of rmse.1 give the host's bits: golden vectors, random shapes, every dtype and launch
// shape.
#include <gtest/gtest.h>

#include "kernels/rmse/golden.h"
#include "kernels/rmse/rmse_cuda.h"
#include "tests/unit/rmse_reference.h"

namespace tilewire::rmse {
namespace {

using reference::Bytes;

#define ASSERT_CUDA(call) ASSERT_EQ(cudaSuccess, (call)) << cudaGetErrorString(cudaPeekAtLastError())

class RmseCuda : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      GTEST_SKIP() << "no CUDA device works here";
    ASSERT_CUDA(cudaStreamCreate(&stream_));
  }
  void TearDown() override {
    for (Buffer* buffer : {&a_, &b_, &sums_, &result_}) cudaFree(buffer->data);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  struct Buffer {
    void* data = nullptr;
    size_t bytes = 0;
  };

  void Grow(Buffer& buffer, size_t bytes) {
    if (buffer.bytes >= bytes) return;
    ASSERT_CUDA(cudaFree(buffer.data));
    ASSERT_CUDA(cudaMalloc(&buffer.data, bytes));
    buffer.bytes = bytes;
  }

  // The result's bits as they stand, from either the plan's ranges or the whole as one. `shift` elements of
  // misalignment. Tile sums start as all ones, a NaN, so a missing one shows.
  void Run(const Plan& plan, const Bytes& a, const Bytes& b, bool whole, size_t shift,
           std::vector<uint64_t>* bits) {
    const size_t offset = shift * static_cast<size_t>(SizeOf(plan.operand().dtype));
    const auto result_bytes = static_cast<size_t>(plan.result().bytes());
    const auto scratch_bytes = static_cast<size_t>(plan.scratch_bytes());
    Grow(a_, a.size() + offset);
    Grow(b_, b.size() + offset);
    Grow(sums_, scratch_bytes);
    Grow(result_, result_bytes);
    auto* device_a = static_cast<char*>(a_.data) + offset;
    auto* device_b = static_cast<char*>(b_.data) + offset;
    auto* sums = static_cast<double*>(sums_.data);
    ASSERT_CUDA(cudaMemcpyAsync(device_a, a.data(), a.size(), cudaMemcpyHostToDevice, stream_));
    ASSERT_CUDA(cudaMemcpyAsync(device_b, b.data(), b.size(), cudaMemcpyHostToDevice, stream_));
    ASSERT_CUDA(cudaMemsetAsync(sums, 0xff, scratch_bytes, stream_));
    if (whole) {
      ASSERT_CUDA(CudaRange(plan, plan.whole(), device_a, device_b, sums, stream_));
    } else {
      for (int64_t r = plan.range_count() - 1; r >= 0; --r)
        ASSERT_CUDA(CudaRange(plan, plan.range(r), device_a, device_b, sums, stream_));
    }
    ASSERT_CUDA(CudaFinish(plan, sums, static_cast<double*>(result_.data), stream_));
    bits->assign(result_bytes / 8, 0);
    ASSERT_CUDA(cudaMemcpyAsync(bits->data(), result_.data, result_bytes, cudaMemcpyDeviceToHost, stream_));
    ASSERT_CUDA(cudaStreamSynchronize(stream_));
  }

  void CheckAgainstHost(const reference::RandomCase& one, bool tame, size_t shift, std::mt19937_64& random) {
    const Plan plan = *Plan::Make(one.spec, one.axes, one.output);
    const Bytes a = reference::RandomOperand(one.spec, tame, random);
    const Bytes b = reference::RandomOperand(one.spec, tame, random);
    const Range all = plan.whole();
    std::vector<double> sums(static_cast<size_t>(all.items()));
    std::vector<uint64_t> expected(static_cast<size_t>(plan.layout().segments)), bits;
    HostRange(plan, all, 0, all.items(), a.data(), b.data(), sums.data());
    HostFinish(plan, 0, plan.layout().segments, sums.data(), reinterpret_cast<double*>(expected.data()));
    for (const bool whole : {false, true}) {
      Run(plan, a, b, whole, shift, &bits);
      ASSERT_EQ(bits, expected) << reference::Describe(one) << (whole ? " whole" : " ranges") << " shift "
                                << shift;
    }
  }

  cudaStream_t stream_ = nullptr;
  Buffer a_, b_, sums_, result_;
};

TEST_F(RmseCuda, GoldenVectors) {
  for (const GoldenCase& golden : GoldenCases()) {
    const auto spec = *MakeSpec(golden.dtype, std::vector<int64_t>{golden.n});
    Bytes a(static_cast<size_t>(spec.bytes())), b(a.size());
    FillGolden(golden, a.data(), b.data());
    const uint64_t expected[] = {golden.rmse, golden.mse, golden.sum_squares};
    for (const Output output : {Output::kRmse, Output::kMse, Output::kSumSquares}) {
      std::vector<uint64_t> bits;
      Run(*Plan::Make(spec, {}, output), a, b, false, 0, &bits);
      ASSERT_EQ(bits, std::vector<uint64_t>{expected[static_cast<int>(output)]}) << golden.name;
    }
  }
}

TEST_F(RmseCuda, RandomShapesGiveTheHostsBits) {
  std::mt19937_64 random(21);
  for (int i = 0; i < 1500 && !HasFatalFailure(); ++i)
    CheckAgainstHost(reference::MakeRandomCase(i % 10 == 0 ? 300000 : 5000, random), i % 3 != 0, 0, random);
}

TEST_F(RmseCuda, EveryDTypeOnEveryLaunchShape) {
  const struct {
    std::vector<int64_t> dims;
    std::vector<int32_t> axes;
  } shapes[] = {
      {{300, 1}, {1}},       {{300, 2}, {1}},          {{300, 5}, {1}},         {{300, 16}, {1}},
      {{70, 17}, {1}},       {{40, 300}, {1}},         {{30, 4096}, {1}},       {{9, 8192}, {1}},
      {{9, 8199}, {1}},      {{100000}, {0}},          {{5000, 3}, {0}},        {{9000, 33}, {0}},
      {{20, 700}, {0}},      {{600, 70}, {0}},         {{3, 90, 130}, {1}},     {{6, 5, 100}, {0, 2}},
      {{70, 3, 70}, {0, 2}}, {{5, 30, 4, 50}, {1, 3}}, {{4, 30, 5, 50}, {0, 2}}};
  std::mt19937_64 random(22);
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsReal(info.dtype)) continue;
    for (const auto& shape : shapes)
      for (const bool tame : {true, false})
        CheckAgainstHost({*MakeSpec(info.dtype, shape.dims), shape.axes, Output::kRmse}, tame, 0, random);
  }
}

TEST_F(RmseCuda, OperandsNeedOnlyTheAlignmentOfAnElement) {
  std::mt19937_64 random(23);
  for (const DTypeInfo& info : AllDTypes()) {
    if (!IsReal(info.dtype)) continue;
    for (const size_t shift : {1, 2, 3})
      CheckAgainstHost({*MakeSpec(info.dtype, std::vector<int64_t>{3, 8192}), {1}, Output::kMse}, true, shift,
                       random);
  }
}

// One chunk of tile sums, several, and several passes; counts that are odd on some level.
TEST_F(RmseCuda, ManyTilesCombineInTheSameTree) {
  std::mt19937_64 random(24);
  for (const int64_t tiles : {16, 17, 1023, 1024, 1025, 2047, 3001, 5000}) {
    const std::vector<int64_t> dims = {tiles * 4096 - 5};
    CheckAgainstHost({*MakeSpec(DType::kU8, dims), {}, Output::kRmse}, true, 0, random);
    CheckAgainstHost({*MakeSpec(DType::kBF16, dims), {}, Output::kRmse}, true, 0, random);
  }
  CheckAgainstHost({*MakeSpec(DType::kF32, std::vector<int64_t>{3, 4096 * 1500}), {1}, Output::kRmse}, true,
                   0, random);
}

TEST_F(RmseCuda, MillionsOfTinySegments) {
  std::mt19937_64 random(25);
  for (const int64_t n : {1, 3, 16})
    CheckAgainstHost({*MakeSpec(DType::kF32, std::vector<int64_t>{2000003, n}), {1}, Output::kRmse}, true, 0,
                     random);
}

}  // namespace
}  // namespace tilewire::rmse
