// The commands of operations, one a row of the table, and the commands that name operations.
#include <algorithm>

#include "client/cli/arguments.h"
#include "client/cli/command_line.h"

namespace tilewire::cli {
namespace {

const AttributeInfo& InfoOf(const client::OperationInfo& operation, const client::Flag& flag) {
  return *std::ranges::find(operation.descriptor->attributes, flag.attribute, &AttributeInfo::name);
}

std::vector<std::string> WordsOf(const client::Flag& flag) {
  return {flag.words.begin(), flag.words.end()};
}

/// What the flag was given.
AttributeValue ValueOf(const CLI::Option& option, const client::Flag& flag, AttributeKind kind,
                       const std::string& text) {
  switch (kind) {
    case AttributeKind::kReal:
      return ParseNumber(option, text, flag.positive);
    case AttributeKind::kInteger:  // checked to be one of them
      return static_cast<int64_t>(std::ranges::find(flag.words, text) - flag.words.begin());
    case AttributeKind::kIntegers:
      break;
  }
  return flag.words.empty() ? ParseAxes(option, text) : ParseWords(option, text, WordsOf(flag));
}

}  // namespace

CommandLine::OperationCommand::OperationCommand(const client::OperationInfo& operation)
    : arguments{.operation = &operation, .operands = std::vector<std::string>(operation.operands.size())},
      words(operation.flags.size()) {}

void CommandLine::OperationCommand::TakeFlags() {
  const client::OperationInfo& operation = *arguments.operation;
  for (size_t i = 0; i < operation.flags.size(); ++i) {
    const client::Flag& flag = operation.flags[i];
    if (options[i]->count() == 0) continue;
    arguments.attributes.Set(flag.attribute,
                             ValueOf(*options[i], flag, InfoOf(operation, flag).kind, words[i]));
  }
}

void CommandLine::OperationCommand::TakeNamed() {
  if (fail_above == nullptr) return;
  const client::OperationInfo& operation = *arguments.operation;
  if (derived_by != nullptr && derived_by->count() > 0)
    arguments.derived_by = ParseNumber(*derived_by, derived_by_word, operation.derived_by.positive);
  std::vector<std::string> names =
      operation.result_names(operation.descriptor->Complete(arguments.attributes).value());
  if (arguments.derived_by)
    for (const client::Derived& derived : operation.derived)
      if (std::ranges::find(names, derived.of) != names.end()) names.emplace_back(derived.name);
  for (const std::string& limit : limits) {
    const size_t equals = std::min(limit.find('='), limit.size());
    const std::string name = limit.substr(0, equals);
    if (std::ranges::find(names, name) == names.end() || equals == limit.size())
      throw CLI::ValidationError(fail_above->get_name(),
                                 "'" + limit + "' is no NAME=LIMIT; names: " + client::Listed(names));
    arguments.limits.push_back({name, ParseNumber(*fail_above, limit.substr(equals + 1))});
  }
}

void CommandLine::AddNamed(CLI::App* command, OperationCommand* asked) {
  const client::OperationInfo& operation = *asked->arguments.operation;
  if (!operation.derived.empty())
    asked->derived_by = command
                            ->add_option(std::string(operation.derived_by.names), asked->derived_by_word,
                                         std::string(operation.derived_by.help))
                            ->type_name(std::string(operation.derived_by.value));
  asked->fail_above =
      command
          ->add_option("--fail-above", asked->limits,
                       "Exit with 3 where a value of that name is above the limit, or NaN; may be repeated")
          ->allow_extra_args(false)  // what follows is an operand
          ->type_name("NAME=LIMIT");
  // Not in the help: who knows it from other commands is told what there is instead.
  const auto refuse = [](const std::string&) {
    throw CLI::ValidationError("--out",
                               "results with names have no .npy file of their own, since they may differ in "
                               "dtype; allowed: stdout, as lines or with --json");
  };
  command->add_option_function<std::string>("--out", refuse)->group("");
}

void CommandLine::AddFlags(CLI::App* command, OperationCommand* asked) {
  const client::OperationInfo& operation = *asked->arguments.operation;
  for (size_t i = 0; i < operation.flags.size(); ++i) {
    const client::Flag& flag = operation.flags[i];
    const AttributeInfo& info = InfoOf(operation, flag);
    std::string& text = asked->words[i];
    if (info.kind == AttributeKind::kInteger) text = flag.words[static_cast<size_t>(info.fallback)];
    auto* option = command->add_option(std::string(flag.names), text, std::string(flag.help));
    if (info.kind == AttributeKind::kInteger)
      option->check(CLI::IsMember(WordsOf(flag)))->type_name("WORD")->capture_default_str();
    // All that is given, so that the complaint about two of them is ours and knows both names.
    if (info.kind == AttributeKind::kIntegers) option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (!flag.value.empty()) option->type_name(std::string(flag.value));
    if (flag.required) option->required();
    asked->options.push_back(option);
  }
}

void CommandLine::AddOperation(const client::OperationInfo& operation) {
  auto* command = app_.add_subcommand(std::string(operation.command), std::string(operation.about));
  OperationCommand* const asked = &operations_.emplace_back(operation);
  OperationArguments& arguments = asked->arguments;
  for (size_t k = 0; k < arguments.operands.size(); ++k)
    command
        ->add_option(std::string(operation.operands[k].name), arguments.operands[k],
                     std::string(operation.operands[k].help))
        ->required();
  if (operation.shown == client::Shown::kFile) {
    command->add_option("OUT", arguments.out, ".npy file to write; with --store: none");
    AddStore(command, true);
  }
  AddFlags(command, asked);
  if (operation.shown == client::Shown::kValues) {
    auto* out =
        command->add_option("--out", arguments.out, "Write the values to this .npy file instead of stdout");
    AddStore(command, true);
    command->get_option("--store")->excludes(out);
  }
  if (operation.shown == client::Shown::kNamed) AddNamed(command, asked);
  command->callback([this, command, asked] {
    const client::Shown shown = asked->arguments.operation->shown;
    if (shown == client::Shown::kFile) asked->arguments.store = StoreOr(*command, asked->arguments.out);
    if (shown == client::Shown::kValues) asked->arguments.store = StoreIfAsked(*command);
    asked->TakeFlags();
    asked->TakeNamed();
    command_ = [this, asked] { return RunOperation(*globals_, asked->arguments); };
  });
}

void CommandLine::AddInfo() {
  auto* command = app_.add_subcommand("info", "Devices, limits and budgets of the server, or its kernels");
  auto* kernels =
      command->add_option("--kernels", kernels_.operation,
                          "The GPU kernels and their launches: of OPERATION (" +
                              client::CommandNames(" or ") + ") at --shape; alone: the catalogue");
  kernels->expected(0, 1)->type_name("OPERATION");
  std::vector<std::string> allowed = client::Commands(), with_axes;
  allowed.insert(allowed.begin(), "");
  kernels->check(CLI::IsMember(allowed));
  for (const client::OperationInfo& operation : client::Operations())
    if (client::FindFlag(operation, "axes") != nullptr) with_axes.emplace_back(operation.command);
  auto* shape = command->add_option("--shape", shape_, "Extents for --kernels OPERATION, such as 4096,4096")
                    ->needs(kernels);
  command->add_option("--dtype", dtype_, "dtype for --kernels OPERATION")
      ->needs(shape)
      ->capture_default_str();
  const auto* axes =
      command->add_option("--axes,--axis", axes_, "Axes for --kernels " + client::Listed(with_axes, " or "))
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
          ->needs(shape);
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

void CommandLine::RefuseTrace(const std::string& command) const {
  for (const auto* option : {trace_, timeline_})
    if (option->count() > 0)
      throw CLI::ValidationError(option->get_name(), "needs an operation to trace, which " + command +
                                                         " is not; allowed: " + client::CommandNames() +
                                                         ", put, get");
}

}  // namespace tilewire::cli
