// The RMSE kernels for elements of 64 bits: i64, u64, f64.
#include "kernels/rmse/cuda_launch.cuh"

namespace tilewire::rmse::cuda {

template cudaError_t LaunchKind<Kind::kU64>(Work, bool, int64_t*, const gpu::Launcher&);
template cudaError_t LaunchKind<Kind::kF64>(Work, bool, int64_t*, const gpu::Launcher&);

}  // namespace tilewire::rmse::cuda
