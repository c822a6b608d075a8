#include "kernels/transpose/cuda_elements.cuh"

namespace tilewire::transpose {

template cudaError_t LaunchElements<2>(const Box&, const char*, char*, bool, const gpu::Launcher&);

}  // namespace tilewire::transpose
