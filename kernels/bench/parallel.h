// Splitting work over the host's threads, for checks that would take too long on one.
#pragma once

#include <cstdint>
#include <functional>

namespace tilewire::bench {

/// Calls body(begin, end) for ranges that partition [0, items), on all hardware threads, and waits for all.
/// `body` must not throw.
void ParallelFor(int64_t items, const std::function<void(int64_t, int64_t)>& body);

}  // namespace tilewire::bench
