// What the tests of resident arrays share.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/integration/helpers.h"
#include "tilewire/v1/arrays.grpc.pb.h"

namespace tilewire::testing {

/// What a call of the client library, which is given the sink, brings to it; pieces in any order.
template <typename Call>
std::string Collected(const Call& call) {
  std::string bytes;
  const auto reply = call([&bytes](uint64_t offset, std::span<const uint8_t> piece) {
    bytes.resize(std::max<size_t>(bytes.size(), offset + piece.size()));
    std::memcpy(bytes.data() + offset, piece.data(), piece.size());
    return Status();
  });
  EXPECT_TRUE(reply) << reply.error().ToString();
  return bytes;
}

/// A caller with a name and a connection of its own.
class ArrayCaller {
 public:
  struct Stored {
    grpc::Status status;
    std::string id;
    v1::Result result;
  };
  struct Got {
    grpc::Status status;
    std::string bytes;
    v1::Opened opened;
    v1::Result result;
  };

  explicit ArrayCaller(const TestServer& server, std::string who = "me")
      : channel(server.Connect()),
        arrays(v1::Arrays::NewStub(channel)),
        kernels(v1::Kernels::NewStub(channel)),
        who_(std::move(who)) {}

  std::unique_ptr<grpc::ClientContext> Context() const {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("who", who_);
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    return context;
  }

  /// A Get of several streams, begun: others may join its job. Null where it is not opened.
  std::unique_ptr<grpc::ClientReader<v1::ExecuteResponse>> BeginGet(grpc::ClientContext* context,
                                                                    const std::string& id, uint32_t streams,
                                                                    v1::Opened* opened) {
    v1::GetRequest request;
    request.set_array(id);
    request.mutable_options()->set_streams(streams);
    auto stream = arrays->Get(context, request);
    v1::ExecuteResponse response;
    if (!stream->Read(&response) || !response.has_opened()) return nullptr;
    *opened = response.opened();
    return stream;
  }
  /// A whole stream of `stub`: what is sent of each operand, "" where it is resident.
  template <typename Stub>
  Stored Run(Stub call, const v1::Open& open, const std::vector<std::string>& operands) {
    Stored stored;
    const auto context = Context();
    const auto stream = call(context.get());
    v1::ExecuteRequest request;
    *request.mutable_open() = open;
    bool more = stream->Write(request);
    for (size_t i = 0; i < operands.size(); ++i)
      for (size_t at = 0; more && at < operands[i].size(); at += 100'000) {
        v1::ExecuteRequest chunk;
        chunk.mutable_chunk()->set_operand(static_cast<uint32_t>(i));
        chunk.mutable_chunk()->set_offset(at);
        chunk.mutable_chunk()->set_data(operands[i].substr(at, 100'000));
        more = stream->Write(chunk);
      }
    stream->WritesDone();
    v1::ExecuteResponse response;
    std::string bytes;
    while (stream->Read(&response)) {
      if (response.has_chunk()) bytes += response.chunk().data();
      if (response.has_result()) stored.result = response.result();
    }
    stored.status = stream->Finish();
    if (stored.result.results_size() == 0) return stored;
    stored.id = stored.result.results(0).array();
    if (!bytes.empty()) stored.result.mutable_results(0)->set_data(bytes);
    return stored;
  }
  Stored Put(const v1::Open& open, const std::string& bytes) {
    return Run([this](auto* context) { return arrays->Put(context); }, open, {bytes});
  }
  Stored Execute(const v1::Open& open, const std::vector<std::string>& operands = {}) {
    return Run([this](auto* context) { return kernels->Execute(context); }, open, operands);
  }
  Got Get(const v1::GetRequest& request) {
    Got got;
    const auto context = Context();
    const auto stream = arrays->Get(context.get(), request);
    v1::ExecuteResponse response;
    while (stream->Read(&response)) {
      if (response.has_opened()) got.opened = response.opened();
      if (response.has_chunk()) got.bytes += response.chunk().data();
      if (response.has_result()) got.result = response.result();
    }
    got.status = stream->Finish();
    if (got.result.results_size() > 0) got.bytes += got.result.results(0).data();
    return got;
  }
  Got Get(const std::string& id) {
    v1::GetRequest request;
    request.set_array(id);
    return Get(request);
  }
  grpc::Status Stat(const std::string& id, v1::ArrayInfo* info = nullptr) {
    v1::StatRequest request;
    request.set_array(id);
    v1::ArrayInfo ignored;
    return arrays->Stat(Context().get(), request, info ? info : &ignored);
  }
  grpc::Status Delete(const std::string& id) {
    v1::DeleteRequest request;
    request.set_array(id);
    v1::DeleteResponse response;
    return arrays->Delete(Context().get(), request, &response);
  }
  grpc::Status List(uint32_t size, const std::string& page, v1::ListResponse* response) {
    v1::ListRequest request;
    request.set_page_size(size);
    request.set_page(page);
    return arrays->List(Context().get(), request, response);
  }

  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<v1::Arrays::Stub> arrays;
  const std::unique_ptr<v1::Kernels::Stub> kernels;

 private:
  const std::string who_;
};

inline TestServer::Options ArrayOptions() {
  TestServer::Options options;
  options.rpc.identity_header = "who";
  return options;
}

inline v1::Open PutOpen(v1::DType dtype, const std::vector<int64_t>& shape) {
  v1::Open open;
  open.mutable_put();
  SetSpec(open.add_operands(), dtype, shape);
  return open;
}

inline void Refer(v1::Open* open, uint32_t operand, const std::string& id) {
  auto* reference = open->add_references();
  reference->set_operand(operand);
  reference->set_array(id);
}

/// Nothing is leased but what arrays hold, and no call is left.
inline void ExpectOnlyArrays(TestServer& server) {
  EXPECT_TRUE(Eventually([&] {
    const auto stats = server.engine().stats();
    return stats.device_bytes_in_use == stats.array_bytes && stats.pinned_bytes_in_use == 0 &&
           stats.jobs_in_flight == 0 && server.rpc().WaitIdle(Clock::now());
  }));
}

}  // namespace tilewire::testing
