#include "server/rpc/calls/unknown.h"

#include <algorithm>

#include "server/rpc/calls/metadata.h"
#include "server/rpc/calls/record.h"
#include "server/rpc/conversions/status.h"
#include "server/rpc/transport/crew.h"

namespace tilewire::rpc {
namespace {

// Asked for in advance.
constexpr int kAccepts = 16;

}  // namespace

struct UnknownMethods::Unknown {
  grpc::GenericServerContext context;
  grpc::GenericServerAsyncReaderWriter stream{&context};
};

void UnknownMethods::Accept(grpc::ServerCompletionQueue* queue) {
  for (int i = 0; i < kAccepts; ++i) AcceptNext(queue);
}

Detached UnknownMethods::AcceptNext(grpc::ServerCompletionQueue* queue) {
  const Acceptors::One accepting(&acceptors_);
  for (;;) {
    auto call = std::make_unique<Unknown>();
    const bool ok = co_await Operation(
        [&](void* tag) { service_.RequestCall(&call->context, &call->stream, queue, queue, tag); });
    if (!ok) co_return;
    Crew::Took(false);
    Refuse(std::move(call));
  }
}

Detached UnknownMethods::Refuse(std::unique_ptr<Unknown> call) {
  shared_->running.BeginShort();
  {
    const TimePoint arrived = Clock::now();
    const Metadata metadata = ReadMetadata(&call->context, *shared_, "");
    Record record(shared_, PrintableMethod(call->context.method()));
    record.Start(&metadata, arrived);
    const Status status({.code = Code::kUnimplemented,
                         .reason = "UNKNOWN_METHOD",
                         .message = "there is no method " + record.method(),
                         .field = "method",
                         .value = record.method(),
                         .allowed = "a method of tilewire.v1.Kernels, Arrays, Regions or Device"});
    co_await Operation([&](void* tag) { call->stream.Finish(ToGrpc(status), tag); });
    record.End(status, Timing(), /*of_stream=*/true);
    record.Tell();
  }
  call.reset();
  shared_->running.EndShort();
}

std::string PrintableMethod(const std::string& path) {
  constexpr size_t kMost = 128;
  std::string name = path.substr(0, kMost);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c <= 0x20 || c >= 0x7f; }, '?');
  if (path.size() > kMost) name += "...";
  if (!name.starts_with('/')) name.insert(0, 1, '/');  // as our own never do
  return name;
}

}  // namespace tilewire::rpc
