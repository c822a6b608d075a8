// The command line of `tilewire`: commands and options.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "client/cli/commands.h"
#include "client/cli/security.h"

namespace tilewire::cli {

/// The command line, and what it asked for.
class CommandLine {
 public:
  explicit CommandLine(Globals* globals);
  /// 0 to go on, or nothing to do any more and this exit code.
  std::optional<int> Parse(int argc, char** argv);
  int Run() { return command_(); }

 private:
  /// A command of the table, and the words that it was given.
  struct OperationCommand {
    explicit OperationCommand(const client::OperationInfo& operation);
    /// What the words say, as attributes. Throws CLI::ValidationError.
    void TakeFlags();
    void TakeNamed();
    OperationArguments arguments;
    std::vector<std::string> words;     ///< of each flag
    std::vector<CLI::Option*> options;  ///< the flags
    std::string derived_by_word;
    CLI::Option *derived_by = nullptr, *fail_above = nullptr;
    std::vector<std::string> limits;
  };
  void AddOperation(const client::OperationInfo& operation);
  static void AddFlags(CLI::App* command, OperationCommand* asked);
  /// The flags of results that have names.
  static void AddNamed(CLI::App* command, OperationCommand* asked);
  void AddArrays();
  void AddInfo();
  void AddInspection();
  /// The options of how an array is kept; where `flag`, --store asks for it.
  void AddStore(CLI::App* command, bool flag);
  /// What they came to, in the command's callback.
  client::StoreOptions Store(const CLI::App& command) const;
  /// The same where --store was given.
  std::optional<client::StoreOptions> StoreIfAsked(const CLI::App& command) const;
  /// The same, for a command whose result goes either there or to `out`.
  std::optional<client::StoreOptions> StoreOr(const CLI::App& command, const std::string& out) const;
  /// Options that only operations can follow.
  void RefuseTrace(const std::string& command) const;

  CLI::App app_{"tilewire: array kernels of a Tilewire server", "tilewire"};
  Globals* globals_;
  CLI::Option* server_ = nullptr;
  SecurityOptions security_;
  CLI::Option *trace_ = nullptr, *timeline_ = nullptr;
  double timeout_seconds_ = 0;
  std::string via_ = "wire", axes_, shape_, dtype_ = "f32";
  std::deque<OperationCommand> operations_;
  KernelsArguments kernels_;
  PutArguments put_;
  GetArguments get_;
  std::vector<std::string> removed_;
  bool stored_ = false, evictable_ = false;
  std::string store_seconds_;
  int pings_ = 5;
  std::function<int()> command_;
};

}  // namespace tilewire::cli
