// SplitUnary, the codec's writer and checksums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/wire/codec.h"
#include "tests/unit/wire_testing.h"

namespace tilewire::wire {
namespace {

using testing::AsBytes;
using testing::CutMessage;
using testing::FixedField;
using testing::Join;
using testing::LenField;
using testing::OnePiece;
using testing::Tag;
using testing::Varint;
using testing::VarintField;

constexpr int kTwoOperands[] = {14, 15};
const std::string kSpec = LenField(1, VarintField(1, 12) + LenField(2, Varint(300)));

TEST(WireUnary, HeaderIsTheRequestWithoutData) {
  const std::string op = LenField(1, LenField(1, "\1")), unknown = FixedField(40, 9, 8);
  const std::string message = op + LenField(14, kSpec + LenField(15, "first")) + unknown +
                              LenField(15, VarintField(9, 1) + LenField(15, std::string(200, 'b')) + kSpec);
  const std::string header = op + LenField(14, kSpec) + unknown + LenField(15, VarintField(9, 1) + kSpec);
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    const CutMessage cut(message, &random);
    const auto view = SplitUnary(cut.pieces(), kTwoOperands);
    ASSERT_TRUE(view) << view.error().ToString();
    EXPECT_EQ(view->header, header);
    ASSERT_EQ(view->operands.size(), 2u);
    EXPECT_TRUE(view->operands[0].present && view->operands[1].present);
    EXPECT_EQ(Join(view->operands[0].data), "first");
    EXPECT_EQ(Join(view->operands[1].data), std::string(200, 'b'));
    EXPECT_EQ(view->operands[1].data_bytes, 200u);
  }
}

TEST(WireUnary, TruncationsAreAcceptedAtTheEndsOfFieldsOnly) {
  const std::string op = LenField(1, "\1\2"), a = LenField(14, kSpec + LenField(15, "first"));
  const std::string message = op + a + LenField(15, LenField(15, "second"));
  for (size_t bytes = 0; bytes < message.size(); ++bytes) {
    const auto view = SplitUnary(OnePiece(std::string_view(message).substr(0, bytes)), kTwoOperands);
    EXPECT_EQ(view.has_value(), bytes == op.size() || bytes == op.size() + a.size()) << bytes;
    if (view) {
      EXPECT_FALSE(view->operands[1].present);
    }
  }
}

TEST(WireUnary, AbsentAndEmptyOperands) {
  const auto view = SplitUnary(OnePiece(LenField(15, "")), kTwoOperands);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->header, LenField(15, ""));
  EXPECT_FALSE(view->operands[0].present);
  EXPECT_TRUE(view->operands[1].present);
  EXPECT_EQ(view->operands[1].data_bytes, 0u);
}

TEST(WireUnary, OperandNumberWithAnotherWireTypeIsUnknown) {
  const std::string message = VarintField(15, 7) + FixedField(14, 8, 4) + LenField(14, VarintField(15, 3));
  const auto view = SplitUnary(OnePiece(message), kTwoOperands);
  ASSERT_TRUE(view) << view.error().ToString();
  EXPECT_EQ(view->header, message);
  EXPECT_TRUE(view->operands[0].present);
  EXPECT_FALSE(view->operands[1].present);
}

TEST(WireUnary, AGaussianOpStaysInTheHeader) {
  constexpr int kOneOperand[] = {15};
  const std::string op = LenField(1, FixedField(1, 0x3ff0000000000000, 8) + FixedField(2, 1, 8));
  const std::string message =
      LenField(15, LenField(15, std::string(300, 'x')) + kSpec) + op + LenField(2, "");
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const CutMessage cut(message, &random);
    const auto view = SplitUnary(cut.pieces(), kOneOperand);
    ASSERT_TRUE(view) << view.error().ToString();
    EXPECT_EQ(view->header, LenField(15, kSpec) + op + LenField(2, ""));
    EXPECT_EQ(Join(view->operands[0].data), std::string(300, 'x'));
  }
}

TEST(WireUnary, OtherFieldsAreLeftToTheParser) {
  constexpr int kOneOperand[] = {15};
  const std::string message = LenField(14, LenField(15, "stays")) + LenField(15, LenField(15, "goes"));
  const auto view = SplitUnary(OnePiece(message), kOneOperand);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->header, LenField(14, LenField(15, "stays")) + LenField(15, ""));
  EXPECT_EQ(Join(view->operands[0].data), "goes");
}

TEST(WireUnary, MalformedMessagesAreRefusedByName) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "request at byte 0: empty"},
      {LenField(14, "") + LenField(14, ""), "operand in field 14 at byte 2: given twice"},
      {LenField(15, LenField(15, "a") + LenField(15, "b")),
       "operand in field 15.data at byte 5: given twice"},
      {LenField(15, Tag(15, 2) + Varint(4) + "abc") + LenField(9, "xxxx"),
       "operand in field 15 at byte 2: length"},
      {LenField(15, Tag(9, 3) + Tag(9, 4)), "wire type"},
      {LenField(14, "") + Tag(3, 2) + Varint(9), "request at byte 2: length of field 3"},
  };
  for (const auto& [message, complaint] : cases) {
    const auto view = SplitUnary(OnePiece(message), kTwoOperands);
    ASSERT_FALSE(view) << complaint;
    EXPECT_EQ(view.error().reason(), "BAD_MESSAGE");
    EXPECT_THAT(std::string(view.error().message()), ::testing::HasSubstr(complaint));
  }
}

TEST(WireUnary, RepeatedOperandsComeInOrder) {
  const std::string op = LenField(1, LenField(1, "\1"));
  const std::string message = LenField(15, kSpec + LenField(15, "first")) + op + LenField(15, "") +
                              LenField(14, LenField(15, "stays")) + LenField(15, LenField(15, "third"));
  const std::string header =
      LenField(15, kSpec) + op + LenField(15, "") + LenField(14, LenField(15, "stays")) + LenField(15, "");
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const CutMessage cut(message, &random);
    const auto view = SplitRepeated(cut.pieces(), 15, 3);
    ASSERT_TRUE(view) << view.error().ToString();
    EXPECT_EQ(view->header, header);
    ASSERT_EQ(view->operands.size(), 3u);
    EXPECT_EQ(Join(view->operands[0].data), "first");
    EXPECT_EQ(view->operands[1].data_bytes, 0u);
    EXPECT_EQ(Join(view->operands[2].data), "third");
  }
  const auto two = SplitRepeated(OnePiece(message), 15, 2);
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().reason(), "BAD_MESSAGE");
  EXPECT_THAT(std::string(two.error().message()), ::testing::HasSubstr("more than 2 operands"));
  EXPECT_EQ(SplitRepeated(OnePiece(op), 15, 2)->operands.size(), 0u);
  EXPECT_FALSE(SplitRepeated(OnePiece(LenField(15, LenField(15, "a") + LenField(15, "b"))), 15, 2));
}

TEST(WireWriter, ChunkHeaderReadsBack) {
  const uint64_t offsets[] = {0, 1, 127, 128, uint64_t{1} << 40, UINT64_MAX};
  const std::optional<uint32_t> checksums[] = {std::nullopt, 0u, 0xffffffffu};
  for (const uint32_t operand : {0u, 1u, UINT32_MAX}) {
    for (const uint64_t offset : offsets) {
      for (const auto& crc : checksums) {
        for (const size_t bytes : {0, 1, 127, 128, 16384, 1 << 20}) {
          const std::string payload(bytes, 'p'), header = ChunkHeader(operand, offset, crc, bytes);
          const auto envelope = SplitExecute({AsBytes(header), AsBytes(payload)});
          ASSERT_TRUE(envelope && envelope->chunk);
          EXPECT_EQ(envelope->chunk->operand, operand);
          EXPECT_EQ(envelope->chunk->offset, offset);
          EXPECT_EQ(envelope->chunk->crc32c, crc);
          EXPECT_EQ(envelope->chunk->data_bytes, bytes);
          EXPECT_LE(header.size(), 48u);
        }
      }
    }
  }
}

TEST(WireWriter, LengthPrefix) {
  for (const int field : {1, 15, 16, 2047, 2048, 536870911}) {
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{1} << 35}) {
      std::string out = "before";
      AppendLengthPrefix(&out, field, bytes);
      EXPECT_EQ(out, "before" + Tag(static_cast<uint64_t>(field), 2) + Varint(bytes));
      EXPECT_EQ(LengthPrefixBytes(field, bytes), out.size() - 6);
    }
  }
}

TEST(WireChecksum, PublishedValues) {
  EXPECT_EQ(Crc32c({}), 0u);
  EXPECT_EQ(Crc32c(OnePiece("123456789")), 0xe3069283u);
  EXPECT_EQ(Crc32c(OnePiece(std::string(32, '\0'))), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(OnePiece(std::string(32, '\xff'))), 0x62a8ab43u);
}

/// By its definition, a bit at a time.
uint32_t SlowCrc32c(std::string_view data) {
  uint32_t state = 0xffffffff;
  for (const char c : data) {
    state ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82f63b78 : 0);
  }
  return ~state;
}

TEST(WireChecksum, IsThatOfTheDefinitionHoweverTheDataIsCut) {
  std::mt19937 random(4);
  for (size_t bytes = 0; bytes < 300; ++bytes) {
    std::string data(bytes, '\0');
    for (char& c : data) c = static_cast<char>(random());
    const CutMessage cut(data, &random);
    EXPECT_EQ(Crc32c(cut.pieces()), SlowCrc32c(data));
  }
}

}  // namespace
}  // namespace tilewire::wire
