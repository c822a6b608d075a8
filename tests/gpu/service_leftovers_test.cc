// What one caller's jobs left in the GPU's memory and in pinned memory reaches nobody else.
#include "server/engine/device/cuda/device.h"
#include "tests/integration/leftovers.h"

namespace tilewire::testing {
namespace {

TEST(GpuLeftovers, OfOneCallerReachNobodyElse) {
  if (engine::CudaDeviceCount() == 0) GTEST_SKIP() << "no CUDA device";
  Leftovers(engine::OpenCudaDevice(0).value()).ExpectNone();
}

}  // namespace
}  // namespace tilewire::testing
