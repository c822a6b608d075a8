#include <nvtx3/nvToolsExt.h>

#include "kernels/bench/ranges.h"

namespace tilewire::bench {

ScopedRange::ScopedRange(const std::string& name) {
  nvtxRangePushA(name.c_str());
}

ScopedRange::~ScopedRange() {
  nvtxRangePop();
}

}  // namespace tilewire::bench
