// One attempt of a streamed call over one connection or several. Internal to the library.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/cpp/channels.h"
#include "client/cpp/stream_call.h"
#include "server/base/mutex.h"

namespace tilewire::client {

/// How many connections a call of `bytes` operand and result bytes is worth on a machine of `cores` cores, to
/// a server so far away: near ones are limited by cores, far ones by what is under way on each.
uint32_t WorthwhileConnections(uint64_t bytes, uint32_t cores, std::chrono::nanoseconds round_trip = {});
/// Of calls with fewer bytes the distance makes no difference.
inline constexpr uint64_t kBytesWorthAskingDistance = 16 << 20;

/// Runs one attempt: the first stream on the calling thread, each further one on a thread and a connection of
/// its own, opened once the server has admitted the job. Streams that cannot join are done without. Not
/// thread-safe; one object an attempt. When Run returns, gRPC holds none of the sources' bytes.
class StripedCall {
 public:
  StripedCall(const CallSpec& spec, StreamChannels* channels, uint32_t connections);

  Attempt Run();

 private:
  /// A stream that joins; lives until the call ends.
  struct Joiner {
    std::unique_ptr<StreamCall> call;
    std::thread thread;
    std::string address;
    Status status;
    bool ended = false;  // guarded by mutex_
  };

  Status OnOpened(const v1::Opened& opened);
  void Join(Joiner* joiner, const std::string& job);
  /// Whether one that could not reach the server's own address has another stream now, to where the first one
  /// got through: servers behind relays and forwarded ports do not know by which address clients reach them.
  bool MayGoWhereTheFirstWent(Joiner& joiner);
  /// Waits until all output is here, or no joined stream is left that could bring any.
  void AwaitOutput();
  void CancelAll();
  /// What ended the call: a stream's own reason rather than that another one was lost.
  Status Verdict(const Status& first) const;

  const CallSpec& spec_;
  StreamChannels* const channels_;
  const uint32_t connections_;
  Stripe stripe_;
  StreamCall first_;
  Mutex mutex_;
  CondVar ended_;  // some joiner has
  bool over_ TILEWIRE_GUARDED_BY(mutex_) = false;
  std::list<Joiner> joiners_;  // filled on the calling thread
};

}  // namespace tilewire::client
