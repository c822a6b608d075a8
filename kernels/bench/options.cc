#include "kernels/bench/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <regex>
#include <thread>

namespace tilewire::bench {
namespace {

constexpr const char* kFooter =
    "A case is named GROUP/NAME/IMPLEMENTATION (see --list). Limits that chosen cases are held against are "
    "measured "
    "too.\nExit codes: 0; 1 a case failed or a file could not be written; 2 bad usage; 3 no GPU for chosen "
    "GPU cases.";

void AddOptions(CLI::App& app, Options& options, double& noise_percent) {
  app.add_option("REGEX,--filter", options.filter,
                 "Only cases whose name matches (ECMAScript, anywhere in it)");
  app.add_flag("--list", options.list, "Print the names of the chosen cases and leave");
  app.add_option("--json", options.json, "Write the results to FILE")->type_name("FILE");
  app.add_option("--csv", options.csv, "Write the results to FILE")->type_name("FILE");
  app.add_option("--plot", options.plot, "Write one SVG chart a group into DIR")->type_name("DIR");
  app.add_option("--device", options.device, "GPU number")->check(CLI::Range(0, 1023))->capture_default_str();
  app.add_option("--bytes", options.max_bytes,
                 "GPU memory that a case may take, as 8GiB; larger ones are skipped "
                 "(default: 90% of what is free)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::PositiveNumber);
  StoppingRule& rule = options.run.rule;
  app.add_option("--min-time", rule.min_seconds, "Seconds of measured time a measurement takes at least")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--max-time", rule.max_seconds, "Seconds after which it ends although still noisy")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--max-runs", rule.max_runs, "Runs after which it ends although still noisy")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--noise", noise_percent,
                 "Percent that the median may be uncertain by when a measurement ends")
      ->check(CLI::Range(0.001, 100.0))
      ->capture_default_str();
  app.add_option("--threads", options.cases.threads, "Thread counts of host cases (default: 1 and all)")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  app.add_option("--permutations", options.cases.permutations, "Random cases of group permute")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_option("--seed", options.cases.seed, "Of the random cases")->capture_default_str();
  app.add_option("--cublas", options.cases.cublas, "Path of libcublas (default: the loader's usual places)")
      ->type_name("PATH");
}

std::vector<int> DefaultThreads() {
  const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return all == 1 ? std::vector<int>{1} : std::vector<int>{1, all};
}

/// What no single option can tell. Returns what is wrong, or nothing.
std::string Problem(const Options& options, bool cold_only, bool hot_only) {
  if (cold_only && hot_only) return "--cold-only and --hot-only exclude each other";
  if (options.run.rule.min_seconds > options.run.rule.max_seconds)
    return "--min-time is longer than --max-time";
  try {
    const std::regex check(options.filter);
  } catch (const std::regex_error& error) {
    return "--filter " + options.filter + " is no regular expression: " + error.what();
  }
  return {};
}

}  // namespace

Parsed ParseCommandLine(int argc, const char* const* argv) {
  Parsed parsed;
  Options& options = parsed.options;
  CLI::App app("Measures Tilewire's kernels beside plain copies, the teaching ladder, CUB and cuBLAS.",
               "tilewire_kernel_bench");
  app.footer(kFooter);
  app.set_version_flag("--version", "tilewire_kernel_bench " TILEWIRE_VERSION);
  bool cold_only = false, hot_only = false;
  double noise_percent = options.run.rule.noise * 100;
  options.cases.threads = DefaultThreads();
  AddOptions(app, options, noise_percent);
  app.add_flag("--cold-only", cold_only, "Measure only with flushed caches");
  app.add_flag("--hot-only", hot_only, "Measure only with caches as the run before left them");
  try {
    app.parse(argc, argv);
    const std::string problem = Problem(options, cold_only, hot_only);
    if (!problem.empty()) throw CLI::ValidationError(problem);
  } catch (const CLI::ParseError& error) {
    parsed.leave = true;
    parsed.exit_code = app.exit(error) == 0 ? 0 : 2;
    return parsed;
  }
  options.run.rule.noise = noise_percent / 100;
  options.run.rule.min_runs = std::min(options.run.rule.min_runs, options.run.rule.max_runs);
  std::sort(options.cases.threads.begin(), options.cases.threads.end());
  const auto end = std::unique(options.cases.threads.begin(), options.cases.threads.end());
  options.cases.threads.erase(end, options.cases.threads.end());
  if (cold_only) options.run.modes = {Mode::kCold};
  if (hot_only) options.run.modes = {Mode::kHot, Mode::kCompletion};
  return parsed;
}

}  // namespace tilewire::bench
