#include "kernels/bench/format.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace tilewire::bench {

std::string FormatFixed(double value, int digits) {
  std::array<char, 400> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return {text.data(), static_cast<size_t>(size)};
}

std::string FormatBytes(int64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == std::floor(value);
  return FormatFixed(value, whole ? 0 : value < 10 ? 2 : 1) + ' ' + kUnits[unit];
}

std::string FormatMicroseconds(double seconds) {
  const double us = seconds * 1e6;
  return FormatFixed(us, us < 10 ? 3 : us < 100 ? 2 : us < 1000 ? 1 : 0);
}

std::string FormatPercent(double share) {
  return FormatFixed(share * 100, 1) + '%';
}

std::string FormatShape(std::span<const int64_t> shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

}  // namespace tilewire::bench
