#include "server/ops/values.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "server/base/limits.h"

namespace tilewire::ops {
namespace {

constexpr int64_t kMaxPort = 65535;
constexpr int64_t kMaxDeviceOrdinal = 255;
constexpr size_t kMaxHostBytes = 253;  // a DNS name
constexpr size_t kMaxHeaderBytes = 128;

constexpr std::array<std::pair<std::string_view, int64_t>, 3> kUnits{
    {{"GiB", kGiB}, {"MiB", kMiB}, {"KiB", kKiB}}};

std::optional<int64_t> Digits(std::string_view text) {
  int64_t value = 0;
  if (text.empty() || !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Shortest text of a number of seconds.
std::string FormatSeconds(double seconds) {
  std::array<char, 32> buffer;
  auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), seconds);
  return error == std::errc() ? std::string(buffer.data(), end) : std::string("?");
}

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsHostName(std::string_view host) {
  return !host.empty() && host.size() <= kMaxHostBytes && host.front() != '-' &&
         std::all_of(host.begin(), host.end(),
                     [](char c) { return IsLetterOrDigit(c) || c == '.' || c == '-' || c == '_'; });
}

bool IsIpv6(std::string_view host) {
  in6_addr ignored;
  return inet_pton(AF_INET6, std::string(host).c_str(), &ignored) == 1;
}

/// host:port or [v6]:port.
bool IsHostAndPort(std::string_view text, int64_t min_port) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const std::string_view host = text.substr(0, colon), port_text = text.substr(colon + 1);
  const auto port = port_text.size() > 5 ? std::nullopt : Digits(port_text);
  if (!port || *port < min_port || *port > kMaxPort) return false;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    return IsIpv6(host.substr(1, host.size() - 2));
  return IsHostName(host);
}

bool IsSocketPath(std::string_view path) {
  constexpr size_t kRoom = sizeof(sockaddr_un::sun_path) - 1;
  return !path.empty() && path.size() <= kRoom &&
         std::all_of(path.begin(), path.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x20; });
}

}  // namespace

Result<int64_t> ParseWhole(std::string_view flag, std::string_view text, int64_t min, int64_t max) {
  const auto value = Digits(text);
  if (value && *value >= min && *value <= max) return *value;
  return BadValue(flag, text, "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
}

Result<int64_t> ParseBytes(std::string_view flag, std::string_view text, int64_t min, int64_t max,
                           bool zero_is_default) {
  std::string_view number = text;
  int64_t unit = 1;
  for (auto [suffix, bytes] : kUnits) {
    if (!number.ends_with(suffix)) continue;
    number.remove_suffix(suffix.size());
    while (number.ends_with(' ')) number.remove_suffix(1);
    unit = bytes;
    break;
  }
  int64_t bytes = 0;
  const auto count = Digits(number);
  if (count && !__builtin_mul_overflow(*count, unit, &bytes)) {
    if ((bytes >= min && bytes <= max) || (zero_is_default && bytes == 0)) return bytes;
  }
  return BadValue(flag, text,
                  FormatBytes(min) + " to " + FormatBytes(max) +
                      (zero_is_default ? ", or 0 for the default" : "") +
                      ", as a whole number of bytes, KiB, MiB or GiB");
}

Result<double> ParseSeconds(std::string_view flag, std::string_view text, double min, double max) {
  double value = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && std::isfinite(value) && value >= min && value <= max) return value;
  return BadValue(flag, text, "a number of seconds from " + FormatSeconds(min) + " to " + FormatSeconds(max));
}

Result<bool> ParseSwitch(std::string_view flag, std::string_view text) {
  for (std::string_view yes : {"true", "yes", "on", "1"}) {
    if (text == yes) return true;
  }
  for (std::string_view no : {"false", "no", "off", "0"}) {
    if (text == no) return false;
  }
  return BadValue(flag, text, "true, yes, on, 1, false, no, off or 0");
}

Result<std::string> ParseAddress(std::string_view flag, std::string_view text, AddressUse use) {
  constexpr std::string_view kUnix = "unix:";
  const int64_t min_port = use == AddressUse::kAdvertise ? 1 : 0;
  const bool paths = use != AddressUse::kMetrics;
  const bool good = text.starts_with(kUnix) ? paths && IsSocketPath(text.substr(kUnix.size()))
                                            : IsHostAndPort(text, min_port);
  if (good) return std::string(text);
  std::string allowed = paths ? "host:port, [v6]:port or unix:PATH" : "host:port or [v6]:port";
  allowed += " with a port from " + std::to_string(min_port) + " to " + std::to_string(kMaxPort);
  if (paths)
    allowed += " and a path of at most " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes";
  return BadValue(flag, text, allowed);
}

Result<std::string> ParseDevice(std::string_view flag, std::string_view text) {
  constexpr std::string_view kOrdinal = "cuda:";
  if (text == "auto" || text == "cpu" || text == "cuda") return std::string(text);
  if (text.starts_with(kOrdinal)) {
    const auto ordinal = Digits(text.substr(kOrdinal.size()));
    if (ordinal && *ordinal <= kMaxDeviceOrdinal) return "cuda:" + std::to_string(*ordinal);
  }
  return BadValue(flag, text,
                  "auto, cpu, cuda or cuda:N with N from 0 to " + std::to_string(kMaxDeviceOrdinal));
}

Result<std::string> ParseHeader(std::string_view flag, std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');  // gRPC metadata keys are lower case
  }
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.';
  });
  // "grpc-" is reserved, and "-bin" values are not text.
  if (plain && name.size() <= kMaxHeaderBytes && !name.starts_with("grpc-") && !name.ends_with("-bin"))
    return name;
  return BadValue(flag, text,
                  "a header name of at most " + std::to_string(kMaxHeaderBytes) +
                      " letters, digits, '-', '_' and '.', not beginning with grpc- nor ending with -bin");
}

Result<std::string> ParseRegionPrefix(std::string_view flag, std::string_view text) {
  constexpr size_t kLongest = 200;  // leaves room for the rest of a name
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (text.empty()) return std::string();
  if (plain && text.size() > 1 && text.size() <= kLongest && text.rfind('/') == 0 &&
      text.find("..") == text.npos)
    return std::string(text);
  return BadValue(flag, text,
                  "a slash and 1 to " + std::to_string(kLongest - 1) +
                      " visible ASCII characters, none of them a slash, without \"..\"");
}

std::string FormatBytes(int64_t bytes) {
  for (auto [suffix, unit] : kUnits) {
    if (bytes != 0 && bytes % unit == 0) return std::to_string(bytes / unit) + std::string(suffix);
  }
  return std::to_string(bytes);
}

}  // namespace tilewire::ops
