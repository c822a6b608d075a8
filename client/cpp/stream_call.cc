#include "client/cpp/stream_call.h"

#include <grpcpp/support/byte_buffer.h>

#include <algorithm>

namespace tilewire::client {
namespace {

enum Tag : intptr_t { kStart = 1, kWrite, kHalfClose, kRead, kFinish };
void* AsPointer(Tag tag) {
  return reinterpret_cast<void*>(static_cast<intptr_t>(tag));
}

constexpr uint64_t kHeaderRoom = 64 << 10;  ///< of a message, beside its payload
constexpr auto kReleasePatience = std::chrono::seconds(1);
constexpr auto kPoll = std::chrono::milliseconds(5);

wire::Pieces AsPieces(const std::vector<grpc::Slice>& slices) {
  wire::Pieces pieces;
  pieces.reserve(slices.size());
  for (const auto& slice : slices) pieces.emplace_back(slice.begin(), slice.size());
  return pieces;
}

}  // namespace

void Prepare(const CallOptions& options, std::optional<std::chrono::system_clock::time_point> deadline,
             grpc::ClientContext* context) {
  if (deadline) context->set_deadline(*deadline);
  if (!options.request_id.empty()) context->AddMetadata("x-request-id", options.request_id);
}

StreamCall::StreamCall(const CallSpec& spec, std::shared_ptr<grpc::Channel> channel)
    : spec_(spec), channel_(std::move(channel)), readers_(spec.sources.begin(), spec.sources.end()) {
  for (const auto& source : spec_.sources)
    progress_.send_total += static_cast<uint64_t>(source.spec().bytes());
  progress_.receive_total = static_cast<uint64_t>(spec_.result.bytes());
}

StreamCall::~StreamCall() {
  stream_.reset();
  context_.reset();
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {
  }
}

Attempt StreamCall::Run() {
  stub_.emplace(channel_);
  context_.emplace();
  Prepare(spec_.options, spec_.deadline, &*context_);
  Loop();
  Attempt attempt = Conclude();
  AwaitReleases();
  return attempt;
}

void StreamCall::Loop() {
  stream_ = stub_->PrepareCall(&*context_, "/tilewire.v1.Kernels/Execute", &queue_);
  const std::stop_callback on_stop(spec_.options.stop, [this] { context_->TryCancel(); });
  stream_->StartCall(AsPointer(kStart));
  pending_ = 1;
  void* tag = nullptr;
  bool ok = false;
  while (pending_ > 0 && queue_.Next(&tag, &ok)) {
    --pending_;
    OnEvent(reinterpret_cast<intptr_t>(tag), ok);
  }
}

void StreamCall::OnEvent(intptr_t tag, bool ok) {
  switch (tag) {
    case kStart:
      // Even a call that could not start ends through Read and Finish, which tell why.
      if (ok) Open();
      incoming_.Clear();
      stream_->Read(&incoming_, AsPointer(kRead));
      ++pending_;
      break;
    case kWrite:
      writing_ = false;
      if (ok && opened_) {
        if (last_chunk_.bytes > 0) {
          progress_.sent += last_chunk_.bytes;
          readers_[last_chunk_.operand].DoneUpTo(last_chunk_.offset + last_chunk_.bytes);
          ReportProgress();
        }
        WriteNext();
      }
      break;  // a failed write means that the call is over: the read tells
    case kRead:
      if (ok) {
        OnMessage();
        incoming_.Clear();
        stream_->Read(&incoming_, AsPointer(kRead));
      } else {
        finishing_ = true;
        stream_->Finish(&final_, AsPointer(kFinish));
      }
      ++pending_;
      break;
    default:
      break;  // half-close and finish: nothing more to do
  }
}

void StreamCall::Open() {
  v1::ExecuteRequest request;
  v1::Open* open = request.mutable_open();
  SetOperation(spec_.operation, open);
  for (const auto& source : spec_.sources) ToProto(source.spec(), open->add_operands());
  const grpc::Slice slice(request.SerializeAsString());
  writing_ = true;
  stream_->Write(grpc::ByteBuffer(&slice, 1), AsPointer(kWrite));
  ++pending_;
}

void StreamCall::WriteNext() {
  if (writing_ || half_closed_ || finishing_ || !abort_.ok()) return;
  const auto chunk = schedule_->Next();
  if (!chunk) {
    half_closed_ = true;
    stream_->WritesDone(AsPointer(kHalfClose));
    ++pending_;
    return;
  }
  const grpc::Slice slices[2] = {
      grpc::Slice(wire::ChunkHeader(chunk->operand, chunk->offset, std::nullopt, chunk->bytes)),
      gate_->Wrap(readers_[chunk->operand].Slice(chunk->offset, chunk->bytes))};
  last_chunk_ = *chunk;
  writing_ = true;
  stream_->Write(grpc::ByteBuffer(slices, 2), AsPointer(kWrite));
  ++pending_;
}

void StreamCall::OnMessage() {
  if (!abort_.ok()) return;  // draining
  std::vector<grpc::Slice> slices;
  if (!incoming_.Dump(&slices).ok()) return Abort(BadReply("an unreadable message"));
  const auto envelope = wire::SplitExecute(AsPieces(slices));
  if (!envelope) return Abort(BadReply(envelope.error().message()));
  Status status;
  if (envelope->chunk) {
    status = HandleChunk(*envelope->chunk);
  } else {
    v1::ExecuteResponse response;
    if (!response.ParseFromString(*envelope->other)) return Abort(BadReply("an unreadable message"));
    if (response.has_opened()) {
      status = HandleOpened(response.opened());
    } else if (response.has_result()) {
      status = HandleResult(response.result());
    }  // anything else is newer than this client and does not concern it
  }
  if (!status.ok()) Abort(std::move(status));
}

Status StreamCall::HandleOpened(const v1::Opened& opened) {
  if (opened_) return BadReply("Opened twice");
  opened_ = true;
  uint64_t payload = std::clamp<uint64_t>(spec_.options.message_bytes, 4 << 10, 4 << 20);
  if (opened.max_message_bytes() > 2 * kHeaderRoom)
    payload = std::min(payload, opened.max_message_bytes() - kHeaderRoom);
  std::vector<uint64_t> sizes;
  for (const auto& source : spec_.sources) sizes.push_back(static_cast<uint64_t>(source.spec().bytes()));
  schedule_.emplace(std::move(sizes), opened.block_bytes(), opened.window_bytes(), payload);
  WriteNext();
  return {};
}

Status StreamCall::HandleChunk(const wire::ChunkView& chunk) {
  if (!opened_ || result_seen_) return BadReply("an output chunk before Opened or after Result");
  if (chunk.operand != 0) return BadReply("a chunk of result " + std::to_string(chunk.operand));
  if (chunk.offset != progress_.received || chunk.data_bytes > progress_.receive_total - progress_.received)
    return BadReply("output bytes " + std::to_string(chunk.offset) + " + " +
                    std::to_string(chunk.data_bytes) + " after " + std::to_string(progress_.received) +
                    " of " + std::to_string(progress_.receive_total));
  if (chunk.crc32c && wire::Crc32c(chunk.data) != *chunk.crc32c)
    return Status(Code::kDataLoss, "CHECKSUM",
                  "output chunk at " + std::to_string(chunk.offset) + ": crc32c differs");
  TILEWIRE_RETURN_IF_ERROR(Deliver(chunk.data));
  ReportProgress();
  return {};
}

Status StreamCall::HandleResult(const v1::Result& result) {
  if (!opened_ || result_seen_) return BadReply("a Result before Opened or twice");
  if (result.results_size() != 1)
    return BadReply(std::to_string(result.results_size()) + " results, expected 1");
  const v1::ArrayResult& array = result.results(0);
  TILEWIRE_RETURN_IF_ERROR(CheckSpec(array.spec(), spec_.result));
  const uint64_t have = progress_.received + array.data().size();
  if (have != progress_.receive_total)
    return BadReply("the result has " + std::to_string(have) + " bytes, expected " +
                    std::to_string(progress_.receive_total));
  const auto* bytes = reinterpret_cast<const uint8_t*>(array.data().data());
  if (!array.data().empty()) TILEWIRE_RETURN_IF_ERROR(Deliver({{bytes, array.data().size()}}));
  result_seen_ = true;
  reply_ = {.spec = spec_.result,
            .numeric_version = result.numeric_version(),
            .timing = FromProto(result.timing())};
  ReportProgress();
  return {};
}

Status StreamCall::Deliver(const wire::Pieces& pieces) {
  for (const wire::Bytes piece : pieces) {
    TILEWIRE_RETURN_IF_ERROR(spec_.sink(progress_.received, piece));
    progress_.received += piece.size();
  }
  return {};
}

void StreamCall::Abort(Status why) {
  if (abort_.ok()) abort_ = std::move(why);
  context_->TryCancel();
}

void StreamCall::ReportProgress() const {
  if (spec_.options.progress) spec_.options.progress(progress_);
}

Attempt StreamCall::Conclude() {
  Attempt attempt{.status = abort_, .anything_sent = last_chunk_.bytes > 0, .reply = std::move(reply_)};
  attempt.reply.streamed = true;
  if (attempt.status.ok()) attempt.status = FromGrpc(final_, *context_);
  if (attempt.status.ok() && !result_seen_)
    attempt.status = BadReply("the stream ended well, but without a Result");
  return attempt;
}

/// Waits until gRPC holds no slice of the sources. It may keep some for a connection whose peer reads
/// nothing; then only closing that connection helps, and no other call uses it.
void StreamCall::AwaitReleases() {
  stream_.reset();
  context_.reset();
  stub_.reset();
  readers_.clear();
  const auto give_up = std::chrono::steady_clock::now() + kReleasePatience;
  void* tag;
  bool ok;
  while (!gate_->AllReleased()) {
    // Somebody must poll the connection for the releases to happen; waiting on the queue does.
    queue_.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + kPoll);
    if (std::chrono::steady_clock::now() > give_up) channel_.reset();
  }
}

}  // namespace tilewire::client
