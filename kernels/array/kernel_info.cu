#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "kernels/array/kernel_info_cuda.h"

namespace tilewire::gpu {
namespace {

/// "void ns::Kernel<int>(float const*)" of a mangled name becomes "ns::Kernel<int>".
std::string Readable(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  if (status != 0) return mangled;
  std::string name = text.get();
  // The parameter list is the last top-level parenthesis; template arguments may hold others, "(anonymous
  // namespace)" too.
  int angle = 0;
  size_t parameters = std::string::npos;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++angle;
    if (name[i] == '>') --angle;
    if (name[i] == '(' && angle == 0 && name.compare(i, 21, "(anonymous namespace)") != 0) {
      parameters = i;
      break;
    }
  }
  name.resize(std::min(parameters, name.size()));
  if (name.starts_with("void ")) name.erase(0, 5);
  return name;
}

}  // namespace

cudaError_t Describe(const Launch& launch, KernelInfo* info) {
  cudaFuncAttributes attributes{};
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, launch.kernel); error != cudaSuccess)
    return error;
  const char* mangled = nullptr;
  if (const cudaError_t error = cudaFuncGetName(&mangled, launch.kernel); error != cudaSuccess) return error;
  const int threads = static_cast<int>(launch.block.x * launch.block.y * launch.block.z);
  int blocks = 0;
  if (const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, launch.kernel, threads,
                                                                              launch.dynamic_shared_bytes);
      error != cudaSuccess)
    return error;
  int device = 0, threads_max = 0, warp = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  cudaDeviceGetAttribute(&threads_max, cudaDevAttrMaxThreadsPerMultiProcessor, device);
  cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device);
  const int warps = (threads + warp - 1) / warp;
  *info = {.name = Readable(mangled),
           .registers = attributes.numRegs,
           .local_bytes = static_cast<int64_t>(attributes.localSizeBytes),
           .static_shared_bytes = static_cast<int64_t>(attributes.sharedSizeBytes),
           .const_bytes = static_cast<int64_t>(attributes.constSizeBytes),
           .max_threads_per_block = attributes.maxThreadsPerBlock,
           .binary_version = attributes.binaryVersion,
           .ptx_version = attributes.ptxVersion,
           .grid = {launch.grid.x, launch.grid.y, launch.grid.z},
           .block = {static_cast<int>(launch.block.x), static_cast<int>(launch.block.y),
                     static_cast<int>(launch.block.z)},
           .dynamic_shared_bytes = static_cast<int64_t>(launch.dynamic_shared_bytes),
           .blocks_per_multiprocessor = blocks,
           .occupancy = static_cast<double>(blocks) * warps * warp / threads_max};
  return cudaSuccess;
}

}  // namespace tilewire::gpu
