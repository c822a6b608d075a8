// How fast copies between pinned and device memory are, measured once, and the block size that follows.
#pragma once

#include <cstdint>

#include "server/engine/device/device.h"

namespace tilewire::engine {

/// Zero where nothing is copied (device memory is host memory).
struct CopyRates {
  double in = 0, out = 0;   ///< bytes a second, at the largest block
  int64_t least_block = 0;  ///< smallest size that is copied at four fifths of that rate or more, bytes
};

/// Measures on an otherwise idle `lane`, some milliseconds, with sizes up to `block_bytes`. Zeros where
/// device memory is host memory or where a copy cannot be timed. Fails as allocating and copying do.
Result<CopyRates> MeasureCopies(Device* device, Lane* lane, int64_t block_bytes);

/// Bytes of a block for operands of `operand_bytes` each: a power of two of at least sixteen blocks an
/// operand, so that little is left to do once the last byte has come, but not under what is copied fast
/// (`rates.least_block`) nor over `block_bytes`.
int64_t BlockFor(int64_t operand_bytes, int64_t block_bytes, const CopyRates& rates);

}  // namespace tilewire::engine
