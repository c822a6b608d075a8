#include "client/cli/arguments.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "server/base/environment.h"

namespace tilewire::cli {
namespace {

bool IsPort(std::string_view text) {
  uint32_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && stop == end && port >= 1 && port <= 65535;
}

/// A DNS name or an IPv4 address, by its letters alone.
bool IsHost(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

/// An IPv6 address, perhaps with a zone: "fe80::1%eth0".
bool IsIpv6(std::string_view text) {
  const size_t percent = text.find('%');
  if (percent != text.npos && !IsHost(text.substr(percent + 1))) return false;
  in6_addr parsed;
  return ::inet_pton(AF_INET6, std::string(text.substr(0, percent)).c_str(), &parsed) == 1;
}

std::string CommandNames(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands(nullptr))
    names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

}  // namespace

bool IsAddress(const std::string& text) {
  constexpr std::string_view kUnix = "unix:";
  if (text.starts_with(kUnix)) return text.size() > kUnix.size();
  const size_t colon = text.rfind(':');
  if (colon == text.npos || !IsPort(std::string_view(text).substr(colon + 1))) return false;
  const std::string_view host = std::string_view(text).substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) return IsIpv6(host.substr(1, host.size() - 2));
  return IsHost(host);
}

void CheckServer(const CLI::Option& option, const std::string& address) {
  const char* const variable = std::getenv(option.get_envname().c_str());
  const bool empty_variable = option.count() == 0 && variable != nullptr && *variable == '\0';
  const std::string value = empty_variable ? "" : address;
  if (IsAddress(value)) return;
  const std::string from =
      variable != nullptr && variable == value ? " (from " + option.get_envname() + ")" : "";
  throw CLI::ValidationError(option.get_name() + from,
                             (value.empty() ? "is empty" : "'" + value + "' is no address") +
                                 "; allowed: host:port, [IPv6]:port with a port of 1 to 65535, or unix:PATH");
}

void WarnOfUnknownVariables() {
  for (const auto& [name, nearest] : UnknownVariables(environ))
    std::cerr << "warning: unknown environment variable " << name << "; the nearest known one is " << nearest
              << "\n";
}

std::string CheckTimeout(const std::string& text) {
  double seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, seconds);
  if (error == std::errc::invalid_argument || stop != end) return "'" + text + "' is not a number";
  if (error == std::errc() && seconds >= kMinTimeout && seconds <= kMaxTimeout) return "";
  return "'" + text + "' is out of range; allowed: 0.001 to 1e9 seconds";
}

namespace {
/// "1,0" as numbers; `what` they are and an `example` for the complaint.
template <typename Number>
std::vector<Number> ParseList(const CLI::Option& option, const std::string& text, const std::string& what,
                              const std::string& example) {
  std::vector<Number> numbers;
  if (text.empty())
    throw CLI::ValidationError(option.get_name(),
                               "is empty; allowed: a list of " + what + " such as " + example);
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    Number number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    const bool more = error == std::errc() && stop < end && *stop == ',' && stop + 1 < end;
    if (error != std::errc() || (stop != end && !more))
      throw CLI::ValidationError(option.get_name(),
                                 "'" + text + "' is no list of " + what + " such as " + example);
    numbers.push_back(number);
    at = more ? stop + 1 : stop;
  }
  return numbers;
}
}  // namespace

std::vector<int32_t> ParseAxes(const CLI::Option& option, const std::string& text) {
  if (option.count() == 0) return {};
  if (option.count() > 1)
    throw CLI::ValidationError(option.get_name(), "is given " + std::to_string(option.count()) +
                                                      " times; allowed: once, as --axis or --axes");
  return ParseList<int32_t>(option, text, "axes", "1,0");
}

std::vector<int32_t> ParseWords(const CLI::Option& option, const std::string& text,
                                const std::vector<std::string>& words) {
  std::string allowed;
  for (const std::string& word : words) allowed += (allowed.empty() ? "" : ", ") + word;
  if (option.count() > 1)
    throw CLI::ValidationError(option.get_name(),
                               "is given " + std::to_string(option.count()) + " times; allowed: once");
  std::vector<int32_t> numbers;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    const auto found = std::ranges::find(words, word);
    const auto number = static_cast<int32_t>(found - words.begin());
    if (found == words.end())
      throw CLI::ValidationError(option.get_name(), "'" + word + "' is none of: " + allowed);
    if (std::ranges::find(numbers, number) != numbers.end())
      throw CLI::ValidationError(option.get_name(), "'" + word + "' is there twice; allowed: each once");
    numbers.push_back(number);
    at = end + 1;
  }
  return numbers;
}

std::vector<int64_t> ParseShape(const CLI::Option& option, const std::string& text) {
  return ParseList<int64_t>(option, text, "extents", "64,128");
}

double ParseNumber(const CLI::Option& option, const std::string& text, bool positive) {
  // Not CLI11's own conversion: it rounds twice, by way of long double.
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument || stop != end)
    throw CLI::ValidationError(option.get_name(), "'" + text + "' is not a number");
  if (error != std::errc() || !std::isfinite(value) || (positive && value <= 0))
    throw CLI::ValidationError(
        option.get_name(),
        "'" + text + "' is out of range; allowed: any finite number" + (positive ? " greater than 0" : ""));
  return value;
}

std::string ExplainParseError(const CLI::App& app, const CLI::ParseError& error) {
  const bool required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const bool extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  if (!required && !extras) return error.what();
  // CLI11 tells of what is missing before what is too much, and then of everything too much at once.
  const auto words = app.remaining(true);
  const auto option = std::ranges::find_if(words, [](const auto& w) { return w.size() > 1 && w[0] == '-'; });
  const bool no_command = app.get_subcommands().empty();
  const std::string commands = no_command ? "; commands: " + CommandNames(app) : "";
  if (no_command && !words.empty() && option != words.begin())
    return "'" + words.front() + "' is no command" + commands;
  if (option != words.end()) return "'" + *option + "' is no option" + commands;
  return no_command ? "a command is missing" + commands : error.what();
}

}  // namespace tilewire::cli
