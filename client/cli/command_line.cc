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
  AddSecurity(&app_, &security_);
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
  for (const client::OperationInfo& operation : client::Operations()) AddOperation(operation);
  AddArrays();
  AddInfo();
  AddInspection();
}

std::optional<int> CommandLine::Parse(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
    CheckServer(*server_, globals_->server);  // here: --help works whatever the environment says
  } catch (const CLI::ParseError& error) {
    return app_.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  auto connect = ReadSecurity(security_);
  if (!connect) return PrintError(connect.error(), kExitUsage);
  globals_->connect = *std::move(connect);
  WarnOfUnknownVariables();
  globals_->via_region = via_ == "region";
  if (timeout_seconds_ > 0)
    globals_->timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_seconds_ * 1000));
  return std::nullopt;
}

}  // namespace tilewire::cli
