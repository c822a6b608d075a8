// Time that stands still until a test lets it pass, and a timer that goes by it.
#pragma once

#include <future>

#include "server/base/timer.h"

namespace tilewire::engine::testing {

/// Returns when the timer's thread has done everything that is due by now.
inline void Flush(Timer& timer) {
  std::promise<void> done;
  timer.At(timer.Now(), [&done] { done.set_value(); });
  done.get_future().wait();
}

/// Lets time pass, and returns when what was due by then has been done.
inline void Pass(ManualTime& time, Timer& timer, Clock::duration by) {
  time.Advance(by);
  Flush(timer);
}

}  // namespace tilewire::engine::testing
