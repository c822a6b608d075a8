// The kernels of compare for integers of 8 and 16 bits.
#include "kernels/compare/cuda_launch.cuh"

namespace tilewire::compare::cuda {

template cudaError_t LaunchKind<Kind::kU8>(const Work&, Kept, const gpu::Launcher&);
template cudaError_t LaunchKind<Kind::kU16>(const Work&, Kept, const gpu::Launcher&);

}  // namespace tilewire::compare::cuda
