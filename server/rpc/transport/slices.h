// Between gRPC's ByteBuffer and the codec's pieces; payloads are never copied here.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/array/status.h"
#include "proto/wire/codec.h"

namespace tilewire::rpc {

/// Drops a reference soon, on a thread where that may start what it likes. It is called on any thread of
/// gRPC's, perhaps under its locks.
using DropSoon = std::function<void(std::shared_ptr<const void>)>;

/// UNIMPLEMENTED `COMPRESSED` where the message came compressed.
Status CheckUncompressed(grpc::ByteBuffer* message);

/// LIMIT, for one of so many bytes.
Status MessageTooLarge(int64_t bytes);

/// A received message: holds the slices that its pieces point into.
class Received {
 public:
  Received() = default;
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;
  /// Takes the buffer's slices. UNIMPLEMENTED `COMPRESSED`; INVALID_ARGUMENT `BAD_MESSAGE` where gRPC cannot
  /// give them out.
  Status Take(grpc::ByteBuffer* buffer);
  /// Gives the memory back; pieces end with it.
  void Clear();
  const wire::Pieces& pieces() const { return pieces_; }
  size_t bytes() const { return wire::TotalBytes(pieces_); }

 private:
  // First, so that it goes last: the last reference to received memory must go inside gRPC. Dropped by a
  // slice on a thread of ours, gRPC 1.51 crashes once receive memory is short, because it then wakes a
  // reclaimer.
  grpc::ByteBuffer buffer_;
  std::vector<grpc::Slice> slices_;
  wire::Pieces pieces_;
};

/// A message under construction.
class Message {
 public:
  void AddCopy(const std::string& bytes) {
    AddCopy(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  }
  /// Few bytes share a slice with those beside them.
  void AddCopy(const std::byte* data, size_t bytes);
  /// Few bytes are copied, others sent from where they are: `hold` keeps them there, and is handed to `drop`
  /// once gRPC has let go of the last of them. Returns how many bytes it copied.
  size_t AddShared(const std::byte* data, size_t bytes, const std::shared_ptr<const void>& hold,
                   const DropSoon& drop);
  grpc::ByteBuffer Build() {
    EndGathered();
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  void EndGathered();
  std::string gathered_;  ///< of the next slice
  std::vector<grpc::Slice> slices_;
};

}  // namespace tilewire::rpc
