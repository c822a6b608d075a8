// Whether threads can be made.
#pragma once

#include "kernels/array/status.h"

namespace tilewire {

/// Makes that many threads at once and ends them. UNAVAILABLE `INTERNAL_ERROR`, saying what to raise, where
/// that fails: libraries that need them later would end the process.
Status CheckThreads(int count);

}  // namespace tilewire
