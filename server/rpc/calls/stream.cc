#include "server/rpc/calls/stream.h"

#include <algorithm>

#include "server/base/limits.h"
#include "server/rpc/conversions/convert.h"
#include "server/rpc/conversions/status.h"
#include "server/rpc/transport/caught.h"
#include "server/rpc/transport/slices.h"

namespace tilewire::rpc {

Status Disconnected() {
  return Status(Code::kCancelled, "CANCELLED", "the client is gone");
}

QueueTask<bool> Write(StreamCall& call, grpc::ByteBuffer buffer) {
  call.idle_watch().writing = true;
  const bool ok = co_await Operation([&](void* tag) { call.StartWrite(buffer, tag); });
  call.idle_watch().writing = false;
  co_return ok;
}

QueueTask<bool> Write(StreamCall& call, const v1::ExecuteResponse& response) {
  Message message;
  message.AddCopy(response.SerializeAsString());
  const bool ok = co_await Write(call, message.Build());
  call.idle_watch().steps.fetch_add(1);
  co_return ok;
}

namespace {

/// How often this copies the bytes of a response: into its serialised form, and that into a slice.
constexpr uint64_t kResponseCopies = 2;

QueueTask<bool> SendPiece(StreamCall& call, const engine::OutputPiece& piece, size_t chunk_bytes) {
  for (size_t from = 0; from < piece.bytes; from += chunk_bytes) {
    const size_t bytes = std::min(chunk_bytes, piece.bytes - from);
    Message message;
    message.AddCopy(wire::ChunkHeader(piece.result, piece.offset + from, std::nullopt, bytes));
    call.job->CountCopied(message.AddShared(piece.data + from, bytes, piece.hold, call.shared().drop_soon));
    Span span{.stage = Stage::kSend,
              .begin = Clock::now(),
              .track = Track(call),
              .index = (static_cast<uint64_t>(piece.offset) + from) /
                       static_cast<uint64_t>(call.job->block_bytes()),
              .bytes = bytes,
              .operand = piece.result};
    if (!co_await Write(call, message.Build())) co_return false;
    span.end = Clock::now();
    call.idle_watch().bytes_written.fetch_add(bytes);
    call.Left(bytes);
    call.job->CountMoved(bytes);
    call.job->AddSpan(span);
  }
  co_return true;
}

}  // namespace

Task<Status> SendOutput(StreamCall& call, size_t chunk_bytes, std::vector<std::string>* inlined) {
  const int stream = call.stream_number();
  const bool in_result = call.job->operation().payload_bytes() <= kInlineResultBytes;
  inlined->resize(call.job->operation().results().size());
  const bool take = stream == 0 || !in_result;
  for (;;) {
    auto piece = co_await OnAnyThread<Result<std::optional<engine::OutputPiece>>>(
        [&](auto resume) { call.job->NextOutput(stream, take, std::move(resume)); });
    if (!piece) co_return piece.error();
    if (!*piece) co_return Status();
    if (in_result) {
      call.job->CountCopied((*piece)->bytes);
      (*inlined)[(*piece)->result].append(reinterpret_cast<const char*>((*piece)->data), (*piece)->bytes);
    } else if (!co_await SendPiece(call, **piece, chunk_bytes)) {
      co_return Disconnected();
    }
  }
}

QueueTask<Status> SendResult(StreamCall& call, std::vector<std::string> inlined) {
  const engine::Operation& operation = call.job->operation();
  v1::ExecuteResponse response;
  uint64_t bytes = 0;
  for (size_t i = 0; i < operation.results().size(); ++i) {
    v1::ArrayResult* const array = response.mutable_result()->add_results();
    DescribeResult(*call.job, i, array);
    if (!call.job->hands_out()) continue;
    call.job->CountCopied(kResponseCopies * inlined[i].size());
    bytes += inlined[i].size();
    array->set_data(std::move(inlined[i]));
  }
  response.mutable_result()->set_numeric_version(std::string(operation.numeric_version()));
  ToProto(call.TimingOf(*call.job), response.mutable_result()->mutable_timing());
  if (!co_await Write(call, response)) co_return Disconnected();
  call.Left(bytes);
  co_return Status();
}

void FillOpened(const StreamCall& call, v1::Opened* opened) {
  opened->set_job(call.job->id());
  opened->set_block_bytes(call.job->block_bytes());
  opened->set_window_bytes(call.job->window_bytes());
  opened->set_max_message_bytes(kMaxMessageBytes);
  opened->set_max_streams(call.job->max_streams());
  opened->set_instance(call.engine().instance());
  for (const auto& endpoint : call.shared().endpoints) opened->add_endpoints(endpoint);
}

Detached RunStream(std::shared_ptr<StreamCall> call) {
  call->StartIdleWatch();
  Status served = call->refused();
  if (served.ok()) served = co_await Caught([&] { return call->Serve(); });
  const Status status = call->FinalStatus(served);
  if (call->job && !status.ok()) call->job->StreamLost(call->stream_number(), status);
  call->Ended(status);
  call->idle_watch().writing = true;  // the status waits behind output that the client has not read yet
  const bool told = co_await Operation([&](void* tag) { call->StartFinish(ToGrpc(status), tag); });
  call->idle_watch().Stop();
  if (!call->job || call->stream_number() == 0 || !status.ok()) co_return;
  if (told) {
    call->job->StreamDone(call->stream_number());
  } else {
    call->job->StreamLost(call->stream_number(), Disconnected());
  }
}

}  // namespace tilewire::rpc
