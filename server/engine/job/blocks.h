// An array in blocks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tilewire::engine {

/// The blocks of an array of `total` bytes; the last one may be shorter. Plain data.
struct BlockGrid {
  int64_t total = 0, block_bytes = 1;

  int64_t count() const { return (total + block_bytes - 1) / block_bytes; }
  int64_t begin(int64_t index) const { return index * block_bytes; }
  int64_t end(int64_t index) const { return std::min(begin(index) + block_bytes, total); }
  int64_t length(int64_t index) const { return end(index) - begin(index); }
};

}  // namespace tilewire::engine
