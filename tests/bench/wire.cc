// Upload + RMSE of large arrays beside raw gRPC sinks.
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <stdexcept>

#include "server/rpc/transport/receive_limits.h"
#include "tests/bench/bench.h"
#include "tests/bench/raw_client.h"

namespace tilewire::bench {
namespace {

struct Flags {
  size_t mebibytes = 1024, message_kib = 1024;
  int64_t window_kib = -1;
  int rounds = 5, connections = 1;
};

/// Seconds until every sink has its equal share of the bytes.
double PushAll(const std::vector<std::unique_ptr<RawClient>>& sinks, const char* data, size_t bytes,
               size_t message_bytes) {
  const size_t share = bytes / sinks.size();
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::future<double>> pushes;
  for (size_t i = 0; i < sinks.size(); ++i)
    pushes.push_back(std::async(std::launch::async,
                                [&, i] { return sinks[i]->Push(data + i * share, share, message_bytes); }));
  for (auto& push : pushes) push.get();  // throws what a sink threw
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Print(const Child& server, const Flags& flags, const std::vector<double>& theirs,
           const std::vector<double>& ours, const client::Timing& timing) {
  std::printf("%s\n", server.ready_line().c_str());
  std::printf("%d connection%s, %zu MiB, %zu KiB messages, median (min–max) of %d\n", flags.connections,
              flags.connections == 1 ? "" : "s", flags.mebibytes, flags.message_kib, flags.rounds);
  std::printf("  raw gRPC sink     %7.3f GB/s (%.3f–%.3f)\n", Median(theirs), Quantile(theirs, 0),
              Quantile(theirs, 1));
  std::printf("  tilewire RMSE     %7.3f GB/s (%.3f–%.3f)   %.1f%% of the sink\n", Median(ours),
              Quantile(ours, 0), Quantile(ours, 1), 100 * Median(ours) / Median(theirs));
  std::printf(
      "  last call, %u streams: stage %.0f us, h2d %.0f us, kernel %.0f us, wall %.0f us, overlap %.2f, "
      "bottleneck %s\n",
      timing.streams, timing.stage_us.value_or(0), timing.h2d_us.value_or(0), timing.kernel_us.value_or(0),
      timing.wall_us, timing.overlap.value_or(0), timing.bottleneck.c_str());
}

int Wire(const Common& common, const Flags& flags) {
  const size_t bytes = flags.mebibytes << 20, count = bytes / 8;  // two operands
  float* data = RandomFloats(2 * count, 1);
  std::vector<std::string> server_flags, raw_flags = {std::to_string(bytes)};
  if (flags.window_kib >= 0) {
    server_flags = {"--receive-window", std::to_string(flags.window_kib << 10)};
    raw_flags.insert(raw_flags.end(), {std::to_string(rpc::kDefaultReceiveQuotaBytes),
                                       std::to_string(flags.window_kib << 10)});
  }
  const Child server = StartServer(common, server_flags);
  const Child raw("tilewire_raw_peer", raw_flags);
  auto client = client::Client::Connect(server.address());
  std::vector<std::unique_ptr<RawClient>> sinks;
  for (int i = 0; i < flags.connections; ++i) sinks.push_back(std::make_unique<RawClient>(raw.address()));
  const auto a = Source(data, count), b = Source(data + count, count);
  client::CallOptions options;
  options.message_bytes = flags.message_kib << 10;
  options.connections = static_cast<uint32_t>(flags.connections);
  std::vector<double> ours, theirs;
  client::Timing timing;
  for (int round = -1; round < flags.rounds; ++round) {  // the first one warms up
    const double raw_seconds =
        PushAll(sinks, reinterpret_cast<const char*>(data), bytes, options.message_bytes);
    const auto reply = client.Rmse(a, b, {}, options);
    if (!reply) throw std::runtime_error(reply.error().ToString());
    if (round < 0) continue;
    theirs.push_back(static_cast<double>(bytes) / raw_seconds / 1e9);
    ours.push_back(static_cast<double>(bytes) / (reply->reply.client_wall_us * 1e-6) / 1e9);
    timing = reply->reply.timing;
  }
  Print(server, flags, theirs, ours, timing);
  return 0;
}

}  // namespace

void AddWire(CLI::App* app, const Common& common, Run* run) {
  const auto flags = std::make_shared<Flags>();
  auto* command = app->add_subcommand("wire", "upload + RMSE beside raw sinks");
  command->add_option("--mib", flags->mebibytes, "bytes of both operands, MiB")->capture_default_str();
  command->add_option("--message-kib", flags->message_kib, "payload of a message, KiB")
      ->capture_default_str();
  command->add_option("--connections", flags->connections, "connections of a call, and raw sinks beside")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  command
      ->add_option("--window-kib", flags->window_kib,
                   "receive window of both servers, KiB; 0: what gRPC chooses; -1: their default")
      ->capture_default_str()
      ->check(CLI::Range(-1, 16384));
  command->add_option("--rounds", flags->rounds, "measured rounds")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->callback([=, &common] { *run = [=, &common] { return Wire(common, *flags); }; });
}

}  // namespace tilewire::bench
