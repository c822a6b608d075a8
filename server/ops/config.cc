#include "server/ops/config.h"

#include <CLI/CLI.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>

#include "kernels/array/status.h"
#include "server/ops/flags.h"
#include "server/ops/version.h"
#include "server/rpc/identity/tokens.h"

namespace tilewire::ops {
namespace {

constexpr int kBadUsage = 2;

/// What one source says about a flag.
struct Given {
  std::vector<std::string> values;
  std::string where;  ///< for messages: "the command line", "TILEWIRE_LANES", "FILE"
};
using GivenByFlag = std::map<std::string, Given, std::less<>>;

Status UsageError(std::string_view message) {
  return Status(Code::kInvalidArgument, "BAD_VALUE", message);
}

/// "a:1,b:2" from a variable is two values of a repeatable flag.
std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t comma; (comma = text.find(',', begin)) != std::string::npos; begin = comma + 1) {
    parts.push_back(text.substr(begin, comma - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

/// Adds what the environment says about flags not given so far.
void AddEnvironment(GivenByFlag* given) {
  for (const Flag& flag : Flags()) {
    const std::string variable = flag.env();
    const char* text = std::getenv(variable.c_str());  // NOLINT(concurrency-mt-unsafe): before threads start
    if (text == nullptr || *text == '\0' || given->contains(flag.name)) continue;
    (*given)[flag.name] = {flag.repeatable ? SplitList(text) : std::vector<std::string>{text}, variable};
  }
}

const Flag* FindFlag(std::string_view name) {
  for (const Flag& flag : Flags()) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

/// Stores all values of one flag; a repeatable flag replaces its default.
Status StoreValues(const Flag& flag, const Given& given, Config* config) {
  if (!flag.repeatable && given.values.size() != 1) {
    return UsageError("--" + flag.name + " is given " + std::to_string(given.values.size()) +
                      " values; allowed: one (set by " + given.where + ")");
  }
  for (const std::string& value : given.values) {
    if (Status status = flag.store(config, value); !status.ok()) {
      return UsageError(std::string(status.message()) + " (set by " + given.where + ")");
    }
  }
  return Status();
}

/// All of it, or why not: a stream that fails half-way looks like a short file.
Result<std::string> ReadFile(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "re"), &std::fclose);
  std::string text;
  if (file) {
    std::array<char, 4096> buffer{};
    while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get()))
      text.append(buffer.data(), count);
    if (std::ferror(file.get()) == 0) return text;
  }
  return Fail(UsageError("--config is " + path + ", which cannot be read: " + std::strerror(errno) +
                         "; allowed: a readable file"));
}

/// Adds what the file says about flags not given so far; every key is checked all the same.
Status AddFile(const std::string& path, GivenByFlag* given) {
  GivenByFlag in_file;
  TILEWIRE_ASSIGN_OR_RETURN(const std::string file, ReadFile(path));
  std::istringstream text(file);
  try {
    for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(text)) {
      const bool section_mark = item.name == "++" || item.name == "--";
      if (section_mark || !item.parents.empty() || FindFlag(item.name) == nullptr) {
        return UsageError(path + ": unknown key `" +
                          (section_mark ? "[" + item.parents.back() + "]" : item.fullname()) +
                          "`; allowed: the names of flags without dashes, no sections");
      }
      auto& values = in_file[item.name].values;
      values.insert(values.end(), item.inputs.begin(), item.inputs.end());
    }
  } catch (const CLI::Error& error) {
    return UsageError(path + ": " + error.what());
  }
  for (auto& [name, one] : in_file) {
    one.where = path;
    Config scratch;  // a wrong value is an error even where a flag overrides it
    scratch.listen.clear();
    TILEWIRE_RETURN_IF_ERROR(StoreValues(*FindFlag(name), one, &scratch));
    given->insert({name, one});
  }
  return Status();
}

Result<Config> BuildConfig(const GivenByFlag& given) {
  Config config;
  if (given.contains("listen")) config.listen.clear();
  for (const Flag& flag : Flags()) {
    if (auto found = given.find(flag.name); found != given.end()) {
      TILEWIRE_RETURN_IF_ERROR(StoreValues(flag, found->second, &config));
    }
  }
  TILEWIRE_RETURN_IF_ERROR(CheckConfig(config));
  return config;
}

std::string HelpText(const Flag& flag) {
  return flag.help + ". Allowed: " + flag.allowed + ". Default: " + flag.default_text + ". [" + flag.env() +
         "]";
}

ParseOutcome Complain(std::string_view message) {
  std::cerr << "tilewired: " << message << "\nRun tilewired --help for the flags.\n";
  return {.config = std::nullopt, .exit_code = kBadUsage};
}

/// The work of --make-token: the file's line on stdout, and on stderr, so that neither lands in the other's
/// file, the token.
ParseOutcome PrintToken(const CLI::App& app) {
  const auto expires = app.get_option("--expires")->results();
  const auto made = rpc::MakeToken(app.get_option("--make-token")->results().front(),
                                   expires.empty() ? "" : expires.front(), std::chrono::system_clock::now());
  if (!made) return Complain("--make-token: " + std::string(made.error().message()));
  std::cout << made->line << "\n" << std::flush;
  std::cerr << made->token << "\n";
  return {.config = std::nullopt, .exit_code = std::cout ? 0 : kBadUsage};
}

/// Declares all flags; CLI11 collects their values as text. It is not told of the environment and the file:
/// its own reading of them lets the file win over the environment, and its errors do not say where a value
/// came from.
void DeclareFlags(CLI::App* app) {
  app->set_version_flag("--version", VersionText(), "Print the version and what was built in, and exit");
  app->add_option("--config", CLI::callback_t(),
                  "File of `flag = value` lines (TOML or INI). [TILEWIRE_CONFIG]")
      ->option_text("FILE");
  auto* token = app->add_option("--make-token", CLI::callback_t(),
                                "Print a line for --tokens on stdout and its token on stderr, and exit")
                    ->option_text("NAME");
  app->add_option("--expires", CLI::callback_t(), "When that token ends, as 2027-01-31T12:00:00Z")
      ->option_text("TIME")
      ->needs(token);
  app->add_flag("--check-config")->description("Check flags, variables and files, say so, and exit");
  for (const Flag& flag : Flags()) {
    const std::string name = "--" + flag.name;
    CLI::Option* option = nullptr;
    if (flag.placeholder.empty()) {
      option = app->add_flag(name)->description(HelpText(flag));
    } else {
      option = app->add_option(name, CLI::callback_t(), HelpText(flag))->option_text(flag.placeholder);
    }
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
}

Result<Config> Collect(const CLI::App& app) {
  GivenByFlag given;
  for (const Flag& flag : Flags()) {
    const CLI::Option* option = app.get_option("--" + flag.name);
    if (option->count() > 0) given[flag.name] = {option->results(), "the command line"};
  }
  AddEnvironment(&given);
  std::string file;
  if (const CLI::Option* option = app.get_option("--config"); option->count() > 0) {
    file = option->results().front();
  } else if (const char* text = std::getenv("TILEWIRE_CONFIG")) {  // NOLINT(concurrency-mt-unsafe)
    file = text;
  }
  if (!file.empty()) TILEWIRE_RETURN_IF_ERROR(AddFile(file, &given));
  return BuildConfig(given);
}

}  // namespace

ParseOutcome ParseCommandLine(int argc, const char* const* argv) {
  CLI::App app(
      "tilewired: GPU array kernels over gRPC. A flag wins over its environment variable, that over the "
      "file named by --config. Bytes take KiB, MiB, GiB.");
  app.get_formatter()->column_width(28);
  try {
    DeclareFlags(&app);
    app.parse(argc, argv);
    if (app.get_option("--make-token")->count() > 0) return PrintToken(app);
    auto config = Collect(app);
    if (!config) return Complain(config.error().message());
    return {.config = *std::move(config),
            .exit_code = 0,
            .check_only = app.get_option("--check-config")->count() > 0};
  } catch (const CLI::Success& success) {  // --help, --version
    return {.config = std::nullopt, .exit_code = app.exit(success, std::cout, std::cerr)};
  } catch (const CLI::ParseError& error) {
    return Complain(error.what());
  }
}

}  // namespace tilewire::ops
