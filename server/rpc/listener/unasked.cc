#include "server/rpc/listener/unasked.h"

#include <algorithm>
#include <utility>

namespace tilewire::rpc {
namespace {

/// Of whom no call was let in: a handshake of TLS, and messages of calls that were refused at once.
constexpr double kOfStrangers = 256 << 10;
/// Of others: what is on its way when calls end, beside windows that were given wide.
constexpr double kOfCallers = 2 << 20;
/// By then that has come.
constexpr double kOnItsWaySeconds = 10;
/// Answers to what the server sends: pings, windows.
constexpr double kPerByteSent = 4;
/// Pings of a client's own, one a second, in TLS.
constexpr double kPerSecond = 64;

double Gained(uint64_t* last, uint64_t now) {
  return static_cast<double>(now - std::exchange(*last, now));
}

}  // namespace

void Unasked::Update(double seconds, const TcpBytes& bytes, const ConnectionAccount& account) {
  const uint32_t ended = account.ended;
  const uint64_t calls = account.calls;
  const double received = Gained(&received_, bytes.received), sent = Gained(&sent_, bytes.sent);
  const bool begun = std::exchange(calls_, calls) != calls, over = std::exchange(ended_, ended) != ended;
  if (begun || over || static_cast<uint32_t>(calls) != ended) {
    bytes_ = seconds_ = 0;
    return;
  }
  const bool stranger = account.failed == calls;
  const bool may_be_on_its_way = !stranger && seconds_ < kOnItsWaySeconds;
  seconds_ += seconds;
  bytes_ = std::max(0.0, bytes_ + received - kPerByteSent * sent - kPerSecond * seconds);
  if (may_be_on_its_way && seconds_ >= kOnItsWaySeconds) bytes_ = 0;
  most_ = stranger ? kOfStrangers : kOfCallers;
  if (may_be_on_its_way) most_ += 2 * static_cast<double>(account.window);
}

}  // namespace tilewire::rpc
