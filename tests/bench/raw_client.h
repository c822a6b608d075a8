// Sends bytes to the raw peer as fast as gRPC takes them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace tilewire::bench {

/// One connection to a raw peer.
class RawClient {
 public:
  explicit RawClient(const std::string& address);
  ~RawClient();
  /// Streams `bytes` bytes of `data` to /raw/sink in messages of `message_bytes`, without copying; returns
  /// the seconds from the first byte to the status.
  double Push(const char* data, size_t bytes, size_t message_bytes);
  /// The same by gRPC's callbacks, which its fastest sink is best served with.
  double PushByCallbacks(const char* data, size_t bytes, size_t message_bytes);
  /// Microseconds of each of `count` round trips of `bytes` bytes over one /raw/echo stream a call. The peer
  /// holds each one back for so many microseconds, busily: what it would take for work. `apart`: on a thread
  /// of its own that also sends the echo, while the one that took the message goes on and sleeps.
  std::vector<double> Echo(size_t bytes, int count, double hold_us = 0, bool apart = false);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tilewire::bench
