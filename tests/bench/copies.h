// Plain copies over the lanes of a device: what a pipeline can reach at best.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/engine/device/device.h"

namespace tilewire::bench {

/// Pinned blocks and lanes, kept over runs. Not thread-safe.
class Copies {
 public:
  Copies(engine::Device* device, int lanes, int64_t block_bytes);

  /// Microseconds to copy `in` bytes to the device and `out` bytes back, both at once, block by block over
  /// all lanes. Throws std::runtime_error where the device fails.
  double Run(int64_t in, int64_t out);

 private:
  const int64_t block_bytes_;
  engine::Memory host_, device_;  ///< a block a lane and direction
  std::vector<std::unique_ptr<engine::Lane>> in_lanes_, out_lanes_;
};

}  // namespace tilewire::bench
