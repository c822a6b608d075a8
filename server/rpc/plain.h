// Messages without array bytes, read and written by protobuf.
#pragma once

#include <string>

#include "server/base/limits.h"
#include "server/rpc/slices.h"

namespace tilewire::rpc {

/// The request in `buffer`, which is emptied. RESOURCE_EXHAUSTED `LIMIT`: over 64 KiB; INVALID_ARGUMENT
/// `BAD_MESSAGE`: no such message.
template <typename Proto>
Result<Proto> ParsePlain(grpc::ByteBuffer* buffer) {
  if (buffer->Length() > static_cast<size_t>(kMaxHeaderBytes))
    return OverLimit("request", std::to_string(buffer->Length()) + " bytes", std::to_string(kMaxHeaderBytes));
  Received message;
  if (!message.Take(buffer)) return Fail(Status(Code::kInvalidArgument, "BAD_MESSAGE", "unreadable message"));
  std::string bytes;
  for (const wire::Bytes piece : message.pieces())
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  Proto proto;
  if (!proto.ParseFromString(bytes))
    return Fail(Status(Code::kInvalidArgument, "BAD_MESSAGE", "the request is no " + proto.GetTypeName()));
  return proto;
}

template <typename Proto>
grpc::ByteBuffer Plain(const Proto& proto) {
  Message message;
  message.AddCopy(proto.SerializeAsString());
  return message.Build();
}

}  // namespace tilewire::rpc
