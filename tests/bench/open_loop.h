// Calls that come when they are due, whatever the server does: HTTP/2 by hand, because gRPC's own client
// costs as much as a server, so that one core could not offer another three times what it can do.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tilewire::bench {

/// What every call sends, and what its right answer has in it.
struct CallForm {
  std::string path;     ///< "/tilewire.v1.Kernels/Compute"
  std::string body;     ///< all of its messages, with gRPC's frame around each
  std::string expects;  ///< bytes of the reply
};

/// How calls come.
struct Schedule {
  double per_second = 0;                         ///< a Poisson process; 0: a closed loop
  int under_way = 64;                            ///< of a closed loop
  double seconds = 1;                            ///< calls come so long
  double then_per_second = 0, then_seconds = 0;  ///< and, of an open loop, so many and so long after it
  double deadline_seconds = 1;
  /// Calls that are due while the server has asked their connection to hold back fail at once, unsent; of a
  /// closed loop they wait until then, and who is refused calls again when he was told to.
  bool obeys = false;
};

/// What became of a call; times in seconds from the begin of the run.
struct CallEnd {
  static constexpr int kNone = -1, kWrong = -2, kLost = -3;
  double due = 0;
  double ended = 0;
  int status = kNone;  ///< gRPC's; 4 where its client gave up. kWrong: 0 with a wrong answer
  bool sent = false;   ///< else it waited at the client, for the server takes so many streams and no more
  /// Of the time between due and ended at most so much is the client's own: until it looked whether the call
  /// was due, and since it had last looked for answers.
  double own = 0;
};

/// Connections of one thread to one server. A call waits for its turn where the server takes no more streams,
/// and its DATA where the server grants no window, as with gRPC's own clients; who passes his deadline is
/// given up and, if sent, reset. Each connection is a client of its own.
class OpenLoop {
 public:
  /// Throws std::runtime_error when it cannot connect.
  OpenLoop(const std::string& address, int connections, CallForm form, uint64_t seed);
  ~OpenLoop();
  OpenLoop(const OpenLoop&) = delete;
  OpenLoop& operator=(const OpenLoop&) = delete;

  /// All calls of a run, which ends when the last has ended. Throws where the connections are lost.
  std::vector<CallEnd> Run(const Schedule& schedule);

 private:
  class Connection;
  const CallForm form_;
  uint64_t random_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace tilewire::bench
