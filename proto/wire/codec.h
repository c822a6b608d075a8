// The hand-written codec: reads messages that carry array bytes without copying the payload, and writes the
// bytes that stand before a payload. Knows the protobuf wire format and nothing of gRPC, so fuzzers and both
// sides use it.
//
//   message      := field*
//   field        := tag value            tag := varint(number << 3 | type), number 1 to 2^29 - 1
//   value        := varint | fixed64 | len bytes | fixed32        (types 0, 1, 2, 5; groups 3 and 4 are
//   refused) ExecuteRequest, ExecuteResponse := … | tag(2, len) len Chunk | … Chunk        := tag(1, varint)
//   operand | tag(2, varint) offset | tag(3, fixed32) crc32c | tag(15, len) len data RmseRequest  := … |
//   tag(14, len) len Operand | tag(15, len) len Operand       TransposeRequest and
//                  GaussianPdfRequest likewise, 15 only
//   Operand      := … | tag(15, len) len data
//
// Varints are at most 10 bytes, tags and lengths at most 5. Fields come in any order and unknown ones are
// skipped (so is a known number with another wire type), as protobuf does. Scalar fields given twice: the
// last wins, as protobuf does. `data` given twice is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/array/status.h"

namespace tilewire::wire {

using Bytes = std::span<const uint8_t>;
/// A message or payload as the pieces it arrived in. Views: the pieces must outlive it.
using Pieces = std::vector<Bytes>;

/// Sum of the piece lengths.
size_t TotalBytes(const Pieces& pieces);

/// One tilewire.v1.Chunk, its payload left where it is.
struct ChunkView {
  uint32_t operand = 0;
  uint64_t offset = 0;
  std::optional<uint32_t> crc32c;
  Pieces data;  ///< in order; empty when there was no `data`
  uint64_t data_bytes = 0;
};

/// ExecuteRequest or ExecuteResponse, told apart by which field is set. Exactly one of the two members is
/// set.
struct Envelope {
  std::optional<ChunkView> chunk;
  std::optional<std::string> other;  ///< the message without chunk, contiguous, for the protobuf parser
};

/// Splits an ExecuteRequest or ExecuteResponse. INVALID_ARGUMENT, reason BAD_MESSAGE: malformed; neither or
/// both of chunk and another known field; chunk twice; `data` twice.
Result<Envelope> SplitExecute(const Pieces& message);

/// A unary request: the message without operand payloads for the protobuf parser, and the payloads.
struct UnaryView {
  std::string header;  ///< operand fields still there, without `data`
  struct Payload {
    bool present = false;  ///< whether the operand field itself was there
    Pieces data;
    uint64_t data_bytes = 0;
  };
  std::vector<Payload> operands;  ///< in the order of `operand_fields`, or as they came
};

/// Splits a unary request whose fields `operand_fields` are Operands. INVALID_ARGUMENT, reason BAD_MESSAGE:
/// malformed, an operand twice, `data` twice.
Result<UnaryView> SplitUnary(const Pieces& message, std::span<const int> operand_fields);
/// The same for a request whose repeated field `operand_field` holds the operands, in order.
/// INVALID_ARGUMENT, reason BAD_MESSAGE: malformed, more than `most` of them, `data` twice.
Result<UnaryView> SplitRepeated(const Pieces& message, int operand_field, size_t most);

/// The bytes of ExecuteRequest{chunk} (or ExecuteResponse{chunk}: same numbers) up to and including the
/// length of `data`; `data_bytes` bytes of payload must follow.
std::string ChunkHeader(uint32_t operand, uint64_t offset, std::optional<uint32_t> crc32c,
                        uint64_t data_bytes);

/// A length-delimited field's tag and length: appended to `out`, to be followed by `bytes` bytes.
void AppendLengthPrefix(std::string* out, int field, uint64_t bytes);
/// Bytes AppendLengthPrefix appends.
size_t LengthPrefixBytes(int field, uint64_t bytes);

/// CRC-32C of the payload.
uint32_t Crc32c(const Pieces& data);

}  // namespace tilewire::wire
