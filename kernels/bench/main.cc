// tilewire_kernel_bench: parse, choose, measure, report. README.md beside this file says how to read the
// figures.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

#include "kernels/bench/options.h"
#include "kernels/bench/report.h"
#include "kernels/figures/text.h"

namespace tilewire::bench {
namespace {

constexpr int kFailed = 1, kBadUsage = 2, kNoDevice = 3;

bool WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) std::cerr << "error: cannot write " << path.string() << '\n';
  return file.good();
}

bool WriteCharts(const Report& report, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  bool good = true;
  for (const std::string& group : Groups(report)) {
    const std::string chart = SvgChart(report, group);
    if (!chart.empty()) good = WriteFile(std::filesystem::path(folder) / (group + ".svg"), chart) && good;
  }
  return good;
}

Facts Settings(const Options& options) {
  const StoppingRule& rule = options.run.rule;
  return {{"until", "median uncertain by " + FormatPercent(rule.noise) +
                        " or less (spread / sqrt(runs)) after " + std::to_string(rule.min_runs) +
                        " runs and " + FormatFixed(rule.min_seconds * 1e3, 1) + " ms; at most " +
                        std::to_string(rule.max_runs) + " runs, " + FormatFixed(rule.max_seconds, 2) + " s"},
          {"seed", std::to_string(options.cases.seed)}};
}

void ShowProgress(const Record& record) {
  std::cerr << FullName(record.info) << ": ";
  const Measurement* headline = record.Headline();
  if (headline == nullptr) {
    std::cerr << Name(record.outcome) << ": " << record.reason << '\n';
  } else {
    std::cerr << FormatMicroseconds(headline->seconds.median) << " us " << Name(headline->mode) << '\n';
  }
}

/// Both meters, and the error of the device's where it is needed but missing.
struct Machine {
  std::unique_ptr<Meter> host, device;
  Status device_status;
};

Machine OpenMachine(const std::vector<Case>& cases, const std::vector<size_t>& chosen,
                    const Options& options) {
  Machine machine;
  bool needs_host = false, needs_device = false;
  for (const size_t i : chosen) (cases[i].place == Place::kHost ? needs_host : needs_device) = true;
  if (needs_host) machine.host = MakeHostMeter();
  if (needs_device) {
    auto meter = MakeDeviceMeter(options.device, options.max_bytes);
    if (meter) {
      machine.device = *std::move(meter);
    } else {
      machine.device_status = meter.error();
      std::cerr << "error: " << machine.device_status.message() << "; GPU cases are skipped\n";
    }
  }
  return machine;
}

bool WriteReports(const Report& report, const Options& options) {
  std::cout << TextReport(report) << std::flush;
  bool good = std::cout.good();
  if (!options.json.empty()) good = WriteFile(options.json, JsonReport(report)) && good;
  if (!options.csv.empty()) good = WriteFile(options.csv, CsvReport(report)) && good;
  if (!options.plot.empty()) good = WriteCharts(report, options.plot) && good;
  return good;
}

int Run(const Options& options) {
  const std::vector<Case> cases = AllCases(options.cases);
  const std::vector<size_t> chosen = Select(cases, std::regex(options.filter));
  if (chosen.empty()) {
    std::cerr << "error: no case matches " << options.filter << "; --list shows them all\n";
    return kBadUsage;
  }
  if (options.list) {
    for (const size_t i : chosen) std::cout << FullName(cases[i]) << '\n';
    return 0;
  }
  const Machine machine = OpenMachine(cases, chosen, options);
  Report report{.program = "tilewire_kernel_bench " TILEWIRE_VERSION, .settings = Settings(options)};
  for (const Meter* meter : {machine.device.get(), machine.host.get()}) {
    if (meter == nullptr) continue;
    for (auto& fact : meter->facts()) report.machine.push_back(std::move(fact));
  }
  const Meters meters{machine.host.get(), machine.device.get(), std::string(machine.device_status.message())};
  report.records = RunCases(cases, chosen, meters, options.run, ShowProgress, &report.limits);
  const bool written = WriteReports(report, options);
  if (!machine.device_status.ok()) return kNoDevice;
  for (const Record& record : report.records) {
    if (record.outcome == Outcome::kFailed) return kFailed;
  }
  return written ? 0 : kFailed;
}

}  // namespace
}  // namespace tilewire::bench

int main(int argc, char** argv) {
  const tilewire::bench::Parsed parsed = tilewire::bench::ParseCommandLine(argc, argv);
  if (parsed.leave) return parsed.exit_code;
  try {
    return tilewire::bench::Run(parsed.options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
