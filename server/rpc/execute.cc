#include "server/rpc/execute.h"

#include <algorithm>
#include <exception>

#include "server/base/limits.h"
#include "server/rpc/convert.h"
#include "server/rpc/status.h"

namespace tilewire::rpc {
namespace {

Status BadOrder(const std::string& message) {
  return Status(Code::kInvalidArgument, "BAD_MESSAGE", message);
}
Status Disconnected() {
  return Status(Code::kCancelled, "CANCELLED", "the client is gone");
}

/// The next message; nothing when the client half-closed or the call is over.
Task<bool> Read(ExecuteCall& call, Received* message) {
  grpc::ByteBuffer buffer;
  call.idle_watch().reading = true;
  const bool ok = co_await Operation([&](void* tag) { call.stream.Read(&buffer, tag); });
  call.idle_watch().reading = false;
  co_return ok && message->Take(&buffer);
}

Task<bool> Write(ExecuteCall& call, grpc::ByteBuffer buffer) {
  call.idle_watch().writing = true;
  const bool ok = co_await Operation([&](void* tag) { call.stream.Write(buffer, tag); });
  call.idle_watch().writing = false;
  co_return ok;
}

Task<bool> Write(ExecuteCall& call, const v1::ExecuteResponse& response) {
  Message message;
  message.AddCopy(response.SerializeAsString());
  const bool ok = co_await Write(call, message.Build());
  call.idle_watch().steps.fetch_add(1);
  co_return ok;
}

/// What is kept of an Open while the call runs; the message itself is gone before the call waits for
/// anything.
struct Opening {
  std::unique_ptr<engine::Operation> operation;
  size_t chunk_bytes = 0;
  bool trace = false;
};

Result<Opening> ParseOpen(const Received& message) {
  TILEWIRE_ASSIGN_OR_RETURN(const auto envelope, wire::SplitExecute(message.pieces()));
  if (envelope.chunk) return Fail(BadOrder("a chunk arrived before open; the first message must be open"));
  if (envelope.other->size() > static_cast<size_t>(kMaxHeaderBytes))
    return OverLimit("open", std::to_string(envelope.other->size()) + " bytes",
                     std::to_string(kMaxHeaderBytes));
  v1::ExecuteRequest request;
  if (!request.ParseFromString(*envelope.other) || !request.has_open())
    return Fail(BadOrder("the first message is no open"));
  const v1::Open& open = request.open();
  Opening opening{.trace = open.options().trace()};
  TILEWIRE_ASSIGN_OR_RETURN(opening.chunk_bytes, OutputChunkBytes(open.options()));
  TILEWIRE_ASSIGN_OR_RETURN(opening.operation, OperationOf(open));
  return opening;
}

/// One message after Open.
Task<Status> TakeChunk(ExecuteCall& call, const Received& message) {
  const auto envelope = wire::SplitExecute(message.pieces());
  if (!envelope) co_return envelope.error();
  if (!envelope->chunk)
    co_return BadOrder("a second open, or an unknown message; after open only chunks follow");
  const wire::ChunkView& chunk = *envelope->chunk;
  if (chunk.crc32c) {
    const uint32_t actual = wire::Crc32c(chunk.data);
    if (actual != *chunk.crc32c)
      co_return Status({.code = Code::kDataLoss,
                        .reason = "CHECKSUM",
                        .message = "chunk at operand " + std::to_string(chunk.operand) + ", offset " +
                                   std::to_string(chunk.offset) + ": crc32c is " + std::to_string(actual) +
                                   ", the client says " + std::to_string(*chunk.crc32c),
                        .field = "chunk.crc32c",
                        .value = std::to_string(*chunk.crc32c),
                        .allowed = std::to_string(actual)});
  }
  co_return co_await Feed(call, *call.job, *call.intake, chunk.operand, chunk.offset, chunk.data);
}

Task<Status> ReadAll(ExecuteCall& call) {
  for (;;) {
    Received message;
    const TimePoint begin = Clock::now();
    if (!co_await Read(call, &message)) break;
    call.job->AddSpan({Stage::kReceive, begin, Clock::now()});
    if (Status status = co_await TakeChunk(call, message); !status.ok()) co_return status;
    call.idle_watch().blocks_read = call.intake->blocks_done();
  }
  co_return call.intake->HalfClosed();
}

Detached ReadChunks(std::shared_ptr<ExecuteCall> call) {
  Status status;
  try {
    status = co_await ReadAll(*call);
  } catch (const std::exception& e) {
    status = Bug(&e);
  } catch (...) {
    status = Bug(nullptr);
  }
  if (status.ok()) {
    call->job->InputEnded();
  } else {
    call->job->Fail(status);
  }
  call->intake.reset();  // unfinished blocks go back at once
}

Task<bool> SendPiece(ExecuteCall& call, const engine::OutputPiece& piece, size_t chunk_bytes) {
  for (size_t from = 0; from < piece.bytes; from += chunk_bytes) {
    const size_t bytes = std::min(chunk_bytes, piece.bytes - from);
    Message message;
    message.AddCopy(wire::ChunkHeader(0, piece.offset + from, std::nullopt, bytes));
    message.AddPiece(piece, from, bytes, &call.engine());
    const TimePoint begin = Clock::now();
    if (!co_await Write(call, message.Build())) co_return false;
    call.idle_watch().bytes_written.fetch_add(bytes);
    call.job->AddSpan({Stage::kSend, begin, Clock::now()});
  }
  co_return true;
}

Task<Status> SendOutput(ExecuteCall& call, size_t chunk_bytes) {
  const engine::Operation& operation = call.job->operation();
  const bool in_result = operation.result().bytes() <= kInlineResultBytes;
  v1::ExecuteResponse response;
  v1::ArrayResult* array = response.mutable_result()->add_results();
  for (;;) {
    auto piece = co_await OnAnyThread<Result<std::optional<engine::OutputPiece>>>(
        [&](auto resume) { call.job->NextOutput(std::move(resume)); });
    if (!piece) co_return piece.error();
    if (!*piece) break;
    if (in_result) {
      array->mutable_data()->append(reinterpret_cast<const char*>((*piece)->data), (*piece)->bytes);
    } else if (!co_await SendPiece(call, **piece, chunk_bytes)) {
      co_return Disconnected();
    }
  }
  ToProto(operation.result(), array->mutable_spec());
  response.mutable_result()->set_numeric_version(std::string(operation.numeric_version()));
  ToProto(call.job->timing(1), response.mutable_result()->mutable_timing());
  if (!co_await Write(call, response)) co_return Disconnected();
  co_return Status();
}

/// The first message; its memory goes when it is parsed.
Task<Result<Opening>> ReadOpen(ExecuteCall& call) {
  Received message;
  if (!co_await Read(call, &message)) co_return Fail(BadOrder("the stream ended before open"));
  co_return ParseOpen(message);
}

Task<Status> ServeExecute(ExecuteCall& call) {
  auto opening = co_await ReadOpen(call);
  if (!opening) co_return opening.error();
  auto job = co_await call.OpenJob(std::move(opening->operation), opening->trace);
  if (!job) co_return job.error();
  call.job = *job;
  call.idle_watch().opened = true;
  call.intake = std::make_unique<engine::Intake>(*job);

  v1::ExecuteResponse response;
  v1::Opened* opened = response.mutable_opened();
  opened->set_job(call.job->id());
  opened->set_block_bytes(call.job->block_bytes());
  opened->set_max_message_bytes(kMaxMessageBytes);
  opened->set_max_streams(1);
  opened->set_instance(call.engine().instance());
  for (const auto& endpoint : call.shared().endpoints) opened->add_endpoints(endpoint);
  if (!co_await Write(call, response)) co_return Disconnected();

  ReadChunks(std::static_pointer_cast<ExecuteCall>(call.shared_from_this()));
  co_return co_await SendOutput(call, opening->chunk_bytes);
}

}  // namespace

Detached RunExecute(std::shared_ptr<ExecuteCall> call) {
  call->StartIdleWatch();
  Status status;
  try {
    status = co_await ServeExecute(*call);
  } catch (const std::exception& e) {
    status = Bug(&e);
  } catch (...) {
    status = Bug(nullptr);
  }
  status = call->FinalStatus(status);
  if (call->job && !status.ok()) call->job->Fail(status);
  call->Ended(status, 1);
  call->idle_watch().writing = true;  // the status waits behind output that the client has not read yet
  co_await Operation([&](void* tag) { call->stream.Finish(ToGrpc(status), tag); });
  call->idle_watch().Stop();
}

}  // namespace tilewire::rpc
