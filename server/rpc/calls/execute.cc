#include "server/rpc/calls/execute.h"

#include <algorithm>

#include "server/base/limits.h"
#include "server/rpc/calls/feed.h"
#include "server/rpc/conversions/convert.h"
#include "server/rpc/conversions/operations.h"
#include "server/rpc/conversions/references.h"
#include "server/rpc/transport/caught.h"

namespace tilewire::rpc {
namespace {

// What clients send, ours too, unless told otherwise; larger ones are counted when the first has come.
constexpr int64_t kUsualMessageBytes = kMiB;

Status BadOrder(const std::string& message) {
  return Status(Code::kInvalidArgument, "BAD_MESSAGE", message);
}
/// Asks for the next message.
void BeginRead(ExecuteCall& call) {
  call.next_read.Begin([&](void* tag) { call.stream.Read(&call.next_read.message, tag); });
}
/// The message that was asked for; false when the client half-closed or the call is over. Fails where it is
/// refused unread.
QueueTask<Result<bool>> AwaitRead(ExecuteCall& call, Received* message) {
  call.idle_watch().reading = true;
  const bool ok = co_await call.next_read;
  call.idle_watch().reading = false;
  if (!call.next_read.refusal.ok()) co_return Fail(call.next_read.refusal);
  if (!ok) co_return false;
  if (Status status = message->Take(&call.next_read.message); !status.ok()) co_return Fail(status);
  co_return true;
}

/// What is kept of an Open while the call runs; the message itself is gone before the call waits for
/// anything.
struct Opening {
  std::unique_ptr<engine::Operation> operation;  ///< null: a Join
  std::string job;                               ///< to join
  size_t chunk_bytes = 0;
  engine::JobOptions options;
};

/// An Open; `put_only` where the method takes no other operation.
Result<Opening> OpeningOf(const v1::Open& open, bool put_only, Finder* finder) {
  if (put_only && !open.has_put())
    return BadValue("open.operation", open.operation_case() == 0 ? "not set" : "no put", "put");
  Opening opening;
  TILEWIRE_ASSIGN_OR_RETURN(opening.options, JobOptionsOf(open.options()));
  TILEWIRE_ASSIGN_OR_RETURN(opening.chunk_bytes, OutputChunkBytes(open.options()));
  opening.options.may_window = true;
  opening.options.lands = true;
  opening.options.streams = static_cast<int>(std::clamp<uint32_t>(open.options().streams(), 1, kMaxStreams));
  if (open.has_put() && !opening.options.store) opening.options.store.emplace();
  TILEWIRE_ASSIGN_OR_RETURN(const v1::Operation asked, AskedOf(open));
  TILEWIRE_ASSIGN_OR_RETURN(References references,
                            ReferencesOf(open, open.has_put() ? 1 : OperandCount(asked), finder));
  TILEWIRE_ASSIGN_OR_RETURN(opening.operation, OperationOf(open, asked, references.arrays));
  TILEWIRE_RETURN_IF_ERROR(Complete(open.options(), std::move(references), finder, &opening.options));
  return opening;
}

Result<Opening> ParseOpening(const Received& message, bool put_only, Finder* finder) {
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
  return OpeningOf(request.open(), put_only, finder);
}

/// What the next message of a stream may have whose last one had `message_bytes`.
int64_t NextMessageBytes(size_t message_bytes) {
  return std::max(static_cast<int64_t>(message_bytes), kUsualMessageBytes);
}
/// What gRPC may hold for a stream whose messages have up to `message_bytes`: the one that is being received,
/// and its look-ahead.
int64_t HeldWhileReading(const ExecuteCall& call, size_t message_bytes) {
  return call.window() + NextMessageBytes(message_bytes);
}

/// One message after Open.
Result<wire::ChunkView> ParseChunk(const Received& message) {
  TILEWIRE_ASSIGN_OR_RETURN(auto envelope, wire::SplitExecute(message.pieces()));
  if (!envelope.chunk)
    return Fail(BadOrder("a second open or join, or an unknown message; after the first only chunks follow"));
  return *std::move(envelope.chunk);
}

Result<wire::ChunkView> CheckedChunk(const Received& message) {
  TILEWIRE_ASSIGN_OR_RETURN(wire::ChunkView chunk, ParseChunk(message));
  if (!chunk.crc32c) return chunk;
  const uint32_t actual = wire::Crc32c(chunk.data);
  if (actual == *chunk.crc32c) return chunk;
  return Fail(Status({.code = Code::kDataLoss,
                      .reason = "CHECKSUM",
                      .message = "chunk at operand " + std::to_string(chunk.operand) + ", offset " +
                                 std::to_string(chunk.offset) + ": crc32c is " + std::to_string(actual) +
                                 ", the client says " + std::to_string(*chunk.crc32c),
                      .field = "chunk.crc32c",
                      .value = std::to_string(*chunk.crc32c),
                      .allowed = std::to_string(actual)}));
}

QueueTask<Status> TakeChunk(ExecuteCall& call, const Received& message, TimePoint asked, TimePoint came) {
  const auto chunk = CheckedChunk(message);
  if (!chunk) co_return chunk.error();
  const engine::Intake::Chunk part{.operand = chunk->operand,
                                   .offset = chunk->offset,
                                   .slices = chunk->data,
                                   .received = std::pair(asked, came)};
  const auto taken = call.intake->Take(part);
  if (!taken) co_return taken.error();
  if (*taken) co_return Status();
  co_return co_await FeedOn(call, *call.intake);
}

/// Whether the next message may come while this one is still here. The first one with bytes is what a job
/// lands with: it waits where it is until the job has its memory, and nothing more is asked for meanwhile.
bool MayReadAhead(ExecuteCall& call, const Received& message) {
  if (!call.job->has_memory()) {
    const auto chunk = ParseChunk(message);
    if (!chunk || chunk->data_bytes == 0 || !call.job->Land()) return false;
  }
  return call.held_ahead.TryReach(NextMessageBytes(message.bytes()));
}

QueueTask<Status> ReadAll(ExecuteCall& call) {
  for (;;) {
    Received message;
    if (!call.next_read.pending()) BeginRead(call);
    const TimePoint asked = Clock::now();
    const auto read = co_await AwaitRead(call, &message);
    if (!read) co_return read.error();
    if (!*read) break;
    const TimePoint came = Clock::now();
    call.Took(message.bytes());
    call.holding.Admit(HeldWhileReading(call, message.bytes()));
    // At once: what is checked, copied or waits for a block below would else keep the client waiting, too.
    if (MayReadAhead(call, message)) BeginRead(call);
    if (Status status = co_await TakeChunk(call, message, asked, came); !status.ok()) co_return status;
    call.idle_watch().blocks_read = call.intake->blocks_done();
    message.Clear();
    call.held_ahead.Release();
  }
  Status status = call.intake->HalfClosed();
  if (!status.ok()) call.InputEndedEarly();
  co_return status;
}

Detached ReadChunks(std::shared_ptr<ExecuteCall> call) {
  const Status status = co_await Caught([&] { return ReadAll(*call); });
  if (status.ok()) {
    call->job->InputEnded(call->stream_number());
    if (!call->job->status(call->stream_number()).ok()) call->InputEndedEarly();
  } else {
    call->job->StreamLost(call->stream_number(), status);
  }
  call->intake.reset();  // unfinished blocks go back at once
  // The status is on its way, so this ends soon; a message that comes yet is of no use to anybody.
  if (call->next_read.pending()) (void)co_await call->next_read;
  call->next_read.message.Clear();
}

/// The first message; its memory goes when it is parsed.
QueueTask<Result<Opening>> ReadOpen(ExecuteCall& call) {
  Received message;
  BeginRead(call);
  const auto read = co_await AwaitRead(call, &message);
  if (!read) co_return Fail(read.error());
  if (!*read) {
    call.InputEndedEarly();
    co_return Fail(BadOrder("the stream ended before open"));
  }
  call.Took(message.bytes());
  Finder finder = call.finder();
  co_return ParseOpening(message, call.put_only(), &finder);
}

}  // namespace

void MessageRead::Complete(bool ok) {
  const size_t bytes = ok ? message.Length() : 0;
  if (bytes > static_cast<size_t>(kMaxMessageBytes)) refusal = MessageTooLarge(static_cast<int64_t>(bytes));
  if (ok && refusal.ok()) refusal = CheckUncompressed(&message);
  if (!refusal.ok()) message.Clear();
  Ahead::Complete(ok);
}

Status ExecuteCall::HoldWindow() {
  // gRPC grants a connection anew what came, whether or not anybody reads it: so each stream may send its
  // window, however many of them there are.
  const std::shared_ptr<ConnectionAccount> connection = account();
  const int64_t wide = connection ? connection->window.load() : 0;
  window_ = receiving_.wide && wide > 0 ? wide : receiving_.window;
  TellWindow(window_ + kUsualMessageBytes);
  return holding.Reach(window_);
}

Task<Status> ExecuteCall::Serve() {
  ExecuteCall& call = *this;
  if (Status status = call.HoldWindow(); !status.ok()) co_return status;
  auto opening = co_await ReadOpen(call);
  if (!opening) co_return opening.error();
  const bool joins = opening->operation == nullptr;
  if (joins) {
    // Before it joins: a stream of the job that ends would end the job.
    if (Status status = call.holding.Reach(HeldWhileReading(call, 0)); !status.ok()) co_return status;
    auto joined = call.JoinJob(opening->job);
    if (!joined) co_return joined.error();
    call.job = *joined;
  } else {
    auto admitted = co_await call.OpenJob(std::move(opening->operation), std::move(opening->options));
    if (!admitted) co_return admitted.error();
    call.job = *admitted;
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
  std::vector<std::string> inlined;
  const Status sent = co_await SendOutput(call, opening->chunk_bytes, &inlined);
  if (!sent.ok() || joins) co_return sent;
  co_return co_await SendResult(call, std::move(inlined));
}

}  // namespace tilewire::rpc
