// The codec against the generated protobuf classes: what one writes, the other reads, field for field.
#include <gtest/gtest.h>

#include <algorithm>

#include "proto/wire/codec.h"
#include "tests/unit/wire_testing.h"
#include "tilewire/v1/kernels.pb.h"

namespace tilewire::wire {
namespace {

using testing::CutMessage;
using testing::FixedField;
using testing::Join;
using testing::LenField;
using testing::LongVarint;
using testing::OnePiece;
using testing::VarintField;

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}
  std::mt19937* random() { return &random_; }
  uint64_t Below(uint64_t n) { return random_() % n; }

  uint64_t Number() {
    const uint64_t bits = (uint64_t{random_()} << 32) | random_();
    return bits >> Below(64);
  }
  std::string Text(size_t most) {
    std::string out(Below(most + 1), '\0');
    for (char& c : out) c = static_cast<char>(random_());
    return out;
  }
  /// A field that no message of the contract knows, or an over-long spelling of one.
  std::string Unknown() {
    const uint64_t number = 100 + Below(536870912 - 100);
    switch (Below(5)) {
      case 0:
        return VarintField(number, Number());
      case 1:
        return FixedField(number, Number(), 4);
      case 2:
        return FixedField(number, Number(), 8);
      case 3:
        return LongVarint(number << 3, 5) + LongVarint(Number(), 10);
      default:
        return LenField(number, Text(30));
    }
  }
  std::string Shuffled(std::vector<std::string> fields) {
    for (uint64_t unknown = Below(4); unknown > 0; --unknown) fields.push_back(Unknown());
    std::shuffle(fields.begin(), fields.end(), random_);
    std::string out;
    for (const std::string& field : fields) out += field;
    return out;
  }
  /// A chunk with scalars absent, once or several times, sometimes with a wrong wire type; `data` at most
  /// once.
  std::string Chunk() {
    std::vector<std::string> fields;
    for (uint64_t n = Below(3); n > 0; --n) fields.push_back(VarintField(1, Number()));
    for (uint64_t n = Below(3); n > 0; --n) fields.push_back(VarintField(2, Number()));
    for (uint64_t n = Below(3); n > 0; --n) fields.push_back(FixedField(3, Number(), 4));
    if (Below(4) == 0) fields.push_back(FixedField(1 + Below(2), Number(), 8));
    if (Below(4) == 0) fields.push_back(VarintField(15, Number()));
    if (Below(5) != 0) fields.push_back(LenField(15, Text(200)));
    return Shuffled(std::move(fields));
  }
  std::string Spec() {
    v1::ArraySpec spec;
    spec.set_dtype(static_cast<v1::DType>(Below(17)));
    for (uint64_t n = Below(5); n > 0; --n) spec.add_shape(static_cast<int64_t>(Number()));
    return spec.SerializeAsString();
  }
  std::string Operand() {
    std::vector<std::string> fields;
    for (uint64_t n = Below(3); n > 0; --n) fields.push_back(LenField(1, Spec()));
    if (Below(5) != 0) fields.push_back(LenField(15, Text(200)));
    return Shuffled(std::move(fields));
  }

 private:
  std::mt19937 random_;
};

void ExpectSameChunk(const ChunkView& view, const v1::Chunk& chunk) {
  EXPECT_EQ(view.operand, chunk.operand());
  EXPECT_EQ(view.offset, chunk.offset());
  ASSERT_EQ(view.crc32c.has_value(), chunk.has_crc32c());
  if (view.crc32c) {
    EXPECT_EQ(*view.crc32c, chunk.crc32c());
  }
  EXPECT_EQ(view.data_bytes, chunk.data().size());
  EXPECT_EQ(Join(view.data), chunk.data());
}

TEST(WireProto, ChunksByHandAgreeWithProtobuf) {
  Generator make(11);
  for (int i = 0; i < 20000; ++i) {
    const std::string message = make.Shuffled({LenField(2, make.Chunk())});
    v1::ExecuteRequest request;
    v1::ExecuteResponse response;
    ASSERT_TRUE(request.ParseFromString(message) && response.ParseFromString(message));
    const CutMessage cut(message, make.random());
    const auto envelope = SplitExecute(cut.pieces());
    ASSERT_TRUE(envelope) << envelope.error().ToString();
    ASSERT_TRUE(envelope->chunk);
    ExpectSameChunk(*envelope->chunk, request.chunk());
    ExpectSameChunk(*envelope->chunk, response.chunk());
    if (::testing::Test::HasFailure()) FAIL() << "message " << i;
  }
}

TEST(WireProto, ChunkHeaderIsWhatProtobufWrites) {
  Generator make(12);
  for (int i = 0; i < 5000; ++i) {
    v1::ExecuteRequest request;
    v1::Chunk* chunk = request.mutable_chunk();
    chunk->set_operand(static_cast<uint32_t>(make.Below(3) * make.Number()));
    chunk->set_offset(make.Below(3) * make.Number());
    std::optional<uint32_t> crc;
    if (make.Below(2) == 0) {
      crc = static_cast<uint32_t>(make.Number());
      chunk->set_crc32c(*crc);
    }
    const std::string data = "x" + make.Text(300);
    chunk->set_data(data);
    const std::string header = ChunkHeader(chunk->operand(), chunk->offset(), crc, data.size());
    EXPECT_EQ(header + data, request.SerializeAsString());
    const std::string written = request.SerializeAsString();
    const CutMessage cut(written, make.random());
    const auto envelope = SplitExecute(cut.pieces());
    ASSERT_TRUE(envelope && envelope->chunk);
    ExpectSameChunk(*envelope->chunk, *chunk);
  }
}

TEST(WireProto, OtherMembersParse) {
  v1::ExecuteRequest request;
  request.mutable_open()->mutable_rmse()->add_axes(-1);
  request.mutable_open()->add_operands()->set_dtype(v1::DTYPE_F32);
  v1::ExecuteRequest gaussian;
  gaussian.mutable_open()->mutable_gaussian_pdf()->set_stddev(2.5);
  v1::ExecuteResponse opened, result;
  opened.mutable_opened()->set_job("a-1");
  result.mutable_result()->add_results()->set_data("12345678");
  std::mt19937 random(13);
  for (const google::protobuf::Message* message :
       std::initializer_list<google::protobuf::Message*>{&request, &gaussian, &opened, &result}) {
    const std::string written = message->SerializeAsString();
    const CutMessage cut(written, &random);
    const auto envelope = SplitExecute(cut.pieces());
    ASSERT_TRUE(envelope && envelope->other);
    EXPECT_EQ(*envelope->other, written);
  }
}

/// Header and payloads of the codec, put back together, equal the whole message as protobuf reads it.
template <typename Request>
void ExpectSameUnary(const std::string& message, const UnaryView& view, std::span<const int> fields) {
  Request whole, rebuilt;
  ASSERT_TRUE(whole.ParseFromString(message));
  ASSERT_TRUE(rebuilt.ParseFromString(view.header));
  const auto* reflection = whole.GetReflection();
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto* field = whole.GetDescriptor()->FindFieldByNumber(fields[i]);
    ASSERT_EQ(view.operands[i].present, reflection->HasField(whole, field));
    ASSERT_EQ(view.operands[i].present, reflection->HasField(rebuilt, field));
    if (!view.operands[i].present) continue;
    auto* operand = static_cast<v1::Operand*>(reflection->MutableMessage(&rebuilt, field));
    EXPECT_TRUE(operand->data().empty());
    EXPECT_EQ(view.operands[i].data_bytes, TotalBytes(view.operands[i].data));
    operand->set_data(Join(view.operands[i].data));
  }
  // Deterministic and with unknown fields, which must have survived in the header.
  EXPECT_EQ(rebuilt.SerializeAsString(), whole.SerializeAsString());
}

/// Cuts the message at random; what the codec makes of it is what protobuf reads.
template <typename Request>
void ExpectAgreement(const std::string& message, std::mt19937* random, std::span<const int> fields) {
  const CutMessage cut(message, random);
  const auto view = SplitUnary(cut.pieces(), fields);
  ASSERT_TRUE(view) << view.error().ToString();
  ExpectSameUnary<Request>(message, *view, fields);
}

TEST(WireProto, UnaryRequestsAgreeWithProtobuf) {
  Generator make(14);
  constexpr int kTwo[] = {14, 15}, kOne[] = {15};
  for (int i = 0; i < 20000; ++i) {
    v1::RmseRequest rest;
    if (make.Below(2) == 0) rest.mutable_op()->add_axes(static_cast<int32_t>(make.Number()));
    if (make.Below(2) == 0) rest.mutable_options()->set_output_chunk_bytes(make.Number());
    std::vector<std::string> fields = {rest.SerializeAsString() + make.Unknown(),
                                       LenField(15, make.Operand())};
    if (make.Below(4) != 0) fields.push_back(LenField(14, make.Operand()));
    const std::string message = make.Shuffled(std::move(fields));
    ExpectAgreement<v1::RmseRequest>(message, make.random(), kTwo);
    ExpectAgreement<v1::TransposeRequest>(message, make.random(), kOne);
    if (::testing::Test::HasFailure()) FAIL() << "message " << i;
  }
}

TEST(WireProto, GaussianRequestsAgreeWithProtobuf) {
  Generator make(16);
  constexpr int kOne[] = {15};
  for (int i = 0; i < 20000; ++i) {
    // Doubles of any bits, absent, repeated or of another wire type; several `op` merge, as in protobuf.
    std::vector<std::string> fields = {LenField(15, make.Operand())};
    for (uint64_t ops = make.Below(3); ops > 0; --ops) {
      std::vector<std::string> op;
      for (uint64_t n = make.Below(4); n > 0; --n)
        op.push_back(FixedField(1 + make.Below(2), make.Number(), make.Below(5) == 0 ? 4 : 8));
      fields.push_back(LenField(1, make.Shuffled(std::move(op))));
    }
    ExpectAgreement<v1::GaussianPdfRequest>(make.Shuffled(std::move(fields)), make.random(), kOne);
    if (::testing::Test::HasFailure()) FAIL() << "message " << i;
  }
}

TEST(WireProto, WhatTheCodecAcceptsAfterDamageProtobufReadsAlike) {
  Generator make(15);
  int accepted = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string message = make.Shuffled({LenField(2, make.Chunk())});
    for (uint64_t n = 1 + make.Below(2); n > 0; --n) {
      message[make.Below(message.size())] = static_cast<char>((*make.random())());
    }
    const auto envelope = SplitExecute(OnePiece(message));
    if (!envelope || !envelope->chunk) continue;
    ++accepted;
    v1::ExecuteRequest request;
    ASSERT_TRUE(request.ParseFromString(message)) << "message " << i;
    ExpectSameChunk(*envelope->chunk, request.chunk());
    if (::testing::Test::HasFailure()) FAIL() << "message " << i;
  }
  EXPECT_GT(accepted, 5000);
}

}  // namespace
}  // namespace tilewire::wire
