#include "kernels/bench/cub_reduce.h"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>

#include "kernels/bench/device.h"

namespace tilewire::bench {
namespace {

template <typename T>
struct SquaredDifference {
  const float* a;
  const float* b;
  __device__ T operator()(int64_t i) const {
    const T d = static_cast<T>(a[i]) - static_cast<T>(b[i]);
    return d * d;
  }
};

struct Plus {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

struct Times {
  int64_t n;
  __host__ __device__ int64_t operator()(int64_t i) const { return i * n; }
};

/// CUB sums of type T at `sums` become values at `result`; they may be the same memory for T = double.
template <typename T>
__global__ void RootKernel(const T* sums, double* result, int64_t count, double n) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) result[i] = sqrt(static_cast<double>(sums[i]) / n);
}

template <typename T>
Status Root(const T* sums, double* result, int64_t count, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((count + 255) / 256);
  RootKernel<T><<<blocks, 256, 0, stream>>>(sums, result, count, static_cast<double>(n));
  return FromCuda(cudaGetLastError(), "taking roots");
}

constexpr size_t kSumBytes = 256;  ///< for CUB's sum, before its own scratch; keeps that aligned

template <typename T>
Status Rmse(const float* a, const float* b, int64_t n, double* result, void* scratch, size_t* scratch_bytes,
            cudaStream_t stream) {
  T* sum = static_cast<T*>(scratch);
  void* rest = scratch == nullptr ? nullptr : static_cast<char*>(scratch) + kSumBytes;
  size_t rest_bytes = scratch == nullptr ? 0 : *scratch_bytes - kSumBytes;
  const cudaError_t error =
      cub::DeviceReduce::TransformReduce(rest, rest_bytes, thrust::counting_iterator<int64_t>(0), sum, n,
                                         Plus{}, SquaredDifference<T>{a, b}, T{0}, stream);
  TILEWIRE_RETURN_IF_ERROR(FromCuda(error, "cub::DeviceReduce"));
  if (scratch != nullptr) return Root(sum, result, 1, n, stream);
  *scratch_bytes = rest_bytes + kSumBytes;
  return {};
}

}  // namespace

Status CubRmse(CubSum sum, const float* a, const float* b, int64_t n, double* result, void* scratch,
               size_t* scratch_bytes, cudaStream_t stream) {
  return sum == CubSum::kFloat ? Rmse<float>(a, b, n, result, scratch, scratch_bytes, stream)
                               : Rmse<double>(a, b, n, result, scratch, scratch_bytes, stream);
}

Status CubSegmentedRmse(const float* a, const float* b, int64_t segments, int64_t n, double* result,
                        void* scratch, size_t* scratch_bytes, cudaStream_t stream) {
  const auto squares =
      thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), SquaredDifference<double>{a, b});
  const auto begins = thrust::make_transform_iterator(thrust::counting_iterator<int64_t>(0), Times{n});
  const cudaError_t error = cub::DeviceSegmentedReduce::Reduce(
      scratch, *scratch_bytes, squares, result, segments, begins, begins + 1, Plus{}, 0.0, stream);
  TILEWIRE_RETURN_IF_ERROR(FromCuda(error, "cub::DeviceSegmentedReduce"));
  return scratch == nullptr ? Status() : Root(result, result, segments, n, stream);
}

}  // namespace tilewire::bench
