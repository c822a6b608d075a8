// The thread that opened a job lends itself to the job's lane, so that nobody has to be woken for it.
#pragma once

#include <atomic>

#include "server/base/timing.h"
#include "server/engine/device/device.h"

namespace tilewire::engine {

/// An offer of that. Invariant: the lane counts on it exactly while it stands. All but Announce() on any
/// thread.
class HelpOffer {
 public:
  HelpOffer() = default;
  ~HelpOffer() { Withdraw(); }
  HelpOffer(const HelpOffer&) = delete;
  HelpOffer& operator=(const HelpOffer&) = delete;

  /// To `lane`, which outlives it: submissions wake nobody while it stands. Once.
  void Announce(Lane* lane);
  bool stands() const { return announced_.load(); }
  /// Runs the lane's work for a moment.
  static void Help(Lane* lane);
  /// The same, much shorter; after Announce(). False once it was done for longer than anybody should be
  /// awake.
  bool Glance();
  /// No-op where it stands no more.
  void Withdraw();

 private:
  std::atomic<bool> announced_{false};
  Lane* lane_ = nullptr;
  TimePoint until_;
};

}  // namespace tilewire::engine
