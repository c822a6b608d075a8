// What a server tells about itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/array/kernel_info.h"

namespace tilewire::client {

/// What a server says about itself; see tilewire.v1.DescribeResponse for units.
struct ServerInfo {
  struct Device {
    std::string id, name, compute_capability, driver_version, runtime_version;
    uint64_t memory_bytes = 0;
    uint32_t processors = 0;
    /// Of one block to and from the device, as the server measured them; none where nothing is copied.
    std::optional<double> copy_in_bytes_per_second, copy_out_bytes_per_second;
  };
  std::string instance, version;
  std::vector<Device> devices;
  std::vector<std::string> numeric_versions;
  uint64_t block_bytes = 0, max_message_bytes = 0, max_unary_bytes = 0, inline_result_bytes = 0;
  uint32_t lanes = 0, max_in_flight = 0, queue_length = 0, max_rank = 0;
  double queue_seconds = 0, idle_seconds = 0;
  uint64_t device_bytes = 0, device_bytes_in_use = 0, pinned_bytes = 0, pinned_bytes_in_use = 0;
  uint32_t jobs_in_flight = 0, jobs_queued = 0;
  // Resident arrays: how long they are kept, what all and one caller may store, what there is.
  double store_seconds = 0, longest_store_seconds = 0;
  uint64_t store_bytes = 0, store_bytes_per_identity = 0, array_bytes = 0;
  uint32_t max_arrays = 0, arrays_stored = 0;
  // Regions: what names must begin with (empty: off), what all and one caller may register, how long unused
  // ones are kept, what there is.
  std::string region_prefix;
  uint64_t region_bytes = 0, region_bytes_per_identity = 0, region_bytes_registered = 0;
  double region_seconds = 0, longest_region_seconds = 0;
  uint32_t regions_registered = 0;
  bool device_regions = false;  ///< memory of the device may be registered
};

/// Kernels of a server's device, and the launches chosen for an operation; see tilewire.v1.KernelLaunch.
struct ServerKernels {
  struct Launch {
    std::string group;      ///< "rmse", "ladder/rmse"
    std::string operation;  ///< what the launch was chosen for: "rmse f32 (4096, 4096)"
    std::string part;       ///< "range 0 of 8", "finish"; empty for the ladder
    KernelInfo kernel;
  };
  std::string device;            ///< "cuda:0"; "cpu" has no kernels of its own
  std::vector<Launch> launches;  ///< empty on the CPU
};

/// Measured limits of a server's machine; see tilewire.v1.MeasureCeilingsResponse.
struct ServerCeilings {
  std::string device;
  std::vector<std::pair<std::string, double>> bytes_per_second;  ///< by tier: {"h2d", 55e9}
};

}  // namespace tilewire::client
