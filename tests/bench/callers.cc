// Many callers of small calls at once.
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
  int calls = 10'000, callers = 64, rounds = 5;
  bool shared = false;
};

/// Calls of all rounds at one server.
struct Side {
  std::vector<std::function<std::vector<double>(int)>> callers;  ///< microseconds of so many calls
  std::vector<double> per_second{};
  std::vector<std::vector<double>> rounds{};
};

void Round(Side* side, int calls, bool measured) {
  std::vector<std::future<std::vector<double>>> running;
  const int each = calls / static_cast<int>(side->callers.size());
  const auto start = std::chrono::steady_clock::now();
  for (auto& caller : side->callers)
    running.push_back(std::async(std::launch::async, [&caller, each] { return caller(each); }));
  std::vector<double> micros;
  for (auto& one : running) {
    const auto taken = one.get();
    micros.insert(micros.end(), taken.begin(), taken.end());
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!measured) return;
  side->per_second.push_back(static_cast<double>(micros.size()) / seconds);
  side->rounds.push_back(std::move(micros));
}

Report::Values Values(const Side& side) {
  Report::Values values{{"calls/s", Median(side.per_second)}};
  for (const auto& [name, q] : {std::pair{"p50_us", .5}, std::pair{"p90_us", .9}, std::pair{"p99_us", .99},
                                std::pair{"p99.9_us", .999}}) {
    std::vector<double> quantiles;
    for (const auto& round : side.rounds) quantiles.push_back(Quantile(round, q));
    values.emplace_back(name, Median(quantiles));
  }
  return values;
}

int Callers(const Common& common, const Flags& flags) {
  const float* data = RandomFloats(1024, 1);
  const double right = HostRmse(data, data + 512, 512);
  const Child server = StartServer(common);
  const Child raw("tilewire_raw_peer", {std::to_string(64 << 20)});
  std::vector<std::unique_ptr<client::Client>> clients;
  std::vector<std::unique_ptr<RawClient>> echoes;
  for (int i = 0; i < (flags.shared ? 1 : flags.callers); ++i) {
    clients.push_back(std::make_unique<client::Client>(client::Client::Connect(server.address())));
    echoes.push_back(std::make_unique<RawClient>(raw.address()));
    const auto reply = clients.back()->Rmse(Source(data, 512), Source(data + 512, 512));
    if (!reply) throw std::runtime_error(reply.error().ToString());
    if (reply->values[0] != right) throw std::runtime_error("a small call's answer is wrong");
  }
  Side ours, theirs;
  for (size_t i = 0; i < static_cast<size_t>(flags.callers); ++i) {
    ours.callers.push_back([&, client = clients[i % clients.size()].get()](int calls) {
      return Calls(client, data, calls, nullptr);
    });
    theirs.callers.push_back(
        [&, echo = echoes[i % echoes.size()].get()](int calls) { return echo->Echo(4096, calls); });
  }
  for (int round = -1; round < flags.rounds; ++round)
    for (Side* side : {&theirs, &ours}) Round(side, flags.calls, round >= 0);
  Report report(server.ready_line() + "\n" + std::to_string(flags.calls) + " calls of 4 KiB from " +
                std::to_string(flags.callers) + " callers, " +
                (flags.shared ? "one connection" : "a connection each") + "; medians of " +
                std::to_string(flags.rounds) + " rounds");
  report.Add("raw gRPC echo", Values(theirs));
  report.Add("tilewire RMSE", Values(ours));
  report.Print(common.json);
  return 0;
}

}  // namespace

void AddCallers(CLI::App* app, const Common& common, Run* run) {
  const auto flags = std::make_shared<Flags>();
  auto* command = app->add_subcommand("callers", "4 KiB calls from many callers at once");
  command->add_option("--calls", flags->calls, "calls of a round")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000'000));
  command->add_option("--callers", flags->callers, "callers, a thread each")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command->add_flag("--shared", flags->shared, "all callers on one connection, instead of one each");
  command->add_option("--rounds", flags->rounds, "measured rounds")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  command->callback([=, &common] { *run = [=, &common] { return Callers(common, *flags); }; });
}

}  // namespace tilewire::bench
