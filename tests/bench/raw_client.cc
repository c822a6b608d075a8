#include "tests/bench/raw_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <stdexcept>

namespace tilewire::bench {
namespace {
using Stub = grpc::TemplatedGenericStub<grpc::ByteBuffer, grpc::ByteBuffer>;
double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Pushes by callbacks, of which gRPC calls one at a time.
class PushReactor : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  PushReactor(Stub* stub, const char* data, size_t bytes, size_t message_bytes)
      : data_(data), bytes_(bytes), message_bytes_(message_bytes) {
    stub->PrepareBidiStreamingCall(&context_, "/raw/sink", grpc::StubOptions(), this);
    StartRead(&reply_);
    Next();
    StartCall();
  }
  void OnWriteDone(bool ok) override {
    if (ok) Next();
  }
  void OnDone(const grpc::Status& status) override { status_.set_value(status); }
  grpc::Status Wait() { return status_.get_future().get(); }

 private:
  void Next() {
    if (at_ >= bytes_) return StartWritesDone();
    grpc::Slice slice(const_cast<char*>(data_) + at_, std::min(message_bytes_, bytes_ - at_),
                      grpc::Slice::STATIC_SLICE);
    at_ += slice.size();
    message_ = grpc::ByteBuffer(&slice, 1);
    StartWrite(&message_);
  }

  const char* const data_;
  const size_t bytes_, message_bytes_;
  size_t at_ = 0;
  grpc::ClientContext context_;
  grpc::ByteBuffer message_, reply_;
  std::promise<grpc::Status> status_;
};
}  // namespace

struct RawClient::Impl {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Stub> stub;

  /// Waits for one event of a call's own queue.
  static bool Next(grpc::CompletionQueue* queue) {
    void* tag = nullptr;
    bool ok = false;
    return queue->Next(&tag, &ok) && ok;
  }
};

RawClient::RawClient(const std::string& address) : impl_(std::make_unique<Impl>()) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  impl_->channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  // gRPC 1.51 takes some connections for failed that are not, and tries again.
  impl_->channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(30));
  impl_->stub = std::make_unique<Stub>(impl_->channel);
}

RawClient::~RawClient() = default;

double RawClient::Push(const char* data, size_t bytes, size_t message_bytes) {
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const double begin = Now();
  auto call = impl_->stub->PrepareCall(&context, "/raw/sink", &queue);
  call->StartCall(nullptr);
  bool ok = Impl::Next(&queue);
  for (size_t at = 0; ok && at < bytes; at += message_bytes) {
    grpc::Slice slice(const_cast<char*>(data) + at, std::min(message_bytes, bytes - at),
                      grpc::Slice::STATIC_SLICE);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    ok = Impl::Next(&queue);
  }
  grpc::ByteBuffer reply;
  grpc::Status status;
  call->WritesDone(nullptr);
  Impl::Next(&queue);
  call->Read(&reply, nullptr);
  Impl::Next(&queue);
  call->Finish(&status, nullptr);
  Impl::Next(&queue);
  const double seconds = Now() - begin;
  queue.Shutdown();
  while (Impl::Next(&queue)) {
  }
  if (!ok || !status.ok()) throw std::runtime_error("raw sink: " + status.error_message());
  return seconds;
}

double RawClient::PushByCallbacks(const char* data, size_t bytes, size_t message_bytes) {
  const double begin = Now();
  PushReactor push(impl_->stub.get(), data, bytes, message_bytes);
  const grpc::Status status = push.Wait();
  if (!status.ok()) throw std::runtime_error("raw sink: " + status.error_message());
  return Now() - begin;
}

std::vector<double> RawClient::Echo(size_t bytes, int count, double hold_us, bool apart) {
  const std::string text(bytes, 'x');
  std::vector<double> micros;
  for (int i = 0; i < count; ++i) {
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    if (hold_us > 0) context.AddMetadata(apart ? "hold-apart-us" : "hold-us", std::to_string(hold_us));
    const double begin = Now();
    auto call = impl_->stub->PrepareCall(&context, "/raw/echo", &queue);
    call->StartCall(nullptr);
    Impl::Next(&queue);
    grpc::Slice slice(text);
    call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    Impl::Next(&queue);
    grpc::ByteBuffer reply;
    call->Read(&reply, nullptr);
    Impl::Next(&queue);
    grpc::Status status;
    call->Finish(&status, nullptr);
    Impl::Next(&queue);
    micros.push_back((Now() - begin) * 1e6);
    queue.Shutdown();
    while (Impl::Next(&queue)) {
    }
    if (!status.ok()) throw std::runtime_error("raw echo: " + status.error_message());
  }
  return micros;
}

}  // namespace tilewire::bench
