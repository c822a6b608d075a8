// Hand-made protobuf messages and ways to cut them, for tests of the codec. Writes the wire format on its
// own, so that a mistake in the codec's writer does not hide one in its reader.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire/codec.h"

namespace tilewire::wire::testing {

inline std::string Varint(uint64_t value) {
  std::string out;
  do {
    out.push_back(static_cast<char>((value & 0x7f) | (value > 0x7f ? 0x80 : 0)));
    value >>= 7;
  } while (value != 0);
  return out;
}

/// The same value with needless continuation bytes, `bytes` in all.
inline std::string LongVarint(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) {
    const uint64_t group = i < 10 ? value >> (7 * i) & 0x7f : 0;
    out.push_back(static_cast<char>(group | (i + 1 < bytes ? 0x80 : 0)));
  }
  return out;
}

inline std::string Tag(uint64_t number, int type) {
  return Varint(number << 3 | static_cast<uint64_t>(type));
}
inline std::string VarintField(uint64_t number, uint64_t value) {
  return Tag(number, 0) + Varint(value);
}
inline std::string LenField(uint64_t number, std::string_view bytes) {
  return Tag(number, 2) + Varint(bytes.size()) + std::string(bytes);
}
inline std::string FixedField(uint64_t number, uint64_t value, int bytes) {
  std::string out = Tag(number, bytes == 4 ? 5 : 1);
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}

inline Bytes AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline Pieces OnePiece(std::string_view message) {
  return {AsBytes(message)};
}

/// A message cut at random places, empty pieces included. Every piece is its own heap block of exactly its
/// size, so that AddressSanitizer sees reads across a border.
class CutMessage {
 public:
  CutMessage(std::string_view message, std::mt19937* random) {
    size_t begin = 0;
    do {
      const size_t most = message.size() - begin;
      const size_t bytes = (*random)() % 4 == 0 ? most : (*random)() % (most < 12 ? most + 1 : 12);
      const Bytes piece = AsBytes(message.substr(begin, bytes));
      blocks_.emplace_back(piece.begin(), piece.end());
      begin += bytes;
    } while (begin < message.size() || (*random)() % 8 == 0);
    for (const auto& block : blocks_) pieces_.emplace_back(block);
  }
  const Pieces& pieces() const { return pieces_; }

 private:
  std::vector<std::vector<uint8_t>> blocks_;
  Pieces pieces_;
};

inline std::string Join(const Pieces& pieces) {
  std::string out;
  for (const Bytes piece : pieces) out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return out;
}

}  // namespace tilewire::wire::testing
