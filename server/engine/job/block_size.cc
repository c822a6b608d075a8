#include "server/engine/job/block_size.h"

#include <algorithm>

#include "server/base/limits.h"

namespace tilewire::engine {
namespace {

// Of jobs that need no staging memory. Larger ones gain a few percent at most (tests/bench/RESULTS.md
// has figures) and keep others from the lanes for longer.
constexpr int64_t kLargestUnstagedBlock = 16 * kMiB;

/// Whether all arrays are where the device reaches them, and the results stay there or are small.
bool NeedsNoStaging(const Operation& operation, const Places& places) {
  return places.streamed() == 0 && (!places.handed_out() || operation.result_bytes() <= kSmallJobBytes);
}

}  // namespace

int64_t BlockBytes(const Operation& operation, const Places& places, int64_t wanted, const BlockRule& rule,
                   const CopyRates& rates) {
  if (wanted > 0) return wanted;
  if (!rule.fit) return rule.bytes;
  const int64_t most =
      NeedsNoStaging(operation, places) ? std::max(rule.bytes, kLargestUnstagedBlock) : rule.bytes;
  return BlockFor(operation.operands()[0].bytes(), most, rates);
}

}  // namespace tilewire::engine
