// `tilewire`: array kernels of a Tilewire server from the command line. See README.md beside this file.
#include <functional>
#include <iostream>

#include <CLI/CLI.hpp>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/malloc_tuning.h"
#include "client/cli/report.h"
#include "client/cli/signals.h"

namespace tilewire::cli {
namespace {

/// The command line, and what it asked for.
class CommandLine {
 public:
  explicit CommandLine(Globals* globals);
  /// 0 to go on, or nothing to do any more and this exit code.
  std::optional<int> Parse(int argc, char** argv);
  int Run() { return command_(); }

 private:
  void AddRmse();
  void AddTranspose();
  void AddGaussianPdf();
  void AddInfo();
  void AddInspection();
  /// Options that only operations can follow.
  void RefuseTrace(const std::string& command) const;

  CLI::App app_{"tilewire: array kernels of a Tilewire server", "tilewire"};
  Globals* globals_;
  CLI::Option* server_ = nullptr;
  CLI::Option *trace_ = nullptr, *timeline_ = nullptr;
  double timeout_seconds_ = 0;
  std::string axes_, output_ = "rmse", mean_, stddev_, shape_, dtype_ = "f32";
  RmseArguments rmse_;
  TransposeArguments transpose_;
  GaussianArguments gaussian_;
  KernelsArguments kernels_;
  int pings_ = 5;
  std::function<int()> command_;
};

CommandLine::CommandLine(Globals* globals) : globals_(globals) {
  app_.require_subcommand(1);
  app_.fallthrough();
  app_.set_version_flag("--version", "tilewire " TILEWIRE_VERSION);
  server_ = app_.add_option("--server", globals->server, "host:port, [IPv6]:port or unix:PATH")
                ->envname("TILEWIRE_SERVER")
                ->capture_default_str();
  app_.add_flag("--json", globals->json, "Print one JSON object: result and timing");
  app_.add_flag("--timing", globals->timing, "Print a timing table on stderr, also when it is no terminal");
  app_.add_option("--timeout", timeout_seconds_,
                  "Seconds for the whole call, retries included (default: none)")
      ->check(CheckTimeout);
  app_.add_option("--connections", globals->connections,
                  "Connections that may carry one large call (default 0: by size and cores)")
      ->check(CLI::Range(0, 64));
  app_.add_option("--block-bytes", globals->block_bytes,
                  "Bytes of the server's blocks, as 65536, 256KiB or 4MiB (default: its choice)")
      ->transform(CLI::AsSizeValue(false));
  app_.add_option("--lanes", globals->lanes, "Lanes of the device to use, at most (default: all)")
      ->check(CLI::Range(1, 64));
  app_.add_flag("--no-overlap", globals->sequential,
                "Copy in, compute and copy out one after the other, to see what overlap is worth");
  trace_ = app_.add_option("--trace", globals->trace,
                           "Write every span of the operation to this JSON file (Chrome trace, Perfetto)")
               ->type_name("FILE.json");
  timeline_ =
      app_.add_option("--timeline", globals->timeline, "Draw the spans of the operation into this file")
          ->type_name("FILE.svg");
  for (auto* option : {trace_, timeline_})
    option->check([](const std::string& path) { return path.empty() ? "is empty; allowed: a path" : ""; });
  app_.failure_message([](const CLI::App* app, const CLI::Error& error) {
    const auto* wrong = dynamic_cast<const CLI::ParseError*>(&error);
    return (wrong != nullptr ? ExplainParseError(*app, *wrong) : error.what()) +
           "\nRun with --help for more information.\n";
  });
  AddRmse();
  AddTranspose();
  AddGaussianPdf();
  AddInfo();
  AddInspection();
}

void CommandLine::AddRmse() {
  auto* command =
      app_.add_subcommand("rmse", "Root mean square error of two arrays, the same bits everywhere");
  command->add_option("A", rmse_.a, ".npy file")->required();
  command->add_option("B", rmse_.b, ".npy file of the same dtype and shape")->required();
  const auto* axis = command->add_option("--axis", axes_, "Axes to reduce, such as 1,2 or -1 (default: all)");
  command->add_option("--output", output_, "Which value: rmse, mse or sum-squares")
      ->check(CLI::IsMember(std::vector<std::string>{"rmse", "mse", "sum-squares"}))
      ->type_name("WORD")
      ->capture_default_str();
  command->add_option("--out", rmse_.out, "Write the values to this .npy file instead of stdout");
  command->callback([this, axis] {
    rmse_.axes = ParseAxes(*axis, axes_);
    rmse_.output = output_ == "mse"           ? client::RmseOutput::kMse
                   : output_ == "sum-squares" ? client::RmseOutput::kSumSquares
                                              : client::RmseOutput::kRmse;
    command_ = [this] { return RunRmse(*globals_, rmse_); };
  });
}

void CommandLine::AddTranspose() {
  auto* command = app_.add_subcommand("transpose", "Permute the axes of an array");
  command->add_option("IN", transpose_.in, ".npy file")->required();
  command->add_option("OUT", transpose_.out, ".npy file to write")->required();
  const auto* axes =
      command->add_option("--axes", axes_, "Axis i of the result is input axis AXES[i] (default: reversed)");
  command->callback([this, axes] {
    transpose_.axes = ParseAxes(*axes, axes_);
    command_ = [this] { return RunTranspose(*globals_, transpose_); };
  });
}

void CommandLine::AddGaussianPdf() {
  auto* command = app_.add_subcommand(
      "gaussian-pdf", "Density of the normal distribution at every element of an array (f32 or f64)");
  command->add_option("IN", gaussian_.in, ".npy file")->required();
  command->add_option("OUT", gaussian_.out, ".npy file to write")->required();
  const auto* mean = command->add_option("--mean", mean_, "Of the distribution")->required()->type_name("M");
  const auto* stddev =
      command->add_option("--stddev", stddev_, "Of the distribution, over 0")->required()->type_name("S");
  command->callback([this, mean, stddev] {
    gaussian_.op = {ParseNumber(*mean, mean_), ParseNumber(*stddev, stddev_, /*positive=*/true)};
    command_ = [this] { return RunGaussianPdf(*globals_, gaussian_); };
  });
}

void CommandLine::AddInfo() {
  auto* command = app_.add_subcommand("info", "Devices, limits and budgets of the server, or its kernels");
  auto* kernels = command->add_option("--kernels", kernels_.operation,
                                      "The GPU kernels and their launches: of OPERATION (rmse, transpose or "
                                      "gaussian-pdf) at --shape; alone: the catalogue");
  kernels->expected(0, 1)->type_name("OPERATION");
  kernels->check(CLI::IsMember(std::vector<std::string>{"", "rmse", "transpose", "gaussian-pdf"}));
  auto* shape = command->add_option("--shape", shape_, "Extents for --kernels OPERATION, such as 4096,4096")
                    ->needs(kernels);
  command->add_option("--dtype", dtype_, "dtype for --kernels OPERATION")
      ->needs(shape)
      ->capture_default_str();
  const auto* axes =
      command->add_option("--axes,--axis", axes_, "Axes for --kernels rmse or transpose")->needs(shape);
  command->callback([this, kernels, shape, axes] {
    RefuseTrace("info");
    if (kernels->count() == 0) {
      command_ = [this] { return RunInfo(*globals_); };
      return;
    }
    if (kernels_.operation.empty() != (shape->count() == 0))
      throw CLI::ValidationError("--kernels", "an operation needs --shape, and --shape an operation");
    if (shape->count() > 0) {
      kernels_.shape = ParseShape(*shape, shape_);
      const auto dtype = DTypeFromName(dtype_);
      if (!dtype)
        throw CLI::ValidationError("--dtype", "'" + dtype_ + "' is no dtype such as f32, u8 or c128");
      kernels_.dtype = *dtype;
      kernels_.axes = ParseAxes(*axes, axes_);
    }
    command_ = [this] { return RunKernels(*globals_, kernels_); };
  });
}

void CommandLine::AddInspection() {
  auto* ping = app_.add_subcommand("ping", "Round trip times of the health check");
  ping->add_option("-n,--count", pings_, "How many")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  ping->callback([this] {
    RefuseTrace("ping");
    command_ = [this] { return RunPing(*globals_, pings_); };
  });
  app_.add_subcommand("selftest", "Check the server's results against published bits")->callback([this] {
    RefuseTrace("selftest");
    command_ = [this] { return RunSelftest(*globals_); };
  });
}

void CommandLine::RefuseTrace(const std::string& command) const {
  for (const auto* option : {trace_, timeline_})
    if (option->count() > 0)
      throw CLI::ValidationError(option->get_name(), "needs an operation to trace, which " + command +
                                                         " is not; allowed: rmse, transpose, gaussian-pdf");
}

std::optional<int> CommandLine::Parse(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
    CheckServer(*server_, globals_->server);  // here: --help works whatever the environment says
  } catch (const CLI::ParseError& error) {
    return app_.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (timeout_seconds_ > 0)
    globals_->timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds_ * 1000));
  return std::nullopt;
}

int Main(int argc, char** argv) {
  Globals globals;
  CommandLine command_line(&globals);
  if (const auto exit_code = command_line.Parse(argc, argv)) return *exit_code;
  SignalWatcher signals;
  globals.stop = signals.token();
  if (globals.timeout) signals.GiveUpAfter(*globals.timeout);
  const int exit_code = command_line.Run();
  return exit_code != kExitOk && signals.received() != 0 ? 128 + signals.received() : exit_code;
}

}  // namespace
}  // namespace tilewire::cli

int main(int argc, char** argv) {
  tilewire::TuneMalloc();
  try {
    return tilewire::cli::Main(argc, argv);
  } catch (const std::exception& error) {  // out of memory, most likely
    std::cerr << "error: INTERNAL: " << error.what() << "\n";
    return tilewire::cli::kExitFailed;
  }
}
