#include "server/rpc/calls/done_rate.h"

#include <algorithm>
#include <cmath>

namespace tilewire::rpc {
namespace {

constexpr double kOften = 1.0 / 4, kEnoughToTell = 16;
// Seconds: over which it is learned slowly; in which it is learned from fewer than are enough; that tell how
// much is done while nobody waits, for what came in a moment in which the server stood is done at once after.
constexpr double kSlowly = 0.1, kLongest = 0.1, kRest = 10e-3;
// While nobody has waited for so many seconds the rate is not known any more, and taken to be larger by so
// much in a second than it was.
constexpr double kQuiet = 0.2, kMoreASecond = 0.2;

}  // namespace

void DoneRate::Learn(const CallsWindow& now, const CallsWindow& both, bool turns) {
  if (both.idle) return Rests(now, turns);
  rest_ = {}, quiet_ = 0;
  busy_.seconds += now.seconds;
  busy_.begun += now.begun;
  busy_.done += now.done;
  busy_.dropped += now.dropped;
  if (busy_.through() < kEnoughToTell && busy_.seconds < kLongest) return;
  const double rate = busy_.through() / busy_.seconds;
  const double weight =
      turns || rate < rate_ ? std::min(kOften, 1 - std::exp(-busy_.seconds / kSlowly)) : kOften;
  // What is refused because it is old takes the time of what would be done.
  if (busy_.dropped <= busy_.through()) rate_ += (rate - rate_) * (rate_ > 0 ? weight : 1);
  busy_ = {};
}

void DoneRate::Rests(const CallsWindow& now, bool turns) {
  quiet_ += now.seconds;
  rest_.seconds += now.seconds;
  rest_.begun += now.begun;
  rest_.done += now.done;
  if (rest_.seconds >= kRest) {
    // While others are held back what is done may be few, and is a rate that can be done all the same.
    if (rest_.through() >= kEnoughToTell || turns) rate_ = std::max(rate_, rest_.through() / rest_.seconds);
    rest_ = {};
  }
  if (turns && quiet_ > kQuiet) rate_ *= 1 + std::min(now.seconds, 1.0) * kMoreASecond;
}

}  // namespace tilewire::rpc
