// The RMSE kernels for f16 and bf16.
#include "kernels/rmse/cuda_launch.cuh"

namespace tilewire::rmse::cuda {

template cudaError_t LaunchKind<Kind::kF16>(Work, bool, int64_t*, const gpu::Launcher&);
template cudaError_t LaunchKind<Kind::kBF16>(Work, bool, int64_t*, const gpu::Launcher&);

}  // namespace tilewire::rmse::cuda
