// What the machine's memory allows: the measure of the host kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewire::bench {

/// Reads `bytes` (a multiple of 512) of each of two 64-byte aligned operands, side by side as RMSE reads
/// them, and returns a checksum: nothing but vector loads and one addition each. With `ahead` > 0 it
/// prefetches so many bytes ahead. The widest vectors of the processor are chosen at run time.
uint64_t ReadBoth(const void* a, const void* b, int64_t bytes, int64_t ahead);

}  // namespace tilewire::bench
