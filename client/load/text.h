// Names for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tilewire::load {

/// "receive" → "receiving (gRPC and the socket)".
std::string StageInWords(std::string_view stage);
/// "h2d" → "a copy from pinned memory to the device".
std::string TierInWords(std::string_view tier);
/// " ± 1.2%"; empty where nothing is known.
std::string FormatNoise(const std::optional<double>& share);

}  // namespace tilewire::load
