// HTTP/2's frames and gRPC's headers, as far as clients by hand need them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewire::bench::http2 {

enum Frame : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindow = 8
};
inline constexpr uint8_t kAck = 1, kEndStream = 1, kEndHeaders = 4;
inline constexpr uint32_t kTableSizeSetting = 1, kMostStreamsSetting = 3, kInitialWindowSetting = 4;
inline constexpr size_t kFrameBytes = 16 << 10;  ///< every peer takes as much
inline constexpr size_t kFrameHeaderBytes = 9;

void AppendNumber(std::string* out, uint64_t number, int bytes);
uint32_t Number(const char* at, int bytes);
void AppendFrame(std::string* out, Frame type, uint8_t flags, uint32_t stream, std::string_view payload);
/// How a connection begins: the preface, no table of headers, and a window of so many bytes.
std::string ClientGreeting(uint32_t window);
/// gRPC's frame around a message.
void AppendMessage(std::string* out, std::string_view message);

/// The headers of a call. The first ones of a connection teach the server what the others refer to.
std::string CallHeaders(bool first, const std::string& path, int timeout_ms);
/// What a server says of a call's end; -1 where it says nothing.
struct Trailers {
  int status = -1;          ///< grpc-status
  int pushback_ms = -1;     ///< grpc-retry-pushback-ms
  bool for_others = false;  ///< calls like it are to be held back so long, too
};
/// In a block of headers of a server that was told to refer to nothing (kTableSizeSetting 0).
Trailers TrailersIn(std::string_view block);

/// A socket that does not block, connected to "host:port". Throws std::runtime_error.
int Connect(const std::string& address);

}  // namespace tilewire::bench::http2
