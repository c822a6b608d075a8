// As much of HTTP/2 as a client needs that has no library: frames, and headers without tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewire::fuzz::http2 {

inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
inline constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kWindowUpdate = 8;
inline constexpr uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4, kPadded = 8;
inline constexpr size_t kFrameHeader = 9;
inline constexpr uint16_t kInitialWindow = 4;  ///< a setting
inline constexpr size_t kFrameBytes = 16384;   ///< of a payload, unless the other end allows more
inline constexpr int64_t kFirstWindow = 65535;

inline uint32_t Word(std::string_view bytes) {
  uint32_t word = 0;
  for (const char byte : bytes.substr(0, 4)) word = word << 8 | static_cast<uint8_t>(byte);
  return word;
}

inline std::string Bytes(uint32_t word) {
  return {static_cast<char>(word >> 24), static_cast<char>(word >> 16), static_cast<char>(word >> 8),
          static_cast<char>(word)};
}

inline std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string frame = Bytes(static_cast<uint32_t>(payload.size())).substr(1);
  frame += {static_cast<char>(type), static_cast<char>(flags)};
  return frame.append(Bytes(stream)).append(payload);
}

/// HPACK: a string without Huffman coding.
inline std::string Text(std::string_view value) {
  if (value.size() < 127) return std::string(1, static_cast<char>(value.size())).append(value);
  std::string out(1, 127);
  size_t rest = value.size() - 127;
  for (; rest > 127; rest >>= 7) out += static_cast<char>(rest | 128);
  return (out += static_cast<char>(rest)).append(value);
}

inline std::string Header(std::string_view name, std::string_view value) {
  return std::string(1, '\0').append(Text(name)).append(Text(value));
}

/// The header block of a gRPC call, with `more` behind it.
inline std::string Request(std::string_view path, std::string_view more) {
  std::string block = "\x83\x86\x04";           // :method POST, :scheme http, :path
  block += Text(path) + '\x01' + Text("fuzz");  // :authority
  return (block += Header("content-type", "application/grpc") + Header("te", "trailers")).append(more);
}

}  // namespace tilewire::fuzz::http2
