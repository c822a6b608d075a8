// The writing half of the codec: the bytes that stand before a payload.
#include "proto/wire/codec.h"

namespace tilewire::wire {
namespace {

constexpr uint64_t kVarint = 0, kLen = 2, kFixed32 = 5;  // wire types

size_t VarintBytes(uint64_t value) {
  size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

void AppendVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>((value & 0x7f) | 0x80));
  out->push_back(static_cast<char>(value));
}

void AppendTag(std::string* out, int field, uint64_t type) {
  AppendVarint(out, static_cast<uint64_t>(field) << 3 | type);
}

}  // namespace

std::string ChunkHeader(uint32_t operand, uint64_t offset, std::optional<uint32_t> crc32c,
                        uint64_t data_bytes) {
  // As protobuf writes it: ascending numbers, scalars without presence only where they are not 0.
  std::string chunk;
  if (operand != 0) {
    AppendTag(&chunk, 1, kVarint);
    AppendVarint(&chunk, operand);
  }
  if (offset != 0) {
    AppendTag(&chunk, 2, kVarint);
    AppendVarint(&chunk, offset);
  }
  if (crc32c) {
    AppendTag(&chunk, 3, kFixed32);
    for (int shift = 0; shift < 32; shift += 8) chunk.push_back(static_cast<char>(*crc32c >> shift));
  }
  AppendLengthPrefix(&chunk, 15, data_bytes);
  std::string header;
  AppendLengthPrefix(&header, 2, chunk.size() + data_bytes);
  return header + chunk;
}

void AppendLengthPrefix(std::string* out, int field, uint64_t bytes) {
  AppendTag(out, field, kLen);
  AppendVarint(out, bytes);
}

size_t LengthPrefixBytes(int field, uint64_t bytes) {
  return VarintBytes(static_cast<uint64_t>(field) << 3 | kLen) + VarintBytes(bytes);
}

}  // namespace tilewire::wire
