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
/// Beside headers and messages, of frames around those, which a few bytes of them have as well, and of what
/// streams had sent that are over.
constexpr double kFrames = 16 << 20;
constexpr double kFramesHalfLifeSeconds = 10;
/// And for so long what is on its way when calls end: windows of streams, these at least.
constexpr double kOnItsWaySeconds = 10;
constexpr int64_t kWindow = 1 << 20;
/// Where nobody sees what is read: calls of health, too.
constexpr double kPerByteSentUnseen = 4;
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
  const double carried = Gained(&carried_, account.carried);
  const double paid = account.seen ? ReadBudget::Paid(sent, carried) : kPerByteSentUnseen * sent;
  if (account.seen)
    frames_ = std::max(0.0, frames_ * std::exp2(-seconds / kFramesHalfLifeSeconds) + received - paid);
  const bool begun = std::exchange(calls_, calls) != calls, over = std::exchange(ended_, ended) != ended;
  if (begun || over || open) {
    bytes_ = seconds_ = 0;
    return Judge(seconds, false, account);
  }
  const bool stranger = account.failed == calls;
  const bool may_be_on_its_way = !stranger && seconds_ < kOnItsWaySeconds;
  seconds_ += seconds;
  bytes_ = std::max(0.0, bytes_ * std::exp2(-seconds / kHalfLifeSeconds) + received - paid);
  if (may_be_on_its_way && seconds_ >= kOnItsWaySeconds) bytes_ = 0;
  double most = stranger ? kOfStrangers : kOfCallers;
  if (may_be_on_its_way) most += 2 * static_cast<double>(std::max(account.window.load(), kWindow));
  Judge(seconds, bytes_ > most, account);
}

void Unasked::Judge(double seconds, bool without_calls, const ConnectionAccount& account) {
  const double most_frames = kFrames + 2 * static_cast<double>(account.window.load());
  const bool were_too_many = std::exchange(too_many_, without_calls || frames_ > most_frames);
  too_many_for_ = too_many_ && were_too_many ? too_many_for_ + seconds : 0;
}

}  // namespace tilewire::rpc
