// Base64 as tokens and keys in JSON have it (RFC 7515). No gRPC here.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tilewire::rpc {

/// Bytes of the alphabet of URLs without padding, or none: any other character, a length that no bytes have,
/// or bits behind the last byte that are not 0. So each row of bytes has one text.
std::optional<std::string> DecodeBase64Url(std::string_view text);

}  // namespace tilewire::rpc
