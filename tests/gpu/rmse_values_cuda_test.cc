// RMSE on the GPU: values that floats are famous for, and arrays of more than 2^31 elements.
#include <limits>

#include "tests/gpu/rmse_device.h"

namespace tilewire::rmse {
namespace {

using reference::Bytes;

class RmseCudaValues : public RmseDevice {};

/// Bit patterns of a dtype's special values: zeros, subnormals, one, the largest, infinities, NaNs; integers'
/// ends.
std::vector<uint64_t> Specials(DType dtype) {
  const int bits = static_cast<int>(SizeOf(dtype)) * 8;
  const uint64_t sign = uint64_t{1} << (bits - 1);
  if (Info(dtype).kind != DTypeKind::kFloat)
    return {0, 1, sign - 1, sign, sign + 1, sign | (sign - 1), sign >> 1};
  const int mantissa = dtype == DType::kF16 ? 10 : dtype == DType::kBF16 ? 7 : dtype == DType::kF32 ? 23 : 52;
  const uint64_t one = uint64_t{1} << mantissa, infinity = (sign - 1) & ~(one - 1);
  std::vector<uint64_t> patterns = {0,
                                    1,
                                    one - 1,
                                    one,
                                    infinity / 2 & ~(one - 1),
                                    infinity - 1,
                                    infinity,
                                    infinity | 1,
                                    infinity | one / 2};
  const size_t positive = patterns.size();
  for (size_t i = 0; i < positive; ++i) patterns.push_back(patterns[i] | sign);
  return patterns;
}

void Put(Bytes& bytes, int64_t i, int64_t size, uint64_t pattern) {
  std::memcpy(bytes.data() + i * size, &pattern, static_cast<size_t>(size));
}

// Each special value against each, alone in a segment, and at each place of an otherwise plain one.
TEST_F(RmseCudaValues, SpecialAgainstSpecial) {
  std::mt19937_64 random(31);
  for (const DType dtype : RealDTypes()) {
    const std::vector<uint64_t> specials = Specials(dtype);
    const int64_t size = SizeOf(dtype), count = static_cast<int64_t>(specials.size());
    for (const int64_t length : {1, 5, 40, 300}) {
      const auto spec = *MakeSpec(dtype, std::vector<int64_t>{count * count, length});
      Bytes a = reference::RandomOperand(spec, true, random),
            b = reference::RandomOperand(spec, true, random);
      for (int64_t s = 0; s < count * count; ++s) {
        const int64_t at = s * length + s % length;
        Put(a, at, size, specials[static_cast<size_t>(s / count)]);
        Put(b, at, size, specials[static_cast<size_t>(s % count)]);
      }
      for (const Output output : {Output::kRmse, Output::kSumSquares}) Check({spec, {1}, output}, a, b, {});
      // The same bytes as columns: a segment of each holds many specials.
      Check({spec, {0}, Output::kMse}, a, b, {});
    }
  }
}

/// Fills `bytes` of device memory by repeating its first `period`.
cudaError_t Repeat(char* data, int64_t period, int64_t bytes, cudaStream_t stream) {
  for (int64_t done = period; done < bytes;) {
    const int64_t more = std::min(done, bytes - done);
    const auto count = static_cast<size_t>(more);
    if (const cudaError_t error = cudaMemcpyAsync(data + done, data, count, cudaMemcpyDeviceToDevice, stream);
        error != cudaSuccess)
      return error;
    done += more;
  }
  return cudaSuccess;
}

class RmseCudaHuge : public RmseDevice {
 protected:
  /// u8 operands of `elements` that repeat `period` random ones.
  void Make(int64_t elements, int64_t period) {
    std::mt19937_64 random(32);
    const auto spec = *MakeSpec(DType::kU8, std::vector<int64_t>{period});
    first_a_ = reference::RandomOperand(spec, false, random);
    first_b_ = reference::RandomOperand(spec, false, random);
    Grow(a_, elements);
    Grow(b_, elements);
    const auto count = static_cast<size_t>(period);
    ASSERT_CUDA(cudaMemcpyAsync(a_.data, first_a_.data(), count, cudaMemcpyHostToDevice, stream_));
    ASSERT_CUDA(cudaMemcpyAsync(b_.data, first_b_.data(), count, cudaMemcpyHostToDevice, stream_));
    ASSERT_CUDA(Repeat(a_.at<char>(), period, elements, stream_));
    ASSERT_CUDA(Repeat(b_.at<char>(), period, elements, stream_));
  }

  /// Tile sums of one period, [segment][tile].
  std::vector<double> Sums(const Plan& plan) const {
    const Range all = plan.whole();
    std::vector<double> sums(static_cast<size_t>(all.items()));
    HostRange(plan, all, 0, all.items(), first_a_.data(), first_b_.data(), sums.data());
    return sums;
  }

  Bytes first_a_, first_b_;
};

TEST_F(RmseCudaHuge, OneSegment) {
  const int64_t period = 4096 * 512, elements = (int64_t{1} << 31) + period / 2;
  Make(elements, period);
  const Plan plan = *Plan::Make(*MakeSpec(DType::kU8, std::vector<int64_t>{elements}), {}, Output::kRmse);
  const std::vector<double> one =
      Sums(*Plan::Make(*MakeSpec(DType::kU8, std::vector<int64_t>{period}), {}, Output::kRmse));
  std::vector<double> sums(static_cast<size_t>(plan.layout().tiles));
  for (size_t t = 0; t < sums.size(); ++t) sums[t] = one[t % one.size()];
  std::vector<uint64_t> expected(1), bits;
  HostFinish(plan, 0, 1, sums.data(), reinterpret_cast<double*>(expected.data()));
  for (const Way way : {Way::kWhole, Way::kAtOnce}) {
    Launch(plan, a_.data, b_.data, way, &bits);
    EXPECT_EQ(bits, expected);
  }
}

TEST_F(RmseCudaHuge, MillionsOfSegments) {
  const int64_t length = 273, repeats = 128, segments = 1 << 16;  // 2.3e9 elements
  Make(segments * length * repeats, segments * length);
  const auto plan_of = [&](int64_t count) {
    return *Plan::Make(*MakeSpec(DType::kU8, std::vector<int64_t>{count, length}), std::vector<int32_t>{1},
                       Output::kRmse);
  };
  const Plan small = plan_of(segments), large = plan_of(segments * repeats);
  std::vector<double> sums = Sums(small);
  std::vector<uint64_t> one(static_cast<size_t>(segments)), bits;
  HostFinish(small, 0, segments, sums.data(), reinterpret_cast<double*>(one.data()));
  for (const Way way : {Way::kWhole, Way::kAtOnce}) {
    Launch(large, a_.data, b_.data, way, &bits);
    int64_t wrong = 0;
    for (size_t s = 0; s < bits.size(); ++s) wrong += bits[s] != one[s % one.size()];
    EXPECT_EQ(wrong, 0);
  }
}

TEST_F(RmseCudaHuge, Columns) {
  const int64_t width = 17, repeats = 520, rows = 1 << 18;  // 2.3e9 elements
  Make(rows * width * repeats, rows * width);
  const auto plan_of = [&](int64_t count) {
    return *Plan::Make(*MakeSpec(DType::kU8, std::vector<int64_t>{count, width}), std::vector<int32_t>{0},
                       Output::kRmse);
  };
  const Plan small = plan_of(rows), large = plan_of(rows * repeats);
  const std::vector<double> one = Sums(small);
  const int64_t tiles = large.layout().tiles, period = small.layout().tiles;
  std::vector<double> sums(static_cast<size_t>(width * tiles));
  for (int64_t s = 0; s < width; ++s)
    for (int64_t t = 0; t < tiles; ++t)
      sums[static_cast<size_t>(s * tiles + t)] = one[static_cast<size_t>(s * period + t % period)];
  std::vector<uint64_t> expected(static_cast<size_t>(width)), bits;
  HostFinish(large, 0, width, sums.data(), reinterpret_cast<double*>(expected.data()));
  for (const Way way : {Way::kWhole, Way::kAtOnce}) {
    Launch(large, a_.data, b_.data, way, &bits);
    EXPECT_EQ(bits, expected);
  }
}

}  // namespace
}  // namespace tilewire::rmse
