// The RMSE kernels for elements of 8 and 16 bits: i8, u8, i16, u16.
#include "kernels/rmse/cuda_launch.cuh"

namespace tilewire::rmse::cuda {

template cudaError_t LaunchKind<Kind::kU8>(Work, bool, int64_t*, const gpu::Launcher&);
template cudaError_t LaunchKind<Kind::kU16>(Work, bool, int64_t*, const gpu::Launcher&);

}  // namespace tilewire::rmse::cuda
