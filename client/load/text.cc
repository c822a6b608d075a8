#include "client/load/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

namespace tilewire::load {
namespace {

/// Characters that a terminal shows: bytes that begin one.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(),
                                           [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

using Words = std::pair<std::string_view, const char*>;

template <size_t kCount>
std::string Lookup(const std::array<Words, kCount>& table, std::string_view name) {
  for (const auto& [key, words] : table)
    if (key == name) return words;
  return std::string(name);
}

}  // namespace

std::string NumberText(double value) {
  char text[32];
  if (std::abs(value) >= 100) {
    std::snprintf(text, sizeof(text), "%.0f", value);
  } else {
    std::snprintf(text, sizeof(text), "%.3g", value);
  }
  return text;
}

std::string TimeText(double us) {
  if (us == 0) return "0";
  if (us < 1) return NumberText(us * 1000) + " ns";
  if (us < 999.5) return NumberText(us) + " µs";
  if (us < 999.5e3) return NumberText(us / 1000) + " ms";
  return NumberText(us / 1e6) + " s";
}

std::string RateText(double bytes_per_second) {
  if (bytes_per_second >= 999.5e9) return NumberText(bytes_per_second / 1e12) + " TB/s";
  if (bytes_per_second >= 999.5e6) return NumberText(bytes_per_second / 1e9) + " GB/s";
  if (bytes_per_second >= 999.5e3) return NumberText(bytes_per_second / 1e6) + " MB/s";
  return NumberText(bytes_per_second / 1e3) + " kB/s";
}

std::string PercentText(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), share < 0.0995 ? "%.1f%%" : "%.0f%%", share * 100);
  return text;
}

std::string StageInWords(std::string_view stage) {
  static constexpr std::array<Words, 7> kStages{{{"queue", "waiting for admission"},
                                                 {"receive", "receiving (gRPC and the socket)"},
                                                 {"stage", "copying out of messages (the server's memory)"},
                                                 {"h2d", "copying to the device (PCIe)"},
                                                 {"kernel", "the kernels (the device)"},
                                                 {"d2h", "copying from the device (PCIe)"},
                                                 {"send", "sending (gRPC and the socket)"}}};
  return Lookup(kStages, stage);
}

std::string TierInWords(std::string_view tier) {
  static constexpr std::array<Words, 7> kTiers{
      {{"h2d", "a copy from pinned memory to the device"},
       {"d2h", "a copy from the device to pinned memory"},
       {"h2d_both", "a copy to the device beside one from it"},
       {"d2h_both", "a copy from the device beside one to it"},
       {"host_copy_1", "a memcpy into pinned memory by one thread"},
       {"host_copy_all", "a memcpy into pinned memory by all threads"},
       {"device_copy", "a copy within the device's memory, read + written"}}};
  return Lookup(kTiers, tier);
}

std::string Columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - Width(row[i]), ' ');
      line += (i > 0 ? "  " : "") + (i == 0 ? row[i] + pad : pad + row[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace tilewire::load
