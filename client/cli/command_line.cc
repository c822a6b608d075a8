#include "client/cli/command_line.h"

#include "client/cli/arguments.h"
#include "client/cli/report.h"

namespace tilewire::cli {

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
  app_.add_option(
          "--via", via_,
          "How operands that are files reach the server: wire, or region (memory shared with a server on "
          "this host that allows it)")
      ->check(CLI::IsMember(std::vector<std::string>{"wire", "region"}))
      ->type_name("WORD")
      ->capture_default_str();
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
  AddArrays();
  AddInfo();
  AddInspection();
}

CLI::Option* CommandLine::AddAxes(CLI::App* command, const std::string& names, const std::string& about) {
  // All that is given, so that the complaint about two of them is ours and knows both names.
  return command->add_option(names, axes_, about)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::AddRmse() {
  auto* command =
      app_.add_subcommand("rmse", "Root mean square error of two arrays, the same bits everywhere");
  command->add_option("A", rmse_.a, ".npy file or array:ID")->required();
  command->add_option("B", rmse_.b, ".npy file or array:ID of the same dtype and shape")->required();
  const auto* axis = AddAxes(command, "--axis,--axes", "Axes to reduce, such as 1,2 or -1 (default: all)");
  command->add_option("--output", output_, "Which value: rmse, mse or sum-squares")
      ->check(CLI::IsMember(std::vector<std::string>{"rmse", "mse", "sum-squares"}))
      ->type_name("WORD")
      ->capture_default_str();
  auto* out = command->add_option("--out", rmse_.out, "Write the values to this .npy file instead of stdout");
  AddStore(command, true);
  command->get_option("--store")->excludes(out);
  command->callback([this, command, axis] {
    rmse_.store = StoreIfAsked(*command);
    rmse_.axes = ParseAxes(*axis, axes_);
    rmse_.output = output_ == "mse"           ? client::RmseOutput::kMse
                   : output_ == "sum-squares" ? client::RmseOutput::kSumSquares
                                              : client::RmseOutput::kRmse;
    command_ = [this] { return RunRmse(*globals_, rmse_); };
  });
}

void CommandLine::AddTranspose() {
  auto* command = app_.add_subcommand("transpose", "Permute the axes of an array");
  command->add_option("IN", transpose_.in, ".npy file or array:ID")->required();
  command->add_option("OUT", transpose_.out, ".npy file to write; with --store: none");
  AddStore(command, true);
  const auto* axes =
      AddAxes(command, "--axes,--axis", "Axis i of the result is input axis AXES[i] (default: reversed)");
  command->callback([this, command, axes] {
    transpose_.store = StoreOr(*command, transpose_.out);
    transpose_.axes = ParseAxes(*axes, axes_);
    command_ = [this] { return RunTranspose(*globals_, transpose_); };
  });
}

void CommandLine::AddGaussianPdf() {
  auto* command = app_.add_subcommand(
      "gaussian-pdf", "Density of the normal distribution at every element of an array (f32 or f64)");
  command->add_option("IN", gaussian_.in, ".npy file or array:ID")->required();
  command->add_option("OUT", gaussian_.out, ".npy file to write; with --store: none");
  AddStore(command, true);
  const auto* mean = command->add_option("--mean", mean_, "Of the distribution")->required()->type_name("M");
  const auto* stddev =
      command->add_option("--stddev", stddev_, "Of the distribution, over 0")->required()->type_name("S");
  command->callback([this, command, mean, stddev] {
    gaussian_.store = StoreOr(*command, gaussian_.out);
    gaussian_.op = {ParseNumber(*mean, mean_), ParseNumber(*stddev, stddev_, /*positive=*/true)};
    command_ = [this] { return RunGaussianPdf(*globals_, gaussian_); };
  });
}

std::optional<int> CommandLine::Parse(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
    CheckServer(*server_, globals_->server);  // here: --help works whatever the environment says
  } catch (const CLI::ParseError& error) {
    return app_.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  WarnOfUnknownVariables();
  globals_->via_region = via_ == "region";
  if (timeout_seconds_ > 0)
    globals_->timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds_ * 1000));
  return std::nullopt;
}

}  // namespace tilewire::cli
