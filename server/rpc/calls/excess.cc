#include "server/rpc/calls/excess.h"

#include <algorithm>
#include <cmath>

namespace tilewire::rpc {
namespace {

// Of `late`: what a call is about to wait before there are too many.
constexpr double kLong = 0.5, kSoonLong = 1.2;
// Seconds: how far ahead one looks.
constexpr double kAhead = 20e-3;
// Growth: of what waits, beyond the least of the last looks, which is forgotten within half a second, and of
// what comes beyond what can be done; much of it, so that one look is enough.
constexpr double kGrows = 1.5, kForgets = 1.0125, kMore = 1.1, kFast = 1.5;
// Calls that are many enough for that: from so many callers of their own, each waiting for its answer.
constexpr double kMany = 256;
// Looks in a row that find too many; more of what is unread: callers who wait for answers begin all at once.
constexpr int kLooks = 2, kLooksUnread = 4;
// Of `late`: but not of so much, which so many callers are not.
constexpr double kVeryLong = 3;
// Of `late`: what no crowd excuses, neither in line nor where it is learned.
constexpr double kLine = 8;
// Nor is it a matter of so few: a server that stood for a moment seems slow, and they wait for nobody else.
constexpr double kFew = 16;
// Seconds of work until one knows how fast it is, of a server that has just begun.
constexpr double kWarm = 0.1;
// Of what usually waits: no more than usual. Seconds in which one learns that, and forgets it; and of one
// look at most, for what waits after nobody called for long is no more usual for it.
constexpr double kUsual = 1.5, kLearns = 0.25, kForgetsUsual = 2, kOneLook = 0.01;
// Seconds: what was over by then was a crowd that came at once.
constexpr double kAtOnce = 1;

}  // namespace

double Excess::Crowd(const Seen& seen) {
  const double seconds = std::min(seen.now.seconds, kOneLook);
  const double weight = 1 - std::exp(-seconds / (seen.waiting > usual_ ? kLearns : kForgetsUsual));
  usual_ += (seen.waiting - usual_) * weight;
  return std::max(crowd_, std::min(kUsual * usual_, kLine * late_ * seen.rate));
}

bool Excess::Begins(const Seen& seen) {
  const double waiting = seen.waiting, waits = seen.waits, rate = seen.rate;
  if (!seen.now.idle) busy_ += seen.now.seconds;
  // The fewest that waited lately, since anybody does.
  least_waited_ =
      seen.both.idle || least_waited_ == 0 ? waiting : std::min(waiting, least_waited_ * kForgets);
  const double crowd = crowd_ > 0 ? Crowd(seen) : 0;
  // As many as run may wait, as in Backlog, and a few more.
  const bool wait = waiting > 1.5 * seen.running;
  // Who call again when they were answered do not grow in number, however many wait.
  // What lies in sockets is a guess, and comes a window at a time: whether it grows is a matter of two looks.
  const double in = seen.both.came / seen.both.seconds;
  const bool guess = crowd_ == 0 && 2 * seen.unread > waiting && waits < kVeryLong * late_;
  const double comes = guess ? in : seen.now.came / seen.now.seconds;
  const bool grows = waiting > kGrows * least_waited_ && comes > kMore * rate;
  const bool soon = waits > late_ || waits + (in / rate - 1) * kAhead > kSoonLong * late_;
  // What lies in sockets is a guess, which alone is no reason unless it is of very many.
  const double line = (waiting - seen.unread) / rate;
  const bool enough = crowd_ == 0 || waiting >= kFew;
  const bool many = waiting > crowd || (enough && line > kLine * late_ && busy_ > kWarm);
  // Who was refused for want of a place tells more than how many wait, which are then no more than run; but
  // those who have the places may be calls of the other weight.
  const bool full = seen.full && waiting > 0.5 * seen.running;
  const bool often = !seen.both.idle && ((wait && grows && soon && many) || full);
  const bool fast = wait && !seen.now.idle && waiting > std::max(crowd, kMany) && waits > kLong * late_ &&
                    in > kFast * rate;
  often_ = often ? often_ + 1 : 0;
  if (!fast && often_ < (guess ? kLooksUnread : kLooks)) return false;
  began_with_ = waiting;
  return true;
}

void Excess::Ends(double seconds) {
  usual_ *= std::exp(-seconds / kForgetsUsual);
  if (seconds < kAtOnce) usual_ = std::max(usual_, began_with_);
}

}  // namespace tilewire::rpc
