#include "kernels/bench/ranges.h"

namespace tilewire::bench {

ScopedRange::ScopedRange(const std::string& /*name*/) {}

ScopedRange::~ScopedRange() = default;

}  // namespace tilewire::bench
