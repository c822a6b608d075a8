// Calls that carry arrays, attempt by attempt.
#include <grpc/grpc.h>
#include <grpc/support/time.h>

#include <algorithm>
#include <random>
#include <thread>

#include "client/cpp/client_impl.h"
#include "client/cpp/operations.h"
#include "client/cpp/striped_call.h"
#include "client/cpp/unary_call.h"

namespace tilewire::client {
namespace {

constexpr uint64_t kUnaryBytes = 1 << 20;

/// Options with a key, so that a repeated attempt finds what an earlier one stored.
StoreOptions WithKey(StoreOptions store) {
  if (!store.idempotency_key.empty()) return store;
  std::random_device random;
  for (int i = 0; i < 32; ++i) store.idempotency_key += "0123456789abcdef"[random() % 16];
  return store;
}

/// Where nothing may come.
const ResultSink& NoSink() {
  static const ResultSink sink = [](size_t, uint64_t, std::span<const uint8_t>) {
    return BadReply("bytes of a stored result");
  };
  return sink;
}

}  // namespace

Status CheckToken(const std::string& address, const ConnectOptions& connect) {
  if (!std::all_of(connect.token.begin(), connect.token.end(), [](char c) { return c > 0x20 && c < 0x7f; }))
    return BadValue("ConnectOptions.token", "not told here", "visible ASCII characters").value();
  if (MaySendToken(address, connect)) return {};
  return BadValue("ConnectOptions.token", "for " + address + " in clear",
                  "TLS, or an address of this host, or ConnectOptions.insecure (of programs: --insecure)")
      .value();
}

Status CheckMetadata(const ConnectOptions& connect, const CallOptions& options) {
  constexpr size_t kLongestRequestId = 128;
  const auto slice = [](const std::string& text) {
    return grpc_slice_from_static_buffer(text.data(), text.size());
  };
  for (const auto& [key, value] : connect.metadata) {
    if (grpc_header_key_is_legal(slice(key)) == 0 || key.starts_with("grpc-"))
      return BadValue("ConnectOptions.metadata key", key,
                      "1 or more of a-z, 0-9, '-', '_' and '.', not beginning with grpc-")
          .value();
    if (!key.ends_with("-bin") && grpc_header_nonbin_value_is_legal(slice(value)) == 0)
      return BadValue("ConnectOptions.metadata value of " + key, value, "visible ASCII characters and spaces")
          .value();
  }
  const std::string& id = options.request_id;
  if (id.size() > kLongestRequestId || grpc_header_nonbin_value_is_legal(slice(id)) == 0)
    return BadValue("CallOptions.request_id", id.substr(0, kLongestRequestId),
                    "at most 128 visible ASCII characters")
        .value();
  return {};
}

ConnectOptions WithHeader(ConnectOptions options) {
  if (!options.token.empty()) options.token.insert(0, "Bearer ");
  return options;
}

void Prepare(const ConnectOptions& connect, const CallOptions& options, Deadline deadline,
             grpc::ClientContext* context) {
  if (deadline) {
    const std::chrono::nanoseconds left = *deadline - std::chrono::steady_clock::now();
    context->set_deadline(
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(left.count(), GPR_TIMESPAN)));
  }
  for (const auto& [key, value] : connect.metadata) context->AddMetadata(key, value);
  static const std::string authorization = "authorization";  // of every call
  if (!connect.token.empty()) context->AddMetadata(authorization, connect.token);
  if (!options.request_id.empty()) context->AddMetadata("x-request-id", options.request_id);
}

Deadline DeadlineOf(const CallOptions& options) {
  if (!options.timeout) return std::nullopt;
  return std::chrono::steady_clock::now() + *options.timeout;
}

Result<Reply> Client::Impl::Execute(Operation operation, std::span<const ArraySource> operands,
                                    std::optional<StoreOptions> store, std::optional<RegionPlace> into,
                                    const ResultSink& sink, const CallOptions& options) {
  TILEWIRE_ASSIGN_OR_RETURN(auto results, ResultSpecsIfKnown(operation, operands));
  TILEWIRE_ASSIGN_OR_RETURN(operation.attributes, AttributesOf(operation));
  std::vector<ArraySource> sources(operands.begin(), operands.end());
  const auto as_stored = FindOperation(*operation.descriptor)->as_stored;
  if (as_stored != nullptr && sources[0].fortran_order()) as_stored(&operation.attributes, &sources[0]);
  if (store) store = WithKey(std::move(*store));
  CallSpec spec{.task = std::move(operation),
                .sources = std::move(sources),
                .results = std::move(results),
                .store = std::move(store),
                .into = std::move(into),
                .sink = sink,
                .options = options,
                .connect = link_->connect,
                .deadline = DeadlineOf(options)};
  const bool small = spec.bytes_to_send() + spec.bytes_to_receive() <= kUnaryBytes;
  return Attempts(std::move(spec),
                  options.form == CallForm::kAuto ? !small : options.form == CallForm::kStream);
}

Result<Reply> Client::Impl::Put(const ArraySource& source, const StoreOptions& store,
                                const CallOptions& options) {
  if (const auto* stored = std::get_if<ArraySource::Stored>(&source.place()))
    return BadValue("source", "array " + stored->id,
                    "what the server does not have: memory, a file, or a region");
  return Attempts({.task = PutTask{},
                   .sources = {source},
                   .results = std::vector{source.spec()},
                   .store = WithKey(store),
                   .into = std::nullopt,
                   .sink = NoSink(),
                   .options = options,
                   .connect = link_->connect,
                   .deadline = DeadlineOf(options)},
                  true);
}

Result<Reply> Client::Impl::Get(const std::string& id, std::optional<ArraySpec> spec, const ResultSink& sink,
                                const CallOptions& options) {
  const Deadline deadline = DeadlineOf(options);
  if (!spec) {
    TILEWIRE_ASSIGN_OR_RETURN(const ArrayInfo info, Stat(id, options, deadline));
    spec = info.spec;
  }
  return Attempts({.task = GetTask{id},
                   .sources = {},
                   .results = std::vector{*spec},
                   .store = std::nullopt,
                   .into = std::nullopt,
                   .sink = sink,
                   .options = options,
                   .connect = link_->connect,
                   .deadline = deadline},
                  true);
}

Status Client::Impl::Resolve(CallSpec* spec) {
  for (auto& source : spec->sources) {
    const auto* stored = std::get_if<ArraySource::Stored>(&source.place());
    if (stored == nullptr || source.known_spec()) continue;
    TILEWIRE_ASSIGN_OR_RETURN(const ArrayInfo info, Stat(stored->id, spec->options, spec->deadline));
    source = ArraySource::Resident(stored->id, info.spec);
  }
  TILEWIRE_ASSIGN_OR_RETURN(spec->results,
                            ResultSpecsIfKnown(std::get<Operation>(spec->task), spec->sources));
  return {};
}

Status Client::Impl::AwaitHold(const CallSpec& spec) {
  const auto now = Hold::Clock::now();
  Status held = hold_.Refuse(spec, now);
  if (held.ok()) return {};
  const std::chrono::milliseconds wait(held.detail()->retry_after_ms);
  if (spec.options.max_attempts <= 1 || (spec.deadline && *spec.deadline - now <= wait)) return held;
  Retry::Sleep(wait, spec.options.stop, spec.connect.wait);
  return {};
}

Attempt Client::Impl::Unary(const CallSpec& spec) {
  Attempt attempt = UnaryCall(link_->channel.get(), spec);
  if (!attempt.status.ok()) hold_.Learn(attempt.status, Hold::Clock::now());
  return attempt;
}

Result<Reply> Client::Impl::Attempts(CallSpec spec, bool streamed) {
  if (!link_->refused.ok()) return Fail(link_->refused);
  TILEWIRE_RETURN_IF_ERROR(CheckMetadata(spec.connect, spec.options));
  const auto start = Retry::Clock::now();
  std::optional<SpanRecorder> recorder;
  if (spec.options.trace) spec.recorder = &recorder.emplace(start);
  Retry retry(spec.options.max_attempts, spec.deadline);
  for (int attempts = 1;; ++attempts) {
    if (!streamed) TILEWIRE_RETURN_IF_ERROR(AwaitHold(spec));
    if (spec.options.stop.stop_requested())
      return Fail(Status(Code::kCancelled, "CANCELLED", "the call was cancelled"));
    const double begin_us = recorder ? recorder->Now() : 0;
    if (streamed && !spec.results && spec.sends_result()) TILEWIRE_RETURN_IF_ERROR(Resolve(&spec));
    Attempt attempt = streamed ? Stream(spec) : Unary(spec);
    if (attempt.status.ok()) {
      attempt.reply.attempts = attempts;
      attempt.reply.client_wall_us =
          std::chrono::duration<double, std::micro>(Retry::Clock::now() - start).count();
      if (recorder)
        attempt.reply.trace = recorder->Finish(attempt.reply.timing, attempt.reply.client_wall_us);
      return std::move(attempt.reply);
    }
    if (!streamed && attempt.status.reason() == "USE_EXECUTE" && spec.options.form == CallForm::kAuto) {
      streamed = true;
      if (recorder) recorder->Retry(begin_us);
      continue;
    }
    const auto wait = retry.Next(attempt.status, attempt.moved);
    if (!wait) return Fail(std::move(attempt.status));
    Retry::Sleep(*wait, spec.options.stop, spec.connect.wait);
    if (recorder) recorder->Retry(begin_us);
  }
}

Attempt Client::Impl::Stream(const CallSpec& spec) {
  uint32_t connections = spec.options.connections;
  std::optional<std::chrono::nanoseconds> round_trip;
  if (connections == 0) {
    const uint64_t bytes = spec.bytes_to_send() + spec.bytes_to_receive();
    if (bytes >= kBytesWorthAskingDistance) round_trip = RoundTrip(spec.options);
    connections = WorthwhileConnections(bytes, std::thread::hardware_concurrency(),
                                        round_trip.value_or(std::chrono::nanoseconds()));
  }
  // Each stream would turn a Fortran order array around for itself.
  for (const auto& source : spec.sources)
    if (source.fortran_order()) connections = 1;
  Attempt attempt = StripedCall(spec, &stream_channels_, connections).Run();
  if (round_trip)
    attempt.reply.round_trip_us = std::chrono::duration<double, std::micro>(*round_trip).count();
  return attempt;
}

}  // namespace tilewire::client
