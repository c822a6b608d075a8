// Unary calls that come with their headers, before their message does.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

#include <string>

namespace tilewire::rpc {

/// A service of gRPC's whose unary methods are taken as streams of one message each way, which look the same
/// on the wire: gRPC 1.51 hands a unary call over with its message, and a stream when its headers come. So a
/// server sees calls whose messages are still on their way, and may refuse them for little.
template <typename Service>
class UnaryByHeaders : public Service {
 public:
  /// The service of that name in `file`.
  UnaryByHeaders(const std::string& name, const google::protobuf::FileDescriptor* file)
      : descriptor_(file->FindServiceByName(name)) {
    for (int i = 0; i < descriptor_->method_count(); ++i) {
      if (descriptor_->method(i)->client_streaming() || descriptor_->method(i)->server_streaming()) continue;
      this->MarkMethodStreamed(i, nullptr);
      this->MarkMethodRaw(i);
    }
  }

  int IndexOf(const std::string& method) const { return descriptor_->FindMethodByName(method)->index(); }
  /// Asks for a call of that method; `stream` is bound to it.
  void Request(int method, grpc::ServerContext* context,
               grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>* stream,
               grpc::ServerCompletionQueue* queue, void* tag) {
    this->RequestAsyncBidiStreaming(method, context, stream, queue, queue, tag);
  }

 private:
  const google::protobuf::ServiceDescriptor* const descriptor_;
};

}  // namespace tilewire::rpc
