// What a connection sends that no call takes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "server/rpc/listener/account.h"
#include "server/rpc/listener/tcp_facts.h"

namespace tilewire::rpc {

/// Nobody gets anything for such bytes, and they may cost all others much: a thread reads them for as long as
/// more come. Of an honest connection they are the frames of HTTP/2, a few around each header and message,
/// and what was on its way when calls ended. Where nobody sees what is read (grpc_reads.h) it counts while no
/// call is open alone. Thread-compatible.
class Unasked {
 public:
  /// `seconds` after the last time. `bytes`: that were read; what lies in the socket of a server that stood
  /// still is nobody's fault.
  void Update(double seconds, const TcpBytes& bytes, const ConnectionAccount& account);
  /// Whether it sent more than any honest one does, and had a tenth of a second ago: calls whose headers were
  /// read may wait for a thread.
  bool too_many() const { return too_many_for_ >= kSureAfterSeconds; }
  /// Bytes lately that were neither headers nor messages, nor what goes with them, beyond what any connection
  /// has of them; those of ten seconds ago count half. 0 where nobody sees what is read.
  double frames() const { return std::max(0.0, frames_ - static_cast<double>(ReadBudget::kFewBytes)); }

 private:
  static constexpr double kSureAfterSeconds = 0.1;
  void Judge(double seconds, bool without_calls, const ConnectionAccount& account);

  double bytes_ = 0, seconds_ = 0;  ///< since a call was open, or the connection came
  double frames_ = 0;               ///< bytes beside headers and messages
  bool too_many_ = false;
  double too_many_for_ = 0;                                     ///< seconds
  uint64_t received_ = 0, sent_ = 0, calls_ = 0, carried_ = 0;  ///< as of the last time
  uint32_t ended_ = 0;
};

}  // namespace tilewire::rpc
