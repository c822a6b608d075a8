// RMSE, step 6b: step 6 compiled with -use_fast_math (ladder.cmake gives it to this file alone).
//
// Why the product never uses it: the kernel waits for memory, so cheaper arithmetic saves nothing; subnormal
// squares (differences below about 10^-19) become 0, and so does the answer; division and square root are
// approximations, and no bit of a contract survives those.
#include "kernels/ladder/rmse_6_vector.cuh"

namespace tilewire::ladder {

constinit const RmseStep kRmseFastMath = {
    .info = VectorInfo("6b_fast_math",
                       "Compiled with -use_fast_math: no faster, since memory is the limit, and differences "
                       "below 1e-19 count as none.",
                       1e-5),
    .scratch_bytes = BlockSumsBytes,
    .run = RunVector<float, int64_t, 1>};

}  // namespace tilewire::ladder
