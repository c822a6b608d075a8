// RMSE, step 6c: step 6 with 32-bit indices, where they suffice.
#include "kernels/ladder/rmse_6_vector.cuh"

namespace tilewire::ladder {
namespace {

cudaError_t Run(const float* a, const float* b, int64_t n, double* result, void* scratch,
                const gpu::Launcher& launcher) {
  // The index of the first quad behind the end may be a whole grid further: leave room for it.
  constexpr int64_t kLimit = int64_t{1} << 31;
  const auto run = n < kLimit ? RunVector<float, uint32_t, 1> : RunVector<float, int64_t, 1>;
  return run(a, b, n, result, scratch, launcher);
}

}  // namespace

constinit const RmseStep kRmseIndex32 = {
    .info = VectorInfo("6c_index_32",
                       "32-bit indices below 2^31 elements: fewer instructions and registers; it shows only "
                       "where those, not memory, are the limit.",
                       1e-5),
    .scratch_bytes = BlockSumsBytes,
    .run = Run};

}  // namespace tilewire::ladder
