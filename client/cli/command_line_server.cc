// The commands about what the server keeps, and whether it is well.
#include "client/cli/arguments.h"
#include "client/cli/command_line.h"

namespace tilewire::cli {

void CommandLine::AddStore(CLI::App* command, bool flag) {
  CLI::Option* store = nullptr;
  if (flag) store = command->add_flag("--store", stored_, "Keep the result at the server and print its id");
  auto* seconds = command->add_option("--seconds", store_seconds_,
                                      "How long the array is kept (default: the server's choice)");
  seconds->check(CheckTimeout)->type_name("S");
  auto* evictable =
      command->add_flag("--evictable", evictable_, "The array may go before that when its memory is needed");
  if (flag) {
    seconds->needs(store);
    evictable->needs(store);
  }
}

client::StoreOptions CommandLine::Store(const CLI::App& command) const {
  client::StoreOptions store;
  store.evictable = evictable_;
  const auto* seconds = command.get_option("--seconds");
  if (seconds->count() > 0) store.seconds = ParseNumber(*seconds, store_seconds_, /*positive=*/true);
  return store;
}

std::optional<client::StoreOptions> CommandLine::StoreIfAsked(const CLI::App& command) const {
  return stored_ ? std::optional(Store(command)) : std::nullopt;
}

std::optional<client::StoreOptions> CommandLine::StoreOr(const CLI::App& command,
                                                         const std::string& out) const {
  if (stored_ == out.empty()) return StoreIfAsked(command);
  if (out.empty()) throw CLI::ValidationError("OUT is required, or --store");
  throw CLI::ValidationError("OUT", "'" + out + "' and --store; allowed: one of them");
}

void CommandLine::AddArrays() {
  auto* put = app_.add_subcommand("put", "Store an array at the server and print its id");
  put->add_option("IN", put_.in, ".npy file")->required();
  AddStore(put, false);
  put->callback([this, put] {
    put_.store = Store(*put);
    command_ = [this] { return RunPut(*globals_, put_); };
  });
  auto* get = app_.add_subcommand("get", "Write a stored array to a file");
  get->add_option("ID", get_.id, "Of the array")->required();
  get->add_option("OUT", get_.out, ".npy file to write")->required();
  get->callback([this] { command_ = [this] { return RunGet(*globals_, get_); }; });
  app_.add_subcommand("ls", "List your stored arrays")->callback([this] {
    RefuseTrace("ls");
    command_ = [this] { return RunList(*globals_); };
  });
  auto* rm = app_.add_subcommand("rm", "Delete stored arrays");
  rm->add_option("ID", removed_, "Of the arrays")->required();
  rm->callback([this] {
    RefuseTrace("rm");
    command_ = [this] { return RunRemove(*globals_, removed_); };
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

}  // namespace tilewire::cli
