#include "server/rpc/identity/base64url.h"

#include <cstdint>

namespace tilewire::rpc {
namespace {

/// The six bits of a character, or -1.
int BitsOf(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-') return 62;
  return c == '_' ? 63 : -1;
}

}  // namespace

std::optional<std::string> DecodeBase64Url(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;  // those that are not in a byte yet are the lowest
  int count = 0;
  for (const char c : text) {
    const int six = BitsOf(c);
    if (six < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(six);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  // One character more than whole bytes need has six bits left, and none of them can be meant.
  if (count == 6 || (bits & ((1u << count) - 1)) != 0) return std::nullopt;
  return bytes;
}

}  // namespace tilewire::rpc
