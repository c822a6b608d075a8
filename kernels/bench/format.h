// Numbers for people.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace tilewire::bench {

/// "4 KiB", "1.5 GiB".
std::string FormatBytes(int64_t bytes);
/// "%.*f".
std::string FormatFixed(double value, int digits);
/// Microseconds with four significant digits or more: "7.213", "1843".
std::string FormatMicroseconds(double seconds);
/// "97.3%".
std::string FormatPercent(double share);

/// "64x100x200x300".
std::string FormatShape(std::span<const int64_t> shape);

}  // namespace tilewire::bench
