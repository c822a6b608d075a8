// What the GPU tests of comparing share: operands on the device at any element-aligned place, and a problem
// run there in every cut, held against the host's bits.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "kernels/compare/problem.h"
#include "kernels/compare/problem_cuda.h"
#include "tests/unit/compare_reference.h"
#include "tests/unit/problem_testing.h"

namespace tilewire::compare {

#define ASSERT_CUDA(call) ASSERT_EQ(cudaSuccess, (call)) << cudaGetErrorString(cudaPeekAtLastError())

/// Where the operands begin, in elements beyond a 256-byte boundary.
struct Shifts {
  int64_t a = 0, b = 0;
};

/// Skips where no GPU works. Buffers grow as tests need them, or fit each case exactly where `exact_` is set,
/// so that compute-sanitizer sees what lies beyond.
class CompareDevice : public ::testing::Test {
 protected:
  using Bytes = reference::Bytes;

  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      GTEST_SKIP() << "no CUDA device works here";
    ASSERT_CUDA(cudaStreamCreate(&stream_));
  }
  void TearDown() override {
    for (Buffer* buffer : {&a_, &b_, &scratch_, &result_}) cudaFree(buffer->data);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  struct Buffer {
    std::byte* data = nullptr;
    int64_t bytes = 0;
  };

  void Grow(Buffer& buffer, int64_t bytes) {
    if (exact_ ? buffer.bytes == bytes : buffer.bytes >= bytes) return;
    ASSERT_CUDA(cudaFree(buffer.data));
    buffer = {};
    ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&buffer.data), static_cast<size_t>(bytes)));
    buffer.bytes = bytes;
  }

  static std::vector<Bytes> OnHost(const Problem& problem, const Bytes& a, const Bytes& b) {
    Alone alone;
    std::mt19937_64 random(1);
    return tilewire::testing::RunAll(problem, std::array{a, b}, false, alone, random);
  }

  /// Ranges last first. `windowed`: the buffers of a range point to its bytes alone. Scratch and results
  /// start as all ones, which no value is but the index of a segment of NaNs.
  void Launch(const Problem& problem, Buffers buffers, bool windowed, std::vector<Bytes>* values) {
    Grow(scratch_, std::max<int64_t>(problem.scratch_bytes(), 8));
    Grow(result_, problem.result_bytes());
    ASSERT_CUDA(cudaMemsetAsync(scratch_.data, 0xff, static_cast<size_t>(scratch_.bytes), stream_));
    ASSERT_CUDA(cudaMemsetAsync(result_.data, 0xff, static_cast<size_t>(result_.bytes), stream_));
    buffers.scratch = scratch_.data;
    problem.PlaceResults(result_.data, &buffers);
    for (int64_t index = problem.range_count() - 1; index >= 0; --index) {
      Buffers its = buffers;
      if (windowed)
        for (std::byte*& operand : its.operands)
          if (operand != nullptr) operand += problem.range_bytes(index).begin;
      ASSERT_CUDA(kCuda.enqueue(problem, {index}, its, stream_));
    }
    if (problem.has_finish()) ASSERT_CUDA(kCuda.enqueue(problem, Step::Finish(), buffers, stream_));
    Bytes area(static_cast<size_t>(problem.result_bytes()));
    ASSERT_CUDA(cudaMemcpyAsync(area.data(), result_.data, area.size(), cudaMemcpyDeviceToHost, stream_));
    ASSERT_CUDA(cudaStreamSynchronize(stream_));
    *values = tilewire::testing::ResultsIn(problem, reinterpret_cast<const std::byte*>(area.data()));
  }

  /// Every cut gives the host's bits.
  void Check(const ArraySpec& spec, const std::vector<int32_t>& axes, const std::vector<int32_t>& metrics,
             const Bytes& a, const Bytes& b, Shifts shifts) {
    const auto problem = MakeProblem(*Plan::Make(spec, axes, metrics));
    const std::vector<Bytes> expected = OnHost(*problem, a, b);
    const int64_t size = SizeOf(spec.dtype);
    Grow(a_, spec.bytes() + shifts.a * size);
    Grow(b_, spec.bytes() + shifts.b * size);
    if (HasFatalFailure()) return;
    Buffers buffers;
    buffers.operands[0] = a_.data + shifts.a * size;
    buffers.operands[1] = b_.data + shifts.b * size;
    ASSERT_CUDA(cudaMemcpyAsync(buffers.operands[0], a.data(), a.size(), cudaMemcpyHostToDevice, stream_));
    ASSERT_CUDA(cudaMemcpyAsync(buffers.operands[1], b.data(), b.size(), cudaMemcpyHostToDevice, stream_));
    const auto whole = problem->Whole();
    auto windowed = problem->Windowed();
    for (const Problem* const cut :
         {problem.get(), whole.get(), windowed ? windowed->get() : static_cast<Problem*>(nullptr)}) {
      if (cut == nullptr) continue;
      std::vector<Bytes> got;
      Launch(*cut, buffers, cut != problem.get() && cut != whole.get(), &got);
      if (HasFatalFailure()) return;
      for (size_t i = 0; i < got.size(); ++i) {
        const auto wrong = std::mismatch(got[i].begin(), got[i].end(), expected[i].begin()).first;
        ASSERT_EQ(wrong, got[i].end())
            << rmse::reference::Describe({spec, axes, rmse::Output::kRmse}) << " "
            << Name(static_cast<const CompareProblem&>(*problem).plan().metrics()[i]) << " shifts "
            << shifts.a << ", " << shifts.b
            << (cut == whole.get()     ? " whole"
                : cut == problem.get() ? ""
                                       : " windowed")
            << ": first differs in segment " << (wrong - got[i].begin()) / 8;
      }
    }
  }

  /// With random operands, of which one in `every` elements is special (0: none). Of many megabytes, some are
  /// repeated: random numbers take too long to make.
  void CheckRandom(const ArraySpec& spec, const std::vector<int32_t>& axes,
                   const std::vector<int32_t>& metrics, bool tame, uint64_t every, Shifts shifts,
                   std::mt19937_64& random) {
    const bool large = spec.shape.elements() > 1'000'000;
    const ArraySpec some = large ? *MakeSpec(spec.dtype, std::vector<int64_t>{100'003}) : spec;
    Bytes a = rmse::reference::RandomOperand(some, tame, random);
    Bytes b = rmse::reference::RandomOperand(some, tame, random);
    if (every > 0) reference::Strew(some, every, a, b, random);
    for (Bytes* bytes : {&a, &b}) {
      const size_t part = bytes->size();
      bytes->resize(static_cast<size_t>(spec.bytes()));
      for (size_t at = part; at < bytes->size(); ++at) (*bytes)[at] = (*bytes)[at - part];
    }
    Check(spec, axes, metrics, a, b, shifts);
  }

  cudaStream_t stream_ = nullptr;
  Buffer a_, b_, scratch_, result_;
  bool exact_ = false;
};

}  // namespace tilewire::compare
