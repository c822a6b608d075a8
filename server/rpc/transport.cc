#include "server/rpc/transport.h"

#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <thread>

#include "server/base/limits.h"

namespace tilewire::rpc {
namespace {
// Streams of one connection; more wait at the client. Bounds what one connection may hold.
constexpr int kStreamsPerConnection = 256;
}  // namespace

void ApplyTransportSettings(int64_t receive_quota, grpc::ServerBuilder* builder) {
  grpc::ResourceQuota quota("tilewire");
  quota.Resize(static_cast<size_t>(receive_quota));
  builder->SetResourceQuota(quota);
  builder->SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
  builder->SetMaxSendMessageSize(-1);
  // Compressed messages are refused: gRPC inflates them before it looks at their size.
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP})
    builder->SetCompressionAlgorithmSupportStatus(algorithm, false);
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT,
                              0);  // a taken port is an error, not a share of its calls
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60'000);  // peers that vanished without a word
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
}

int DefaultQueues() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 2u, 16u));
}

}  // namespace tilewire::rpc
