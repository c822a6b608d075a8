// Copy, step 5: 16 bytes an access. A copy does not care for rows, so the matrix is one run of elements.
#include "kernels/ladder/matrix_step.h"

namespace tilewire::ladder {
namespace {

constexpr int kThreads = 256, kQuads = 4;  // of a thread

__global__ void VectorCopyKernel(const float* __restrict__ in, float* __restrict__ out, int64_t n) {
  const auto* from = reinterpret_cast<const float4*>(in);
  auto* to = reinterpret_cast<float4*>(out);
  const int64_t quads = n / 4, first = int64_t{blockIdx.x} * (kThreads * kQuads) + threadIdx.x;
  float4 held[kQuads];
#pragma unroll
  for (int k = 0; k < kQuads; ++k)
    if (first + k * kThreads < quads) held[k] = from[first + k * kThreads];
#pragma unroll
  for (int k = 0; k < kQuads; ++k)
    if (first + k * kThreads < quads) to[first + k * kThreads] = held[k];
  if (blockIdx.x == 0 && threadIdx.x < n % 4) out[quads * 4 + threadIdx.x] = in[quads * 4 + threadIdx.x];
}

cudaError_t Run(const float* in, float* out, int64_t rows, int64_t columns, const gpu::Launcher& launcher) {
  const int64_t n = rows * columns;
  return launcher.Run(VectorCopyKernel, BlocksFor(n, 4 * kThreads * kQuads), kThreads, 0, in, out, n);
}

}  // namespace

constinit const MatrixStep kCopyVectors = {
    .info = {.name = "5_vectors",
             .idea = "16 bytes an access and 64 in flight a thread: a quarter of the instructions, more "
                     "bytes on the way."},
    .transposes = false,
    .run = Run};

}  // namespace tilewire::ladder
