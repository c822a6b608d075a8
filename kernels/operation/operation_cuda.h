// How operations run on a GPU. The only header here that knows CUDA types.
#pragma once

#include <span>

#include "kernels/array/launch_cuda.h"
#include "kernels/operation/descriptor.h"
#include "kernels/operation/problem.h"

namespace tilewire {

/// An operation's launches. `enqueue` passes those of a step to `launcher` and returns the launch's error; it
/// is given problems of `descriptor` alone. With a launcher that lists, buffers may be null. Thread-safe.
struct CudaOperation {
  const Descriptor* descriptor;
  cudaError_t (*enqueue)(const Problem& problem, Step step, const Buffers& buffers,
                         const gpu::Launcher& launcher);
};

/// Those of all folders of kernels/ that have one, X::kCuda of X/problem_cuda.h: the build lists them, so
/// that programs without a device link none.
std::span<const CudaOperation* const> CudaOperations();

/// Does that with the operation of `problem`; cudaErrorNotSupported where it has no launches.
cudaError_t EnqueueStep(const Problem& problem, Step step, const Buffers& buffers,
                        const gpu::Launcher& launcher);

}  // namespace tilewire
