#include "server/engine/job/help.h"

namespace tilewire::engine {
namespace {

/// Longer than a small request's work on either device, shorter than anybody else on this thread would mind.
constexpr std::chrono::microseconds kHelp{200};
/// Of Glance(): an event is asked for again and again; what else comes waits so long.
constexpr std::chrono::microseconds kGlance{6};
/// Of all glances, as lanes' own threads stay awake for work. What takes longer must not burn a core.
constexpr std::chrono::milliseconds kAwake{1};

}  // namespace

void HelpOffer::Announce(Lane* lane) {
  lane_ = lane;
  until_ = Clock::now() + kAwake;
  announced_ = true;
  lane->AnnounceHelp();
}

void HelpOffer::Help(Lane* lane) {
  lane->Help(kHelp);
}

bool HelpOffer::Glance() {
  lane_->Help(kGlance);
  return Clock::now() < until_;
}

void HelpOffer::Withdraw() {
  if (announced_.exchange(false)) lane_->WithdrawHelp();
}

}  // namespace tilewire::engine
