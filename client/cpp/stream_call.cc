#include "client/cpp/stream_call.h"

#include <grpcpp/support/byte_buffer.h>

#include <algorithm>

#include "client/cpp/convert.h"

namespace tilewire::client {
namespace {

enum Tag : intptr_t { kStart = 1, kWrite, kHalfClose, kRead, kFinish };
void* AsPointer(Tag tag) {
  return reinterpret_cast<void*>(static_cast<intptr_t>(tag));
}

constexpr auto kReleasePatience = std::chrono::seconds(1);
constexpr auto kPoll = std::chrono::milliseconds(5);

wire::Pieces AsPieces(const std::vector<grpc::Slice>& slices) {
  wire::Pieces pieces;
  pieces.reserve(slices.size());
  for (const auto& slice : slices) pieces.emplace_back(slice.begin(), slice.size());
  return pieces;
}

}  // namespace

StreamCall::StreamCall(const CallSpec& spec, Stripe* stripe, std::shared_ptr<grpc::Channel> channel)
    : spec_(spec),
      stripe_(stripe),
      channel_(std::move(channel)),
      readers_(spec.sources.size()),
      trace_(spec.recorder) {
  for (size_t i = 0; i < readers_.size(); ++i)
    if (spec.sources[i].wire_bytes() > 0) readers_[i].emplace(spec.sources[i]);
  context_.emplace();
  Prepare(spec_.connect, spec_.options, spec_.deadline, &*context_);
}

StreamCall::~StreamCall() {
  stream_.reset();
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {
  }
}

Status StreamCall::RunFirst(uint32_t streams, OnOpened on_opened, Reply* reply) {
  on_opened_ = std::move(on_opened);
  first_ = OpenMessage(spec_, streams);
  Status status = Run();
  if (status.ok() && !result_seen_) status = BadReply("the stream ended well, but without a Result");
  *reply = std::move(reply_);
  reply->streamed = true;
  return status;
}

Status StreamCall::RunJoined(const std::string& job) {
  first_ = JoinMessage(job);
  return Run();
}

Status StreamCall::Run() {
  stub_.emplace(channel_);
  Loop();
  Status status = abort_.ok() ? FromGrpc(final_, *context_) : abort_;
  AwaitReleases();
  return status;
}

void StreamCall::Loop() {
  stream_ = stub_->PrepareCall(&*context_, first_.method, &queue_);
  trace_.CallBegins();
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
      if (ok) WriteFirst();
      ReadNext();
      break;
    case kWrite:
      writing_ = false;
      if (ok && opened_) {
        if (last_chunk_.bytes > 0) {
          trace_.Wrote(last_chunk_);
          stripe_->Sent(last_chunk_.bytes);
          readers_[last_chunk_.operand]->Done(last_chunk_.offset, last_chunk_.bytes);
        }
        WriteNext();
      }
      break;  // a failed write means that the call is over: the read tells
    case kRead:
      if (ok) {
        OnMessage();
        ReadNext();
      } else {
        finishing_ = true;
        stream_->Finish(&final_, AsPointer(kFinish));
        ++pending_;
      }
      break;
    default:
      break;  // half-close and finish: nothing more to do
  }
}

void StreamCall::ReadNext() {
  incoming_.Clear();
  trace_.ReadBegins();
  stream_->Read(&incoming_, AsPointer(kRead));
  ++pending_;
}

void StreamCall::WriteFirst() {
  trace_.OpenBegins();
  const grpc::Slice slice(first_.message);
  writing_ = true;
  stream_->Write(grpc::ByteBuffer(&slice, 1), AsPointer(kWrite));
  ++pending_;
}

void StreamCall::WriteNext() {
  if (writing_ || half_closed_ || finishing_ || !abort_.ok()) return;
  if (!turn_ || turn_->bytes == 0) turn_ = stripe_->NextTurn();
  if (!turn_) {
    half_closed_ = true;
    trace_.HalfCloses();
    stream_->WritesDone(AsPointer(kHalfClose));
    ++pending_;
    return;
  }
  last_chunk_ = stripe_->CutMessage(&*turn_);
  const grpc::Slice slices[2] = {
      grpc::Slice(
          wire::ChunkHeader(last_chunk_.operand, last_chunk_.offset, std::nullopt, last_chunk_.bytes)),
      gate_->Wrap(readers_[last_chunk_.operand]->Slice(last_chunk_.offset, last_chunk_.bytes))};
  writing_ = true;
  trace_.WriteBegins();
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
    status = HandleResponse(response);
  }
  if (!status.ok()) Abort(std::move(status));
}

Status StreamCall::HandleResponse(const v1::ExecuteResponse& response) {
  if (response.has_result()) return HandleResult(response.result());
  const bool first = on_opened_ != nullptr;
  if (first ? !response.has_opened() : !response.has_joined())
    return {};  // newer than this client: no concern of it
  if (opened_) return BadReply(first ? "Opened twice" : "Joined twice");
  trace_.Opened(first ? 0 : response.joined().stream());
  if (first) TILEWIRE_RETURN_IF_ERROR(on_opened_(response.opened()));
  opened_ = true;
  WriteNext();
  return {};
}

Status StreamCall::HandleChunk(const wire::ChunkView& chunk) {
  if (!opened_ || result_seen_) return BadReply("an output chunk before Opened or after Result");
  const uint32_t result = chunk.operand;
  if (result >= next_output_.size()) return BadReply("a chunk of result " + std::to_string(result));
  if (chunk.offset < next_output_[result])
    return BadReply("output byte " + std::to_string(chunk.offset) + " after byte " +
                    std::to_string(next_output_[result]));
  if (chunk.crc32c && wire::Crc32c(chunk.data) != *chunk.crc32c)
    return Status(Code::kDataLoss, "CHECKSUM",
                  "output chunk at " + std::to_string(chunk.offset) + ": crc32c differs");
  next_output_[result] = chunk.offset + chunk.data_bytes;
  trace_.ChunkCame(chunk.offset, chunk.data_bytes);
  TILEWIRE_RETURN_IF_ERROR(stripe_->Deliver(result, chunk.offset, chunk.data));
  trace_.Delivered(chunk.offset, chunk.data_bytes);
  return {};
}

Status StreamCall::HandleResult(const v1::Result& result) {
  if (!on_opened_ || !opened_ || result_seen_)
    return BadReply("a Result before Opened, twice, or on a joined stream");
  uint64_t inline_bytes = 0;
  for (const v1::ArrayResult& array : result.results()) inline_bytes += array.data().size();
  trace_.ResultCame(inline_bytes);
  reply_ = {.numeric_version = result.numeric_version(), .timing = FromProto(result.timing())};
  TILEWIRE_RETURN_IF_ERROR(TakeResults(result.results(), spec_, &reply_));
  for (int k = 0; k < result.results_size(); ++k) {
    const std::string& data = result.results(k).data();
    const auto* bytes = reinterpret_cast<const uint8_t*>(data.data());
    if (!data.empty())
      TILEWIRE_RETURN_IF_ERROR(stripe_->Deliver(static_cast<size_t>(k), 0, {{bytes, data.size()}}));
  }
  result_seen_ = true;
  return {};
}

void StreamCall::Abort(Status why) {
  if (abort_.ok()) abort_ = std::move(why);
  context_->TryCancel();
}

/// Waits until gRPC holds no slice of the sources. It may keep some for a connection whose peer reads
/// nothing; then only closing that connection helps, and no other call uses it.
void StreamCall::AwaitReleases() {
  stream_.reset();
  {
    const MutexLock lock(context_mutex_);
    context_.reset();
  }
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
