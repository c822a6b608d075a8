// Whether a client moves its bytes fast enough to keep what others wait for.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tilewire::rpc {

/// What a client owes of `least_rate` while the server waits for it. What it moves pays, but for nothing that
/// is to come: a burst long ago is no right to stand still now. Thread-compatible.
class Pace {
 public:
  /// Bytes a second; 0: any will do. `grace_seconds` of debt are nobody's business.
  Pace(double least_rate, double grace_seconds) : rate_(least_rate), most_(least_rate * grace_seconds) {}

  /// `seconds` after the last time; `bytes` moved meanwhile; `waited`: for the client.
  void Update(double seconds, uint64_t bytes, bool waited) {
    owed_ += (waited ? rate_ * seconds : 0) - static_cast<double>(bytes);
    owed_ = std::clamp(owed_, 0.0, 2 * most_);  // who was slow for long need not make good all of it
  }
  bool too_slow() const { return rate_ > 0 && owed_ > most_; }

 private:
  double rate_, most_;
  double owed_ = 0;
};

}  // namespace tilewire::rpc
