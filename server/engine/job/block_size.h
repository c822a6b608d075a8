// How large a job's blocks are.
#pragma once

#include <cstdint>

#include "server/engine/job/places.h"
#include "server/engine/measure/copy_rates.h"
#include "server/engine/operation/operation.h"

namespace tilewire::engine {

/// What the operator says of blocks.
struct BlockRule {
  int64_t bytes = 4 << 20;  ///< of one, or of the largest
  bool fit = false;         ///< smaller ones for arrays of few, see BlockFor()
};

/// Bytes of a block of a job. `wanted`: what its caller fixed, or 0.
int64_t BlockBytes(const Operation& operation, const Places& places, int64_t wanted, const BlockRule& rule,
                   const CopyRates& rates);

}  // namespace tilewire::engine
