// The copy that only the device does: every byte of every small copy, from every place to every place.
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "kernels/array/copy_cuda.h"

namespace tilewire::gpu {
namespace {

constexpr std::byte kBlank{0xa5};
constexpr size_t kWord = 16;

struct FreeDevice {
  void operator()(std::byte* data) const { cudaFree(data); }
};
struct FreePinned {
  void operator()(std::byte* data) const { cudaFreeHost(data); }
};

/// The same bytes on the device and pinned, since a copy kernel is for both.
class CopyBytesTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) GTEST_SKIP() << "no CUDA device";
  }
  /// Device memory, `bytes` long to the byte, so that sanitizers see what is beside it.
  static std::unique_ptr<std::byte, FreeDevice> Device(size_t bytes) {
    void* data = nullptr;
    EXPECT_EQ(cudaMalloc(&data, bytes), cudaSuccess);
    return std::unique_ptr<std::byte, FreeDevice>(static_cast<std::byte*>(data));
  }
  static std::unique_ptr<std::byte, FreePinned> Pinned(size_t bytes) {
    void* data = nullptr;
    EXPECT_EQ(cudaMallocHost(&data, bytes), cudaSuccess);
    return std::unique_ptr<std::byte, FreePinned>(static_cast<std::byte*>(data));
  }
  /// Copies into the device's memory, or out of it.
  bool in() const { return GetParam(); }
};

std::byte At(size_t i) {
  return static_cast<std::byte>(i * 167 + i / 251 + 3);
}

TEST_P(CopyBytesTest, EveryAlignmentOfEverySmallSize) {
  constexpr size_t kMost = 72, kSlot = 128, kPairs = kWord * kWord;
  constexpr size_t kBytes = kPairs * (kMost + 1) * kSlot;
  const auto there = Device(kBytes);
  const auto here = Pinned(kBytes);
  std::vector<std::byte> source(kBytes), result(kBytes), expected(kBytes, kBlank);
  for (size_t i = 0; i < kBytes; ++i) source[i] = At(i);
  std::byte* const from = in() ? here.get() : there.get();
  std::byte* const to = in() ? there.get() : here.get();
  ASSERT_EQ(cudaMemcpy(from, source.data(), kBytes, cudaMemcpyDefault), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(to, expected.data(), kBytes, cudaMemcpyDefault), cudaSuccess);
  for (size_t slot = 0; slot < kBytes / kSlot; ++slot) {
    const size_t bytes = slot / kPairs, read = slot * kSlot + slot % kWord,
                 written = slot * kSlot + kWord + slot / kWord % kWord;
    ASSERT_EQ(CopyBytes(to + written, from + read, bytes, cudaStream_t{}), cudaSuccess);
    std::copy_n(source.begin() + static_cast<ptrdiff_t>(read), bytes,
                expected.begin() + static_cast<ptrdiff_t>(written));
  }
  ASSERT_EQ(cudaMemcpy(result.data(), to, kBytes, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(result, expected);
}

/// Sizes that end within a warp, a block and the grid, and one that goes round the grid several times; the
/// source is all of its allocation, so that a word read beside it is an error of its own.
TEST_P(CopyBytesTest, LargerSizesEndWhereTheyShould) {
  for (const size_t bytes : {size_t{511}, size_t{512}, size_t{4095}, size_t{4113}, size_t{65'537},
                             size_t{262'143}, size_t{262'144}, size_t{1'000'003}})
    for (const size_t skew : {0, 1, 4, 8, 15}) {
      SCOPED_TRACE(std::to_string(bytes) + " bytes, skew " + std::to_string(skew));
      const auto there = Device(in() ? bytes + 2 * kWord : bytes);
      const auto here = Pinned(in() ? bytes : bytes + 2 * kWord);
      std::byte* const from = in() ? here.get() : there.get();
      std::byte* const to = in() ? there.get() : here.get();
      std::vector<std::byte> source(bytes), expected(bytes + 2 * kWord, kBlank), result(expected.size());
      for (size_t i = 0; i < bytes; ++i) source[i] = At(i);
      ASSERT_EQ(cudaMemcpy(from, source.data(), bytes, cudaMemcpyDefault), cudaSuccess);
      ASSERT_EQ(cudaMemcpy(to, expected.data(), expected.size(), cudaMemcpyDefault), cudaSuccess);
      std::copy(source.begin(), source.end(), expected.begin() + static_cast<ptrdiff_t>(skew));
      ASSERT_EQ(CopyBytes(to + skew, from, bytes, cudaStream_t{}), cudaSuccess);
      ASSERT_EQ(cudaMemcpy(result.data(), to, result.size(), cudaMemcpyDefault), cudaSuccess);
      EXPECT_EQ(result, expected);
    }
}

INSTANTIATE_TEST_SUITE_P(Ways, CopyBytesTest, ::testing::Bool(),
                         [](const auto& way) { return way.param ? "In" : "Out"; });

}  // namespace
}  // namespace tilewire::gpu
