// Cases that move elements without changing them: copies, transposes, permutations.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/array/dtype.h"
#include "kernels/bench/bench.h"
#include "kernels/bench/device.h"

namespace tilewire::bench {

/// Input and output of equal size.
struct MoveData {
  DeviceBuffer in, out;
};

/// How one implementation moves.
struct MoveKernel {
  using Function = std::function<Status(const MoveData& data, Stream stream)>;
  std::string implementation;
  std::string note;
  Function run;            ///< enqueues one run
  bool replayable = true;  ///< Work::Replayable()
};

/// A case whose output has axis axes[i] of the input as axis i; checked on the device, element by element.
/// Rates are held against the device copy.
Case MoveCase(std::string group, std::string name, DType dtype, const std::vector<int64_t>& shape,
              const std::vector<int32_t>& axes, MoveKernel kernel);

/// Our kernels for that permutation, operand resident: one launch. Throws std::invalid_argument for axes that
/// are none.
MoveKernel OurMove(DType dtype, const std::vector<int64_t>& shape, const std::vector<int32_t>& axes);

}  // namespace tilewire::bench
