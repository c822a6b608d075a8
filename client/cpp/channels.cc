#include "client/cpp/channels.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

namespace tilewire::client {
namespace {
constexpr int kMaxMessageBytes = (4 << 20) + (64 << 10);
constexpr size_t kMaxIdle = 8;
}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(kMaxMessageBytes);
  args.SetMaxSendMessageSize(kMaxMessageBytes);
  args.SetCompressionAlgorithm(GRPC_COMPRESS_NONE);
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // gRPC's own retries would buffer messages; ours know which calls may be repeated.
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // So that our retries find a fresh connection attempt, not the memory of the last one.
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), args);
}

std::shared_ptr<grpc::Channel> StreamChannels::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto channel = std::move(idle_.back());
      idle_.pop_back();
      return channel;
    }
  }
  return MakeChannel(address_);
}

void StreamChannels::Return(std::shared_ptr<grpc::Channel> channel) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(channel));
}

}  // namespace tilewire::client
