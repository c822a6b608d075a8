// One bulk upload at full rate, and small calls on a connection of their own beside it.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>

#include "tests/bench/bench.h"
#include "tests/bench/raw_client.h"
#include "tests/bench/report.h"

namespace tilewire::bench {
namespace {

struct Flags {
  size_t mebibytes = 512;
  int rounds = 5, connections = 1;
};

/// One server under test: both kinds of call, and what they took.
struct Side {
  std::string name;
  std::function<void()> push;                          ///< one bulk upload
  std::function<std::vector<double>(int)> call;        ///< microseconds of so many small calls
  std::vector<double> alone_gbps{}, beside_gbps{};     ///< a round each
  std::vector<std::vector<double>> alone{}, beside{};  ///< microseconds of the calls of a round
};

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Round(Side* side, double gigabytes, bool measured) {
  constexpr int kAlone = 500;
  const double alone_gbps = gigabytes / Seconds(side->push);
  const auto alone = side->call(kAlone);
  std::atomic<bool> pushed{false};
  auto bulk = std::async(std::launch::async, [&] {
    const double seconds = Seconds(side->push);
    pushed.store(true);
    return seconds;
  });
  std::vector<double> beside;
  while (!pushed.load()) beside.push_back(side->call(1).front());
  beside.pop_back();  // ended, perhaps, on a quiet server
  const double beside_gbps = gigabytes / bulk.get();
  if (!measured) return;
  side->alone_gbps.push_back(alone_gbps);
  side->beside_gbps.push_back(beside_gbps);
  side->alone.push_back(alone);
  side->beside.push_back(beside);
}

/// The median over the rounds of each round's quantile: one odd round does not make the answer.
double MedianOfRounds(const std::vector<std::vector<double>>& rounds, double q) {
  std::vector<double> values;
  for (const auto& round : rounds)
    if (!round.empty()) values.push_back(Quantile(round, q));
  return Median(values);
}

Report::Values Latencies(const std::vector<std::vector<double>>& rounds) {
  std::vector<double> all;
  for (const auto& round : rounds) all.insert(all.end(), round.begin(), round.end());
  return {{"p50_us", MedianOfRounds(rounds, .5)},
          {"p99_us", MedianOfRounds(rounds, .99)},
          {"p99.9_us", Quantile(all, .999)},
          {"max_us", Quantile(all, 1)},
          {"calls", static_cast<double>(all.size())}};
}

void AddSide(const Side& side, Report* report) {
  report->Add(side.name + ", small alone", Latencies(side.alone));
  report->Add(side.name + ", small beside bulk", Latencies(side.beside));
  report->Add(side.name + ", bulk alone", {{"GB/s", Median(side.alone_gbps)}});
  const double lost = 100 * (1 - Median(side.beside_gbps) / Median(side.alone_gbps));
  report->Add(side.name + ", bulk beside small", {{"GB/s", Median(side.beside_gbps)}, {"lost_%", lost}});
}

int Mixed(const Common& common, const Flags& flags) {
  const size_t bytes = flags.mebibytes << 20, count = bytes / 8;
  const float* data = RandomFloats(2 * count, 1);
  const Child server = StartServer(common);
  const Child raw("tilewire_raw_peer", {std::to_string(bytes)});
  auto client = client::Client::Connect(server.address()), small = client::Client::Connect(server.address());
  RawClient sink(raw.address()), echo(raw.address());
  const double bulk_rmse = HostRmse(data, data + count, count);
  client::CallOptions options;
  options.form = client::CallForm::kStream;
  options.connections = static_cast<uint32_t>(flags.connections);
  Side ours{.name = "tilewire",
            .push =
                [&] {
                  const auto reply =
                      client.Rmse(Source(data, count), Source(data + count, count), {}, options);
                  if (!reply) throw std::runtime_error(reply.error().ToString());
                  if (reply->values[0] != bulk_rmse)
                    throw std::runtime_error("a bulk call's answer is wrong");
                },
            .call = [&](int calls) { return Calls(&small, data, calls, nullptr); }};
  Side theirs{.name = "raw gRPC",
              .push = [&] { sink.Push(reinterpret_cast<const char*>(data), bytes, 1 << 20); },
              .call = [&](int calls) { return echo.Echo(4096, calls); }};
  for (int round = -1; round < flags.rounds; ++round)
    for (Side* side : {&theirs, &ours}) Round(side, static_cast<double>(bytes) / 1e9, round >= 0);
  Report report(server.ready_line() + "\n" + std::to_string(flags.mebibytes) +
                " MiB uploads and 4 KiB calls beside them; medians of " + std::to_string(flags.rounds) +
                " rounds, p99.9 and max of all calls");
  AddSide(theirs, &report);
  AddSide(ours, &report);
  report.Print(common.json);
  return 0;
}

}  // namespace

void AddMixed(CLI::App* app, const Common& common, Run* run) {
  const auto flags = std::make_shared<Flags>();
  auto* command = app->add_subcommand("mixed", "4 KiB calls beside a bulk upload");
  command->add_option("--mib", flags->mebibytes, "bytes of an upload, MiB")
      ->capture_default_str()
      ->check(CLI::Range(1, 65536));
  command->add_option("--connections", flags->connections, "connections of Tilewire's upload")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  command->add_option("--rounds", flags->rounds, "measured rounds")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->callback([=, &common] { *run = [=, &common] { return Mixed(common, *flags); }; });
}

}  // namespace tilewire::bench
