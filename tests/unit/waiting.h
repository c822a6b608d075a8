// How tests wait: for what they wait for, never for time to pass.
#pragma once

#include <chrono>
#include <thread>

namespace tilewire::testing {

/// Polls until `condition` holds: for what nobody tells, such as another process or a counter. False after so
/// long that no machine is as slow as that.
template <typename Condition>
bool Eventually(const Condition& condition, std::chrono::seconds patience = std::chrono::seconds(60)) {
  for (const auto end = std::chrono::steady_clock::now() + patience; !condition();) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return true;
}

}  // namespace tilewire::testing
