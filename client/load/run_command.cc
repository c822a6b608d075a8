// `tilewire-load run`.
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "client/cli/report.h"
#include "client/load/checkers.h"
#include "client/load/commands.h"
#include "client/load/service.h"
#include "kernels/figures/text.h"

namespace tilewire::load {
namespace {

/// Applies what the command line says; the complaint where it does not fit the scenario.
Status Override(const RunArguments& arguments, Scenario* scenario) {
  if (arguments.callers) {
    scenario->mode.callers = *arguments.callers;
    scenario->channels = std::min<uint32_t>(*arguments.callers, 8);
  }
  if (arguments.seed) scenario->seed = *arguments.seed;
  if (arguments.seconds) {
    scenario->seconds = *arguments.seconds;
    scenario->requests.reset();
    scenario->stable.reset();
  }
  if (!arguments.rate) return {};
  if (scenario->mode.type == ModeType::kClosed)
    return BadValue("--rate", FormatNumber(*arguments.rate), "with a scenario whose mode is open or ramp")
        .value();
  scenario->mode.rate = *arguments.rate;
  return {};
}

std::string ProgressText(const Scenario& scenario, const LoadProgress& progress) {
  char text[160];
  const double all = progress.warming_up ? scenario.warmup_seconds : scenario.seconds.value_or(0);
  std::snprintf(text, sizeof(text), "%s %.1f%s s, %llu calls, %.0f calls/s, %llu errors",
                progress.warming_up ? "warm-up" : "measuring", progress.seconds,
                all > 0 ? (" of " + FormatNumber(all)).c_str() : "",
                static_cast<unsigned long long>(progress.calls), progress.calls_per_second,
                static_cast<unsigned long long>(progress.errors));
  return text;
}

/// Runs the scenario's load, step by step where it is a ramp. What is returned is the best step's, or the
/// last one's where none held; wrong answers of the others count as outside of the window.
LoadResult RunMode(const Scenario& scenario, const Call& call, const Interrupt& interrupt, RampResult* ramp) {
  StatusLine line;
  const LoadOptions options = OptionsOf(scenario);
  const auto show = [&](const LoadProgress& progress) { line.Show(ProgressText(scenario, progress)); };
  if (scenario.mode.type != ModeType::kRamp) return RunLoad(options, call, interrupt.token(), show);
  LoadResult best;
  bool any_held = false;
  uint64_t wrong = 0;
  const RampOptions ramp_options{.start_rate = scenario.mode.rate,
                                 .max_rate = scenario.mode.max_rate,
                                 .bound_us = scenario.mode.bound_us};
  *ramp = FindBestRate(ramp_options, [&](double rate, RampStep* step) {
    LoadOptions step_options = options;
    step_options.rate = rate;
    step_options.patience_seconds = *scenario.seconds;
    const LoadResult load = RunLoad(step_options, call, interrupt.token(), [&](const LoadProgress& progress) {
      line.Show(FormatNumber(rate) + " calls/s: " + ProgressText(scenario, progress));
    });
    const CallStats total = load.measured.total();
    // Poisson arrivals are a few more or less than the rate says: what counts is how many of those that were
    // due ended, and how much longer than the window that took.
    step->achieved = total.calls() == 0
                         ? 0
                         : rate * static_cast<double>(total.good) / static_cast<double>(total.calls()) *
                               std::min(1.0, *scenario.seconds / load.measured.seconds);
    const double share = scenario.mode.percentile / 100;
    step->supported = Supports(total.latency.count(), share);
    step->latency_us = step->supported ? total.latency.Percentile(share) : total.latency.max();
    step->clean = Clean(load);
    const uint64_t wrong_here = total.wrong + load.outside_wrong;
    wrong += wrong_here;
    const bool held = Holds(*step, scenario.mode.bound_us);
    if (held || !any_held) best = load;
    if (held || !any_held) wrong -= wrong_here;  // that result tells of its own
    any_held = any_held || held;
    return load.reason != StopReason::kInterrupted && load.reason != StopReason::kServerLost;
  });
  best.outside_wrong += wrong;
  if (!ramp->stopped) {
    best.reason = StopReason::kDone;
    best.text = "the best rate is known";
  }
  return best;
}

int ExitCode(const LoadResult& load, const Interrupt& interrupt, const RampResult* ramp) {
  if (interrupt.exit_code() != 0) return interrupt.exit_code();
  if (ramp != nullptr && ramp->best_rate == 0) return kExitBad;
  return Clean(load) && load.measured.total().calls() > 0 ? kExitGood : kExitBad;
}

/// How long the server is to keep what the run stores: its default, or longer where the run is.
double SecondsToKeep(const Scenario& scenario) {
  constexpr double kUsual = 3600, kSpare = 600, kRampSteps = 64;
  const double window = scenario.stable ? scenario.stable->max_seconds : scenario.seconds.value_or(0);
  const double steps = scenario.mode.type == ModeType::kRamp ? kRampSteps : 1;
  const double needed = (scenario.warmup_seconds + window) * steps + kSpare;
  return needed > kUsual ? needed : 0;
}

}  // namespace

int RunScenario(const Globals& globals, const RunArguments& arguments, const Interrupt& interrupt) {
  auto scenario = LoadScenario(arguments.scenario);
  if (!scenario) return cli::PrintError(scenario.error(), kExitUsage);
  if (const Status status = Override(arguments, &*scenario); !status.ok())
    return cli::PrintError(status, kExitUsage);
  if (const int exit_code = CheckOutputs(globals); exit_code != kExitGood) return exit_code;
  int exit_code = kExitGood;
  auto probe = client::Client::Connect(globals.server, globals.connect);
  const auto server = Describe(globals, &probe, arguments.ceilings, interrupt, &exit_code);
  if (!server) return exit_code;
  auto inputs = Inputs::Make(scenario->operations, scenario->inputs, scenario->seed);
  if (!inputs) return cli::PrintError(inputs.error(), kExitUsage);
  // Shared with the callers: those that cannot be ended in time are left behind.
  const auto service = std::make_shared<Service>(
      Service::Options{
          .address = globals.server,
          .connect = globals.connect,
          .channels = scenario->channels,
          .timeout = std::chrono::milliseconds(static_cast<int64_t>(scenario->timeout_seconds * 1000)),
          .callers = scenario->mode.callers,
          .checkers = CheckerCount()},
      scenario->operations, std::make_shared<const Inputs>(*std::move(inputs)));
  const Call call = [service](const Request& request, const std::stop_token& stop) {
    return service->Make(request, {}, stop);
  };
  const Status stored = service->Prepare(SecondsToKeep(*scenario), interrupt.token());
  if (!stored.ok()) {
    WarnOfLeft(service->Forget());
    return cli::PrintError(stored, interrupt.exit_code() != 0            ? interrupt.exit_code()
                                   : stored.code() == Code::kUnavailable ? kExitUnreachable
                                                                         : kExitBad);
  }
  RampResult ramp;
  RampResult* const ramp_used = scenario->mode.type == ModeType::kRamp ? &ramp : nullptr;
  const LoadResult load = RunMode(*scenario, call, interrupt, ramp_used);
  exit_code =
      Publish(globals, RunJson(*scenario, *server, load, ramp_used), ExitCode(load, interrupt, ramp_used));
  WarnOfLeft(service->Forget());
  if (load.abandoned) ::_exit(exit_code);
  return exit_code;
}

}  // namespace tilewire::load
