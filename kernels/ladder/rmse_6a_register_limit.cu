// RMSE, step 6a: step 6 held to 32 registers a thread, so that twice 1024 threads fit a multiprocessor.
#include "kernels/ladder/rmse_6_vector.cuh"

namespace tilewire::ladder {

constinit const RmseStep kRmseRegisterLimit = {
    .info = VectorInfo("6a_register_limit",
                       "At most 32 registers a thread for full occupancy: more threads, but each keeps fewer "
                       "loads in flight, so occupancy buys nothing by itself.",
                       1e-5),
    .scratch_bytes = BlockSumsBytes,
    .run = RunVector<float, int64_t, 2>};

}  // namespace tilewire::ladder
