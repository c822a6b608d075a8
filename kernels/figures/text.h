// Numbers for people, and tables of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tilewire {

/// "%.*f".
std::string FormatFixed(double value, int digits);
/// Three significant digits, and all before the point: "0.52", "3.1", "1230".
std::string FormatNumber(double value);
/// The shortest text that reads back to the same double; "nan", "inf", "-inf".
std::string FormatDouble(double value);
/// "512 B", "1.5 MiB".
std::string FormatBytes(uint64_t bytes);
/// "850 ns", "12.3 µs", "4.56 ms", "1.2 s".
std::string FormatTime(double us);
/// Microseconds without a unit, four significant digits or more: "7.213", "1843".
std::string FormatMicroseconds(double seconds);
/// "3.4 GB/s", "120 MB/s".
std::string FormatRate(double bytes_per_second);
/// "97.3%".
std::string FormatPercent(double share);
/// "12%", "0.4%".
std::string FormatShare(double share);
/// "64x100x200x300".
std::string FormatShape(std::span<const int64_t> shape);

/// Rows of equal length as lines: columns as wide as what they hold and as `least`, two blanks apart, the
/// first `left` columns aligned to the left, the others to the right.
std::string Columns(const std::vector<std::vector<std::string>>& rows, size_t left = 1, size_t least = 0);

}  // namespace tilewire
