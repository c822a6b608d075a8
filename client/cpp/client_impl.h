// What stands behind Client. Internal to the library.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "client/cpp/call_spec.h"
#include "client/cpp/channels.h"
#include "client/cpp/convert.h"
#include "client/cpp/hold.h"
#include "client/cpp/retry.h"
#include "tilewire/v1/arrays.grpc.pb.h"
#include "tilewire/v1/device.grpc.pb.h"
#include "tilewire/v1/regions.grpc.pb.h"

namespace tilewire::client {

/// The connection for small calls. Thread-safe; shared by a client and what it owns at the server.
struct Link {
  Link(const std::string& address, const ConnectOptions& options)
      : connect(WithHeader(options)),
        refused(CheckToken(address, options)),
        channel(MakeChannel(address, options)),
        device(v1::Device::NewStub(channel)),
        arrays(v1::Arrays::NewStub(channel)),
        regions(v1::Regions::NewStub(channel)) {}

  const ConnectOptions connect;  ///< WithHeader
  const Status refused;          ///< why nothing may be sent to this server
  const std::shared_ptr<grpc::Channel> channel;
  const std::unique_ptr<v1::Device::Stub> device;
  const std::unique_ptr<v1::Arrays::Stub> arrays;
  const std::unique_ptr<v1::Regions::Stub> regions;
};

Deadline DeadlineOf(const CallOptions& options);

/// One attempt at a call without array bytes: `method` of `stub`.
template <typename Stub, typename Request, typename Response>
Status CallOnce(const Link& link, Stub* stub,
                grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                const Request& request, const CallOptions& options, Deadline deadline, Response* response) {
  if (!link.refused.ok()) return link.refused;
  if (Status status = CheckMetadata(link.connect, options); !status.ok()) return status;
  grpc::ClientContext context;
  Prepare(link.connect, options, deadline, &context);
  const std::stop_callback on_stop(options.stop, [&context] { context.TryCancel(); });
  return FromGrpc((stub->*method)(&context, request, response), context);
}

/// CallOnce, tried again where that may help: while a busy server says when, and by the deadline.
template <typename Stub, typename Request, typename Response>
Status CallPatiently(const Link& link, Stub* stub,
                     grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                     const Request& request, const CallOptions& options, Deadline deadline,
                     Response* response) {
  Retry retry(options.max_attempts, deadline);
  for (;;) {
    if (options.stop.stop_requested()) return Status(Code::kCancelled, "CANCELLED", "the call was cancelled");
    Status status = CallOnce(link, stub, method, request, options, deadline, response);
    if (status.ok()) return status;
    const auto wait = retry.Next(status, Moved::kNothing);
    if (!wait) return status;
    Retry::Sleep(*wait, options.stop, link.connect.wait);
  }
}

class Client::Impl {
 public:
  Impl(const std::string& address, const ConnectOptions& options)
      : link_(std::make_shared<Link>(address, options)), stream_channels_(address, options) {}

  /// Where `store` or `into` is set the results stay at the server or go there, and `sink` is not called.
  Result<Reply> Execute(Operation operation, std::span<const ArraySource> operands,
                        std::optional<StoreOptions> store, std::optional<RegionPlace> into,
                        const ResultSink& sink, const CallOptions& options);
  Result<Reply> Put(const ArraySource& source, const StoreOptions& store, const CallOptions& options);
  /// Asks for the spec where it is not known.
  Result<Reply> Get(const std::string& id, std::optional<ArraySpec> spec, const ResultSink& sink,
                    const CallOptions& options);
  Result<ArrayInfo> Stat(const std::string& id, const CallOptions& options, Deadline deadline);
  Result<ArrayList> List(const CallOptions& options);
  /// The handles of the arrays that a call stored.
  StoredReply Own(Reply reply) const;

  Result<ServerKernels> DescribeKernels(const v1::DescribeKernelsRequest& request,
                                        const CallOptions& options);
  Result<std::chrono::nanoseconds> Ping(const CallOptions& options);

  const Link& link() const { return *link_; }
  const std::shared_ptr<const Link>& shared_link() const { return link_; }

 private:
  Result<Reply> Attempts(CallSpec spec, bool streamed);
  Attempt Stream(const CallSpec& spec);
  Attempt Unary(const CallSpec& spec);
  /// Waits, once, until the server's hold on calls like this one is over. BUSY where that is beyond the
  /// deadline, or the call makes but one attempt.
  Status AwaitHold(const CallSpec& spec);
  /// To the server and back; asked for once, and none where the server does not answer soon.
  std::optional<std::chrono::nanoseconds> RoundTrip(const CallOptions& options);
  /// Asks for what is not known of resident operands, and so learns the results' specs.
  Status Resolve(CallSpec* spec);
  /// CallPatiently by the stub of Arrays.
  template <typename Request, typename Response>
  Status Ask(grpc::Status (v1::Arrays::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
             const Request& request, const CallOptions& options, Deadline deadline, Response* response);

  const std::shared_ptr<const Link> link_;
  StreamChannels stream_channels_;
  Hold hold_;
  std::atomic<int64_t> round_trip_ns_{0};  ///< 0: not asked for yet
};

/// Arrays.Delete.
Status DeleteArray(const Link& link, const std::string& id, const CallOptions& options);

}  // namespace tilewire::client
