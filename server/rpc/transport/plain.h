// Messages without array bytes, read and written by protobuf.
#pragma once

#include <string>

#include "server/base/limits.h"
#include "server/rpc/transport/slices.h"

namespace tilewire::rpc {

/// The request in `buffer`, which is emptied. RESOURCE_EXHAUSTED `LIMIT`: over 64 KiB; UNIMPLEMENTED
/// `COMPRESSED`; INVALID_ARGUMENT `BAD_MESSAGE`: no such message.
template <typename Proto>
Result<Proto> ParsePlain(grpc::ByteBuffer* buffer) {
  Received message;
  TILEWIRE_RETURN_IF_ERROR(message.Take(buffer));
  if (message.bytes() > static_cast<size_t>(kMaxHeaderBytes))
    return OverLimit("request", std::to_string(message.bytes()) + " bytes", std::to_string(kMaxHeaderBytes));
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
