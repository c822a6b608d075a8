// What the tests of this folder share: devices to run on, errors to expect, calls byte by byte.
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>

#include <map>

#include "tests/devices/decorators.h"
#include "tests/integration/server_fixture.h"

namespace tilewire::testing {

/// Where arrays live: on the CPU device as it is, or behind staging blocks and copies as on a GPU.
enum class Where { kHost, kStaged };

inline std::unique_ptr<engine::Device> DeviceAt(Where where) {
  auto device = engine::OpenCpuDevice(2);
  return where == Where::kHost ? std::move(device) : engine::MakeStaged(std::move(device));
}

/// Tests that run on both kinds of memory.
class OnBoth : public ::testing::TestWithParam<Where> {
 protected:
  std::unique_ptr<engine::Device> device() const { return DeviceAt(GetParam()); }
  bool staged() const { return GetParam() == Where::kStaged; }
};
#define TILEWIRE_ON_BOTH(suite)                                                            \
  INSTANTIATE_TEST_SUITE_P(Memory, suite, ::testing::Values(Where::kHost, Where::kStaged), \
                           [](const auto& p) { return p.param == Where::kHost ? "Host" : "Staged"; })
/// Tables of errors run on one kind: requests are refused by code that does not ask where arrays live.
#define TILEWIRE_ON_STAGED(suite)                                            \
  INSTANTIATE_TEST_SUITE_P(Memory, suite, ::testing::Values(Where::kStaged), \
                           [](const auto&) { return "Staged"; })

constexpr int64_t kMiB = 1 << 20;
constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
constexpr auto kExhausted = grpc::StatusCode::RESOURCE_EXHAUSTED;
constexpr auto kLate = grpc::StatusCode::DEADLINE_EXCEEDED;

/// Code, reason and the metadata {field, value, allowed}; "*" is any text. Where `field` is empty no field
/// may be to blame, but for BAD_MESSAGE, which may say where in the message.
inline void ExpectError(const grpc::Status& status, grpc::StatusCode code, const std::string& reason,
                        const std::string& field = "", const std::string& value = "*",
                        const std::string& allowed = "*") {
  EXPECT_EQ(status.error_code(), code) << status.error_message();
  if (status.error_code() != code) return;
  const auto info = ErrorInfoOf(status);
  EXPECT_EQ(info.reason(), reason) << status.error_message();
  if (field.empty()) {
    EXPECT_TRUE(reason == "BAD_MESSAGE" || info.metadata().empty()) << status.error_message();
    return;
  }
  for (const auto& [key, want] :
       std::map<std::string, std::string>{{"field", field}, {"value", value}, {"allowed", allowed}}) {
    const auto found = info.metadata().find(key);
    ASSERT_TRUE(found != info.metadata().end()) << key << ": " << status.error_message();
    if (want == "*") {
      EXPECT_NE(found->second, "") << key;
    } else {
      EXPECT_EQ(found->second, want) << key;
    }
  }
}

inline v1::RmseRequest RmseCall(const std::vector<int64_t>& shape, const std::string& a,
                                const std::string& b) {
  v1::RmseRequest request;
  SetSpec(request.mutable_a()->mutable_spec(), v1::DTYPE_F32, shape);
  SetSpec(request.mutable_b()->mutable_spec(), v1::DTYPE_F32, shape);
  request.mutable_a()->set_data(a);
  request.mutable_b()->set_data(b);
  return request;
}

/// Both forms of a good call on a connection of their own, answers checked bit by bit.
inline void ExpectGoodCalls(const TestServer& server, uint64_t seed = 11) {
  const auto channel = server.Connect();
  const std::vector<int64_t> shape{37, 1111};
  const std::string a = Floats(37 * 1111, seed), b = Floats(37 * 1111, seed + 1);
  grpc::ClientContext context;
  server.Name(&context);
  v1::RmseResponse response;
  const auto unary = v1::Kernels::NewStub(channel)->Rmse(&context, RmseCall(shape, a, b), &response);
  EXPECT_TRUE(unary.ok()) << unary.error_message();
  EXPECT_TRUE(response.result().data() == HostRmse(a, b, DType::kF32, shape));
  RawStream raw(channel);
  server.Name(&raw.context);
  ASSERT_TRUE(raw.Open(TransposeOpen(v1::DTYPE_F32, shape)));
  ASSERT_TRUE(raw.SendAll(0, a, 50'000));
  const auto status = raw.End();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(raw.output == HostTranspose(a, DType::kF32, shape));
}

/// What every test ends with.
inline void ExpectUnharmed(TestServer& server) {
  server.ExpectIdle();
  ExpectGoodCalls(server);
  server.ExpectIdle();
}

/// A call whose messages are bytes, right or wrong.
class ByteCall {
 public:
  struct Reply {
    grpc::Status status;
    std::string bytes;
  };

  /// `method`: "/package.Service/Method".
  ByteCall(std::shared_ptr<grpc::Channel> channel, std::string method)
      : stub_(std::move(channel)), method_(std::move(method)) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  }
  ~ByteCall() {
    context.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  Reply Unary(const std::string& request) {
    Reply reply;
    grpc::ByteBuffer buffer;
    const auto call = stub_.PrepareUnaryCall(&context, method_, Buffer(request), &queue_);
    call->StartCall();
    call->Finish(&buffer, &reply.status, nullptr);
    Wait();
    if (reply.status.ok()) reply.bytes = Text(&buffer);
    return reply;
  }

  void Start() {
    stream_ = stub_.PrepareCall(&context, method_, &queue_);
    stream_->StartCall(nullptr);
    Wait();
  }
  bool Write(const std::string& bytes) {
    stream_->Write(Buffer(bytes), nullptr);
    return Wait();
  }
  bool Read(std::string* bytes) {
    grpc::ByteBuffer buffer;
    stream_->Read(&buffer, nullptr);
    if (!Wait()) return false;
    *bytes = Text(&buffer);
    return true;
  }
  void WritesDone() {
    stream_->WritesDone(nullptr);
    Wait();
  }
  grpc::Status Finish() {
    grpc::Status status;
    stream_->Finish(&status, nullptr);
    Wait();
    return status;
  }

  grpc::ClientContext context;

 private:
  static grpc::ByteBuffer Buffer(const std::string& bytes) {
    const grpc::Slice slice(bytes);
    return grpc::ByteBuffer(&slice, 1);
  }
  static std::string Text(grpc::ByteBuffer* buffer) {
    std::vector<grpc::Slice> slices;
    std::string text;
    if (buffer->Dump(&slices).ok())
      for (const auto& slice : slices)
        text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    return text;
  }
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  const std::string method_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
};

}  // namespace tilewire::testing
