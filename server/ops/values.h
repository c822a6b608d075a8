// Values of flags from text. Each returns a Status that names the flag, the value and what is allowed; none
// throws.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/array/status.h"

namespace tilewire::ops {

/// A whole number from `min` to `max`, decimal digits only.
Result<int64_t> ParseWhole(std::string_view flag, std::string_view text, int64_t min, int64_t max);

/// A whole number of bytes, or one with KiB, MiB or GiB behind it, from `min` to `max`. Where
/// `zero_is_default`, 0 passes as well.
Result<int64_t> ParseBytes(std::string_view flag, std::string_view text, int64_t min, int64_t max,
                           bool zero_is_default = false);

/// Seconds from `min` to `max`, as a decimal number without a unit.
Result<double> ParseSeconds(std::string_view flag, std::string_view text, double min, double max);

/// true, yes, on, 1 or false, no, off, 0.
Result<bool> ParseSwitch(std::string_view flag, std::string_view text);

/// What an address is for decides what it may be.
enum class AddressUse {
  kListen,     ///< host:port, [v6]:port or unix:PATH; port 0 to 65535
  kAdvertise,  ///< the same, but port 1 to 65535: clients dial it
  kMetrics,    ///< host:port or [v6]:port; port 0 to 65535
};

/// The address as given.
Result<std::string> ParseAddress(std::string_view flag, std::string_view text, AddressUse use);

/// auto, cpu, cuda or cuda:N with N from 0 to 255.
Result<std::string> ParseDevice(std::string_view flag, std::string_view text);

/// A gRPC metadata key, in lower case; empty is allowed and means off.
Result<std::string> ParseHeader(std::string_view flag, std::string_view text);

/// What names of shared memory must begin with: a slash, then visible ASCII without slashes and ".."; empty
/// is allowed and means off.
Result<std::string> ParseRegionPrefix(std::string_view flag, std::string_view text);

/// `bytes` in the largest unit that divides it: "4MiB", "1000".
std::string FormatBytes(int64_t bytes);

}  // namespace tilewire::ops
