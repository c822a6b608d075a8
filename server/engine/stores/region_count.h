// How many regions there may be.
#pragma once

#include <cstdint>

namespace tilewire::engine {

/// kMaxRegions, or what the process' open files allow: each region takes one, and an eighth of them at most,
/// so that regions never keep connections out. Thread-safe.
int64_t MostRegions();

}  // namespace tilewire::engine
