// Numbers and names for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tilewire::load {

/// Three significant digits: "0.52", "3.1", "1230".
std::string NumberText(double value);
/// "850 ns", "12.3 µs", "4.56 ms", "1.2 s".
std::string TimeText(double us);
/// "3.4 GB/s", "120 MB/s".
std::string RateText(double bytes_per_second);
/// "12%", "0.4%".
std::string PercentText(double share);
/// "receive" → "receiving (gRPC and the socket)".
std::string StageInWords(std::string_view stage);
/// "h2d" → "a copy from pinned memory to the device".
std::string TierInWords(std::string_view tier);

/// Rows of equal length as lines, columns aligned: the first to the left, the others to the right.
std::string Columns(const std::vector<std::vector<std::string>>& rows);

}  // namespace tilewire::load
