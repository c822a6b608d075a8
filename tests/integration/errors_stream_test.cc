// Streams that break the rules of the contract, on both kinds of memory.
#include "proto/wire/codec.h"
#include "tests/integration/helpers.h"

namespace tilewire::testing {
namespace {

constexpr uint64_t kStreamBlock = 64 << 10;
const std::vector<int64_t> kSixBlocks{100, 1000};  // 400,000 bytes: six blocks and a short one
constexpr uint64_t kSixBlocksBytes = 400'000;
const char kExecute[] = "/tilewire.v1.Kernels/Execute";

struct BadStream {
  const char* name;
  std::function<void(RawStream&, const std::string& data)> send;
  std::string reason, field, value, allowed;
};

const std::vector<BadStream>& BadStreams() {
  static const std::vector<BadStream> all{
      {"nothing sent", [](RawStream&, const std::string&) {}, "BYTES_MISSING"},
      {"one operand only", [](RawStream& s, const std::string& d) { s.SendAll(0, d); }, "BYTES_MISSING"},
      {"one byte missing",
       [](RawStream& s, const std::string& d) {
         s.SendAll(0, d);
         s.SendAll(1, d, 1 << 20, 0, kSixBlocksBytes - 1);
       },
       "BYTES_MISSING"},
      {"a block missing",
       [](RawStream& s, const std::string& d) {
         s.SendAll(0, d);
         s.SendAll(1, d, kStreamBlock, 0, 2 * kStreamBlock);
         s.SendAll(1, d, kStreamBlock, 3 * kStreamBlock);
       },
       "BYTES_MISSING"},
      {"a gap", [](RawStream& s, const std::string& d) { s.Send(0, 0, d.substr(0, 10)), s.Send(0, 20, "x"); },
       "RUN_RULE"},
      {"backwards",
       [](RawStream& s, const std::string& d) { s.Send(0, 0, d.substr(0, 10)), s.Send(0, 5, "x"); },
       "RUN_RULE"},
      {"a run that leaves its block open",
       [](RawStream& s, const std::string& d) {
         s.Send(1, 0, d.substr(0, 10)), s.Send(1, kStreamBlock, "x");
       },
       "RUN_RULE"},
      {"a run that starts inside a block", [](RawStream& s, const std::string&) { s.Send(0, 1, "x"); },
       "RUN_RULE"},
      {"the last byte alone", [](RawStream& s, const std::string&) { s.Send(0, kSixBlocksBytes - 1, "x"); },
       "RUN_RULE"},
      {"a block twice",
       [](RawStream& s, const std::string& d) {
         s.Send(0, 0, d.substr(0, kStreamBlock)), s.Send(0, 0, d.substr(0, kStreamBlock));
       },
       "RUN_RULE"},
      {"an operand twice", [](RawStream& s, const std::string& d) { s.SendAll(0, d), s.SendAll(0, d); },
       "RUN_RULE"},
      {"a run into a block that came before",
       [](RawStream& s, const std::string& d) {
         s.Send(0, kStreamBlock, std::string_view(d).substr(kStreamBlock, kStreamBlock));
         s.Send(0, 0, std::string_view(d).substr(0, kStreamBlock + 1));
       },
       "RUN_RULE"},
      {"everything, and the first byte again",
       [](RawStream& s, const std::string& d) { s.SendAll(0, d), s.SendAll(1, d), s.Send(1, 0, "x"); },
       "RUN_RULE"},
      {"beyond the end",
       [](RawStream& s, const std::string&) {
         s.Send(0, 6 * kStreamBlock, std::string(kSixBlocksBytes, 'x'));
       },
       "BAD_VALUE", "chunk of operand 0, offset 393216", "400000 bytes long",
       "bytes within the operand's 400000"},
      {"at the end", [](RawStream& s, const std::string&) { s.Send(1, kSixBlocksBytes, "x"); }, "BAD_VALUE",
       "chunk of operand 1, offset 400000", "1 bytes long", "bytes within the operand's 400000"},
      {"at the end of all numbers", [](RawStream& s, const std::string&) { s.Send(0, ~uint64_t{0}, "xx"); },
       "BAD_VALUE", "chunk of operand 0, offset 18446744073709551615", "2 bytes long", "*"},
      {"empty chunk", [](RawStream& s, const std::string&) { s.Send(0, 0, ""); }, "BAD_VALUE", "chunk.data",
       "empty (operand 0, offset 0)", "1 byte or more"},
      {"no such operand", [](RawStream& s, const std::string&) { s.Send(2, 0, "x"); }, "BAD_VALUE",
       "chunk.operand", "2", "0 to 1"},
      {"operand of the largest number", [](RawStream& s, const std::string&) { s.Send(~0u, 0, "x"); },
       "BAD_VALUE", "chunk.operand", "4294967295", "0 to 1"},
      {"open twice",
       [](RawStream& s, const std::string&) {
         v1::ExecuteRequest again;
         *again.mutable_open() = RmseOpen(v1::DTYPE_F32, kSixBlocks);
         s.stream->Write(again);
       },
       "BAD_MESSAGE"},
      {"empty message", [](RawStream& s, const std::string&) { s.stream->Write(v1::ExecuteRequest()); },
       "BAD_MESSAGE"},
  };
  return all;
}

class StreamErrors : public OnBoth {};
TILEWIRE_ON_STAGED(StreamErrors);

TEST_P(StreamErrors, EachBrokenRuleIsNamed) {
  TestServer server(device(), {});
  const auto channel = server.Connect();
  const std::string data = Floats(kSixBlocksBytes / 4, 1);
  for (const BadStream& bad : BadStreams()) {
    SCOPED_TRACE(bad.name);
    RawStream raw(channel);
    ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kSixBlocks)));
    bad.send(raw, data);
    ExpectError(raw.End(), kInvalid, bad.reason, bad.field, bad.value, bad.allowed);
    server.ExpectIdle();
  }
  ExpectUnharmed(server);
}

TEST_P(StreamErrors, OpenMustComeFirst) {
  TestServer server(device(), {});
  const auto channel = server.Connect();
  {
    RawStream raw(channel);
    raw.Start();
    ExpectError(raw.End(), kInvalid, "BAD_MESSAGE");
  }
  {
    RawStream raw(channel);
    raw.Start();
    raw.Send(0, 0, "before");
    ExpectError(raw.End(), kInvalid, "BAD_MESSAGE");
  }
  {
    // Both members of the oneof in one message.
    v1::ExecuteRequest open, chunk;
    *open.mutable_open() = RmseOpen(v1::DTYPE_F32, kSixBlocks);
    chunk.mutable_chunk()->set_data("x");
    ByteCall call(channel, kExecute);
    call.Start();
    call.Write(open.SerializeAsString() + chunk.SerializeAsString());
    ExpectError(call.Finish(), kInvalid, "BAD_MESSAGE");
  }
  EXPECT_EQ(server.engine().stats().jobs_admitted, 0u);
  ExpectUnharmed(server);
}

TEST_P(StreamErrors, BytesThatAreNoMessage) {
  TestServer server(device(), {});
  const auto channel = server.Connect();
  v1::ExecuteRequest open, chunk;
  *open.mutable_open() = RmseOpen(v1::DTYPE_F32, kSixBlocks);
  chunk.mutable_chunk()->set_data("payload");
  const std::string good = chunk.SerializeAsString();
  for (const bool opened : {false, true}) {
    for (const std::string& bytes :
         {std::string(), std::string(1, '\xff'), std::string(11, '\x80'), good.substr(0, good.size() - 1),
          good + good, std::string("\x12\x06\x7a\x01x\x7a\x01y"), std::string("\x12\xff\xff\xff\xff\x0f"),
          std::string("\x0a\x01\xff"), std::string("\x22\x00", 2), std::string("\x13"), Bytes(5000, 7)}) {
      SCOPED_TRACE((opened ? "opened, " : "first, ") + std::to_string(bytes.size()) + " bytes");
      ByteCall call(channel, kExecute);
      call.Start();
      if (opened) {
        std::string reply;
        ASSERT_TRUE(call.Write(open.SerializeAsString()));
        ASSERT_TRUE(call.Read(&reply));
      }
      call.Write(bytes);
      ExpectError(call.Finish(), kInvalid, "BAD_MESSAGE");
    }
  }
  ExpectUnharmed(server);
}

TEST_P(StreamErrors, ChecksumsAreChecked) {
  TestServer server(device(), {});
  const auto channel = server.Connect();
  const std::string data = Floats(1000, 1);
  const auto crc = [](const std::string& bytes) {
    return wire::Crc32c({wire::Bytes(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size())});
  };
  {
    RawStream raw(channel);
    ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, {1000})));
    raw.Send(0, 0, data, crc(data));
    raw.Send(1, 0, data, crc(data));
    const auto status = raw.End();
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(raw.output, std::string(8, '\0'));
  }
  {
    RawStream raw(channel);
    ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, {1000})));
    std::string flipped = data;
    flipped[2000] = static_cast<char>(flipped[2000] ^ 1);
    raw.Send(0, 0, data, crc(data));
    raw.Send(1, 0, flipped, crc(data));
    ExpectError(raw.End(), grpc::StatusCode::DATA_LOSS, "CHECKSUM", "chunk.crc32c", std::to_string(crc(data)),
                std::to_string(crc(flipped)));
  }
  ExpectUnharmed(server);
}

/// How many calls of a method are on record as ended for that reason, with nothing received.
int Refused(TestServer& server, const std::string& method, const std::string& reason) {
  server.ExpectIdle();
  int count = 0;
  for (const auto& record : server.observer().records())
    count += record.method == method && record.status.reason() == reason && record.bytes_in == 0;
  return count;
}

TEST_P(StreamErrors, CompressedMessagesAreRefused) {
  TestServer server(device(), {});
  const auto channel = server.Connect();
  const std::string zeros(400'000, '\0');
  {
    grpc::ClientContext context;
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    v1::RmseResponse response;
    ExpectError(v1::Kernels::NewStub(channel)->Rmse(&context, RmseCall({100'000}, zeros, zeros), &response),
                grpc::StatusCode::UNIMPLEMENTED, "COMPRESSED");
  }
  {
    grpc::ClientContext context;
    context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    v1::DescribeKernelsRequest request;
    for (int i = 0; i < 1000; ++i) request.mutable_transpose()->add_axes(1);
    v1::DescribeKernelsResponse response;
    ExpectError(v1::Device::NewStub(channel)->DescribeKernels(&context, request, &response),
                grpc::StatusCode::UNIMPLEMENTED, "COMPRESSED");
  }
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    RawStream raw(channel);
    raw.context.set_compression_algorithm(algorithm);
    ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, kSixBlocks))) << "too short to be compressed";
    raw.SendAll(0, zeros);
    ExpectError(raw.End(), grpc::StatusCode::UNIMPLEMENTED, "COMPRESSED");
  }
  {
    RawStream raw(channel);
    raw.context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
    raw.Start();
    raw.Send(0, 0, zeros);
    ExpectError(raw.End(), grpc::StatusCode::UNIMPLEMENTED, "COMPRESSED");
  }
  EXPECT_EQ(Refused(server, "Kernels.Rmse", "COMPRESSED"), 1);
  EXPECT_EQ(Refused(server, "Device.DescribeKernels", "COMPRESSED"), 1);
  EXPECT_EQ(Refused(server, "Kernels.Execute", "COMPRESSED"), 3);
  ExpectUnharmed(server);
}

TEST_P(StreamErrors, OversizedMessages) {
  TestServer server(device(), {});
  const auto channel = server.Connect();
  const int64_t count = 3 << 20;
  const std::string data = Floats(count, 1);  // 12 MiB
  const std::string allowed = "4259840; send smaller chunks, of 1 MiB at best";
  {
    RawStream raw(channel);
    ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, {count})));
    EXPECT_EQ(raw.opened.max_message_bytes(), (4u << 20) + (64u << 10));
    ASSERT_TRUE(raw.SendAll(0, data, 4 << 20)) << "4 MiB of payload fit";
    raw.Send(1, 0, std::string_view(data).substr(0, (4 << 20) + (64 << 10)));
    ExpectError(raw.End(), grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT", "message", "*", allowed);
  }
  {
    RawStream raw(channel);
    raw.Start();
    raw.Send(0, 0, std::string_view(data).substr(0, 5 << 20));
    ExpectError(raw.End(), grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT", "message", "*", allowed);
  }
  EXPECT_EQ(Refused(server, "Kernels.Execute", "LIMIT"), 1) << "before open; the other had sent an operand";
  ExpectUnharmed(server);
}

// gRPC refuses by itself what is over its own limit, 8 MiB; the client has no details, but the call is on
// record.
TEST_P(StreamErrors, MessagesThatGrpcRefuses) {
  TestServer server(device(), {});
  const auto channel = server.Connect();
  const std::string data(9 << 20, 'x');
  for (const bool opened : {false, true}) {
    RawStream raw(channel);
    if (opened) {
      ASSERT_TRUE(raw.Open(RmseOpen(v1::DTYPE_F32, {3 << 20})));
    } else {
      raw.Start();
    }
    raw.Send(0, 0, data);
    EXPECT_EQ(raw.Drain().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  }
  EXPECT_EQ(Refused(server, "Kernels.Execute", "LIMIT"), 2);
  {
    RawStream left(channel);  // and one whose client cancels is no such
    ASSERT_TRUE(left.Open(RmseOpen(v1::DTYPE_F32, {3 << 20})));
    left.context.TryCancel();
    EXPECT_EQ(left.Drain().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_EQ(Refused(server, "Kernels.Execute", "CANCELLED"), 1);
  ExpectUnharmed(server);
}

}  // namespace
}  // namespace tilewire::testing
