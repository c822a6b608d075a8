#include "tests/fuzz/connection/records.h"

#include <algorithm>

#include "kernels/array/status.h"
#include "tests/fuzz/fuzz_input.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::fuzz {
namespace {

/// The number of failures and the checksum behind it.
constexpr size_t kSealBytes = 5;

/// CRC-32C, bit by bit: in no hurry, and not the server's.
uint32_t Crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

bool IsSealed(const uint8_t* data, size_t size) {
  if (size <= kSealBytes || (data[0] & kSealed) == 0) return false;
  const std::string_view all(reinterpret_cast<const char*>(data), size - 4);
  return Crc32c(all) == Input(data + size - 4, 4).Word(4);
}

}  // namespace

Script ParseScript(const uint8_t* data, size_t size) {
  Script script;
  if (IsSealed(data, size)) {
    size -= kSealBytes;
    script.failures = data[size];
  }
  Input input(data, size);
  script.flags = input.Byte() & static_cast<uint8_t>(~kSealed);
  while (!input.empty() && script.records.size() < kMostRecords) {
    Record record{
        .kind = static_cast<Kind>(input.Below(kKinds)), .a = input.Byte(), .b = input.Byte(), .payload = {}};
    const auto length = static_cast<size_t>(input.Word(2));
    const auto rest = input.rest();
    const size_t taken = std::min(length, rest.size());
    record.payload.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(taken));
    input = Input(rest.data() + taken, rest.size() - taken);
    script.records.push_back(std::move(record));
  }
  return script;
}

std::string ScriptBytes(const Script& script) {
  std::string bytes(1, static_cast<char>(script.flags));
  for (const Record& record : script.records) {
    const size_t length = std::min<size_t>(record.payload.size(), 0xffff);
    bytes += {static_cast<char>(record.kind), static_cast<char>(record.a), static_cast<char>(record.b),
              static_cast<char>(length), static_cast<char>(length >> 8)};
    bytes.append(record.payload, 0, length);
  }
  return bytes;
}

std::string ChunkMessage(std::string_view payload) {
  Input input(reinterpret_cast<const uint8_t*>(payload.data()), payload.size());
  v1::ExecuteRequest request;
  v1::Chunk* chunk = request.mutable_chunk();
  chunk->set_operand(input.Byte());
  chunk->set_offset(input.Word(2) * 256);
  std::string data(static_cast<size_t>(input.Word(2) % 4096) * 8, '\0');
  // Numbers that are no NaN as f32 and f64, and that differ.
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i % 4 == 3 ? 0x3f : i * 7);
  const int checksum = input.Below(3);
  if (checksum > 0) chunk->set_crc32c(Crc32c(data) + (checksum == 2 ? 1 : 0));
  chunk->set_data(std::move(data));
  return request.SerializeAsString();
}

}  // namespace tilewire::fuzz
