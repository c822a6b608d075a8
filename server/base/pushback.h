// When somebody may come again who is refused by a token bucket.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "server/base/time_source.h"

namespace tilewire {

/// How many may come in turn, each later than the one before by `worth`, which is what time takes to bring
/// what he wants; `lacking` is what it takes for the rest of it. They are told to come within a second from
/// the first of them on, for which buckets save what is not fetched: so nothing is lost where some do not
/// come, and who waits for them does so for a second at most. 0: all are told to come when the first of them
/// may; where a second brings less than two such, and where he only came a little early. Nothing is kept for
/// anybody.
inline uint32_t PlacesInTurn(Clock::duration worth, Clock::duration lacking) {
  constexpr int kLittle = 10;
  const auto places = std::chrono::seconds(1) / std::max(worth, Clock::duration(1));
  return places < 2 || lacking < worth / kLittle ? 0 : static_cast<uint32_t>(places);
}

}  // namespace tilewire
