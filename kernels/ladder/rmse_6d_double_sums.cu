// RMSE, step 6d: step 6 with differences, squares and sums in binary64.
#include "kernels/ladder/rmse_6_vector.cuh"

namespace tilewire::ladder {

constinit const RmseStep kRmseDoubleSums = {
    .info = VectorInfo("6d_double_sums",
                       "Sums in binary64: eight more digits for the same bytes, at nearly the same speed "
                       "where the GPU has binary64 units enough.",
                       1e-12),
    .scratch_bytes = BlockSumsBytes,
    .run = RunVector<double, int64_t, 1>};

}  // namespace tilewire::ladder
