// The ranges of a plan as plans of their own: for who holds the bytes of some ranges at a time. Shared by all
// operations whose work is cut as an RMSE's is.
#pragma once

#include <vector>

#include "kernels/rmse/rmse.h"

namespace tilewire::rmse {

/// One range as a whole array. Its tiles are tiles of the whole plan too, since ranges begin at tiles.
struct Part {
  const Plan* plan;  ///< of the range's bytes alone
  int64_t first;     ///< place of its first tile among those of the whole plan, [segment][tile]
  int64_t element;   ///< index in its segment that its first element has in the whole plan
};

/// Immutable, thread-safe.
class Parts {
 public:
  enum class Cut : uint8_t {
    kParts,     ///< ranges come one after the other
    kFarApart,  ///< ranges share bytes
    kOne,       ///< there is one range only
  };
  static Cut CutOf(const Plan& plan);

  /// Of a plan whose cut is kParts.
  explicit Parts(const Plan& plan);
  /// `range`: of that plan. What is returned lives as long as this.
  Part part(const Range& range) const;

 private:
  int64_t tiles_;            ///< of a segment of the plan
  std::vector<Plan> plans_;  ///< one for every length that ranges have
};

}  // namespace tilewire::rmse
