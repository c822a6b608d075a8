#include "server/rpc/transport/slices.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <string>
#include <utility>

#include "server/base/limits.h"

namespace tilewire::rpc {
namespace {

struct Hold {
  std::shared_ptr<const void> piece;
  DropSoon drop;
};

/// What gRPC notes of a message beside its bytes, which no public class tells.
class Peek final : public grpc::ProtoBufferReader {
 public:
  using ProtoBufferReader::ProtoBufferReader;
  bool compressed() {
    return status().ok() && reader()->buffer_in->data.raw.compression != GRPC_COMPRESS_NONE;
  }
};

// Runs on any gRPC thread, perhaps under its locks: it only passes the buffer on.
void Release(void* data) {
  std::unique_ptr<Hold> hold(static_cast<Hold*>(data));
  hold->drop(std::move(hold->piece));
}

}  // namespace

void Received::Clear() {
  pieces_.clear();
  slices_.clear();
  buffer_.Clear();
}

Status CheckUncompressed(grpc::ByteBuffer* message) {
  if (!Peek(message).compressed()) return {};
  return Status(Code::kUnimplemented, "COMPRESSED",
                "the message is compressed, which this server does not take; send it as it is");
}

Status MessageTooLarge(int64_t bytes) {
  return OverLimit("message", std::to_string(bytes) + " bytes",
                   std::to_string(kMaxMessageBytes) + "; send smaller chunks, of 1 MiB at best")
      .value();
}

Status Received::Take(grpc::ByteBuffer* buffer) {
  Clear();
  buffer_.Swap(buffer);
  buffer->Clear();
  TILEWIRE_RETURN_IF_ERROR(CheckUncompressed(&buffer_));
  if (!buffer_.Dump(&slices_).ok())
    return Status(Code::kInvalidArgument, "BAD_MESSAGE", "unreadable message");
  for (const grpc::Slice& slice : slices_) pieces_.emplace_back(slice.begin(), slice.size());
  return {};
}

void Message::AddCopy(const std::byte* data, size_t bytes) {
  constexpr size_t kFewBytes = 1024;  // a slice costs an allocation and a place in every list on the way
  if (bytes > kFewBytes) {
    EndGathered();
    slices_.emplace_back(data, bytes);
  } else {
    gathered_.append(reinterpret_cast<const char*>(data), bytes);
  }
}

void Message::EndGathered() {
  if (gathered_.empty()) return;
  slices_.emplace_back(gathered_);
  gathered_.clear();
}

size_t Message::AddShared(const std::byte* data, size_t bytes, const std::shared_ptr<const void>& hold,
                          const DropSoon& drop) {
  if (bytes <= kMaxCopiedOutputBytes) {
    AddCopy(data, bytes);
    return bytes;
  }
  EndGathered();
  slices_.emplace_back(const_cast<std::byte*>(data), bytes, &Release, new Hold{hold, drop});
  return 0;
}

}  // namespace tilewire::rpc
