// The RMSE kernels for elements of 32 bits: i32, u32, f32.
#include "kernels/rmse/cuda_launch.cuh"

namespace tilewire::rmse::cuda {

template cudaError_t LaunchKind<Kind::kU32>(Work, bool, int64_t*, const gpu::Launcher&);
template cudaError_t LaunchKind<Kind::kF32>(Work, bool, int64_t*, const gpu::Launcher&);

}  // namespace tilewire::rmse::cuda
