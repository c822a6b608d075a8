// Host code that all launches share. Each kernel's .cu instantiates its shapes for all kinds of element.
#pragma once

#include <algorithm>
#include <utility>

#include "kernels/array/launch_cuda.h"
#include "kernels/rmse/choice.h"
#include "kernels/rmse/cuda_element.cuh"

namespace tilewire::rmse::cuda {

inline constexpr int kUsualShared = 48 << 10;  // that a block has without asking
inline constexpr int64_t kMaxGrid = int64_t{1} << 30;

/// Launches a choice: the kernel that it names, in the shape that it names. Defined in the kernel's .cu.
cudaError_t LaunchTiles(const Choice& choice, const Work& work, const gpu::Launcher& launcher);
cudaError_t LaunchGroups(const Choice& choice, const Work& work, const gpu::Launcher& launcher);
cudaError_t LaunchStaged(const Choice& choice, const Work& work, const gpu::Launcher& launcher);
cudaError_t LaunchRing(const Choice& choice, const Work& work, const gpu::Launcher& launcher);
cudaError_t LaunchStream(const Choice& choice, const Work& work, const gpu::Launcher& launcher);
cudaError_t LaunchWalk(const Choice& choice, const Work& work, const gpu::Launcher& launcher);

/// Calls `f` with the Kind as a constant.
template <typename F>
cudaError_t WithKind(Kind kind, const F& f) {
  switch (kind) {
    case Kind::kU8:
      return f(std::integral_constant<Kind, Kind::kU8>());
    case Kind::kU16:
      return f(std::integral_constant<Kind, Kind::kU16>());
    case Kind::kU32:
      return f(std::integral_constant<Kind, Kind::kU32>());
    case Kind::kU64:
      return f(std::integral_constant<Kind, Kind::kU64>());
    case Kind::kF16:
      return f(std::integral_constant<Kind, Kind::kF16>());
    case Kind::kBF16:
      return f(std::integral_constant<Kind, Kind::kBF16>());
    case Kind::kF32:
      return f(std::integral_constant<Kind, Kind::kF32>());
    case Kind::kF64:
      return f(std::integral_constant<Kind, Kind::kF64>());
  }
  return cudaErrorInvalidValue;
}

/// Calls `f` with `index`, which is below kCount, as a constant.
template <size_t kCount, typename F>
cudaError_t WithShape(int index, const F& f) {
  cudaError_t error = cudaErrorInvalidValue;
  [&]<size_t... I>(std::index_sequence<I...>) {
    static_cast<void>(
        ((static_cast<int>(I) == index && (error = f(std::integral_constant<size_t, I>()), true)) || ...));
  }
  (std::make_index_sequence<kCount>());
  return error;
}

/// Launches the choice's blocks of `kernel`, in several grids where one would be too large.
template <typename Kernel, typename... More>
cudaError_t LaunchBlocks(const gpu::Launcher& launcher, Kernel kernel, const Choice& choice, Work work,
                         const More&... more) {
  // Always the same value: another thread may be about to launch this kernel with more than this launch
  // needs. When only listing, too, because what fits a multiprocessor depends on it.
  if (choice.shared > kUsualShared) {
    thread_local gpu::OncePerKernel<int> told;
    const auto* handle = reinterpret_cast<const void*>(kernel);
    const auto tell = [&](int* most) {
      *most = choice.shared_most;
      return cudaFuncSetAttribute(handle, cudaFuncAttributeMaxDynamicSharedMemorySize, *most);
    };
    int most = 0;
    if (const cudaError_t error = told.Get(handle, tell, &most); error != cudaSuccess) return error;
  }
  for (int64_t base = 0; base < choice.blocks; base += kMaxGrid) {
    work.block_base = base;
    const auto grid = static_cast<unsigned>(std::min(kMaxGrid, choice.blocks - base));
    if (const cudaError_t error =
            launcher.Run(kernel, dim3(grid), dim3(static_cast<unsigned>(choice.threads)),
                         static_cast<size_t>(choice.shared), work, more...);
        error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

}  // namespace tilewire::rmse::cuda
