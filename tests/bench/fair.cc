// One caller who keeps the server's queue full, and some with one job each: how long these take, beside what
// they take alone.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/bench/bench.h"
#include "tests/bench/report.h"

namespace tilewire::bench {
namespace {

struct Flags {
  int64_t kibibytes = 4096;
  int greedy = 320, others = 9, calls = 5, rounds = 3;
  std::vector<std::string> server;
};

/// What all callers bring.
class Job {
 public:
  explicit Job(int64_t kibibytes)
      : count_(static_cast<size_t>(kibibytes) << 7),
        data_(RandomFloats(2 * count_, 3)),
        answer_(HostRmse(data_, data_ + count_, count_)) {}

  /// Milliseconds of one call; less than 0 where the server was too busy. Throws where the answer is wrong or
  /// anything else went wrong, unless all servers were ended.
  double Call(client::Client* client, const std::stop_token& stop = {}) const {
    client::CallOptions options;
    options.connections = 1;
    options.max_attempts = 1000;  // what is asked for is an answer: who is told to come again does
    options.stop = stop;
    const auto start = std::chrono::steady_clock::now();
    const auto reply = client->Rmse(Source(data_, count_), Source(data_ + count_, count_), {}, options);
    if (!reply) {
      if (stop.stop_requested() || Child::all_ended()) return -1;
      throw std::runtime_error(reply.error().ToString());
    }
    if (reply->values[0] != answer_) throw std::runtime_error("a wrong answer");
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  const size_t count_;
  const float* const data_;
  const double answer_;
};

client::Client Caller(const Child& server, const std::string& identity) {
  return client::Client::Connect(server.address(), {.metadata = {{"x-user", identity}}});
}

/// Callers of one identity, each with one job after the other until it ends.
class Greedy {
 public:
  Greedy(const Child& server, const Job& job, int callers) {
    for (int i = 0; i < callers; ++i)
      threads_.emplace_back([&, this](const std::stop_token& stop) {
        auto client = Caller(server, "greedy");
        while (!stop.stop_requested() && !Child::all_ended()) {
          try {
            done_ += job.Call(&client, stop) >= 0;
          } catch (const std::runtime_error&) {
            ++failed_;
          }
        }
      });
  }
  ~Greedy() {
    for (auto& thread : threads_) thread.request_stop();
  }
  int done() const { return done_.load(); }
  int failed() const { return failed_.load(); }

 private:
  std::atomic<int> done_{0}, failed_{0};
  std::vector<std::jthread> threads_;
};

struct Found {
  double alone_ms = 0, worst_ms = 0, usual_ms = 0, greedy_jobs = 0, failed = 0;
};

/// A closed loop of each of the others at once; the median call of each.
std::vector<double> Others(const Child& server, const Job& job, const Flags& flags) {
  std::vector<double> medians(static_cast<size_t>(flags.others));
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < medians.size(); ++i)
    threads.emplace_back([&, i] {
      auto client = Caller(server, "other-" + std::to_string(i));
      std::vector<double> times;
      try {
        for (int call = 0; call < flags.calls; ++call) times.push_back(job.Call(&client));
        medians[i] = Median(times);
      } catch (const std::runtime_error& error) {
        std::fprintf(stderr, "other-%zu: %s\n", i, error.what());
        medians[i] = 1e9;
      }
    });
  threads.clear();
  return medians;
}

Found Round(const Common& common, const Flags& flags, const Job& job) {
  std::vector<std::string> arguments{"--identity-header", "x-user", "--queue-seconds", "3600"};
  arguments.insert(arguments.end(), flags.server.begin(), flags.server.end());
  const Child server = StartServer(common, arguments);
  Found found;
  {
    auto client = Caller(server, "alone");
    std::vector<double> times;
    for (int call = 0; call < 4 * flags.calls; ++call) times.push_back(job.Call(&client));
    found.alone_ms = Median(times);
  }
  Greedy greedy(server, job, flags.greedy);
  // All of them have come once the server has answered as many.
  while (greedy.done() + greedy.failed() < flags.greedy && !Child::all_ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const int before = greedy.done();
  const auto medians = Others(server, job, flags);
  found.greedy_jobs = greedy.done() - before;
  found.failed = greedy.failed();
  found.worst_ms = *std::max_element(medians.begin(), medians.end());
  found.usual_ms = Median(medians);
  return found;
}

int Fair(const Common& common, const Flags& flags) {
  const Job job(flags.kibibytes);
  std::vector<double> alone, usual, worst, shares;
  Report report(std::to_string(flags.others) + " callers with one job of " + std::to_string(flags.kibibytes) +
                " KiB each beside one with " + std::to_string(flags.greedy) + "; medians of calls, " +
                std::to_string(flags.rounds) + " rounds");
  report.Follow(common.json);
  const auto add = [&](const std::string& row, double alone_ms, double usual_ms, double worst_ms,
                       double share, double greedy_jobs, double failed) {
    report.Add(row, {{"alone_ms", alone_ms},
                     {"usual_ms", usual_ms},
                     {"worst_ms", worst_ms},
                     {"worst/(alone*active)", share},
                     {"greedy_jobs", greedy_jobs},
                     {"greedy_failed", failed}});
  };
  for (int round = 0; round < flags.rounds && !Child::all_ended(); ++round) {
    const Found found = Round(common, flags, job);
    const double share = found.worst_ms / (found.alone_ms * (flags.others + 1));
    add("round " + std::to_string(round + 1), found.alone_ms, found.usual_ms, found.worst_ms, share,
        found.greedy_jobs, found.failed);
    alone.push_back(found.alone_ms);
    usual.push_back(found.usual_ms);
    worst.push_back(found.worst_ms);
    shares.push_back(share);
  }
  constexpr double kBound = 1.5;
  const bool good = !shares.empty() && Median(shares) <= kBound;
  if (!shares.empty()) add("median", Median(alone), Median(usual), Median(worst), Median(shares), 0, 0);
  report.Note(good ? "each of them within 1.5 times the time alone times the active callers"
                   : "NOT within 1.5");
  report.Print(common.json);
  return good ? 0 : 1;
}

}  // namespace

void AddFair(CLI::App* app, const Common& common, Run* run) {
  const auto flags = std::make_shared<Flags>();
  auto* command = app->add_subcommand(
      "fair", "callers with one job each beside one who fills the queue; exit code 1 if they wait too long");
  const auto number = [&](const char* name, auto* value, const char* what, int64_t min, int64_t max) {
    command->add_option(name, *value, what)->capture_default_str()->check(CLI::Range(min, max));
  };
  number("--kib", &flags->kibibytes, "bytes of a job's two operands, KiB", 1, 1 << 20);
  number("--greedy", &flags->greedy, "jobs of the one: what runs and what waits by default", 1, 4096);
  number("--others", &flags->others, "callers with one job each", 1, 256);
  number("--calls", &flags->calls, "calls of each of these", 1, 100'000);
  number("--rounds", &flags->rounds, "rounds, a server each", 1, 1000);
  command->add_option("--server", flags->server, "further flags of the server");
  command->callback([=, &common] { *run = [=, &common] { return Fair(common, *flags); }; });
}

}  // namespace tilewire::bench
