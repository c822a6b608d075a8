// What a server is asked to compute: an operation and its attributes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/array/shape.h"
#include "kernels/operation/descriptor.h"

namespace tilewire::client {

/// Which value an RMSE call returns. Numbers equal tilewire.v1.RmseOutput.
enum class RmseOutput : uint8_t { kRmse = 0, kMse = 1, kSumSquares = 2 };

/// RMSE of two arrays of equal dtype (any but bool and complex) and shape. Result: f64, the axes not reduced,
/// in order.
struct RmseOp {
  std::vector<int32_t> axes;  ///< to reduce, negative from the end, each once; empty: all
  RmseOutput output = RmseOutput::kRmse;
};

/// Permutation of the axes of one array: axis i of the result is input axis axes[i].
struct TransposeOp {
  std::vector<int32_t> axes;  ///< all axes, negative from the end; empty: reversed order
};

/// Density of the normal distribution at every element of one f32 or f64 array:
/// exp(-((x - mean) / stddev)^2 / 2) / (stddev sqrt(2 pi)), at most 1 ulp from the exact value. Result: same
/// dtype and shape.
struct GaussianOp {
  double mean = 0;    ///< finite
  double stddev = 1;  ///< finite and more than 0
};

/// Any operation. Those above are one, too, for programs that are written for them; all that servers know are
/// in operations.h. A value type.
struct Operation {
  /// None: every call refuses it.
  Operation() = default;
  /// Attributes that are not given are as the descriptor says.
  explicit Operation(const Descriptor& which, Attributes with = {})
      : descriptor(&which), attributes(std::move(with)) {}
  Operation(const RmseOp& op);       // NOLINT(google-explicit-constructor): the same thing, typed
  Operation(const TransposeOp& op);  // NOLINT(google-explicit-constructor)
  Operation(const GaussianOp& op);   // NOLINT(google-explicit-constructor)

  const Descriptor* descriptor = nullptr;
  Attributes attributes;
};

/// dtypes and shapes of an operation's results, in its order. INVALID_ARGUMENT for what no server would
/// accept: wrong number of operands, specs that differ, a dtype that the operation does not know, attributes
/// that are unknown or wrong.
Result<std::vector<ArraySpec>> ResultSpecs(const Operation& operation, std::span<const ArraySpec> operands);
/// Of the first one, which most operations have alone.
Result<ArraySpec> ResultSpec(const Operation& operation, std::span<const ArraySpec> operands);

}  // namespace tilewire::client
