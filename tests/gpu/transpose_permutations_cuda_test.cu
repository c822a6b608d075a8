// Large random permutations, against a kernel that moves one element a thread and knows nothing of plans.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "kernels/transpose/random_cases.h"
#include "kernels/transpose/transpose_cuda.h"

namespace tilewire::transpose {
namespace {

constexpr int kCases = 200;
constexpr uint64_t kSeed = 20240229;

/// The output's extents, and the input's stride along each of them.
struct Gather {
  int rank = 0;
  int64_t extents[PermutationGenerator::kMaxRankOfCase] = {};
  int64_t strides[PermutationGenerator::kMaxRankOfCase] = {};
};

Gather MakeGather(const PermutationCase& c) {
  Gather g;
  g.rank = static_cast<int>(c.dims.size());
  for (int i = 0; i < g.rank; ++i) {
    const auto axis = static_cast<size_t>(c.axes[static_cast<size_t>(i)]);
    g.extents[i] = c.dims[axis];
    g.strides[i] = 1;
    for (size_t a = axis + 1; a < c.dims.size(); ++a) g.strides[i] *= c.dims[a];
  }
  return g;
}

/// Counts the output elements that are not the right input element. Words: of an element.
template <typename Word, int kWords>
__global__ void CountWrong(Gather g, uint32_t elements, const Word* in, const Word* out,
                           unsigned int* wrong) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) {
    uint32_t rest = i;
    int64_t from = 0;
    for (int a = g.rank; a-- > 0;) {
      const auto extent = static_cast<uint32_t>(g.extents[a]);
      from += rest % extent * g.strides[a];
      rest /= extent;
    }
    for (int w = 0; w < kWords; ++w)
      if (in[from * kWords + w] != out[int64_t{i} * kWords + w]) atomicAdd(wrong, 1u);
  }
}

/// No element looks like its neighbours.
__global__ void FillWords(uint64_t* words, int64_t count, uint64_t seed) {
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count;
       i += int64_t{gridDim.x} * blockDim.x) {
    uint64_t z = (static_cast<uint64_t>(i) + seed) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 31) * 0xbf58476d1ce4e5b9u;
    words[i] = z ^ z >> 29;
  }
}

template <typename Word, int kWords>
void Count(const PermutationCase& c, const void* in, const void* out, unsigned int* wrong) {
  CountWrong<Word, kWords><<<2048, 256>>>(MakeGather(c), static_cast<uint32_t>(c.elements()),
                                          static_cast<const Word*>(in), static_cast<const Word*>(out), wrong);
}

class TransposePermutationsCuda : public testing::Test {
 protected:
  static constexpr size_t kGuard = 256;
  static constexpr size_t kBytes = PermutationGenerator::kMaxBytes;

  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
    if (cudaMalloc(&in_, kBytes) != cudaSuccess || cudaMalloc(&out_, kBytes + kGuard) != cudaSuccess) {
      cudaGetLastError();
      GTEST_SKIP() << "needs " << 2 * kBytes << " bytes of device memory";
    }
    ASSERT_EQ(cudaMallocManaged(&wrong_, sizeof *wrong_), cudaSuccess);
    FillWords<<<2048, 256>>>(static_cast<uint64_t*>(in_), kBytes / 8, kSeed);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  void TearDown() override {
    cudaFree(in_);
    cudaFree(out_);
    cudaFree(wrong_);
  }

  void Check(const PermutationCase& c) {
    const auto spec = MakeSpec(c.dtype, c.dims);
    ASSERT_TRUE(spec) << c.ToString();
    const auto plan = Plan::Make(*spec, c.axes);
    ASSERT_TRUE(plan) << c.ToString();
    const auto bytes = static_cast<size_t>(c.bytes());
    ASSERT_EQ(cudaMemset(out_, 0xa5, bytes + kGuard), cudaSuccess);
    *wrong_ = 0;
    ASSERT_EQ(CudaRange(*plan, plan->whole(), in_, out_, cudaStream_t{}), cudaSuccess) << c.ToString();
    switch (SizeOf(c.dtype)) {
      case 1:
        Count<uint8_t, 1>(c, in_, out_, wrong_);
        break;
      case 2:
        Count<uint16_t, 1>(c, in_, out_, wrong_);
        break;
      case 4:
        Count<uint32_t, 1>(c, in_, out_, wrong_);
        break;
      case 8:
        Count<uint64_t, 1>(c, in_, out_, wrong_);
        break;
      default:
        Count<uint64_t, 2>(c, in_, out_, wrong_);
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess) << c.ToString();
    ASSERT_EQ(*wrong_, 0u) << c.ToString();
    unsigned char guard[kGuard];
    ASSERT_EQ(cudaMemcpy(guard, static_cast<char*>(out_) + bytes, kGuard, cudaMemcpyDeviceToHost),
              cudaSuccess);
    for (const unsigned char byte : guard)
      ASSERT_EQ(byte, 0xa5) << c.ToString() << " wrote behind the output";
  }

  void *in_ = nullptr, *out_ = nullptr;
  unsigned int* wrong_ = nullptr;
};

TEST_F(TransposePermutationsCuda, TwoHundredLargeOnes) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  for (const PermutationCase& c : PermutationCases(kSeed, kCases)) {
    Check(c);
    if (HasFatalFailure()) return;
  }
}

TEST_F(TransposePermutationsCuda, ManyTinyAxes) {
  Check({DType::kU8, {1 << 11, 2, 3, 2, 3, 2, 3, 1 << 10}, {7, 6, 5, 4, 3, 2, 1, 0}});
  Check({DType::kF32, {1 << 8, 3, 2, 3, 2, 3, 2, 1 << 9}, {1, 3, 5, 7, 0, 2, 4, 6}});
}

}  // namespace
}  // namespace tilewire::transpose
