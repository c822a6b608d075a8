// How many calls a second can be done.
#pragma once

#include "server/rpc/calls/excess.h"

namespace tilewire::rpc {

/// Learned from how many were done while others waited: slowly while connections take turns, for what is done
/// swings with what waits then, and always down, for a server that stood, or lacked most of its cores for a
/// moment, is not slow. While nobody waits it is at least what was done in a while, if that was enough to
/// tell or connections take turns; where they do for long, a little more with every second. Not thread-safe.
class DoneRate {
 public:
  /// `now`: since the last look. `both`: and since the one before it. `turns`: not all who call may send.
  void Learn(const CallsWindow& now, const CallsWindow& both, bool turns);
  /// Calls a second; 0: not known yet.
  double rate() const { return rate_; }

 private:
  void Rests(const CallsWindow& now, bool turns);

  double rate_ = 0;
  CallsWindow busy_;  ///< while others waited, since the rate was learned
  CallsWindow rest_;  ///< while nobody did, since that was last looked at
  double quiet_ = 0;  ///< seconds since others waited
};

}  // namespace tilewire::rpc
