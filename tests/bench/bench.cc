// tilewire_bench: the service beside bare gRPC, in one run. Starts its own servers on loopback.
//   wire   upload + RMSE over one connection or several, beside raw gRPC sinks that copy every byte once
//   idle   4 KiB Kernels.Rmse: warm, and after idle pauses
//   small  4 KiB Kernels.Rmse beside a raw gRPC echo of as many bytes
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>

#include "client/cpp/client.h"
#include "server/ops/process.h"
#include "tests/bench/child.h"
#include "tests/bench/raw_client.h"

namespace {

using namespace tilewire;  // NOLINT(google-build-using-namespace)

struct Flags {
  std::string device = "auto", block_bytes = "4MiB";
  size_t mebibytes = 1024, message_kib = 1024;
  int rounds = 5, calls = 2000, pauses = 60, connections = 1;
};

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(q * static_cast<double>(values.size())))];
}

/// Random finite f32: zeros would be a special case for nobody's hardware, but they hide mistakes.
float* RandomFloats(size_t count, uint64_t seed) {
  auto* data = static_cast<float*>(
      mmap(nullptr, count * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (data == MAP_FAILED) throw std::runtime_error("not enough memory for the source");
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    data[i] = static_cast<float>(seed >> 40) * 0x1p-24f;
  }
  return data;
}

client::ArraySource Source(const float* data, size_t count) {
  const int64_t dims[] = {static_cast<int64_t>(count)};
  return client::ArraySource::FromMemory(MakeSpec(DType::kF32, dims).value(), data);
}

bench::Child StartServer(const Flags& flags) {
  return bench::Child("tilewired", {"--listen", "localhost:0", "--device", flags.device, "--block-bytes",
                                    flags.block_bytes, "--log-level", "error"});
}

/// Seconds until every sink has its equal share of the bytes.
double PushAll(const std::vector<std::unique_ptr<bench::RawClient>>& sinks, const char* data, size_t bytes,
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

void Wire(const Flags& flags) {
  const size_t bytes = flags.mebibytes << 20, count = bytes / 8;  // two operands
  float* data = RandomFloats(2 * count, 1);
  const bench::Child server = StartServer(flags);
  const bench::Child raw("tilewire_raw_peer", {std::to_string(bytes)});
  auto client = client::Client::Connect(server.address());
  std::vector<std::unique_ptr<bench::RawClient>> sinks;
  for (int i = 0; i < flags.connections; ++i)
    sinks.push_back(std::make_unique<bench::RawClient>(raw.address()));
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
  std::printf("%s\n", server.ready_line().c_str());
  std::printf("%d connection%s, %zu MiB, %zu KiB messages, median (min–max) of %d\n", flags.connections,
              flags.connections == 1 ? "" : "s", flags.mebibytes, flags.message_kib, flags.rounds);
  std::printf("  raw gRPC sink     %6.2f GB/s (%.2f–%.2f)\n", Quantile(theirs, .5), Quantile(theirs, 0),
              Quantile(theirs, 1));
  std::printf("  tilewire RMSE     %6.2f GB/s (%.2f–%.2f)   %.1f%% of the sink\n", Quantile(ours, .5),
              Quantile(ours, 0), Quantile(ours, 1), 100 * Quantile(ours, .5) / Quantile(theirs, .5));
  std::printf(
      "  last call, %u streams: stage %.0f us, h2d %.0f us, kernel %.0f us, wall %.0f us, overlap %.2f, "
      "bottleneck %s\n",
      timing.streams, timing.stage_us.value_or(0), timing.h2d_us.value_or(0), timing.kernel_us.value_or(0),
      timing.wall_us, timing.overlap.value_or(0), timing.bottleneck.c_str());
}

/// Microseconds of `count` unary RMSE calls of 2 × 2 KiB, and what the server says of each.
std::vector<double> Calls(client::Client* client, const float* data, int count,
                          std::vector<client::Timing>* timings) {
  client::CallOptions options;
  options.form = client::CallForm::kUnary;
  std::vector<double> micros;
  timings->clear();
  for (int i = 0; i < count; ++i) {
    const auto reply = client->Rmse(Source(data, 512), Source(data + 512, 512), {}, options);
    if (!reply) throw std::runtime_error(reply.error().ToString());
    micros.push_back(reply->reply.client_wall_us);
    timings->push_back(reply->reply.timing);
  }
  return micros;
}

void Print(const char* name, const std::vector<double>& micros) {
  std::printf("  %-34s p50 %7.0f  p90 %7.0f  p99 %7.0f  max %7.0f us  (%zu calls)\n", name,
              Quantile(micros, .5), Quantile(micros, .9), Quantile(micros, .99), Quantile(micros, 1),
              micros.size());
}

/// Where the server says the time went, medians.
void PrintStages(const std::vector<client::Timing>& timings) {
  const auto median = [&](auto field) {
    std::vector<double> values;
    for (const auto& timing : timings) values.push_back(field(timing));
    return Quantile(values, .5);
  };
  std::printf("    server: wall %.0f us; stage %.1f, h2d %.1f, kernel %.1f, d2h %.1f us\n",
              median([](const auto& t) { return t.wall_us; }),
              median([](const auto& t) { return t.stage_us.value_or(0); }),
              median([](const auto& t) { return t.h2d_us.value_or(0); }),
              median([](const auto& t) { return t.kernel_us.value_or(0); }),
              median([](const auto& t) { return t.d2h_us.value_or(0); }));
}

void Small(const Flags& flags, bool idle) {
  const float* data = RandomFloats(1024, 1);
  const bench::Child server = StartServer(flags);
  const bench::Child raw("tilewire_raw_peer", {std::to_string(64 << 20)});
  auto client = client::Client::Connect(server.address());
  bench::RawClient echo(raw.address());
  echo.Echo(4096, 200);
  std::vector<client::Timing> timings;
  Calls(&client, data, 200, &timings);
  const auto warm_echo = echo.Echo(4096, flags.calls);
  const auto warm = Calls(&client, data, flags.calls, &timings);
  std::printf("%s\n4 KiB unary RMSE\n", server.ready_line().c_str());
  Print("raw gRPC echo, warm", warm_echo);
  Print("tilewire RMSE, warm", warm);
  PrintStages(timings);
  std::printf("  p50 over echo: %.0f us\n", Quantile(warm, .5) - Quantile(warm_echo, .5));
  if (!idle) return;
  // Alternately, so that both meet the same machine: what the echo takes after a pause is the machine's own
  // waking up.
  std::mt19937 random(7);
  std::uniform_real_distribution<double> pause(0.9, 3.3);
  std::vector<double> rested, rested_echo;
  std::vector<client::Timing> rested_timings;
  for (int i = 0; i < flags.pauses; ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double>(pause(random)));
    rested_echo.push_back(echo.Echo(4096, 1).front());
    std::this_thread::sleep_for(std::chrono::duration<double>(pause(random)));
    rested.push_back(Calls(&client, data, 1, &timings).front());
    rested_timings.push_back(timings.front());
  }
  Print("raw gRPC echo, after 0.9–3.3 s idle", rested_echo);
  Print("tilewire RMSE, after 0.9–3.3 s idle", rested);
  PrintStages(rested_timings);
  std::printf("  p99 after idle − warm p50: %.0f us\n", Quantile(rested, .99) - Quantile(warm, .5));
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Tilewire beside bare gRPC, in one run");
  app.require_subcommand(1);
  app.add_option("--device", flags.device, "device of the server")->capture_default_str();
  app.add_option("--block-bytes", flags.block_bytes, "block size of the server")->capture_default_str();
  auto* wire = app.add_subcommand("wire", "upload + RMSE beside raw sinks");
  wire->add_option("--mib", flags.mebibytes, "bytes of both operands, MiB")->capture_default_str();
  wire->add_option("--message-kib", flags.message_kib, "payload of a message, KiB")->capture_default_str();
  wire->add_option("--connections", flags.connections, "connections of a call, and raw sinks beside")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  wire->add_option("--rounds", flags.rounds, "measured rounds")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  auto* idle = app.add_subcommand("idle", "4 KiB RMSE, warm and after idle pauses");
  auto* small = app.add_subcommand("small", "4 KiB RMSE beside a raw echo");
  for (auto* command : {idle, small})
    command->add_option("--calls", flags.calls, "warm calls")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000000));
  idle->add_option("--pauses", flags.pauses, "calls after a pause")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  if (!ops::PrepareProcess().ok()) return 3;
  try {
    if (*wire) Wire(flags);
    if (*small || *idle) Small(flags, static_cast<bool>(*idle));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
