#include "kernels/transpose/cuda_elements.cuh"

namespace tilewire::transpose {

template cudaError_t LaunchElements<16>(const Box&, const char*, char*, bool, const gpu::Launcher&);

}  // namespace tilewire::transpose
