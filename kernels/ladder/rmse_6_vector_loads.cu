// RMSE, step 6: as many blocks as the GPU holds, 16 bytes a load, several loads in flight, no atomics.
#include "kernels/ladder/rmse_6_vector.cuh"

namespace tilewire::ladder {

constinit const RmseStep kRmseVectorLoads = {
    .info = VectorInfo("6_vector_loads",
                       "A grid that the occupancy calculator chose, 16 bytes a load and eight loads in "
                       "flight a thread; block sums meet in a second launch, in a fixed order.",
                       1e-5),
    .scratch_bytes = BlockSumsBytes,
    .run = RunVector<float, int64_t, 1>};

}  // namespace tilewire::ladder
