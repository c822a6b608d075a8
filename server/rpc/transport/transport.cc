#include "server/rpc/transport/transport.h"

#include <arpa/inet.h>
#include <algorithm>

#include "server/base/memory.h"
#include "server/rpc/listener/round_trip.h"
#include "server/rpc/transport/grpc_reads.h"

namespace tilewire::rpc {
namespace {
// Streams of one connection; more wait at the client. Bounds what one connection may hold.
constexpr int kStreamsPerConnection = 256;

// Without its probe gRPC stays at frames of 16 KiB, which cost more than they save.
constexpr int kFrameBytes = static_cast<int>(kMiB);

bool IsWildcard(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return v4.s_addr == INADDR_ANY;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}
}  // namespace

std::vector<std::string> DialledAddresses(const std::vector<std::string>& listeners) {
  const bool open_to_all = std::any_of(listeners.begin(), listeners.end(), IsWildcard);
  std::vector<std::string> addresses;
  for (const std::string& address : listeners)
    if (address.starts_with("unix:") || !open_to_all) addresses.push_back(address);
  return addresses;
}

std::string Greeting() {
  constexpr uint16_t kMaxConcurrentStreams = 3, kMaxHeaderListSize = 6;  // of HTTP/2
  return SettingsFrame(
      {{kMaxConcurrentStreams, kStreamsPerConnection}, {kMaxHeaderListSize, kMostMetadataBytes}});
}

void ApplyTransportSettings(const ReceiveLimits& limits, grpc::ServerBuilder* builder) {
  grpc::ResourceQuota quota("tilewire");
  quota.Resize(static_cast<size_t>(limits.quota));
  ApplyTransportSettings(quota, limits.window, builder);
}

void ApplyTransportSettings(const grpc::ResourceQuota& quota, int64_t window, grpc::ServerBuilder* builder) {
  builder->SetResourceQuota(quota);
  if (window > 0) {
    // gRPC 1.51 begins with 4 MiB a stream where memory is plenty, lets its probe double that again and
    // again, and takes windows back seconds too late: a few fast or stalled connections exhaust any quota. A
    // fixed window holds for all. While a message is read, the stream may send the rest of it besides.
    builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, static_cast<int>(window));
    builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  }
  builder->SetMaxReceiveMessageSize(static_cast<int>(kTransportMessageBytes));
  builder->SetMaxSendMessageSize(-1);
  // Compressed messages are ours to refuse too, as they came: gRPC would inflate them before it looks at
  // their size, or, told to take none, end the call without anybody knowing.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);  // nor does it offer to take any
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT,
                              0);  // a taken port is an error, not a share of its calls
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);  // peers that vanished without a word
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
}

void ApplyConnectionTimes(const ConnectionLimits& limits, grpc::ServerBuilder* builder) {
  const auto ms = [](double seconds) { return static_cast<int>(std::clamp(seconds * 1e3, 1.0, 2e9)); };
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, ms(limits.idle_seconds));
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, ms(limits.handshake_seconds));
}

int DefaultQueues() {
  return std::clamp(DefaultCpuThreads(), 2, 16);
}

}  // namespace tilewire::rpc
