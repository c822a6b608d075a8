#include "server/rpc/calls/unknown.h"

#include <algorithm>

#include "server/rpc/calls/metadata.h"
#include "server/rpc/calls/record.h"
#include "server/rpc/conversions/status.h"

namespace tilewire::rpc {
namespace {

class UnknownCall final : public grpc::ServerGenericBidiReactor {
 public:
  UnknownCall(CallContext* shared, grpc::GenericCallbackServerContext* context)
      : shared_(shared),
        metadata_(ReadMetadata(context, *shared, "")),
        record_(shared, PrintableMethod(context->method())) {
    shared_->running.BeginShort();
    record_.Start(&metadata_, arrived_);
    record_.SetStatus(Status({.code = Code::kUnimplemented,
                              .reason = "UNKNOWN_METHOD",
                              .message = "there is no method " + record_.method(),
                              .field = "method",
                              .value = record_.method(),
                              .allowed = "a method of tilewire.v1.Kernels, Arrays, Regions or Device"}));
    Finish(ToGrpc(record_.status()));
  }
  void OnDone() override {
    record_.End(record_.status(), Timing());
    record_.Tell();
    CallContext* const shared = shared_;
    delete this;
    shared->running.EndShort();
  }

 private:
  CallContext* const shared_;
  const TimePoint arrived_ = Clock::now();
  const Metadata metadata_;
  Record record_;
};

}  // namespace

grpc::ServerGenericBidiReactor* UnknownMethods::CreateReactor(grpc::GenericCallbackServerContext* context) {
  return new UnknownCall(shared_, context);
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
