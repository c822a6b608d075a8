// Many and stalled connections: the server's memory stays bounded, and everybody else's calls go on.
//   push   clients that upload large arrays, half of which send one operand and stop
//   crowd  many connections, most stalled, jobs among them; bulk and small calls go on beside
//   full   more stalled jobs than the server runs or queues; uploads under way end well, small calls go on
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "server/ops/values.h"
#include "server/rpc/transport/receive_limits.h"
#include "tests/bench/actives.h"
#include "tests/bench/bench.h"
#include "tests/bench/crowd.h"
#include "tests/bench/relay.h"
#include "tests/bench/report.h"

namespace tilewire::bench {
namespace {

using std::chrono::seconds;

struct Flags {
  int clients = 32, connections = 500, bulk = 4, small = 4;
  int64_t mebibytes = 64, operand_mib = 1, seconds = 600, distance_mib = 512;
  double round_trip_ms = 0;
  int64_t quota_mib = rpc::kDefaultReceiveQuotaBytes / kMiB,
          window_kib = rpc::kDefaultReceiveWindowBytes / kKiB;
  std::vector<std::string> phases;
};

// Stalled jobs that are let in beside the calls that go on; under --max-in-flight.
constexpr int kStalledJobs = 40, kInFlight = 64;
constexpr int64_t kSpare = 64 * kMiB;
constexpr int64_t kBeside = 256 * kMiB;  ///< what a server may take beside its budgets

/// What jobs of two arrays take.
struct Jobs {
  int64_t count, array_bytes;
  int64_t device_bytes() const { return count * 2 * array_bytes; }
  /// Of staging, where device memory is not host memory: three blocks an array, or all of it.
  int64_t pinned_bytes(int64_t block_bytes) const {
    const int64_t blocks = std::min<int64_t>(3, (array_bytes - 1) / block_bytes + 1);
    return count * 2 * blocks * std::min(block_bytes, array_bytes);
  }
};

/// A phase's server, and what is found about it.
class Phase {
 public:
  /// Its budgets are just what `jobs` take at once, so that the bound is tight and nobody waits for those who
  /// stall.
  Phase(const Common& common, const Flags& flags, const std::vector<Jobs>& jobs)
      : begin_(std::chrono::steady_clock::now()),
        device_bytes_(DeviceBytes(jobs)),
        pinned_bytes_(PinnedBytes(common, jobs)),
        server_(StartServer(common, {"--device-bytes", std::to_string(device_bytes_), "--pinned-bytes",
                                     std::to_string(pinned_bytes_), "--receive-quota",
                                     std::to_string(flags.quota_mib * kMiB), "--idle-seconds", "3600",
                                     "--queue-seconds", "3600", Windows(flags), WindowBytes(flags)})),
        distance_bytes_(flags.round_trip_ms > 0 ? flags.distance_mib * kMiB : 0),
        relay_(RelayTo(server_, flags)),
        gpu_(server_.ready_line().find("device=cuda") != std::string::npos),
        resident_at_begin_(gpu_ ? ResidentAfterFirstCalls(server_) : 0) {}

  const std::string& address() const { return relay_ ? relay_->address() : server_.address(); }
  /// Adds the phase's row. Whether memory stayed within its bounds, nobody was cut and no call broke.
  bool Judge(const std::string& name, const Tally& tally, const StalledCrowd::Counts& crowd, Report* report) {
    const int64_t most = server_.resident_bytes_max() - resident_at_begin_;
    const int64_t budgets = (gpu_ ? pinned_bytes_ : device_bytes_) + distance_bytes_;
    const auto seconds_passed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); };
    const bool stopped = Child::all_ended();
    report->Add(name + (stopped ? " (stopped)" : ""),
                {{"seconds", seconds_passed},
                 {"rss_MiB", mib(most)},
                 {"budgets_MiB", mib(budgets)},
                 {"bulk_right", tally.bulk.load()},
                 {"small_right", tally.small.load()},
                 {"refused", tally.refused.load()},
                 {"broken", tally.broken.load()},
                 {"stalled", crowd.streams},
                 {"their_MiB", mib(crowd.sent)},
                 {"ended", crowd.ended + crowd.reset + crowd.closed - crowd.cut},
                 {"cut", crowd.cut}});
    return !stopped && most > 0 && most <= budgets + kBeside && crowd.cut == 0 && tally.broken.load() == 0 &&
           tally.small.load() > 0;
  }

 private:
  /// From afar windows are what the server chooses, so that memory is what is tested; near they are given.
  static std::string Windows(const Flags& flags) {
    return flags.round_trip_ms > 0 ? "--distance-bytes" : "--receive-window";
  }
  static std::string WindowBytes(const Flags& flags) {
    return std::to_string(flags.round_trip_ms > 0 ? flags.distance_mib * kMiB : flags.window_kib * kKiB);
  }
  static std::unique_ptr<Relay> RelayTo(const Child& server, const Flags& flags) {
    if (flags.round_trip_ms <= 0) return nullptr;
    return std::make_unique<Relay>(
        server.address(), std::chrono::microseconds(static_cast<int64_t>(flags.round_trip_ms * 500)));
  }
  /// Memory of a GPU is none of the host's, but its driver takes some of that: when it starts, and for code
  /// when that first runs.
  static int64_t ResidentAfterFirstCalls(const Child& server) {
    const Problem little(2);
    Tally tally;
    {
      Actives actives(server.address(), &little, &tally);
      actives.PushOnce();
      actives.CallSmall(1, 1);
    }
    if (tally.broken.load() > 0) throw std::runtime_error("the first calls failed");
    return server.resident_bytes();
  }
  static int64_t DeviceBytes(const std::vector<Jobs>& jobs) {
    int64_t bytes = kSpare;
    for (const Jobs& kind : jobs) bytes += kind.device_bytes();
    return bytes;
  }
  static int64_t PinnedBytes(const Common& common, const std::vector<Jobs>& jobs) {
    const auto block_bytes = ops::ParseBytes("--block-bytes", common.block_bytes, 1, kGiB);
    if (!block_bytes) throw std::runtime_error(block_bytes.error().ToString());
    int64_t bytes = kSpare;
    for (const Jobs& kind : jobs) bytes += kind.pinned_bytes(*block_bytes);
    return bytes;
  }

  const std::chrono::steady_clock::time_point begin_;
  const int64_t device_bytes_, pinned_bytes_;
  const Child server_;
  const int64_t distance_bytes_;  ///< a budget like the others
  const std::unique_ptr<Relay> relay_;
  const bool gpu_;
  const int64_t resident_at_begin_;
};

/// Waits until everybody who stalls has come as far as they get.
void Settle(const StalledCrowd& crowd, const std::string& phase, Report* report) {
  if (!crowd.WaitUntilQuiet(seconds(1), seconds(60)))
    report->Note(phase + ": after a minute the stalled clients still sent or received");
}

bool Push(const Common& common, const Flags& flags, const Problem& problem, Report* report) {
  Phase server(common, flags, {{flags.clients, (flags.mebibytes + 1) * kMiB / 2}});
  const std::vector<Stall> stalls(static_cast<size_t>(flags.clients / 2), Stall::kOneOperand);
  StalledCrowd crowd(server.address(), stalls, flags.mebibytes / 2 * kMiB);
  Tally tally;
  {
    Actives actives(server.address(), &problem, &tally);
    for (int i = flags.clients / 2; i < flags.clients; ++i) actives.PushOnce();
    actives.CallSmall(1, 100);
  }
  Settle(crowd, "push", report);
  const bool all = tally.bulk.load() == flags.clients - flags.clients / 2;
  return server.Judge("push", tally, crowd.counts(), report) && all;
}

bool Crowd(const Common& common, const Flags& flags, const Problem& problem, Report* report) {
  Phase server(
      common, flags,
      {{kStalledJobs, flags.operand_mib * kMiB}, {flags.bulk, (problem.mebibytes() + 1) * kMiB / 2}});
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
    Settle(crowd, "crowd", report);
  }
  const bool all = tally.bulk.load() == 3 * flags.bulk && tally.refused.load() == 0;
  return server.Judge("crowd", tally, crowd.counts(), report) && all;
}

bool Full(const Common& common, const Flags& flags, const Problem& problem, Report* report) {
  Phase server(common, flags,
               {{kInFlight, flags.operand_mib * kMiB}, {flags.bulk, problem.mebibytes() * kMiB / 2}});
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
    Settle(*crowd, "full", report);
    actives.CallSmall(flags.small, 200);
    actives.Let();
  }
  const bool all = tally.bulk.load() == flags.bulk;
  return server.Judge("full", tally, crowd->counts(), report) && all;
}

/// Ends all servers when the time is over, and so whatever waits for them.
void EndAt(const std::stop_token& stop, std::chrono::steady_clock::time_point end) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any wake;
  if (!wake.wait_until(lock, stop, end, [&] { return stop.stop_requested(); })) Child::EndAll();
}

int Overload(const Common& common, const Flags& flags) {
  const std::jthread ends(EndAt, std::chrono::steady_clock::now() + seconds(flags.seconds));
  const auto chosen = [&](const char* name) {
    return !Child::all_ended() && (flags.phases.empty() || std::find(flags.phases.begin(), flags.phases.end(),
                                                                     name) != flags.phases.end());
  };
  Report report("stalled clients, receive quota " + std::to_string(flags.quota_mib) + " MiB, window " +
                std::to_string(flags.window_kib) + " KiB");
  report.Follow(common.json);
  bool good = true;
  const Problem large(flags.mebibytes), usual(std::min<int64_t>(flags.mebibytes, 32));
  try {
    if (chosen("push")) good &= Push(common, flags, large, &report);
    if (chosen("crowd")) good &= Crowd(common, flags, usual, &report);
    if (chosen("full")) good &= Full(common, flags, usual, &report);
  } catch (const std::runtime_error&) {  // nobody to connect to any more
    if (!Child::all_ended()) throw;
  }
  if (Child::all_ended()) {
    report.Note("stopped: the phases that were not done by then are missing, or say so");
    good = false;
  }
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
  number("--seconds", &flags->seconds, "most that all of it may take; then it ends with what is known", 1,
         86400);
  command
      ->add_option("--round-trip-ms", flags->round_trip_ms,
                   "all clients so far away, by a relay; windows are then by distance")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1000.0));
  number("--distance-mib", &flags->distance_mib, "memory for wide windows, where there is a distance, MiB", 8,
         1 << 20);
  number("--quota-mib", &flags->quota_mib, "receive quota of the server, MiB", 8, 1 << 20);
  number("--window-kib", &flags->window_kib, "receive window of the server, KiB; 0: what gRPC chooses", 0,
         16384);
  command->add_option("--phases", flags->phases, "which of push, crowd, full; all of them without")
      ->check(CLI::IsMember({"push", "crowd", "full"}));
  command->callback([=, &common] { *run = [=, &common] { return Overload(common, *flags); }; });
}

}  // namespace tilewire::bench
