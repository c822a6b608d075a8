// The layouts whose rates kernels/rmse/RESULTS.md shows: every kind, whether its kernel is fast or not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/array/dtype.h"

namespace tilewire::bench {

/// One of them, of about 512 MiB an operand where its kind says nothing else.
struct RmseLayout {
  std::string kind;  ///< "one", "segments", "columns", "rows", "middle", "runs", "small"
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<int32_t> axes;

  /// "columns/f32 8134407x33 over 0"
  std::string name() const;
};

/// All of them, in the order of the table there.
std::vector<RmseLayout> RmseLayouts();

}  // namespace tilewire::bench
