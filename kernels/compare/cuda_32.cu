// The kernels of compare for elements of 32 bits: i32, u32, f32.
#include "kernels/compare/cuda_launch.cuh"

namespace tilewire::compare::cuda {

template cudaError_t LaunchKind<Kind::kU32>(const Work&, Kept, const gpu::Launcher&);
template cudaError_t LaunchKind<Kind::kF32>(const Work&, Kept, const gpu::Launcher&);

}  // namespace tilewire::compare::cuda
