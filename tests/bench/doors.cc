// What doors cost small calls: servers in clear, and with everything on, called by one process in short
// turns.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/rpc/identity/tokens.h"
#include "tests/bench/bench.h"
#include "tests/bench/report.h"

namespace tilewire::bench {
namespace {

struct Flags {
  int callers = 1, calls = 100, turns = 40, rounds = 10;
  double seconds = 0;  ///< 0: any
};

/// A token that nobody asks for: what it takes to carry it.
enum Way : size_t { kClear, kAgain, kUnasked, kNoTokens, kAll, kWays };
constexpr std::array<const char*, kWays> kNames{"in clear", "in clear, again", "a token unasked",
                                                "all on but tokens", "all on"};

/// Limits that are counted, and never reached; as those of price.py.
constexpr const char* kPolicy =
    R"({"rules": [{"who": ["token:bench", "anonymous"], "methods": ["*"], "admin": true, "max_bytes": "64GiB",
    "calls_per_second": 1000000, "bytes_per_second": "16384GiB", "max_in_flight": 1000000, "queue_length": 1000000,
    "streams": 1000000, "device_bytes": "16384GiB"}]})";
const std::vector<std::string> kBounds{
    "--max-calls-per-connection",        "1000000", "--max-streams-per-connection",      "1000000",
    "--calls-per-second-per-connection", "1000000", "--bytes-per-second-per-connection", "16384GiB"};

/// The files of all that is on, and a token that is good there. Gone in the end.
class Files {
 public:
  Files() {
    std::string name = (std::filesystem::temp_directory_path() / "tilewire-doors-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder " + name);
    folder_ = name;
    const auto made = rpc::MakeToken("bench", "", std::chrono::system_clock::now());
    token_ = made.value().token;
    std::ofstream(folder_ / "tokens") << made->line << "\n";
    std::ofstream(folder_ / "policy") << kPolicy;
    std::filesystem::permissions(folder_ / "tokens", std::filesystem::perms::owner_read);
  }
  ~Files() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Files(const Files&) = delete;

  std::vector<std::string> ServerFlags(Way way) const {
    if (way < kNoTokens) return {};
    std::vector<std::string> flags = kBounds;
    flags.insert(flags.end(), {"--policy", folder_ / "policy", "--audit-log", AuditLog(way)});
    if (way == kAll) flags.insert(flags.end(), {"--tokens", folder_ / "tokens", "--anonymous", "deny"});
    return flags;
  }
  void RemoveAuditLogs() const {
    for (const Way way : {kNoTokens, kAll}) std::filesystem::remove(AuditLog(way));
  }
  std::string token(Way way) const { return way == kAll || way == kUnasked ? token_ : std::string(); }

 private:
  std::string AuditLog(Way way) const { return folder_ / (std::string("audit ") + kNames[way]); }

  std::filesystem::path folder_;
  std::string token_;
};

struct Value {
  double p50_us = 0, calls_per_second = 0;
};

/// A server and its clients, a connection each.
class Side {
 public:
  Side(const Common& common, const Files& files, Way way, int callers) {
    std::vector<std::string> flags{"--listen",      "localhost:0",      "--device",     common.device,
                                   "--block-bytes", common.block_bytes, "--host-bytes", common.host_bytes};
    const auto more = files.ServerFlags(way);
    flags.insert(flags.end(), more.begin(), more.end());
    server_ = std::make_unique<Child>("tilewired", flags);
    client::ConnectOptions options;
    options.token = files.token(way);
    for (int i = 0; i < callers; ++i)
      clients_.push_back(
          std::make_unique<client::Client>(client::Client::Connect(server_->address(), options)));
  }

  std::string ready_line() const { return server_->ready_line(); }
  /// What rested while others had their turn is awake before it counts.
  Value Turn(const float* data, int calls) {
    Call(data, std::max(1, calls / 4));
    return Call(data, calls);
  }

 private:
  Value Call(const float* data, int calls) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<double> micros;
    if (clients_.size() == 1) {
      micros = Calls(clients_.front().get(), data, calls, nullptr);
    } else {
      std::vector<std::future<std::vector<double>>> running;
      for (const auto& client : clients_)
        running.push_back(std::async(std::launch::async, Calls, client.get(), data, calls, nullptr));
      for (auto& one : running) {
        const auto taken = one.get();
        micros.insert(micros.end(), taken.begin(), taken.end());
      }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return {Median(micros), static_cast<double>(micros.size()) / seconds};
  }

  std::unique_ptr<Child> server_;
  std::vector<std::unique_ptr<client::Client>> clients_;
};

using Turns = std::array<std::vector<Value>, kWays>;

Turns Round(const Common& common, const Files& files, const Flags& flags, const float* data,
            std::mt19937* random, std::string* ready_line) {
  std::vector<std::unique_ptr<Side>> sides;
  for (size_t way = 0; way < kWays; ++way)
    sides.push_back(std::make_unique<Side>(common, files, static_cast<Way>(way), flags.callers));
  *ready_line = sides.front()->ready_line();
  for (const auto& side : sides) side->Turn(data, flags.calls);
  Turns turns;
  std::array<size_t, kWays> order{};
  std::iota(order.begin(), order.end(), size_t{0});
  for (int turn = 0; turn < flags.turns; ++turn) {
    std::shuffle(order.begin(), order.end(), *random);
    for (const size_t way : order) turns[way].push_back(sides[way]->Turn(data, flags.calls));
  }
  return turns;
}

/// A way beside the mean of two others.
struct Beside {
  std::string name;
  size_t way;
  std::array<size_t, 2> others;
};

std::vector<Beside> AllBeside() {
  std::vector<Beside> all{{kNames[kAgain], kAgain, {kClear, kClear}}};
  for (const size_t way : {kUnasked, kNoTokens, kAll}) all.push_back({kNames[way], way, {kClear, kAgain}});
  all.push_back({std::string(kNames[kAll]) + ", beside unasked", kAll, {kUnasked, kUnasked}});
  return all;
}

/// Of each turn of some rounds.
std::vector<double> Shares(const std::vector<Turns>& rounds, const Beside& beside, double Value::*field) {
  std::vector<double> shares;
  for (const Turns& round : rounds)
    for (size_t i = 0; i < round[beside.way].size(); ++i)
      shares.push_back(round[beside.way][i].*field * 2 /
                       (round[beside.others[0]][i].*field + round[beside.others[1]][i].*field));
  return shares;
}

/// What is to be less: more of a time, or less of a rate.
struct Cost {
  const char* name;
  double Value::*field;
  double sign;
};
constexpr std::array<Cost, 2> kCosts{
    {{"p50 +%", &Value::p50_us, 1}, {"rate -%", &Value::calls_per_second, -1}}};

/// The median cost in percent, and within what 95% of the medians of resampled rounds lie: processes that do
/// the same differ by some percent, so it is they that are drawn.
Report::Values CostOf(const std::vector<Turns>& rounds, const Beside& beside, const Cost& cost) {
  constexpr int kResamples = 2000;
  const auto percent = [&](const std::vector<Turns>& of) {
    return 100 * cost.sign * (Median(Shares(of, beside, cost.field)) - 1);
  };
  std::mt19937 random(7);
  std::uniform_int_distribution<size_t> any(0, rounds.size() - 1);
  std::vector<double> resampled;
  for (int i = 0; i < kResamples; ++i) {
    std::vector<Turns> drawn;
    for (size_t k = 0; k < rounds.size(); ++k) drawn.push_back(rounds[any(random)]);
    resampled.push_back(percent(drawn));
  }
  const std::string name = cost.name;
  return {{name, percent(rounds)},
          {name + " from", Quantile(resampled, .025)},
          {name + " to", Quantile(resampled, .975)}};
}

int Doors(const Common& common, const Flags& flags) {
  const float* data = RandomFloats(1024, 1);
  const Files files;
  std::mt19937 random(11);
  std::vector<Turns> rounds;
  std::string ready_line;
  const auto begun = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  };
  for (int round = 0; round < flags.rounds; ++round) {
    if (round > 0 && flags.seconds > 0 && seconds() >= flags.seconds) break;
    rounds.push_back(Round(common, files, flags, data, &random, &ready_line));
    files.RemoveAuditLogs();
  }
  Report report(
      ready_line + "\nturns of " + std::to_string(flags.calls) + " calls of 4 KiB by each of " +
      std::to_string(flags.callers) + " callers; medians of " + std::to_string(rounds.size()) + " x " +
      std::to_string(flags.turns) +
      " turns, beside the mean of both in clear (again: beside the first; last: beside a token unasked)");
  const auto add = [&](const std::string& name, size_t way, const Report::Values& costs) {
    std::vector<double> p50, rate;
    for (const Turns& round : rounds)
      for (const Value& value : round[way]) {
        p50.push_back(value.p50_us);
        rate.push_back(value.calls_per_second);
      }
    Report::Values values{{"p50_us", Median(p50)}, {"calls/s", Median(rate)}};
    std::ranges::copy(costs, std::back_inserter(values));
    report.Add(name, values);
  };
  add(kNames[kClear], kClear, {});
  for (const Beside& beside : AllBeside()) {
    Report::Values costs;
    for (const Cost& cost : kCosts)
      std::ranges::copy(CostOf(rounds, beside, cost), std::back_inserter(costs));
    add(beside.name, beside.way, costs);
  }
  report.Print(common.json);
  return 0;
}

}  // namespace

void AddDoors(CLI::App* app, const Common& common, Run* run) {
  const auto flags = std::make_shared<Flags>();
  auto* command =
      app->add_subcommand("doors", "small calls with tokens, policy, limits and audit log on, and off");
  const auto add = [&](const char* name, int* value, const char* what) {
    command->add_option(name, *value, what)->capture_default_str()->check(CLI::Range(1, 1'000'000));
  };
  add("--callers", &flags->callers, "at once, a connection each");
  add("--calls", &flags->calls, "of each caller in a turn");
  add("--turns", &flags->turns, "of each way in a round");
  add("--rounds", &flags->rounds, "with servers of their own");
  command->add_option("--seconds", flags->seconds, "after which no further round begins; 0: any")
      ->check(CLI::NonNegativeNumber);
  command->callback([=, &common] { *run = [=, &common] { return Doors(common, *flags); }; });
}

}  // namespace tilewire::bench
