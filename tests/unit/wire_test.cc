// The codec's reader against hand-made messages: every cut, every truncation, every rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "proto/wire/codec.h"
#include "tests/unit/wire_testing.h"

namespace tilewire::wire {
namespace {

using testing::AsBytes;
using testing::CutMessage;
using testing::FixedField;
using testing::Join;
using testing::LenField;
using testing::LongVarint;
using testing::OnePiece;
using testing::Tag;
using testing::Varint;
using testing::VarintField;

const std::string kPayload = "the payload, long enough to be cut in places";

std::string Chunk() {
  return VarintField(1, 300) + VarintField(2, uint64_t{1} << 40) + FixedField(3, 0xdeadbeef, 4) +
         LenField(15, kPayload);
}

void ExpectChunk(const Result<Envelope>& envelope) {
  ASSERT_TRUE(envelope) << envelope.error().ToString();
  ASSERT_TRUE(envelope->chunk);
  EXPECT_FALSE(envelope->other);
  EXPECT_EQ(envelope->chunk->operand, 300u);
  EXPECT_EQ(envelope->chunk->offset, uint64_t{1} << 40);
  EXPECT_EQ(envelope->chunk->crc32c, 0xdeadbeefu);
  EXPECT_EQ(envelope->chunk->data_bytes, kPayload.size());
  EXPECT_EQ(Join(envelope->chunk->data), kPayload);
}

TEST(WireExecute, EveryPairOfCutsGivesTheSameChunk) {
  const std::string message = VarintField(99, 1 << 20) + LenField(2, Chunk()) + LenField(77, "unknown");
  const std::string_view all = message;
  for (size_t first = 0; first <= all.size(); ++first) {
    for (size_t second = first; second <= all.size(); ++second) {
      ExpectChunk(
          SplitExecute({AsBytes(all.substr(0, first)), Bytes(), AsBytes(all.substr(first, second - first)),
                        AsBytes(all.substr(second)), Bytes()}));
      if (HasFatalFailure()) FAIL() << "cut at " << first << " and " << second;
    }
  }
}

TEST(WireExecute, SingleBytesAsPieces) {
  const std::string message = LenField(2, Chunk());
  Pieces pieces;
  for (const char& c : message) {
    pieces.push_back(AsBytes({&c, 1}));
    pieces.push_back(Bytes());
  }
  ExpectChunk(SplitExecute(pieces));
}

TEST(WireExecute, PayloadIsNotCopied) {
  const std::string message = LenField(2, Chunk());
  const auto envelope = SplitExecute(OnePiece(message));
  ASSERT_TRUE(envelope && envelope->chunk);
  ASSERT_EQ(envelope->chunk->data.size(), 1u);
  EXPECT_EQ(static_cast<const void*>(envelope->chunk->data[0].data()),
            static_cast<const void*>(message.data() + message.size() - kPayload.size()));
}

TEST(WireExecute, NoTruncationIsAccepted) {
  const std::string message = LenField(2, Chunk());
  for (size_t bytes = 0; bytes < message.size(); ++bytes) {
    const auto envelope = SplitExecute(OnePiece(std::string_view(message).substr(0, bytes)));
    ASSERT_FALSE(envelope) << bytes;
    EXPECT_EQ(envelope.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(envelope.error().reason(), "BAD_MESSAGE");
  }
}

TEST(WireExecute, TruncationInsideTheChunkShowsWhereAFieldEndsOnly) {
  // The chunk's length fits, its content is cut: valid exactly at the ends of fields.
  const std::vector<std::string> fields = {VarintField(1, 300), VarintField(2, uint64_t{1} << 40),
                                           FixedField(3, 0xdeadbeef, 4), LenField(15, kPayload)};
  std::vector<size_t> ends = {0};
  for (const std::string& field : fields) ends.push_back(ends.back() + field.size());
  const std::string chunk = Chunk();
  for (size_t bytes = 0; bytes <= chunk.size(); ++bytes) {
    const std::string message = LenField(2, chunk.substr(0, bytes)) + LenField(77, std::string(60, '\1'));
    const bool at_end = std::find(ends.begin(), ends.end(), bytes) != ends.end();
    EXPECT_EQ(SplitExecute(OnePiece(message)).has_value(), at_end) << bytes;
  }
}

TEST(WireExecute, FieldsInAnyOrderLastScalarWins) {
  const std::string chunk = LenField(15, kPayload) + FixedField(3, 1, 4) + VarintField(2, 7) +
                            VarintField(1, 8) + VarintField(2, uint64_t{1} << 40) + VarintField(1, 300) +
                            FixedField(3, 0xdeadbeef, 4);
  ExpectChunk(SplitExecute(OnePiece(LenField(2, chunk))));
}

TEST(WireExecute, UnknownFieldsAndOtherWireTypesAreSkipped) {
  const std::string chunk = FixedField(1, 9, 4) + LenField(2, "x") + VarintField(3, 5) + VarintField(15, 6) +
                            FixedField(16, 1, 8) + LenField(17, "zzz") + VarintField(536870911, 1) + Chunk() +
                            FixedField(15, 1, 8);
  ExpectChunk(SplitExecute(
      OnePiece(VarintField(1, 1) + FixedField(3, 1, 8) + VarintField(2, 1) + LenField(2, chunk))));
}

TEST(WireExecute, OperandKeepsThe32LowBitsAsProtobufDoes) {
  const auto envelope = SplitExecute(OnePiece(LenField(2, VarintField(1, (uint64_t{5} << 32) + 6))));
  ASSERT_TRUE(envelope && envelope->chunk);
  EXPECT_EQ(envelope->chunk->operand, 6u);
}

TEST(WireExecute, ChunkWithoutDataOrWithEmptyData) {
  for (const std::string& chunk : {std::string(), LenField(15, "")}) {
    const auto envelope = SplitExecute(OnePiece(LenField(2, chunk)));
    ASSERT_TRUE(envelope && envelope->chunk);
    EXPECT_EQ(envelope->chunk->data_bytes, 0u);
    EXPECT_TRUE(envelope->chunk->data.empty());
    EXPECT_FALSE(envelope->chunk->crc32c);
  }
}

TEST(WireExecute, OtherMembersComeWholeAndContiguous) {
  std::mt19937 random(1);
  for (const std::string& message : {LenField(1, "abc"), LenField(3, "result") + VarintField(50, 3),
                                     LenField(1, "") + LenField(1, "merged by the parser")}) {
    const CutMessage cut(message, &random);
    const auto envelope = SplitExecute(cut.pieces());
    ASSERT_TRUE(envelope) << envelope.error().ToString();
    EXPECT_FALSE(envelope->chunk);
    EXPECT_EQ(envelope->other, message);
  }
}

struct BadCase {
  std::string message;
  std::string complaint;  ///< part of the error
};

TEST(WireExecute, MalformedMessagesAreRefusedByName) {
  const BadCase cases[] = {
      {"", "empty"},
      {VarintField(50, 1), "no member of the oneof"},
      {LenField(5, "x"), "no member of the oneof"},
      {LenField(2, Chunk()) + LenField(1, "x"), "another member of the same oneof"},
      {LenField(3, "x") + LenField(2, Chunk()), "chunk at byte 3: another member"},
      {LenField(2, Chunk()) + LenField(2, ""), "given twice"},
      {LenField(2, LenField(15, "a") + LenField(15, "b")), "chunk.data at byte 5: given twice"},
      {LenField(2, LenField(15, "") + LenField(15, "b")), "chunk.data"},
      {LenField(2, Varint(2) + Varint(0)), "field number is 0"},
      {Varint((uint64_t{1} << 29) << 3) + Varint(0), "field number is 536870912"},
      {Tag(9, 3) + Tag(9, 4) + LenField(1, ""), "wire type of field 9 is 3"},
      {Tag(9, 4), "is 4; allowed"},
      {Tag(9, 6) + Varint(1), "is 6; allowed"},
      {Tag(9, 7) + Varint(1), "is 7; allowed"},
      {Tag(9, 0) + LongVarint(1, 11) + LenField(1, ""), "varint is longer than 10 bytes"},
      {LongVarint(9 << 3, 6) + Varint(1) + LenField(1, ""), "tag is longer than 5 bytes"},
      {Tag(2, 2) + LongVarint(0, 6), "length is longer than 5 bytes"},
      {Tag(2, 2), "length is cut off"},
      {Tag(9, 0) + "\x80", "varint is cut off"},
      {Tag(9, 5) + "abc", "fixed32 is cut off"},
      {Tag(9, 1) + "abcdefg", "fixed64 is cut off"},
      {Tag(9, 2) + Varint(4) + "abc", "is 4, but only 3 bytes"},
      {Tag(2, 2) + Varint(UINT32_MAX) + "abc", "is 4294967295, but only 3"},
      // The chunk's payload reaches beyond the chunk, though not beyond the message.
      {LenField(2, Tag(15, 2) + Varint(10) + "abc") + LenField(77, std::string(40, 'x')),
       "chunk at byte 2: length"},
      {LenField(2, Tag(1, 0) + "\x80") + LenField(77, "xxxxx"), "chunk at byte 3: varint is cut off"},
  };
  std::mt19937 random(2);
  for (const BadCase& bad : cases) {
    for (int i = 0; i < 8; ++i) {
      const CutMessage cut(bad.message, &random);
      const auto envelope = SplitExecute(i == 0 ? OnePiece(bad.message) : cut.pieces());
      ASSERT_FALSE(envelope) << bad.complaint;
      EXPECT_EQ(envelope.error().code(), Code::kInvalidArgument);
      EXPECT_EQ(envelope.error().reason(), "BAD_MESSAGE");
      EXPECT_THAT(std::string(envelope.error().message()), ::testing::HasSubstr(bad.complaint));
    }
  }
}

TEST(WireExecute, NoPiecesAtAll) {
  EXPECT_FALSE(SplitExecute({}));
}

TEST(WireExecute, LongSpellingsWithinTheLimitAreRead) {
  const std::string chunk = Chunk();
  const std::string message = LongVarint(9 << 3, 5) + LongVarint(1, 10) + LongVarint(2 << 3 | 2, 5) +
                              LongVarint(chunk.size(), 5) + chunk;
  ExpectChunk(SplitExecute(OnePiece(message)));
}

}  // namespace
}  // namespace tilewire::wire
