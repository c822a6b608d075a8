// What is known of a compiled GPU kernel and of a launch of it. No CUDA types: servers and tools show it.
#pragma once

#include <cstdint>
#include <string>

namespace tilewire {

/// One kernel as compiled for the current device, and one launch of it.
struct KernelInfo {
  std::string name;         ///< demangled, without parameters: "tilewire::rmse::cuda::WarpKernel<...>"
  int registers = 0;        ///< a thread
  int64_t local_bytes = 0;  ///< a thread; spills live here
  int64_t static_shared_bytes = 0;    ///< a block
  int64_t const_bytes = 0;            ///< user-declared constant memory
  int max_threads_per_block = 0;      ///< that registers allow
  int binary_version = 0;             ///< 90: machine code for sm_90
  int ptx_version = 0;                ///< 90: compiled from compute_90
  int64_t grid[3] = {0, 0, 0};        ///< of the launch, blocks
  int block[3] = {0, 0, 0};           ///< threads
  int64_t dynamic_shared_bytes = 0;   ///< a block
  int blocks_per_multiprocessor = 0;  ///< that fit at once
  double occupancy = 0;               ///< resident warps ÷ the most that the device can hold, 0 to 1
};

}  // namespace tilewire
