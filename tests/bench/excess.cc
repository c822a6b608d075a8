// More calls than the server can do, whether or not it answers: how much it still does, how long that takes,
// what a refusal costs, and how soon it is itself again.
#include <algorithm>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "tests/bench/bench.h"
#include "tests/bench/cores.h"
#include "tests/bench/excess_found.h"
#include "tests/bench/http2_frames.h"
#include "tests/bench/open_loop.h"
#include "tests/bench/report.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::bench {
namespace {

struct Flags {
  std::vector<int64_t> kibibytes{4, 1024};
  std::vector<double> times{1, 2, 3};
  int connections = 8, generators = 1, under_way = 64, repeats = 1;
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

std::string RowName(const std::string& form, double times) {
  std::ostringstream row;
  row << form << " " << times << "x";
  return row.str();
}

/// What became of `calls`, for which the server needed `cpu` seconds.
Load LoadOf(const std::vector<CallEnd>& calls, const Schedule& schedule, double cpu, double slow_ms,
            const Peak& peak) {
  // What came after it cost what calls cost.
  double after = 0, refused = 0;
  for (const CallEnd& call : calls) {
    after += call.due >= schedule.seconds && call.status == 0;
    refused += call.due < schedule.seconds && call.status > 0 && call.sent;
  }
  refused /= schedule.seconds;
  Load load{.found = Summarise(calls, schedule.seconds, cpu - after * peak.call_us / 1e6),
            .peak = peak,
            .recovery_ms = 1e3 * RecoverySeconds(calls, schedule.seconds, 2 * peak.p99_ms),
            .slow_ms = slow_ms};
  if (refused > 0.2 * load.found.offered)
    load.refusal_us = (1e6 * load.found.cpu - load.found.good * peak.call_us) / refused;
  return load;
}

/// Whether the median of these loads is what the server owes; where they are several it is a row, and a note
/// says of how many the same is true.
bool IsKept(const std::string& row, double times, const std::vector<Load>& loads, Report* report) {
  const Load median = MedianOf(loads);
  if (loads.size() > 1) {
    report->Add(row + " median", median.Values());
    const auto kept = std::count_if(loads.begin(), loads.end(), [](const Load& l) { return l.IsKept(); });
    if (times > 1)
      report->Note(row + ": kept in " + std::to_string(kept) + " of " + std::to_string(loads.size()) +
                   " loads");
  }
  return times <= 1 || median.IsKept();
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
  const auto add_closed = [&](const Found& found) {
    report->Add(name + " closed",
                Load{.found = found, .peak = Peak::Of(found), .slow_ms = slow_ms()}.Values());
  };
  (void)closed_loop(1);  // warms up
  (void)slow_ms();
  Found closed = closed_loop(flags.seconds);
  if (closed.good <= 0) throw std::runtime_error("no right answer to any call of " + name);
  add_closed(closed);
  std::vector<std::vector<Load>> all_loads(flags.times.size());
  bool itself = true;  // else it did not come to itself
  for (size_t i = 0; i < flags.times.size() * static_cast<size_t>(flags.repeats) && itself; ++i) {
    const size_t k = i % flags.times.size();
    const Schedule schedule{.per_second = flags.times[k] * closed.good,
                            .seconds = flags.seconds,
                            .then_per_second = closed.good / 2,
                            .then_seconds = 2,
                            .deadline_seconds = flags.deadline,
                            .obeys = !flags.ignore_pushback};
    const double before = server.cpu_seconds();
    const auto calls = generators.Run(schedule);
    const double cpu = server.cpu_seconds() - before, slow = slow_ms();
    const Found again = closed_loop(flags.seconds);
    const Load load = LoadOf(calls, schedule, cpu, slow, Peak::Mean(Peak::Of(closed), Peak::Of(again)));
    report->Add(RowName(name, flags.times[k]), load.Values());
    add_closed(again);
    itself = again.good >= closed.good / 2;
    closed = again;
    all_loads[k].push_back(load);
  }
  bool kept = itself;
  for (size_t k = 0; k < flags.times.size(); ++k)
    if (!all_loads[k].empty())
      kept &= IsKept(RowName(name, flags.times[k]), flags.times[k], all_loads[k], report);
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
  number("--repeats", &flags->repeats, "rounds of all multiples; medians of these are judged", 1, 1000);
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
