// Upload + RMSE of large arrays beside raw gRPC sinks.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>

#include "server/base/limits.h"
#include "server/rpc/transport/receive_limits.h"
#include "tests/bench/bench.h"
#include "tests/bench/raw_client.h"

namespace tilewire::bench {
namespace {

struct Flags {
  size_t mebibytes = 1024, message_kib = 1024;
  int64_t window_kib = -1;
  int rounds = 5, connections = 1;
  bool unix_sockets = false;
};

/// A folder of its own, for sockets; gone with it.
struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tilewire-wire-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no folder for sockets");
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::filesystem::path path;
};

using Sinks = std::vector<std::unique_ptr<RawClient>>;

Sinks Connect(const std::string& address, int connections) {
  Sinks sinks;
  for (int i = 0; i < connections; ++i) sinks.push_back(std::make_unique<RawClient>(address));
  return sinks;
}

/// Seconds until every sink has its equal share of the bytes.
double PushAll(const Sinks& sinks, decltype(&RawClient::Push) push, const char* data, size_t bytes,
               size_t message_bytes) {
  const size_t share = bytes / sinks.size();
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::future<double>> pushes;
  for (size_t i = 0; i < sinks.size(); ++i)
    pushes.push_back(std::async(
        std::launch::async, [&, i] { return (*sinks[i].*push)(data + i * share, share, message_bytes); }));
  for (auto& pushed : pushes) pushed.get();  // throws what a sink threw
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Of each round: GB/s, and seconds of processors that a GiB took at the server and in this process.
struct Side {
  std::vector<double> rates, server, client;
};
struct Rates {
  Side sinks, fastest, ours;
};

/// Measures what `push` takes, which says for how many seconds it sent `bytes` to `server`.
template <typename Push>
void Measure(const Child& server, size_t bytes, Side* side, const Push& push) {
  const auto own_seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  const double server_before = server.cpu_seconds(), client_before = own_seconds();
  const double seconds = push();
  const double gib = static_cast<double>(bytes) / static_cast<double>(kGiB);
  side->rates.push_back(static_cast<double>(bytes) / seconds / 1e9);
  side->server.push_back((server.cpu_seconds() - server_before) / gib);
  side->client.push_back((own_seconds() - client_before) / gib);
}

void PrintSide(const char* name, const Side& side) {
  std::printf("  %-22s %7.3f GB/s (%.3f–%.3f)  CPU s/GiB: server %.2f, client %.2f", name, Median(side.rates),
              Quantile(side.rates, 0), Quantile(side.rates, 1), Median(side.server), Median(side.client));
}

void Print(const Child& server, const Flags& flags, const Rates& rates, const client::Timing& timing) {
  std::printf("%s\n", server.ready_line().c_str());
  std::printf("%d connection%s, %zu MiB, %zu KiB messages, median (min–max) of %d\n", flags.connections,
              flags.connections == 1 ? "" : "s", flags.mebibytes, flags.message_kib, flags.rounds);
  PrintSide("raw gRPC sink", rates.fastest);
  std::printf("\n");
  PrintSide("raw sink by queues", rates.sinks);
  std::printf("   %.1f%% of the sink\n", 100 * Median(rates.sinks.rates) / Median(rates.fastest.rates));
  PrintSide("tilewire RMSE", rates.ours);
  std::printf("   %.1f%% of the sink, %.1f%% of the one by queues\n",
              100 * Median(rates.ours.rates) / Median(rates.fastest.rates),
              100 * Median(rates.ours.rates) / Median(rates.sinks.rates));
  std::printf(
      "  last call, %u streams: stage %.0f us, h2d %.0f us, kernel %.0f us, wall %.0f us, overlap %.2f, "
      "bottleneck %s\n",
      timing.streams, timing.stage_us.value_or(0), timing.h2d_us.value_or(0), timing.kernel_us.value_or(0),
      timing.wall_us, timing.overlap.value_or(0), timing.bottleneck.c_str());
}

/// Of the raw peer's other sink: the last word of its line.
std::string FastestSink(const Child& raw) {
  return raw.ready_line().substr(raw.ready_line().rfind(' ') + 1);
}

int Wire(const Common& common, const Flags& flags) {
  const size_t bytes = flags.mebibytes << 20, count = bytes / 8;  // two operands
  float* data = RandomFloats(2 * count, 1);
  const rpc::ReceiveLimits defaults;
  std::vector<std::string> server_flags;
  if (flags.window_kib >= 0) server_flags = {"--receive-window", std::to_string(flags.window_kib << 10)};
  std::vector<std::string> raw_flags = {
      std::to_string(bytes), std::to_string(defaults.quota),
      std::to_string(flags.window_kib >= 0 ? flags.window_kib << 10 : defaults.window)};
  std::optional<Folder> sockets;
  if (flags.unix_sockets) raw_flags.push_back(sockets.emplace().path);
  const Child server = StartServer(
      common, server_flags, sockets ? "unix:" + (sockets->path / "tilewired").string() : "localhost:0");
  const Child raw("tilewire_raw_peer", raw_flags);
  auto client = client::Client::Connect(server.address());
  const Sinks sinks = Connect(raw.address(), flags.connections);
  const Sinks fastest = Connect(FastestSink(raw), flags.connections);
  const auto a = Source(data, count), b = Source(data + count, count);
  client::CallOptions options;
  options.message_bytes = flags.message_kib << 10;
  options.connections = static_cast<uint32_t>(flags.connections);
  Rates rates;
  client::Timing timing;
  const auto bytes_of = reinterpret_cast<const char*>(data);
  for (int round = -1; round < flags.rounds; ++round) {  // the first one warms up
    if (round == 0) rates = {};
    Measure(raw, bytes, &rates.sinks,
            [&] { return PushAll(sinks, &RawClient::Push, bytes_of, bytes, options.message_bytes); });
    Measure(raw, bytes, &rates.fastest, [&] {
      return PushAll(fastest, &RawClient::PushByCallbacks, bytes_of, bytes, options.message_bytes);
    });
    Measure(server, bytes, &rates.ours, [&] {
      const auto reply = client.Rmse(a, b, {}, options);
      if (!reply) throw std::runtime_error(reply.error().ToString());
      timing = reply->reply.timing;
      return reply->reply.client_wall_us * 1e-6;
    });
  }
  Print(server, flags, rates, timing);
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
  command->add_flag("--unix", flags->unix_sockets, "all sides by unix sockets");
  command->add_option("--rounds", flags->rounds, "measured rounds")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->callback([=, &common] { *run = [=, &common] { return Wire(common, *flags); }; });
}

}  // namespace tilewire::bench
