// gRPC channels to one server. Internal to the library.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/cpp/client.h"

namespace tilewire::client {

/// A channel with Tilewire's settings and a connection of its own: messages up to 4 MiB + 64 KiB, no
/// compression, no retries below ours, no proxy. Connects when first used.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const ConnectOptions& options);

/// Connections for streamed calls, one call each: streams on one connection share its flow control window,
/// and a stalled one would starve the rest. Thread-safe.
class StreamChannels {
 public:
  StreamChannels(std::string address, const ConnectOptions& options)
      : address_(std::move(address)), options_(options) {}
  /// An idle connection, or a new one.
  std::shared_ptr<grpc::Channel> Take();
  /// Keeps a connection for the next call.
  void Return(std::shared_ptr<grpc::Channel> channel);

 private:
  const std::string address_;
  const ConnectOptions options_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<grpc::Channel>> idle_;  // guarded by mutex_
};

}  // namespace tilewire::client
