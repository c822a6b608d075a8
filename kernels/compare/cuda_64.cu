// The kernels of compare for elements of 64 bits: i64, u64, f64.
#include "kernels/compare/cuda_launch.cuh"

namespace tilewire::compare::cuda {

template cudaError_t LaunchKind<Kind::kU64>(const Work&, Kept, const gpu::Launcher&);
template cudaError_t LaunchKind<Kind::kF64>(const Work&, Kept, const gpu::Launcher&);

}  // namespace tilewire::compare::cuda
