// 4 KiB calls one after the other: warm, and after idle pauses.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "tests/bench/bench.h"
#include "tests/bench/raw_client.h"

namespace tilewire::bench {
namespace {

struct Flags {
  int calls = 2000, pauses = 60;
};

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
    return Median(values);
  };
  std::printf("    server: wall %.0f us; stage %.1f, h2d %.1f, kernel %.1f, d2h %.1f, other %.1f us\n",
              median([](const auto& t) { return t.wall_us; }),
              median([](const auto& t) { return t.stage_us.value_or(0); }),
              median([](const auto& t) { return t.h2d_us.value_or(0); }),
              median([](const auto& t) { return t.kernel_us.value_or(0); }),
              median([](const auto& t) { return t.d2h_us.value_or(0); }),
              median([](const auto& t) { return t.other_us.value_or(0); }));
}

/// Warm calls and as many echoes. In turns of 250: what a second on a shared machine is like is for both.
std::pair<std::vector<double>, std::vector<double>> InTurns(client::Client* client, RawClient* echo,
                                                            const float* data, int calls,
                                                            std::vector<client::Timing>* timings) {
  std::vector<double> ours, echoes;
  std::vector<client::Timing> told;
  timings->clear();
  for (int left = calls; left > 0; left -= 250) {
    const int turn = std::min(left, 250);
    std::ranges::copy(echo->Echo(4096, turn), std::back_inserter(echoes));
    std::ranges::copy(Calls(client, data, turn, &told), std::back_inserter(ours));
    timings->insert(timings->end(), told.begin(), told.end());
  }
  return {std::move(ours), std::move(echoes)};
}

/// Alternately, so that both meet the same machine: what the echo takes after a pause is the machine's own
/// waking up.
void AfterPauses(client::Client* client, RawClient* echo, const float* data, int pauses, double warm_p50) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> pause(0.9, 3.3);
  std::vector<double> rested, rested_echo;
  std::vector<client::Timing> timings, rested_timings;
  for (int i = 0; i < pauses; ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double>(pause(random)));
    rested_echo.push_back(echo->Echo(4096, 1).front());
    std::this_thread::sleep_for(std::chrono::duration<double>(pause(random)));
    rested.push_back(Calls(client, data, 1, &timings).front());
    rested_timings.push_back(timings.front());
  }
  Print("raw gRPC echo, after 0.9–3.3 s idle", rested_echo);
  Print("tilewire RMSE, after 0.9–3.3 s idle", rested);
  PrintStages(rested_timings);
  std::printf("  p99 after idle − warm p50: %.0f us\n", Quantile(rested, .99) - warm_p50);
}

int Small(const Common& common, const Flags& flags, bool idle) {
  const float* data = RandomFloats(1024, 1);
  const Child server = StartServer(common);
  const Child raw("tilewire_raw_peer", {std::to_string(64 << 20)});
  auto client = client::Client::Connect(server.address());
  RawClient echo(raw.address());
  echo.Echo(4096, 200);
  std::vector<client::Timing> timings;
  Calls(&client, data, 200, &timings);
  const auto [warm, warm_echo] = InTurns(&client, &echo, data, flags.calls, &timings);
  std::printf("%s\n4 KiB unary RMSE\n", server.ready_line().c_str());
  Print("raw gRPC echo, warm", warm_echo);
  Print("tilewire RMSE, warm", warm);
  PrintStages(timings);
  std::printf("  p50 over echo: %.0f us\n", Median(warm) - Median(warm_echo));
  if (idle) AfterPauses(&client, &echo, data, flags.pauses, Median(warm));
  return 0;
}

CLI::App* Add(CLI::App* app, const char* name, const char* what, const Common& common, bool idle, Run* run,
              const std::shared_ptr<Flags>& flags) {
  auto* command = app->add_subcommand(name, what);
  command->add_option("--calls", flags->calls, "warm calls")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000000));
  command->callback([=, &common] { *run = [=, &common] { return Small(common, *flags, idle); }; });
  return command;
}

}  // namespace

void AddSmall(CLI::App* app, const Common& common, Run* run) {
  Add(app, "small", "4 KiB RMSE beside a raw echo", common, false, run, std::make_shared<Flags>());
}

void AddIdle(CLI::App* app, const Common& common, Run* run) {
  const auto flags = std::make_shared<Flags>();
  Add(app, "idle", "4 KiB RMSE, warm and after idle pauses", common, true, run, flags)
      ->add_option("--pauses", flags->pauses, "calls after a pause")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
}

}  // namespace tilewire::bench
