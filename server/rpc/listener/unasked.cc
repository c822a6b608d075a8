#include "server/rpc/listener/unasked.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tilewire::rpc {
namespace {

/// Of whom no call was let in: a handshake of TLS, and messages of calls that were refused at once.
constexpr double kOfStrangers = 256 << 10;
/// Of others.
constexpr double kOfCallers = 2 << 20;
/// While calls are open, since one began, ended or took a message. A message that is too large is read to its
/// end, so that its client is told why it is refused.
constexpr double kBesideCalls = 512 << 20;
/// And for so long what is on its way when calls end: windows of streams, these at least.
constexpr double kOnItsWaySeconds = 10;
constexpr int64_t kWindow = 1 << 20;
/// Answers to what the server sends: pings, windows.
constexpr double kPerByteSent = 4;
/// What comes little by little is none: pings, or who asks for health each second.
constexpr double kHalfLifeSeconds = 60;

double Gained(uint64_t* last, uint64_t now) {
  return static_cast<double>(now - std::exchange(*last, now));
}

}  // namespace

void Unasked::Update(double seconds, const TcpBytes& bytes, const ConnectionAccount& account) {
  const uint32_t ended = account.ended;
  const uint64_t calls = account.calls;
  const double received = Gained(&received_, std::max(received_, bytes.received)),
               sent = Gained(&sent_, bytes.sent);
  const bool open = static_cast<uint32_t>(calls) != ended;
  const bool begun = std::exchange(calls_, calls) != calls, over = std::exchange(ended_, ended) != ended;
  const bool took = Gained(&messages_, account.message_bytes) > 0;
  if (begun || over || took) {
    bytes_ = seconds_ = too_many_for_ = 0;
    too_many_ = false;
    return;
  }
  const bool stranger = !open && account.failed == calls;
  const bool may_be_on_its_way = !stranger && seconds_ < kOnItsWaySeconds;
  seconds_ += seconds;
  bytes_ = std::max(0.0, bytes_ * std::exp2(-seconds / kHalfLifeSeconds) + received - kPerByteSent * sent);
  if (may_be_on_its_way && seconds_ >= kOnItsWaySeconds && !open) bytes_ = 0;
  double most = open ? kBesideCalls : stranger ? kOfStrangers : kOfCallers;
  if (may_be_on_its_way) most += 2 * static_cast<double>(std::max(account.window.load(), kWindow));
  const bool were_too_many = std::exchange(too_many_, bytes_ > most);
  too_many_for_ = too_many_ && were_too_many ? too_many_for_ + seconds : 0;
}

}  // namespace tilewire::rpc
