// Words of the command line, checked where they stand: what the libraries below make of a wrong one helps
// nobody (gRPC dials port 99999 as 34463).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace tilewire::cli {

/// Range of --timeout, in seconds.
inline constexpr double kMinTimeout = 0.001, kMaxTimeout = 1e9;

/// True for "host:port" and "[IPv6]:port" with a port of 1..65535, and for "unix:PATH". Names are not looked
/// up.
bool IsAddress(const std::string& text);

/// Checks the address that `option` (--server) and its environment variable led to. An empty variable is an
/// empty address: whoever sets one means some server. Throws CLI::ValidationError, naming value and allowed.
void CheckServer(const CLI::Option& option, const std::string& address);

/// Tells on stderr of variables that begin with TILEWIRE_ and mean nothing. Call before threads start.
void WarnOfUnknownVariables();

/// A validator of CLI11 for --timeout: what is wrong with `text`, or "".
std::string CheckTimeout(const std::string& text);

/// "1,-2" as numbers; nothing when `option` (--axis and --axes) was not given. Throws CLI::ValidationError
/// for anything else, also where it was given twice and for an empty text: a variable that a script forgot to
/// set must not reduce all axes.
std::vector<int32_t> ParseAxes(const CLI::Option& option, const std::string& text);

/// "rmse,max" as numbers: the places that they have in `words`. Throws CLI::ValidationError for anything
/// else, also where one is there twice, where it was given twice and for an empty text.
std::vector<int32_t> ParseWords(const CLI::Option& option, const std::string& text,
                                const std::vector<std::string>& words);

/// "64,128" as extents. Throws CLI::ValidationError for anything else, also for an empty text.
std::vector<int64_t> ParseShape(const CLI::Option& option, const std::string& text);

/// A finite number, with `positive` one over 0, rounded once from the text. Throws CLI::ValidationError for
/// anything else.
double ParseNumber(const CLI::Option& option, const std::string& text, bool positive = false);

/// What to tell who gave a command line that `app` refused with `error`: words that are no command or option
/// by name, else the text of `error`.
std::string ExplainParseError(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tilewire::cli
