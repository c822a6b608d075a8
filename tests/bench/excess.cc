// More calls than the server can do, whether or not it answers: how much it still does, how long that takes,
// what a refusal costs, and how soon it is itself again.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "tests/bench/bench.h"
#include "tests/bench/cores.h"
#include "tests/bench/http2_frames.h"
#include "tests/bench/open_loop.h"
#include "tests/bench/report.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::bench {
namespace {

struct Flags {
  std::vector<int64_t> kibibytes{4, 1024};
  std::vector<double> times{1, 2, 3};
  int connections = 8, generators = 1, under_way = 64;
  double seconds = 4, deadline = 1;
  bool resident = false, ignore_pushback = false;
  std::string server_cores, own_cores;
  std::vector<std::string> server;
};

/// What a call brings; `arrays` keeps those of a form whose operands are at the server.
CallForm FormOf(const std::string& address, int64_t kibibytes, const Flags& flags,
                std::vector<client::OwnedArray>* arrays) {
  const size_t count = static_cast<size_t>(kibibytes) << 7;  // f32 of each operand
  const float* const data = RandomFloats(2 * count, 5);
  CallForm form{.path = "/tilewire.v1.Kernels/Compute"};
  v1::ComputeRequest compute;
  compute.mutable_operation()->mutable_rmse();
  for (uint32_t i = 0; i < 2; ++i) {
    auto* const operand = compute.add_operands();
    if (flags.resident) {
      auto stored = client::Client::Connect(address).Put(Source(data + i * count, count));
      if (!stored) throw std::runtime_error(stored.error().ToString());
      operand->set_array(stored->array.id());
      arrays->push_back(std::move(stored->array));
      continue;
    }
    operand->mutable_spec()->set_dtype(v1::DTYPE_F32);
    operand->mutable_spec()->add_shape(static_cast<int64_t>(count));
    operand->set_data(std::string(reinterpret_cast<const char*>(data + i * count), count * sizeof(float)));
  }
  http2::AppendMessage(&form.body, compute.SerializeAsString());
  const double answer = HostRmse(data, data + count, count);
  form.expects.assign(reinterpret_cast<const char*>(&answer), sizeof(answer));
  return form;
}

/// Threads that call one server together.
class Generators {
 public:
  Generators(const std::string& address, const CallForm& form, const Flags& flags) {
    for (int i = 0; i < flags.generators; ++i)
      loops_.push_back(std::make_unique<OpenLoop>(address, std::max(1, flags.connections / flags.generators),
                                                  form, static_cast<uint64_t>(i) << 32));
  }
  std::vector<CallEnd> Run(Schedule schedule) {
    const auto share = static_cast<double>(loops_.size());
    schedule.per_second /= share;
    schedule.then_per_second /= share;
    schedule.under_way = std::max(1, schedule.under_way / static_cast<int>(loops_.size()));
    std::mutex mutex;
    std::vector<CallEnd> all;
    std::string error;
    std::vector<std::jthread> threads;
    for (const auto& loop : loops_)
      threads.emplace_back([&] {
        try {
          const auto calls = loop->Run(schedule);
          const std::lock_guard lock(mutex);
          all.insert(all.end(), calls.begin(), calls.end());
        } catch (const std::runtime_error& failed) {
          const std::lock_guard lock(mutex);
          error = failed.what();
        }
      });
    threads.clear();
    if (!error.empty()) throw std::runtime_error(error);
    return all;
  }

 private:
  std::vector<std::unique_ptr<OpenLoop>> loops_;
};

struct Found {
  double offered = 0, good = 0, busy = 0, held = 0, late = 0, unsent = 0, other = 0;  ///< a second
  double p50_ms = 0, p99_ms = 0;                                                      ///< of what was good
  double own_ms = 0;  ///< the 99th percentile of what of these may be the generator's own
  double cpu = 0;     ///< the server's, seconds a second
};

Found Summarise(const std::vector<CallEnd>& calls, double seconds, double cpu_seconds) {
  constexpr int kDeadlineExceeded = 4, kResourceExhausted = 8;
  Found found{.cpu = cpu_seconds / seconds};
  std::vector<double> times, own;
  for (const CallEnd& call : calls) {
    if (call.due >= seconds) continue;
    found.offered += 1 / seconds;
    if (call.status == 0) times.push_back(1e3 * (call.ended - call.due)), own.push_back(1e3 * call.own);
    const bool late = call.status == kDeadlineExceeded;
    double* const kind = call.status == 0                    ? &found.good
                         : call.status == kResourceExhausted ? call.sent ? &found.busy : &found.held
                         : late && !call.sent                ? &found.unsent
                         : late                              ? &found.late
                                                             : &found.other;
    *kind += 1 / seconds;
  }
  found.p50_ms = Quantile(times, 0.5);
  found.p99_ms = Quantile(times, 0.99);
  found.own_ms = Quantile(own, 0.99);
  return found;
}

/// Seconds after `since` until calls go well again: nine of ten of every later tenth of a second do.
double RecoverySeconds(const std::vector<CallEnd>& calls, double since, double good_ms) {
  constexpr double kWindow = 0.1, kBadShare = 0.1;
  std::map<int, std::pair<int, int>> windows;  // bad, all
  for (const CallEnd& call : calls) {
    if (call.due < since) continue;
    auto& [bad, all] = windows[static_cast<int>((call.due - since) / kWindow)];
    ++all;
    bad += call.status != 0 || 1e3 * (call.ended - call.due) > good_ms;
  }
  double seconds = 0;
  for (const auto& [window, counts] : windows)
    if (counts.first > kBadShare * counts.second) seconds = kWindow * (window + 1);
  return seconds;
}

/// What a closed loop gets, or two of them do: the machine's cores may be others' meanwhile.
struct Peak {
  double good = 0, p99_ms = 0, call_us = 0;
  static Peak Of(const Found& closed) { return {closed.good, closed.p99_ms, 1e6 * closed.cpu / closed.good}; }
  static Peak Mean(const Peak& a, const Peak& b) {
    return {(a.good + b.good) / 2, (a.p99_ms + b.p99_ms) / 2, (a.call_us + b.call_us) / 2};
  }
};

void AddRow(const std::string& row, const Found& found, const Peak& peak, double recovery_ms,
            double refusal_us, double slow_ms, Report* report) {
  report->Add(row, {{"offered/s", found.offered},
                    {"good/s", found.good},
                    {"of_peak_%", 100 * found.good / peak.good},
                    {"busy/s", found.busy},
                    {"held/s", found.held},
                    {"late/s", found.late},
                    {"unsent/s", found.unsent},
                    {"other/s", found.other},
                    {"p50_ms", found.p50_ms},
                    {"p99_ms", found.p99_ms},
                    {"of_p99", found.p99_ms / peak.p99_ms},
                    {"own_ms", found.own_ms},
                    {"cpu", found.cpu},
                    {"call_us", peak.call_us},
                    {"refusal_us", refusal_us},
                    {"recovery_ms", recovery_ms},
                    {"slow_ms", slow_ms}});
}

/// Whether that is what the server owes.
bool IsKept(const Found& found, const Peak& peak, double recovery, double refusal_us) {
  constexpr double kDear = 10, kDearShare = 0.9, kCheapShare = 0.7;
  constexpr double kUsualRefusalUs = 50;  // where too few were refused to tell
  const double dear_us = kDear * (refusal_us > 0 ? refusal_us : kUsualRefusalUs);
  const double owed = peak.call_us >= dear_us ? kDearShare : kCheapShare;
  return found.good >= owed * peak.good && found.p99_ms <= 2 * peak.p99_ms && recovery < 1;
}

/// A form's rows; whether what the server owes was kept.
bool Measure(const Common& common, const Flags& flags, int64_t kibibytes, Report* report) {
  PinTo(flags.server_cores);
  const Child server = StartServer(common, flags.server);
  const SlowCores machine(flags.server_cores);
  PinTo(flags.own_cores);
  std::vector<client::OwnedArray> arrays;
  const CallForm form = FormOf(server.address(), kibibytes, flags, &arrays);
  Generators generators(server.address(), form, flags);
  const std::string name = std::to_string(kibibytes) + " KiB";
  auto since = SlowCores::TimePoint::clock::now();
  const auto slow_ms = [&] {
    const auto from = std::exchange(since, SlowCores::TimePoint::clock::now());
    return machine.MsBetween(from, since);
  };
  const auto closed_loop = [&](double seconds) {
    const double before = server.cpu_seconds();
    const auto calls = generators.Run({.under_way = flags.under_way,
                                       .seconds = seconds,
                                       .deadline_seconds = 10,
                                       .obeys = !flags.ignore_pushback});
    return Summarise(calls, seconds, server.cpu_seconds() - before);
  };
  (void)closed_loop(1);  // warms up
  (void)slow_ms();
  Found closed = closed_loop(flags.seconds);
  if (closed.good <= 0) throw std::runtime_error("no right answer to any call of " + name);
  AddRow(name + " closed", closed, Peak::Of(closed), 0, 0, slow_ms(), report);
  bool kept = true;
  for (const double times : flags.times) {
    const Schedule schedule{.per_second = times * closed.good,
                            .seconds = flags.seconds,
                            .then_per_second = closed.good / 2,
                            .then_seconds = 2,
                            .deadline_seconds = flags.deadline,
                            .obeys = !flags.ignore_pushback};
    const double before = server.cpu_seconds();
    const auto all = generators.Run(schedule);
    const double cpu = server.cpu_seconds() - before, slow = slow_ms();
    const Found again = closed_loop(flags.seconds);
    const Peak peak = Peak::Mean(Peak::Of(closed), Peak::Of(again));
    // What came after it cost what calls cost.
    double after = 0, refused = 0;
    for (const CallEnd& call : all) {
      after += call.due >= schedule.seconds && call.status == 0;
      refused += call.due < schedule.seconds && call.status > 0 && call.sent;
    }
    refused /= schedule.seconds;
    const Found found = Summarise(all, schedule.seconds, cpu - after * peak.call_us / 1e6);
    const double refusal_us =
        refused > 0.2 * found.offered ? (1e6 * found.cpu - found.good * peak.call_us) / refused : 0;
    const double recovery = RecoverySeconds(all, schedule.seconds, 2 * peak.p99_ms);
    std::ostringstream row;
    row << name << " " << times << "x";
    AddRow(row.str(), found, peak, 1e3 * recovery, refusal_us, slow, report);
    AddRow(name + " closed", again, Peak::Of(again), 0, 0, slow_ms(), report);
    if (again.good < closed.good / 2) return false;  // it did not come to itself
    closed = again;
    kept &= times <= 1 || IsKept(found, peak, recovery, refusal_us);
  }
  return kept;
}

int Excess(const Common& common, const Flags& flags) {
  Report report("more calls than the server can do, open loop, deadlines of " +
                std::to_string(flags.deadline) + " s");
  report.Follow(common.json);
  bool kept = true;
  for (const int64_t kibibytes : flags.kibibytes)
    if (!Child::all_ended()) kept &= Measure(common, flags, kibibytes, &report);
  report.Note(kept ? "kept: what was promised of goodput, p99 and recovery"
                   : "NOT kept: 90% of the peak (70% where a call costs less than ten refusals), p99 within "
                     "2 times that "
                     "of the peak, recovery within a second");
  report.Print(common.json);
  return kept ? 0 : 1;
}

}  // namespace

void AddExcess(CLI::App* app, const Common& common, Run* run) {
  const auto flags = std::make_shared<Flags>();
  auto* command = app->add_subcommand(
      "excess",
      "more calls than the server can do, whether or not it answers; exit code 1 if it does too few");
  const auto number = [&](const char* name, auto* value, const char* what, double min, double max) {
    command->add_option(name, *value, what)->capture_default_str()->check(CLI::Range(min, max));
  };
  command
      ->add_option("--kib", flags->kibibytes,
                   "bytes of a call's two operands, KiB; several: one after the other")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--times", flags->times, "offered calls, as multiples of what a closed loop gets")
      ->delimiter(',')
      ->check(CLI::Range(0.1, 20.0));
  number("--connections", &flags->connections, "connections in all", 1, 1024);
  number("--generators", &flags->generators, "threads that call", 1, 64);
  number("--under-way", &flags->under_way, "calls at a time of the closed loop that finds the peak", 1,
         65536);
  number("--seconds", &flags->seconds, "of each row", 0.1, 600);
  number("--deadline", &flags->deadline, "of each call, seconds", 0.01, 60);
  command->add_flag("--resident", flags->resident,
                    "operands that are at the server: calls of some hundred bytes");
  command->add_flag("--ignore-pushback", flags->ignore_pushback,
                    "callers do not hold back when the server asks them to");
  command->add_option("--server-cores", flags->server_cores, "cores of the server, like 0,2-3");
  command->add_option("--own-cores", flags->own_cores, "cores of the callers");
  command->add_option("--server", flags->server, "further flags of the server");
  command->callback([=, &common] { *run = [=, &common] { return Excess(common, *flags); }; });
}

}  // namespace tilewire::bench
