// What a connection sends while no call of it is open.
#pragma once

#include <cstdint>

#include "server/rpc/listener/account.h"
#include "server/rpc/listener/tcp_facts.h"

namespace tilewire::rpc {

/// Nobody gets anything for such bytes, and they may cost all others much: gRPC 1.51 reads a header that has
/// not come whole anew with each frame of it, so that one of some megabytes, which nobody need be let in for,
/// stops a server (CVE-2023-33953). Of an honest connection they are frames of HTTP/2 itself, and what was on
/// its way when its last call ended. Thread-compatible.
class Unasked {
 public:
  /// `seconds` after the last time. `bytes`: that were read; what lies in the socket of a server that stood
  /// still is nobody's fault.
  void Update(double seconds, const TcpBytes& bytes, const ConnectionAccount& account);
  /// Whether it sent more than any honest one does, and had a tenth of a second ago: calls whose headers were
  /// read may wait for a thread.
  bool too_many() const { return too_many_for_ >= kSureAfterSeconds; }

 private:
  static constexpr double kSureAfterSeconds = 0.1;

  double bytes_ = 0, seconds_ = 0;  ///< since a call was open, or the connection came
  bool too_many_ = false;
  double too_many_for_ = 0;                       ///< seconds
  uint64_t received_ = 0, sent_ = 0, calls_ = 0;  ///< as of the last time
  uint32_t ended_ = 0;
};

}  // namespace tilewire::rpc
