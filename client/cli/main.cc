// `tilewire`: array kernels of a Tilewire server from the command line. See README.md beside this file.
#include <iostream>

#include "client/cli/command_line.h"
#include "client/cli/malloc_tuning.h"
#include "client/cli/report.h"
#include "client/cli/signals.h"
#include "server/base/lock_checks.h"

namespace tilewire::cli {
namespace {

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
  tilewire::DropLockChecks();
  try {
    return tilewire::cli::Main(argc, argv);
  } catch (const std::exception& error) {  // out of memory, most likely
    std::cerr << "error: INTERNAL: " << error.what() << "\n";
    return tilewire::cli::kExitFailed;
  }
}
