#include "server/rpc/slices.h"

#include <utility>

#include "server/base/limits.h"

namespace tilewire::rpc {
namespace {

struct Hold {
  std::shared_ptr<const void> piece;
  engine::Engine* engine;
};

// Runs on any gRPC thread, perhaps under its locks: it only passes the buffer on.
void Release(void* data) {
  std::unique_ptr<Hold> hold(static_cast<Hold*>(data));
  hold->engine->DropSoon(std::move(hold->piece));
}

}  // namespace

void Received::Clear() {
  pieces_.clear();
  slices_.clear();
  buffer_.Clear();
}

bool Received::Take(grpc::ByteBuffer* buffer) {
  Clear();
  buffer_.Swap(buffer);
  buffer->Clear();
  if (!buffer_.Dump(&slices_).ok()) return false;
  for (const grpc::Slice& slice : slices_) pieces_.emplace_back(slice.begin(), slice.size());
  return true;
}

size_t Message::AddPiece(const engine::OutputPiece& piece, size_t from, size_t bytes,
                         engine::Engine* engine) {
  const std::byte* data = piece.data + from;
  if (bytes <= kMaxCopiedOutputBytes) {
    slices_.emplace_back(data, bytes);
    return bytes;
  }
  slices_.emplace_back(const_cast<std::byte*>(data), bytes, &Release, new Hold{piece.hold, engine});
  return 0;
}

}  // namespace tilewire::rpc
