// What no log may show, sent in every place where it is or might be taken for something else: ids of arrays
// and regions, tokens, payload, keys of stores. The client's own error names the id that it sent.
#include <grpcpp/generic/generic_stub.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/integration/arrays.h"
#include "tests/integration/program.h"
#include "tests/integration/tls.h"
#include "tests/unit/jwt.h"
#include "tests/unit/shared_file.h"
#include "tilewire/v1/regions.grpc.pb.h"

namespace tilewire::testing {
namespace {

using grpc::StatusCode;

const std::string kPayload = "payload-that-nobody-logs", kToken = "secret-of-ann-0123456789abcdef",
                  kWrongToken = "secret-of-nobody-9876543210", kKey = "key-of-a-store";
constexpr int64_t kFloats = 4096;

class LogSecrets : public ::testing::Test {
 protected:
  LogSecrets() {
    files_.Write("tokens", TokenLine("ann", kToken) + TokenLine("bob", kToken));
    files_.Write("jwks", KeySet({signer_.Jwk("a")}));
    // By a shell, for the variables: every line that the libraries have, and the traces that they would have.
    program_ = std::make_unique<Program>(
        "/bin/sh", std::vector<std::string>{"-c",
                                            "GRPC_VERBOSITY=debug GRPC_TRACE=all exec \"$0\" \"$@\"",
                                            TILEWIRE_TILEWIRED,
                                            "--device",
                                            "cpu",
                                            "--device-bytes",
                                            "64MiB",
                                            "--listen",
                                            "127.0.0.1:0",
                                            "--tokens",
                                            files_.Path("tokens"),
                                            "--jwks",
                                            files_.Path("jwks"),
                                            "--jwt-issuer",
                                            "https://issuer",
                                            "--jwt-audience",
                                            "tilewire",
                                            "--audit-log",
                                            files_.Path("audit"),
                                            "--log-level",
                                            "trace",
                                            "--log-format",
                                            "json",
                                            "--allow-regions",
                                            kRegionPrefix});
    channel_ = ConnectTo(program_->Ready()[0]);
    arrays_ = v1::Arrays::NewStub(channel_);
    kernels_ = v1::Kernels::NewStub(channel_);
    regions_ = v1::Regions::NewStub(channel_);
  }

  static std::unique_ptr<grpc::ClientContext> Context(const std::string& token = "ann." + kToken) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("authorization", "Bearer " + token);
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    return context;
  }
  grpc::Status Stat(const std::string& id, const std::string& token = "ann." + kToken) {
    v1::StatRequest request;
    request.set_array(id);
    v1::ArrayInfo info;
    return arrays_->Stat(Context(token).get(), request, &info);
  }
  /// A stream with this first message and these bytes.
  grpc::Status Stream(const v1::ExecuteRequest& first, const std::string& bytes, v1::Result* result = nullptr,
                      bool put = false) {
    const auto context = Context();
    const auto stream = put ? arrays_->Put(context.get()) : kernels_->Execute(context.get());
    v1::ExecuteRequest chunk;
    chunk.mutable_chunk()->set_data(bytes);
    if (stream->Write(first) && !bytes.empty()) stream->Write(chunk);
    stream->WritesDone();
    for (v1::ExecuteResponse response; stream->Read(&response);)
      if (response.has_result() && result) *result = response.result();
    return stream->Finish();
  }
  std::string Put(const std::string& bytes) {
    v1::ExecuteRequest first;
    *first.mutable_open() = PutOpen(v1::DTYPE_F32, {kFloats});
    first.mutable_open()->mutable_options()->mutable_store()->set_idempotency_key(kKey);
    v1::Result result;
    const auto status = Stream(first, bytes, &result, true);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return result.results_size() > 0 ? result.results(0).array() : "";
  }
  std::string Register(const SharedFile& file) {
    v1::RegisterRequest request;
    request.mutable_shared_memory()->set_name(file.name());
    request.mutable_shared_memory()->set_bytes(file.bytes());
    v1::RegionInfo info;
    const auto status = regions_->Register(Context().get(), request, &info);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return info.region();
  }
  /// The id in every place of a request that takes one, or another text.
  void SendEverywhere(const std::string& id) {
    const auto told = [&](const grpc::Status& status) {
      EXPECT_EQ(ErrorInfoOf(status).metadata().at("value"), id) << status.error_message();
      EXPECT_NE(status.error_message().find(id), std::string::npos) << status.error_message();
    };
    told(Stat(id, "bob." + kToken));
    v1::DeleteRequest gone;
    gone.set_array(id);
    v1::DeleteResponse none;
    told(arrays_->Delete(Context("bob." + kToken).get(), gone, &none));
    v1::UnregisterRequest unregister;
    unregister.set_region(id);
    v1::UnregisterResponse nothing;
    told(regions_->Unregister(Context("bob." + kToken).get(), unregister, &nothing));
    v1::TransposeRequest request;
    request.mutable_input()->set_array("x" + id);
    v1::TransposeResponse response;
    EXPECT_FALSE(kernels_->Transpose(Context().get(), request, &response).ok());
    request.mutable_input()->clear_array();
    request.mutable_input()->mutable_region()->set_region("x" + id);
    EXPECT_FALSE(kernels_->Transpose(Context().get(), request, &response).ok());
    v1::ExecuteRequest first;
    first.mutable_join()->set_job(id);
    told(Stream(first, ""));
    *first.mutable_open() = PutOpen(v1::DTYPE_F32, {kFloats});
    Refer(first.mutable_open(), 0, id);
    told(Stream(first, "", nullptr, true));
    v1::ListRequest list;
    list.set_page(id);
    v1::ListResponse page;
    EXPECT_FALSE(arrays_->List(Context().get(), list, &page).ok());
  }
  /// Not for writing, so its owner is told its id.
  void WriteTo(const std::string& region) {
    v1::TransposeRequest request;
    SetSpec(request.mutable_input()->mutable_spec(), v1::DTYPE_F32, {64, 64});
    request.mutable_input()->set_data(Floats(kFloats, 1));
    request.mutable_op()->add_axes(1);
    request.mutable_op()->add_axes(0);
    request.mutable_options()->mutable_result_region()->set_region(region);
    v1::TransposeResponse response;
    ExpectError(kernels_->Transpose(Context().get(), request, &response), StatusCode::INVALID_ARGUMENT,
                "BAD_VALUE", "options.result_region.region", region);
  }
  /// A message that is none, with the payload in it.
  void SendRubbish() {
    grpc::GenericStub stub(channel_);
    grpc::ByteBuffer answer;
    const grpc::Slice slice("\x0a\xff" + kPayload);
    const grpc::ByteBuffer request(&slice, 1);
    const auto context = Context();
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareUnaryCall(context.get(), "/tilewire.v1.Kernels/Transpose", request, &queue);
    call->StartCall();
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool good = false;
    EXPECT_TRUE(queue.Next(&tag, &good));
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT);
  }
  /// All that any log has, once the server has ended.
  std::string Logs() {
    program_->Signal(SIGTERM);
    EXPECT_EQ(program_->Wait(60), 0);
    std::ifstream audit(files_.Path("audit"));
    std::ostringstream text;
    text << audit.rdbuf();
    EXPECT_NE(text.str().find("\"Arrays.Stat\""), std::string::npos);
    return program_->out() + program_->err() + text.str();
  }

  const SigningKey signer_ = SigningKey::Ed();
  Files files_;
  std::unique_ptr<Program> program_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Arrays::Stub> arrays_;
  std::unique_ptr<v1::Kernels::Stub> kernels_;
  std::unique_ptr<v1::Regions::Stub> regions_;
};

TEST_F(LogSecrets, NoneIsInAnyLog) {
  const SharedFile file(64 << 10);
  std::string bytes;
  while (bytes.size() < kFloats * sizeof(float)) bytes += kPayload;
  bytes.resize(kFloats * sizeof(float));
  const std::string array = Put(bytes), region = Register(file);
  ASSERT_TRUE(array.size() > 20 && region.size() > 20);
  // Of this server and unknown, of another, and no id at all.
  const std::string unknown = array.substr(0, array.rfind('-')) + "-0123456789abcdef",
                    foreign = "fedcba9876543210-fedcba9876543210", other = "a-secret-of-somebody";
  for (const std::string& id : {array, region, unknown, foreign, other}) SendEverywhere(id);
  WriteTo(region);
  SendRubbish();
  EXPECT_EQ(Stat(array, "ann." + kWrongToken).error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Stat(array, kWrongToken).error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(Stat(array).ok());
  // Good, though of a caller who has no such array, and signed by nobody, though of the same text.
  const std::string jwt = signer_.Sign({{"alg", "EdDSA"}, {"kid", "a"}}, GoodClaims("ann")),
                    signed_text = jwt.substr(0, jwt.rfind('.')), no_jwt = signed_text + ".AAAA";
  EXPECT_EQ(Stat(array, jwt).error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(Stat(array, no_jwt).error_code(), StatusCode::UNAUTHENTICATED);

  const std::string logs = Logs();
  for (const std::string& secret :
       {array, region, unknown, foreign, other, kPayload, kToken, kWrongToken, kKey, jwt, signed_text}) {
    const size_t at = logs.find(secret);
    EXPECT_EQ(at, std::string::npos) << secret << ": " << logs.substr(logs.rfind('\n', at) + 1, 1000);
    const size_t part = logs.find(secret.substr(secret.size() - 12));
    EXPECT_EQ(part, std::string::npos) << secret << ": " << logs.substr(logs.rfind('\n', part) + 1, 1000);
  }
  EXPECT_NE(logs.find("array is an id of 33 characters, which is not logged"), std::string::npos) << logs;
  EXPECT_NE(logs.find("GRPC_TRACE is not followed"), std::string::npos);
}

}  // namespace
}  // namespace tilewire::testing
