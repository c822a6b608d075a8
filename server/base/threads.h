// How many threads there are to be, and whether they can be made.
#pragma once

#include "kernels/array/status.h"

namespace tilewire {

/// Where there are fewer cores, clients that share them need all.
inline constexpr int kFewCores = 4;

/// How many threads take small calls at once of so many cores; two at least.
int SmallCallsAtOnce(int cores);
/// How many lanes small jobs have: as many as that, up to four, more than which did no more. A lane sends one
/// reply after the other. With fewer of them jobs wait for each other, and further calls wait to be let in,
/// each of which costs a wake-up.
int SmallLanes(int cores);

/// Makes that many threads at once and ends them. UNAVAILABLE `INTERNAL_ERROR`, saying what to raise, where
/// that fails: libraries that need them later would end the process.
Status CheckThreads(int count);

}  // namespace tilewire
