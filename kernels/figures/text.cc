#include "kernels/figures/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace tilewire {
namespace {

/// Characters that a terminal shows: bytes that begin one.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                           [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string FormatFixed(double value, int digits) {
  std::array<char, 400> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return {text.data(), static_cast<size_t>(size)};
}

std::string FormatNumber(double value) {
  if (std::abs(value) >= 100) return FormatFixed(value, 0);
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g", value);
  return text;
}

std::string FormatDouble(double value) {
  if (std::isnan(value)) return "nan";  // whatever the sign
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

std::string FormatBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return FormatNumber(value) + ' ' + kUnits[unit];
}

std::string FormatTime(double us) {
  if (us != 0 && std::abs(us) < 1) return FormatNumber(us * 1000) + " ns";
  if (std::abs(us) < 999.5) return FormatNumber(us) + " µs";
  if (std::abs(us) < 999.5e3) return FormatNumber(us / 1000) + " ms";
  return FormatNumber(us / 1e6) + " s";
}

std::string FormatMicroseconds(double seconds) {
  const double us = seconds * 1e6;
  return FormatFixed(us, us < 10 ? 3 : us < 100 ? 2 : us < 1000 ? 1 : 0);
}

std::string FormatRate(double bytes_per_second) {
  if (bytes_per_second >= 999.5e9) return FormatNumber(bytes_per_second / 1e12) + " TB/s";
  if (bytes_per_second >= 999.5e6) return FormatNumber(bytes_per_second / 1e9) + " GB/s";
  if (bytes_per_second >= 999.5e3) return FormatNumber(bytes_per_second / 1e6) + " MB/s";
  return FormatNumber(bytes_per_second / 1e3) + " kB/s";
}

std::string FormatPercent(double share) {
  return FormatFixed(share * 100, 1) + '%';
}

std::string FormatShare(double share) {
  return FormatFixed(share * 100, share > 0.0005 && share < 0.0995 ? 1 : 0) + '%';
}

std::string FormatShape(std::span<const int64_t> shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

std::string Columns(const std::vector<std::vector<std::string>>& rows, size_t left, size_t least) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), least);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - Width(row[i]), ' ');
      if (i > 0) line += "  ";
      line += i < left ? row[i] + space : space + row[i];
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

}  // namespace tilewire
