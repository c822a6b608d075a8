// In place of meter_device.cc where there is no CUDA.
#include "kernels/bench/meter.h"

namespace tilewire::bench {

Result<std::unique_ptr<Meter>> MakeDeviceMeter(int /*device*/, int64_t /*max_bytes*/) {
  return Fail(Status(Code::kUnavailable, "NO_DEVICE", "this program was built without CUDA"));
}

}  // namespace tilewire::bench
