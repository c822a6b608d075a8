// Many and stalled connections: the server's memory stays bounded, and everybody else's calls go on.
//   push   clients that upload large arrays, half of which send one operand and stop
//   crowd  many connections, most stalled, jobs among them; bulk and small calls go on beside
//   full   more stalled jobs than the server runs or queues; uploads under way end well, small calls go on
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>

#include "server/rpc/receive_limits.h"
#include "tests/bench/actives.h"
#include "tests/bench/bench.h"
#include "tests/bench/crowd.h"
#include "tests/bench/report.h"

namespace tilewire::bench {
namespace {

using std::chrono::seconds;

struct Flags {
  int clients = 32, connections = 500, bulk = 4, small = 4;
  int64_t mebibytes = 64, operand_mib = 1;
  int64_t quota_mib = rpc::kDefaultReceiveQuotaBytes / kMiB, window_kib = rpc::kDefaultReceiveWindowBytes / kKiB;
  std::vector<std::string> phases;
};

// Stalled jobs that are let in beside the calls that go on; under --max-in-flight.
constexpr int kStalledJobs = 40, kInFlight = 64;
constexpr int64_t kPinnedBytes = 64 * kMiB, kSpare = 64 * kMiB;
constexpr int64_t kBeside = 256 * kMiB;  ///< what a server may take beside its budgets

/// A phase's server, and what is found about it.
class Phase {
 public:
  /// `device_bytes` is just what the phase's jobs need, so that the bound is tight.
  Phase(const Common& common, const Flags& flags, int64_t device_bytes)
      : device_bytes_(device_bytes),
        server_(StartServer(
            common, {"--device-bytes", std::to_string(device_bytes), "--pinned-bytes",
                     std::to_string(kPinnedBytes), "--receive-quota", std::to_string(flags.quota_mib * kMiB),
                     "--receive-window", std::to_string(flags.window_kib * kKiB), "--idle-seconds", "3600",
                     "--queue-seconds", "3600"})) {}

  const std::string& address() const { return server_.address(); }
  /// Adds the phase's row. Whether memory stayed within its bounds, nobody was cut and no call broke.
  bool Judge(const std::string& name, const Tally& tally, const StalledCrowd::Counts& crowd, Report* report) {
    const int64_t most = server_.resident_bytes_max(), budgets = device_bytes_ + kPinnedBytes;
    const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); };
    report->Add(name, {{"rss_MiB", mib(most)},
                       {"budgets_MiB", mib(budgets)},
                       {"bulk_right", tally.bulk.load()},
                       {"small_right", tally.small.load()},
                       {"refused", tally.refused.load()},
                       {"broken", tally.broken.load()},
                       {"stalled", crowd.streams},
                       {"their_MiB", mib(crowd.sent)},
                       {"ended", crowd.ended + crowd.reset + crowd.closed - crowd.cut},
                       {"cut", crowd.cut}});
    return most > 0 && most <= budgets + kBeside && crowd.cut == 0 && tally.broken.load() == 0 &&
           tally.small.load() > 0;
  }

 private:
  const int64_t device_bytes_;
  const Child server_;
};

bool Push(const Common& common, const Flags& flags, const Problem& problem, Report* report) {
  Phase server(common, flags, flags.clients * (flags.mebibytes + 1) * kMiB + kSpare);
  const std::vector<Stall> stalls(static_cast<size_t>(flags.clients / 2), Stall::kOneOperand);
  StalledCrowd crowd(server.address(), stalls, flags.mebibytes / 2 * kMiB);
  Tally tally;
  {
    Actives actives(server.address(), &problem, &tally);
    for (int i = flags.clients / 2; i < flags.clients; ++i) actives.PushOnce();
    actives.CallSmall(1, 100);
  }
  crowd.WaitUntilQuiet(seconds(1), seconds(120));
  const bool all = tally.bulk.load() == flags.clients - flags.clients / 2;
  return server.Judge("push", tally, crowd.counts(), report) && all;
}

bool Crowd(const Common& common, const Flags& flags, const Problem& problem, Report* report) {
  Phase server(
      common, flags,
      (kStalledJobs * 2 * flags.operand_mib + flags.bulk * (problem.mebibytes() + 1)) * kMiB + kSpare);
  constexpr Stall kJobs[] = {Stall::kMidBlock, Stall::kMidMessage, Stall::kOneOperand, Stall::kReadsNothing};
  std::vector<Stall> stalls;
  for (int i = 0; i < flags.connections; ++i)
    stalls.push_back(i < kStalledJobs ? kJobs[i % 4] : Stall::kBeforeOpen);
  StalledCrowd crowd(server.address(), stalls, flags.operand_mib * kMiB);
  Tally tally;
  {
    Actives actives(server.address(), &problem, &tally);
    for (int i = 0; i < flags.bulk; ++i) actives.Push(3);
    actives.CallSmall(flags.small, 200);
    crowd.WaitUntilQuiet(seconds(1), seconds(120));
  }
  const bool all = tally.bulk.load() == 3 * flags.bulk && tally.refused.load() == 0;
  return server.Judge("crowd", tally, crowd.counts(), report) && all;
}

bool Full(const Common& common, const Flags& flags, const Problem& problem, Report* report) {
  Phase server(common, flags,
               (kInFlight * 2 * flags.operand_mib + flags.bulk * problem.mebibytes()) * kMiB + kSpare);
  constexpr Stall kJobs[] = {Stall::kOneOperand, Stall::kMidMessage};
  std::vector<Stall> stalls;
  for (int i = 0; i < flags.connections; ++i) stalls.push_back(kJobs[i % 2]);
  Tally tally;
  std::optional<StalledCrowd> crowd;
  {
    Actives actives(server.address(), &problem, &tally);
    // They are let in, then wait in the middle of their upload until the crowd is there.
    for (int i = 0; i < flags.bulk; ++i) actives.PushHeld();
    actives.WaitUntilHeld(flags.bulk);
    crowd.emplace(server.address(), stalls, flags.operand_mib * kMiB);
    crowd->WaitUntilQuiet(seconds(1), seconds(120));
    actives.CallSmall(flags.small, 200);
    actives.Let();
  }
  const bool all = tally.bulk.load() == flags.bulk;
  return server.Judge("full", tally, crowd->counts(), report) && all;
}

int Overload(const Common& common, const Flags& flags) {
  const auto chosen = [&](const char* name) {
    return flags.phases.empty() ||
           std::find(flags.phases.begin(), flags.phases.end(), name) != flags.phases.end();
  };
  Report report("stalled clients, receive quota " + std::to_string(flags.quota_mib) + " MiB, window " +
                std::to_string(flags.window_kib) + " KiB");
  bool good = true;
  const Problem large(flags.mebibytes), usual(std::min<int64_t>(flags.mebibytes, 32));
  if (chosen("push")) good &= Push(common, flags, large, &report);
  if (chosen("crowd")) good &= Crowd(common, flags, usual, &report);
  if (chosen("full")) good &= Full(common, flags, usual, &report);
  report.Note(good ? "all within bounds: rss at most 256 MiB over the budgets, nobody cut, every call that "
                     "was not refused came out right"
                   : "NOT within bounds");
  report.Print(common.json);
  return good ? 0 : 1;
}

}  // namespace

void AddOverload(CLI::App* app, const Common& common, Run* run) {
  const auto flags = std::make_shared<Flags>();
  auto* command =
      app->add_subcommand("overload", "many and stalled connections; exit code 1 if memory or calls suffer");
  const auto number = [&](const char* name, auto* value, const char* what, int64_t min, int64_t max) {
    command->add_option(name, *value, what)->capture_default_str()->check(CLI::Range(min, max));
  };
  number("--clients", &flags->clients, "push: clients, half of which stall", 2, 256);
  number("--mib", &flags->mebibytes, "push: bytes of each client's two operands, MiB", 2, 65536);
  number("--connections", &flags->connections, "crowd, full: stalled connections", 1, 4000);
  number("--operand-mib", &flags->operand_mib, "crowd, full: bytes of an operand of theirs, MiB", 1, 1024);
  number("--bulk", &flags->bulk, "crowd, full: uploads beside them", 0, 20);
  number("--small", &flags->small, "crowd, full: callers of small calls beside them", 1, 64);
  number("--quota-mib", &flags->quota_mib, "receive quota of the server, MiB", 8, 1 << 20);
  number("--window-kib", &flags->window_kib, "receive window of the server, KiB; 0: what gRPC chooses", 0,
         16384);
  command->add_option("--phases", flags->phases, "which of push, crowd, full; all of them without")
      ->check(CLI::IsMember({"push", "crowd", "full"}));
  command->callback([=, &common] { *run = [=, &common] { return Overload(common, *flags); }; });
}

}  // namespace tilewire::bench
