#include "server/rpc/listener/account.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tilewire::rpc {
namespace {

double Gained(uint64_t* last, uint64_t now) {
  return static_cast<double>(now - std::exchange(*last, now));
}

}  // namespace

void Burden::Update(double seconds, uint64_t received_bytes, const ConnectionAccount& account) {
  const double kept = std::exp2(-seconds / kHalfLifeSeconds);
  const double taken = Gained(&messages_, account.message_bytes) * (1 + kFraming);
  // Those who were turned away sent requests such as the others, or a part of them, and are not to blame.
  const double turned_away = Gained(&turned_away_, account.turned_away);
  const double request = static_cast<double>(account.message_bytes) /
                         static_cast<double>(std::max<uint64_t>(account.requests, 1));
  // Of calls that came to nothing the headers are not for nothing.
  const double failed = Gained(&failed_, account.failed);
  // This first: what is taken was read.
  const double taken_calls = Gained(&calls_, account.calls), begun = Gained(&begun_, account.begun);
  const double calls = std::max(0.0, taken_calls - failed);
  const double received = Gained(&received_, received_bytes);
  const double paid = taken + calls * kBytesOfCall + turned_away * std::min(request, kBytesTurnedAway);
  idle_bytes_ = std::max(0.0, idle_bytes_ * kept + received - paid);
  failed_calls_ = failed_calls_ * kept + failed;
  const double untaken = untaken_calls_ * std::exp2(-seconds / kUntakenHalfLifeSeconds);
  untaken_calls_ = std::max(0.0, untaken + begun - taken_calls);
}

}  // namespace tilewire::rpc
