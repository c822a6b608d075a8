// What the RMSE GPU tests share: operands on the device at any element-aligned place, and the three ways to
// run a plan.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "kernels/array/kernel_info_cuda.h"
#include "kernels/rmse/launch_cuda.h"
#include "kernels/rmse/rmse_cuda.h"
#include "tests/unit/rmse_reference.h"

namespace tilewire::rmse {

#define ASSERT_CUDA(call) ASSERT_EQ(cudaSuccess, (call)) << cudaGetErrorString(cudaPeekAtLastError())

enum class Way {
  kRanges,  ///< the plan's ranges, last first, then the end
  kWhole,   ///< everything as one range, then the end
  kAtOnce,  ///< CudaWhole
};
inline constexpr Way kWays[] = {Way::kRanges, Way::kWhole, Way::kAtOnce};

/// Where the operands begin, in elements beyond a 256-byte boundary.
struct Shifts {
  int64_t a = 0, b = 0;
};

/// Skips where no GPU works. Buffers grow as tests need them, or fit each case exactly where `exact_` is set,
/// so that compute-sanitizer sees what lies beyond.
class RmseDevice : public ::testing::Test {
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
    int64_t bytes = 0;
    template <typename T>
    T* at(int64_t offset = 0) const {
      return reinterpret_cast<T*>(static_cast<char*>(data) + offset);
    }
  };

  void Grow(Buffer& buffer, int64_t bytes) {
    if (exact_ ? buffer.bytes == bytes : buffer.bytes >= bytes) return;
    ASSERT_CUDA(cudaFree(buffer.data));
    buffer = {};
    ASSERT_CUDA(cudaMalloc(&buffer.data, static_cast<size_t>(bytes)));
    buffer.bytes = bytes;
  }

  /// Room for sums and results, which start as all ones, a NaN that no run writes, so a missing one shows.
  void Prepare(const Plan& plan) {
    const int64_t result_bytes = plan.result().bytes();
    Grow(sums_, plan.scratch_bytes());
    Grow(result_, result_bytes);
    ASSERT_CUDA(cudaMemsetAsync(sums_.data, 0xff, static_cast<size_t>(plan.scratch_bytes()), stream_));
    ASSERT_CUDA(cudaMemsetAsync(result_.data, 0xff, static_cast<size_t>(result_bytes), stream_));
  }

  void Fetch(const Plan& plan, std::vector<uint64_t>* bits) {
    bits->assign(static_cast<size_t>(plan.layout().segments), 0);
    ASSERT_CUDA(
        cudaMemcpyAsync(bits->data(), result_.data, bits->size() * 8, cudaMemcpyDeviceToHost, stream_));
    ASSERT_CUDA(cudaStreamSynchronize(stream_));
  }

  /// Runs the plan over operands that are on the device.
  void Launch(const Plan& plan, const void* a, const void* b, Way way, std::vector<uint64_t>* bits) {
    Prepare(plan);
    auto* sums = sums_.at<double>();
    auto* result = result_.at<double>();
    if (way == Way::kAtOnce) {
      ASSERT_CUDA(CudaWhole(plan, a, b, sums, result, stream_));
    } else {
      const int64_t ranges = way == Way::kWhole ? 1 : plan.range_count();
      for (int64_t r = ranges - 1; r >= 0; --r)
        ASSERT_CUDA(CudaRange(plan, way == Way::kWhole ? plan.whole() : plan.range(r), a, b, sums, stream_));
      ASSERT_CUDA(CudaFinish(plan, sums, result, stream_));
    }
    Fetch(plan, bits);
  }

  void Upload(const Plan& plan, const reference::Bytes& a, const reference::Bytes& b, Shifts shifts) {
    const int64_t size = SizeOf(plan.operand().dtype);
    Grow(a_, static_cast<int64_t>(a.size()) + shifts.a * size);
    Grow(b_, static_cast<int64_t>(b.size()) + shifts.b * size);
    device_a_ = a_.at<void>(shifts.a * size);
    device_b_ = b_.at<void>(shifts.b * size);
    ASSERT_CUDA(cudaMemcpyAsync(device_a_, a.data(), a.size(), cudaMemcpyHostToDevice, stream_));
    ASSERT_CUDA(cudaMemcpyAsync(device_b_, b.data(), b.size(), cudaMemcpyHostToDevice, stream_));
  }

  static std::vector<uint64_t> HostBits(const Plan& plan, const reference::Bytes& a,
                                        const reference::Bytes& b) {
    const Range all = plan.whole();
    std::vector<double> sums(static_cast<size_t>(all.items()));
    std::vector<uint64_t> bits(static_cast<size_t>(plan.layout().segments));
    HostRange(plan, all, 0, all.items(), a.data(), b.data(), sums.data());
    HostFinish(plan, 0, plan.layout().segments, sums.data(), reinterpret_cast<double*>(bits.data()));
    return bits;
  }

  /// Every kernel that takes the layout gives the host's bits. `used` counts them by ShapeName.
  void CheckChoices(const reference::RandomCase& one, const reference::Bytes& a, const reference::Bytes& b,
                    Shifts shifts, std::map<std::string, int>* used) {
    const Plan plan = *Plan::Make(one.spec, one.axes, one.output);
    const std::vector<uint64_t> expected = HostBits(plan, a, b);
    Upload(plan, a, b, shifts);
    const cuda::Task task = cuda::TaskOf(plan, plan.whole(), true, device_a_, device_b_);
    std::vector<uint64_t> bits;
    for (const cuda::Choice& choice : cuda::AllChoices(task)) {
      const std::string name = cuda::ShapeName(choice);
      ++(*used)[name];
      Prepare(plan);
      ASSERT_CUDA(cuda::LaunchWhole(plan, choice, device_a_, device_b_, sums_.at<double>(),
                                    result_.at<double>(), stream_));
      Fetch(plan, &bits);
      if (HasFatalFailure()) return;
      ASSERT_EQ(bits, expected) << reference::Describe(one) << " by " << name << " shifts " << shifts.a
                                << ", " << shifts.b;
    }
  }

  /// The kernels of a whole run, without namespaces and what they are instantiated with: "RingKernel".
  static std::vector<std::string> KernelsOf(const Plan& plan, const void* a, const void* b) {
    std::vector<gpu::Launch> launches;
    if (CudaWhole(plan, a, b, nullptr, nullptr, gpu::Launcher(&launches)) != cudaSuccess) return {};
    std::vector<std::string> names;
    for (const gpu::Launch& launch : launches) {
      KernelInfo info;
      if (gpu::Describe(launch, &info) != cudaSuccess) return {};
      const std::string name = info.name.substr(0, info.name.find('<'));
      names.push_back(name.substr(name.rfind(':') + 1));
    }
    return names;
  }

  /// Every way gives the host's bits.
  void Check(const reference::RandomCase& one, const reference::Bytes& a, const reference::Bytes& b,
             Shifts shifts) {
    const Plan plan = *Plan::Make(one.spec, one.axes, one.output);
    const std::vector<uint64_t> expected = HostBits(plan, a, b);
    std::vector<uint64_t> bits;
    Upload(plan, a, b, shifts);
    for (const Way way : kWays) {
      Launch(plan, device_a_, device_b_, way, &bits);
      if (HasFatalFailure()) return;
      const auto wrong = std::mismatch(bits.begin(), bits.end(), expected.begin()).first - bits.begin();
      ASSERT_EQ(bits, expected) << reference::Describe(one) << " way " << static_cast<int>(way) << " shifts "
                                << shifts.a << ", " << shifts.b << ": first differs in segment " << wrong;
    }
  }

  void Check(const reference::RandomCase& one, bool tame, Shifts shifts, std::mt19937_64& random) {
    const auto a = reference::RandomOperand(one.spec, tame, random);
    const auto b = reference::RandomOperand(one.spec, tame, random);
    Check(one, a, b, shifts);
  }

  /// `bytes` bytes of what `part` holds, again and again.
  static reference::Bytes Repeated(const reference::Bytes& part, int64_t bytes) {
    reference::Bytes all(static_cast<size_t>(bytes));
    for (size_t at = 0; at < all.size(); at += part.size())
      std::copy_n(part.begin(), std::min(part.size(), all.size() - at), all.begin() + at);
    return all;
  }

  /// Some random elements. As many as a large operand has would take too long to make.
  static reference::Bytes SomeElements(DType dtype, bool tame, std::mt19937_64& random) {
    return reference::RandomOperand(*MakeSpec(dtype, std::vector<int64_t>{100'003}), tame, random);
  }

  void CheckLarge(const reference::RandomCase& one, bool tame, Shifts shifts, std::mt19937_64& random) {
    const reference::Bytes a = SomeElements(one.spec.dtype, tame, random);
    const reference::Bytes b = SomeElements(one.spec.dtype, tame, random);
    Check(one, Repeated(a, one.spec.bytes()), Repeated(b, one.spec.bytes()), shifts);
  }

  cudaStream_t stream_ = nullptr;
  Buffer a_, b_, sums_, result_;
  void *device_a_ = nullptr, *device_b_ = nullptr;
  bool exact_ = false;
};

inline std::vector<DType> RealDTypes() {
  std::vector<DType> dtypes;
  for (const DTypeInfo& info : AllDTypes())
    if (IsReal(info.dtype)) dtypes.push_back(info.dtype);
  return dtypes;
}

}  // namespace tilewire::rmse
