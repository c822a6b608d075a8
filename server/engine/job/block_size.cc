#include "server/engine/job/block_size.h"

#include <algorithm>

#include "server/base/limits.h"

namespace tilewire::engine {
namespace {

// Of jobs that need no staging memory. Larger ones gain a few percent at most (tests/bench/README.md
// has figures) and keep others from the lanes for longer.
constexpr int64_t kLargestUnstagedBlock = 16 * kMiB;

/// Whether all arrays are where the device reaches them, and the result stays there or is small. `residents`
/// and `regions` are filled.
bool NeedsNoStaging(const Operation& operation, const JobOptions& options) {
  for (size_t i = 0; i < options.regions.size(); ++i)
    if (!options.residents[i] && !options.regions[i]) return false;
  return options.store || options.result_region || operation.result_bytes() <= kSmallJobBytes;
}

}  // namespace

int64_t BlockBytes(const Operation& operation, const JobOptions& options, const BlockRule& rule,
                   const CopyRates& rates) {
  if (options.block_bytes > 0) return options.block_bytes;
  if (!rule.fit) return rule.bytes;
  const int64_t most =
      NeedsNoStaging(operation, options) ? std::max(rule.bytes, kLargestUnstagedBlock) : rule.bytes;
  return BlockFor(operation.operands()[0].bytes(), most, rates);
}

}  // namespace tilewire::engine
