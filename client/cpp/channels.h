// gRPC channels to one server. Internal to the library.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/cpp/client.h"
#include "server/base/mutex.h"

namespace tilewire::client {

/// A channel with Tilewire's settings and a connection of its own: messages up to 4 MiB + 64 KiB, no
/// compression, no retries below ours, no proxy. Connects when first used. The first one of a process takes 4
/// ms (channels.cc says why).
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const ConnectOptions& options);

/// Whether the options' token, where there is one, may be sent to an address.
bool MaySendToken(const std::string& address, const ConnectOptions& options);

/// Connections for streamed calls, one call each: streams on one connection share its flow control window,
/// and a stalled one would starve the rest. Thread-safe.
class StreamChannels {
 public:
  StreamChannels(std::string address, const ConnectOptions& options)
      : address_(std::move(address)), options_(options) {}
  /// The server's address, as the user gave it.
  const std::string& address() const { return address_; }
  /// An idle connection, or a new one, to the server or to another address of it, that it named itself: one
  /// that may not have the token is not gone to, but the server where it was reached.
  std::shared_ptr<grpc::Channel> Take() { return Take(address_); }
  std::shared_ptr<grpc::Channel> Take(const std::string& address);
  /// Keeps a connection for the next call.
  void Return(std::shared_ptr<grpc::Channel> channel) { Return(std::move(channel), address_); }
  void Return(std::shared_ptr<grpc::Channel> channel, const std::string& address);

 private:
  const std::string address_;
  const ConnectOptions options_;
  Mutex mutex_;
  /// Address and connection, last used last.
  std::vector<std::pair<std::string, std::shared_ptr<grpc::Channel>>> idle_ TILEWIRE_GUARDED_BY(mutex_);
};

}  // namespace tilewire::client
