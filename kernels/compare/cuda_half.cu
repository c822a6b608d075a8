// The kernels of compare for f16 and bf16.
#include "kernels/compare/cuda_launch.cuh"

namespace tilewire::compare::cuda {

template cudaError_t LaunchKind<Kind::kF16>(const Work&, Kept, const gpu::Launcher&);
template cudaError_t LaunchKind<Kind::kBF16>(const Work&, Kept, const gpu::Launcher&);

}  // namespace tilewire::compare::cuda
