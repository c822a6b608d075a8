#include "server/rpc/execute.h"

#include <algorithm>
#include <exception>

#include "server/base/limits.h"
#include "server/rpc/convert.h"
#include "server/rpc/status.h"

namespace tilewire::rpc {
namespace {

// What clients send, ours too, unless told otherwise; larger ones are counted when the first has come.
constexpr int64_t kUsualMessageBytes = kMiB;

Status BadOrder(const std::string& message) {
  return Status(Code::kInvalidArgument, "BAD_MESSAGE", message);
}
Status Disconnected() {
  return Status(Code::kCancelled, "CANCELLED", "the client is gone");
}

uint32_t Track(const ExecuteCall& call) {
  return static_cast<uint32_t>(call.stream_number());
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

/// How often this copies the bytes of a response: into its serialised form, and that into a slice.
constexpr uint64_t kResponseCopies = 2;

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
  std::unique_ptr<engine::Operation> operation;  ///< null: a Join
  std::string job;                               ///< to join
  size_t chunk_bytes = 0;
  engine::JobOptions options;
};

Result<Opening> ParseOpening(const Received& message) {
  TILEWIRE_ASSIGN_OR_RETURN(const auto envelope, wire::SplitExecute(message.pieces()));
  if (envelope.chunk)
    return Fail(BadOrder("a chunk arrived before open; the first message must be open or join"));
  if (envelope.other->size() > static_cast<size_t>(kMaxHeaderBytes))
    return OverLimit("open", std::to_string(envelope.other->size()) + " bytes",
                     std::to_string(kMaxHeaderBytes));
  v1::ExecuteRequest request;
  if (!request.ParseFromString(*envelope.other)) return Fail(BadOrder("the first message is unreadable"));
  if (request.has_join())
    return Opening{.job = request.join().job(), .chunk_bytes = kDefaultOutputChunkBytes};
  if (!request.has_open()) return Fail(BadOrder("the first message is neither open nor join"));
  const v1::Open& open = request.open();
  Opening opening;
  TILEWIRE_ASSIGN_OR_RETURN(opening.options, JobOptionsOf(open.options()));
  TILEWIRE_ASSIGN_OR_RETURN(opening.chunk_bytes, OutputChunkBytes(open.options()));
  opening.options.may_window = true;
  opening.options.streams = static_cast<int>(std::clamp<uint32_t>(open.options().streams(), 1, kMaxStreams));
  TILEWIRE_ASSIGN_OR_RETURN(opening.operation, OperationOf(open));
  return opening;
}

/// What gRPC may hold for a stream whose messages have up to `message_bytes`: the one that is being received,
/// and its look-ahead.
int64_t HeldWhileReading(const ExecuteCall& call, size_t message_bytes) {
  return call.shared().receive_window + std::max(static_cast<int64_t>(message_bytes), kUsualMessageBytes);
}

/// One message after Open; `receive` is its span as far as it is known.
Task<Status> TakeChunk(ExecuteCall& call, const Received& message, Span receive) {
  const auto envelope = wire::SplitExecute(message.pieces());
  if (envelope && envelope->chunk) {
    receive.index = envelope->chunk->offset / static_cast<uint64_t>(call.job->block_bytes());
    receive.bytes = envelope->chunk->data_bytes;
    receive.operand = envelope->chunk->operand;
  }
  call.job->AddSpan(receive);
  if (!envelope) co_return envelope.error();
  if (!envelope->chunk)
    co_return BadOrder("a second open or join, or an unknown message; after the first only chunks follow");
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
    Span receive{.stage = Stage::kReceive, .begin = Clock::now(), .track = Track(call)};
    if (!co_await Read(call, &message)) break;
    receive.end = Clock::now();
    call.holding.Admit(HeldWhileReading(call, message.bytes()));
    if (Status status = co_await TakeChunk(call, message, receive); !status.ok()) co_return status;
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
    call->job->InputEnded(call->stream_number());
  } else {
    call->job->StreamLost(call->stream_number(), status);
  }
  call->intake.reset();  // unfinished blocks go back at once
}

Task<bool> SendPiece(ExecuteCall& call, const engine::OutputPiece& piece, size_t chunk_bytes) {
  for (size_t from = 0; from < piece.bytes; from += chunk_bytes) {
    const size_t bytes = std::min(chunk_bytes, piece.bytes - from);
    Message message;
    message.AddCopy(wire::ChunkHeader(0, piece.offset + from, std::nullopt, bytes));
    call.job->CountCopied(message.AddPiece(piece, from, bytes, &call.engine()));
    Span span{.stage = Stage::kSend,
              .begin = Clock::now(),
              .track = Track(call),
              .index = (static_cast<uint64_t>(piece.offset) + from) /
                       static_cast<uint64_t>(call.job->block_bytes()),
              .bytes = bytes};
    if (!co_await Write(call, message.Build())) co_return false;
    span.end = Clock::now();
    call.idle_watch().bytes_written.fetch_add(bytes);
    call.job->AddSpan(span);
  }
  co_return true;
}

/// Sends the runs of output that fall to this stream. A result that goes into the Result message is gathered
/// in `inlined` by the first stream; the others then send none.
Task<Status> SendOutput(ExecuteCall& call, size_t chunk_bytes, std::string* inlined) {
  const int stream = call.stream_number();
  const bool in_result = call.job->operation().result().bytes() <= kInlineResultBytes;
  const bool take = stream == 0 || !in_result;
  for (;;) {
    auto piece = co_await OnAnyThread<Result<std::optional<engine::OutputPiece>>>(
        [&](auto resume) { call.job->NextOutput(stream, take, std::move(resume)); });
    if (!piece) co_return piece.error();
    if (!*piece) co_return Status();
    if (in_result) {
      call.job->CountCopied((*piece)->bytes);
      inlined->append(reinterpret_cast<const char*>((*piece)->data), (*piece)->bytes);
    } else if (!co_await SendPiece(call, **piece, chunk_bytes)) {
      co_return Disconnected();
    }
  }
}

Task<Status> SendResult(ExecuteCall& call, std::string inlined) {
  const engine::Operation& operation = call.job->operation();
  v1::ExecuteResponse response;
  v1::ArrayResult* array = response.mutable_result()->add_results();
  ToProto(operation.result(), array->mutable_spec());
  call.job->CountCopied(kResponseCopies * inlined.size());
  array->set_data(std::move(inlined));
  response.mutable_result()->set_numeric_version(std::string(operation.numeric_version()));
  ToProto(call.job->timing(), response.mutable_result()->mutable_timing());
  if (!co_await Write(call, response)) co_return Disconnected();
  co_return Status();
}

/// The first message; its memory goes when it is parsed.
Task<Result<Opening>> ReadOpen(ExecuteCall& call) {
  Received message;
  if (!co_await Read(call, &message)) co_return Fail(BadOrder("the stream ended before open"));
  co_return ParseOpening(message);
}

void FillOpened(const ExecuteCall& call, v1::Opened* opened) {
  opened->set_job(call.job->id());
  opened->set_block_bytes(call.job->block_bytes());
  opened->set_window_bytes(call.job->window_bytes());
  opened->set_max_message_bytes(kMaxMessageBytes);
  opened->set_max_streams(call.job->max_streams());
  opened->set_instance(call.engine().instance());
  for (const auto& endpoint : call.shared().endpoints) opened->add_endpoints(endpoint);
}

Task<Status> ServeExecute(ExecuteCall& call) {
  if (Status status = call.holding.Reach(call.shared().receive_window); !status.ok()) co_return status;
  auto opening = co_await ReadOpen(call);
  if (!opening) co_return opening.error();
  const bool joins = opening->operation == nullptr;
  if (joins) {
    // Before it joins: a stream of the job that ends would end the job.
    if (Status status = call.holding.Reach(HeldWhileReading(call, 0)); !status.ok()) co_return status;
    auto job = call.JoinJob(opening->job);
    if (!job) co_return job.error();
    call.job = *job;
  } else {
    auto job = co_await call.OpenJob(std::move(opening->operation), opening->options);
    if (!job) co_return job.error();
    call.job = *job;
    // Not sooner: while it waits to be let in, nothing is read.
    if (Status status = call.holding.Reach(HeldWhileReading(call, 0)); !status.ok()) co_return status;
  }
  call.idle_watch().opened = true;
  call.intake = std::make_unique<engine::Intake>(call.job, call.stream_number());

  v1::ExecuteResponse response;
  if (joins) {
    response.mutable_joined()->set_stream(call.stream_number());
  } else {
    FillOpened(call, response.mutable_opened());
  }
  if (!co_await Write(call, response)) co_return Disconnected();

  ReadChunks(std::static_pointer_cast<ExecuteCall>(call.shared_from_this()));
  std::string inlined;
  const Status sent = co_await SendOutput(call, opening->chunk_bytes, &inlined);
  if (!sent.ok() || joins) co_return sent;
  co_return co_await SendResult(call, std::move(inlined));
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
  if (call->job && !status.ok()) call->job->StreamLost(call->stream_number(), status);
  call->Ended(status);
  call->idle_watch().writing = true;  // the status waits behind output that the client has not read yet
  const bool told = co_await Operation([&](void* tag) { call->stream.Finish(ToGrpc(status), tag); });
  call->idle_watch().Stop();
  if (!call->job || call->stream_number() == 0 || !status.ok()) co_return;
  if (told) {
    call->job->StreamDone(call->stream_number());
  } else {
    call->job->StreamLost(call->stream_number(), Disconnected());
  }
}

}  // namespace tilewire::rpc
