// How many threads there are to be, and whether they can be made.
#pragma once

#include "kernels/array/status.h"

namespace tilewire {

/// How many threads take small calls at once where `cores` are to be had, 2 or more.
int SmallCallsAtOnce(int cores);

/// Makes that many threads at once and ends them. UNAVAILABLE `INTERNAL_ERROR`, saying what to raise, where
/// that fails: libraries that need them later would end the process.
Status CheckThreads(int count);

}  // namespace tilewire
