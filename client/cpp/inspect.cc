// What a server tells about itself.
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "client/cpp/client_impl.h"
#include "client/cpp/wire_form.h"

namespace tilewire::client {

Result<ServerInfo> Client::Describe(const CallOptions& options) {
  const Link& link = impl_->link();
  v1::DescribeResponse response;
  TILEWIRE_RETURN_IF_ERROR(CallOnce(link, link.device.get(), &v1::Device::Stub::Describe,
                                    v1::DescribeRequest(), options, DeadlineOf(options), &response));
  return FromProto(response);
}

Result<ServerKernels> Client::Impl::DescribeKernels(const v1::DescribeKernelsRequest& request,
                                                    const CallOptions& options) {
  v1::DescribeKernelsResponse response;
  TILEWIRE_RETURN_IF_ERROR(CallOnce(*link_, link_->device.get(), &v1::Device::Stub::DescribeKernels, request,
                                    options, DeadlineOf(options), &response));
  return FromProto(response);
}

Result<ServerKernels> Client::DescribeKernels(const Operation& operation, std::span<const ArraySpec> operands,
                                              const CallOptions& options) {
  TILEWIRE_ASSIGN_OR_RETURN([[maybe_unused]] const Attributes right, AttributesOf(operation));
  v1::DescribeKernelsRequest request;
  SetOperation(operation, &request);
  for (const ArraySpec& operand : operands) ToProto(operand, request.add_operands());
  return impl_->DescribeKernels(request, options);
}

Result<ServerKernels> Client::DescribeKernels(const CallOptions& options) {
  return impl_->DescribeKernels({}, options);
}

Result<ServerCeilings> Client::MeasureCeilings(const CallOptions& options) {
  const Link& link = impl_->link();
  v1::MeasureCeilingsResponse response;
  TILEWIRE_RETURN_IF_ERROR(CallPatiently(link, link.device.get(), &v1::Device::Stub::MeasureCeilings,
                                         v1::MeasureCeilingsRequest(), options, DeadlineOf(options),
                                         &response));
  ServerCeilings ceilings{response.device(), {}};
  for (const v1::Ceiling& ceiling : response.ceilings())
    ceilings.bytes_per_second.emplace_back(ceiling.name(), ceiling.bytes_per_second());
  return ceilings;
}

Result<std::chrono::nanoseconds> Client::Impl::Ping(const CallOptions& options) {
  // grpc.health.v1 needs no generated code here: the request for the whole server is the empty message, and
  // the reply has one field, the status as a number.
  constexpr uint64_t kServing = 1;
  if (!link_->refused.ok()) return Fail(link_->refused);
  TILEWIRE_RETURN_IF_ERROR(CheckMetadata(link_->connect, options));
  const auto start = Retry::Clock::now();
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  Prepare(link_->connect, options, DeadlineOf(options), &context);
  const std::stop_callback on_stop(options.stop, [&context] { context.TryCancel(); });
  grpc::GenericStub stub(link_->channel);
  const grpc::Slice empty;
  const grpc::ByteBuffer request(&empty, 1);
  auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag;
  bool ok;
  queue.Next(&tag, &ok);
  const auto elapsed = Retry::Clock::now() - start;
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  if (!status.ok()) return Fail(FromGrpc(status, context));
  grpc::Slice reply;
  google::protobuf::UnknownFieldSet fields;
  if (!response.DumpToSingleSlice(&reply).ok() ||
      !fields.ParseFromArray(reply.begin(), static_cast<int>(reply.size())))
    return Fail(BadReply("an unreadable health reply"));
  uint64_t health = 0;
  for (int i = 0; i < fields.field_count(); ++i)
    if (fields.field(i).number() == 1 &&
        fields.field(i).type() == google::protobuf::UnknownField::TYPE_VARINT)
      health = fields.field(i).varint();
  if (health != kServing)
    return Fail(Status(Code::kUnavailable, "NOT_SERVING", "the server says that it does not serve"));
  return elapsed;
}

std::optional<std::chrono::nanoseconds> Client::Impl::RoundTrip(const CallOptions& options) {
  if (const int64_t known = round_trip_ns_.load(); known > 0) return std::chrono::nanoseconds(known);
  CallOptions quick = options;
  constexpr std::chrono::milliseconds kLongest{1000};
  quick.timeout = std::min(options.timeout.value_or(kLongest), kLongest);
  // The first one may have to connect.
  auto time = Ping(quick);
  if (const auto again = time ? Ping(quick) : time; again) time = std::min(*time, *again);
  if (!time) return std::nullopt;
  round_trip_ns_ = std::max<int64_t>(1, time->count());
  return *time;
}

Result<std::chrono::nanoseconds> Client::Ping(const CallOptions& options) {
  return impl_->Ping(options);
}

}  // namespace tilewire::client
