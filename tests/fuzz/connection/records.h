// The input of the connection fuzzer as a row of records, each something that a client sends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewire::fuzz {

/// What a record is; its bytes a and b, and its payload, mean what stands there.
enum class Kind : uint8_t {
  kCall,      ///< HEADERS of method a, and `payload` as its first message; b: MessageFlags
  kMessage,   ///< `payload` as a further message of the open call a; b: MessageFlags
  kChunk,     ///< an operand's bytes for the open call a, see ChunkMessage; b: MessageFlags
  kMetadata,  ///< header a with the value `payload`, for the next call
  kFrame,     ///< a frame of type a with the flags b; payload[0] says which stream, the rest is its payload
  kRaw,       ///< `payload` as it is
  kSettle,    ///< nothing: waits until something came of the last message; a odd: until no call is left
  kEnd,       ///< half-closes the open call a or, where b is odd, resets it
};
inline constexpr uint8_t kKinds = 8;

/// How a message is sent.
enum MessageFlags : uint8_t {
  kLast = 1,        ///< the call is half-closed with it
  kNone = 2,        ///< there is no message, only what the other flags say
  kCompressed = 4,  ///< it claims to be
  kLonger = 8,      ///< it claims to have more bytes than come
  kCut = 16,        ///< in two DATA frames
  kPadded = 32,
};

/// The input's first byte, for all of its records.
enum ConnectionFlags : uint8_t {
  kStaged = 1,      ///< to the server whose device has memory of its own
  kUnix = 2,        ///< by a unix socket, of which no account is kept
  kNoGreeting = 4,  ///< no preface, SETTINGS and acknowledgement before the records
  kReset = 8,       ///< ended by a reset
  kHalfClose = 16,  ///< ended by its sending half, and read to its end
  kSealed = 32,     ///< see Script::failures
};

struct Record {
  Kind kind = Kind::kSettle;
  uint8_t a = 0, b = 0;
  std::string payload;
};

struct Script {
  uint8_t flags = 0;
  std::vector<Record> records;
  /// Of seeds that know it, how many of their calls fail: all others are answered with OK, and whatever the
  /// script waits for comes. They end with that number (a byte) and a CRC-32C of all before (4 bytes), so
  /// that no mutation is taken for one of them.
  std::optional<int> failures;
};

/// Any bytes are a script: five bytes (kind, a, b, length of the payload) and the payload, or what is left of
/// it.
inline constexpr size_t kMostRecords = 64;
Script ParseScript(const uint8_t* data, size_t size);
std::string ScriptBytes(const Script& script);

/// Of all services that the server has, what comes with gRPC, and some that nobody has.
inline constexpr std::array<std::string_view, 21> kMethods{
    "/tilewire.v1.Kernels/Rmse",
    "/tilewire.v1.Kernels/Transpose",
    "/tilewire.v1.Kernels/GaussianPdf",
    "/tilewire.v1.Kernels/Compute",
    "/tilewire.v1.Kernels/Execute",
    "/tilewire.v1.Arrays/Put",
    "/tilewire.v1.Arrays/Get",
    "/tilewire.v1.Arrays/Stat",
    "/tilewire.v1.Arrays/List",
    "/tilewire.v1.Arrays/Delete",
    "/tilewire.v1.Regions/Register",
    "/tilewire.v1.Regions/Unregister",
    "/tilewire.v1.Regions/List",
    "/tilewire.v1.Device/Describe",
    "/tilewire.v1.Device/DescribeKernels",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/tilewire.v1.Kernels/Nothing",
    "/",
    "/tilewire.v1.Device/MeasureCeilings"};

inline constexpr std::array<std::string_view, 12> kHeaders{
    "grpc-timeout", "x-request-id",  "traceparent",      "grpc-encoding",
    "content-type", "authorization", "x-user",           "x-more-bin",
    "te",           ":path",         "x-tilewire-probe", "grpc-accept-encoding"};

/// ExecuteRequest{chunk} as `payload` says: operand, offset (2 bytes, of 256), length (2 bytes, of 8, at most
/// 32 KiB), and whether a
/// checksum is beside it: 1 a right one, 2 a wrong one.
std::string ChunkMessage(std::string_view payload);

}  // namespace tilewire::fuzz
