// `tilewire-load`: what a Tilewire server does under load. See README.md beside this file.
#include <algorithm>
#include <deque>
#include <functional>
#include <iostream>

#include <CLI/CLI.hpp>

#include "client/cli/arguments.h"
#include "client/cli/malloc_tuning.h"
#include "client/cli/report.h"
#include "client/cli/security.h"
#include "client/cpp/operations.h"
#include "client/load/commands.h"
#include "kernels/array/dtype.h"
#include "server/base/lock_checks.h"

namespace tilewire::load {
namespace {

using Command = std::function<int(const Interrupt&)>;

/// The command line, and what it asked for.
class CommandLine {
 public:
  CommandLine();
  /// 0 to go on, or nothing to do any more and this exit code.
  std::optional<int> Parse(int argc, char** argv);
  int Run(const Interrupt& interrupt) { return command_(interrupt); }

 private:
  void AddRun();
  void AddStudy();
  void AddCeilings();
  void AddCompare();
  void AddPage(CLI::App* command);
  CLI::App* AddServerCommand(const char* name, const char* about);

  CLI::App app_{"tilewire-load: what a Tilewire server does under load", "tilewire-load"};
  /// One a command: CLI11 reads the environment for commands that are not used, too.
  struct Server {
    CLI::App* command;
    CLI::Option* option = nullptr;
    std::string address = Globals().server;
    cli::SecurityOptions security = {};
  };
  std::deque<Server> servers_;
  Globals globals_;
  RunArguments run_;
  StudyOptions study_;
  std::string dtype_ = "f32";
  std::vector<std::string> vias_;
  CompareArguments compare_;
  Command command_;
};

CommandLine::CommandLine() {
  app_.require_subcommand(1);
  app_.set_version_flag("--version", "tilewire-load " TILEWIRE_VERSION);
  app_.failure_message([](const CLI::App* app, const CLI::Error& error) {
    const auto* wrong = dynamic_cast<const CLI::ParseError*>(&error);
    return (wrong != nullptr ? cli::ExplainParseError(*app, *wrong) : error.what()) +
           "\nRun with --help for more information.\n";
  });
  app_.footer(
      "Exit codes: 0 good; 1 wrong answers or errors; 2 usage, scenario or files; 3 regression (compare); "
      "4 the server cannot be reached; 130 after Ctrl-C, with the results so far.");
  AddRun();
  AddStudy();
  AddCeilings();
  AddCompare();
}

CLI::App* CommandLine::AddServerCommand(const char* name, const char* about) {
  CLI::App* command = app_.add_subcommand(name, about);
  Server& server = servers_.emplace_back(Server{command});
  server.option = command->add_option("--server", server.address, "host:port, [IPv6]:port or unix:PATH")
                      ->envname("TILEWIRE_SERVER")
                      ->capture_default_str();
  cli::AddSecurity(command, &server.security);
  command->add_option("--json", globals_.json, "Write the result to this file (schema: RESULTS.md)");
  return command;
}

void CommandLine::AddPage(CLI::App* command) {
  command->add_option("--html", globals_.html, "Write the result to this file as a page for a browser");
}

void CommandLine::AddRun() {
  CLI::App* command = AddServerCommand("run", "Run a scenario file and print what it measured");
  AddPage(command);
  command->add_option("SCENARIO", run_.scenario, "JSON file, such as deploy/load/small.json")->required();
  command->add_option("--callers", run_.callers, "Instead of the scenario's")->check(CLI::Range(1, 4096));
  command->add_option("--rate", run_.rate, "Calls a second, instead of the scenario's (open loop or ramp)")
      ->check(CLI::Range(0.001, 1e6));
  command->add_option("--seconds", run_.seconds, "Of the window, instead of the scenario's end")
      ->check(CLI::Range(0.01, 86400.0));
  command->add_option("--seed", run_.seed, "Of data, mix and arrivals")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 53));
  command->add_flag("--ceilings", run_.ceilings, "Have the server measure its machine's limits first");
  command->callback([this] {
    command_ = [this](const Interrupt& interrupt) { return RunScenario(globals_, run_, interrupt); };
  });
}

void CommandLine::AddStudy() {
  CLI::App* command = AddServerCommand(
      "study", "Sweep array size, block size, lanes and connections, with and without overlap");
  AddPage(command);
  study_.sizes = {4 << 20, 32 << 20, 128 << 20};
  study_.connections = {1, 2, 4};
  const auto bytes = CLI::AsSizeValue(/*kb_is_1000=*/false);
  command->add_option("OPERATION", study_.operation, client::CommandNames(" or "))
      ->required()
      ->check(CLI::IsMember(client::Commands()));
  command->add_option("--dtype", dtype_, "Of the operands")->capture_default_str();
  command->add_option("--sizes", study_.sizes, "Of one operand: 4MiB,32MiB,128MiB")
      ->delimiter(',')
      ->transform(bytes);
  command->add_option("--connections", study_.connections, "Of a call: 1,2,4")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  command->add_option("--blocks", study_.blocks, "Block sizes: 256KiB,1MiB,4MiB; 0: the server's choice")
      ->delimiter(',')
      ->transform(bytes);
  command->add_option("--lanes", study_.lanes, "1,2,4; 0: the server's choice")
      ->delimiter(',')
      ->check(CLI::Range(0, 64));
  command
      ->add_option(
          "--via", vias_,
          "How arrays get there: region (shared memory), resident, wire; several are measured side by "
          "side (default: region and wire where the server offers regions here, else wire)")
      ->delimiter(',')
      ->check(CLI::IsMember(std::vector<std::string>{"region", "resident", "wire"}));
  command->add_option("--seconds", study_.seconds, "Of each point, both ways together")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  command->add_option("--seed", study_.seed, "Of the data")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 53));
  command->callback([this] {
    const auto dtype = DTypeFromName(dtype_);
    if (!dtype) throw CLI::ValidationError("--dtype", "'" + dtype_ + "' is no dtype such as f32, u8 or c128");
    study_.dtype = *dtype;
    study_.vias.clear();
    for (const Via via : {Via::kRegion, Via::kResident, Via::kWire})
      if (std::ranges::count(vias_, std::string(Name(via))) > 0) study_.vias.push_back(via);
    for (const uint64_t size : study_.sizes)
      if (size < 1 || size > uint64_t{1} << 40)
        throw CLI::ValidationError("--sizes",
                                   std::to_string(size) + " is out of range; allowed: 1 B to 1 TiB");
    command_ = [this](const Interrupt& interrupt) { return RunStudyCommand(globals_, study_, interrupt); };
  });
}

void CommandLine::AddCeilings() {
  AddServerCommand("ceilings", "Have the server measure its machine's limits")->callback([this] {
    command_ = [this](const Interrupt& interrupt) { return RunCeilings(globals_, interrupt); };
  });
}

void CommandLine::AddCompare() {
  CLI::App* command = app_.add_subcommand("compare", "Whether the second of two results is worse");
  command->add_option("A.json", compare_.a, "The older result")->required();
  command->add_option("B.json", compare_.b, "The newer one")->required();
  command
      ->add_option("--threshold", compare_.threshold_percent,
                   "Percent of throughput or median latency that count as a regression")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  command->add_option("--tail-threshold", compare_.tail_threshold_percent, "The same for p99")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str();
  command->add_flag("--anyway", compare_.anyway,
                    "Also results that are not alike: other loads, devices, versions or machines");
  command->callback([this] { command_ = [this](const Interrupt&) { return RunCompare(compare_); }; });
}

std::optional<int> CommandLine::Parse(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
    for (const Server& server : servers_) {
      if (!app_.got_subcommand(server.command)) continue;
      cli::CheckServer(*server.option, server.address);
      globals_.server = server.address;
      auto connect = cli::ReadSecurity(server.security);
      if (!connect) return cli::PrintError(connect.error(), kExitUsage);
      globals_.connect = *std::move(connect);
    }
  } catch (const CLI::ParseError& error) {
    return app_.exit(error) == 0 ? kExitGood : kExitUsage;
  }
  cli::WarnOfUnknownVariables();
  return std::nullopt;
}

int Main(int argc, char** argv) {
  CommandLine command_line;
  if (const auto exit_code = command_line.Parse(argc, argv)) return *exit_code;
  const Interrupt interrupt;
  return command_line.Run(interrupt);
}

}  // namespace
}  // namespace tilewire::load

int main(int argc, char** argv) {
  tilewire::TuneMalloc();
  tilewire::DropLockChecks();
  try {
    return tilewire::load::Main(argc, argv);
  } catch (const std::exception& error) {  // out of memory, most likely
    std::cerr << "error: INTERNAL: " << error.what() << "\n";
    return tilewire::load::kExitBad;
  }
}
