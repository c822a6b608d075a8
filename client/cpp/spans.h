// What a traced call tells: single timed pieces of it, at the server and here, on one time line. No gRPC
// here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewire::client {

/// Stages of a call at the server. Numbers equal tilewire.v1.Stage.
enum class Stage : uint8_t { kQueue = 1, kReceive, kStage, kH2D, kKernel, kD2H, kSend, kOther };
inline constexpr int kStageCount = 9;  ///< for arrays indexed by Stage; 0 is unused

/// "queue", "receive", "stage", "h2d", "kernel", "d2h", "send", "other".
const char* Name(Stage stage);

/// One timed piece of a stage at the server; see tilewire.v1.Span.
struct ServerSpan {
  Stage stage;
  double begin_us, end_us;  ///< from the job's arrival at the server
  uint32_t track;           ///< lane (h2d, kernel, d2h) or stream number
  uint64_t index;           ///< block or range number
  uint64_t bytes;           ///< 0: unknown
  uint32_t operand;
};

struct Timing;

/// Timing::other_us piece by piece: the gaps that the server's spans leave between 0 and wall_us, as spans of
/// Stage::kOther, ascending. Empty where the spans do not tell them: without a trace, where spans were
/// dropped, and from servers that do not know `other`. Thread-safe.
std::vector<ServerSpan> OtherSpans(const Timing& timing);

/// What a call does on this side.
enum class ClientStage : uint8_t {
  kCall,      ///< all of it, once a call
  kRetry,     ///< an attempt that was given up, and the wait before the next one
  kConnect,   ///< streams: until the connection, made if need be, has taken the call's headers
  kOpen,      ///< streams: from sending Open or Join until the server has admitted it
  kWrite,     ///< streams: from handing a chunk to gRPC until gRPC asks for the next
  kResult,    ///< streams, the first one: from half-closing until the result is here
  kReceive,   ///< streams: from asking for a message until a chunk of output is here
  kSink,      ///< handing output to the sink, waiting for other streams' turns included
  kExchange,  ///< unary calls: from sending the request until the reply is here
};
inline constexpr int kClientStageCount = 9;

/// "call", "retry", "connect", "open", "write", "result", "receive", "sink", "exchange".
const char* Name(ClientStage stage);

/// One timed piece of a call on this side.
struct ClientSpan {
  ClientStage stage;
  double begin_us, end_us;  ///< from the call's start, on this process's steady clock
  uint32_t stream = 0;      ///< as the server numbers them
  uint32_t operand = 0;     ///< write
  uint64_t offset = 0;      ///< write: of the first byte in the operand; receive, sink: in the result
  uint64_t bytes = 0;       ///< of array data
};

/// A client keeps that many spans of a call, as a server does.
inline constexpr size_t kMaxClientSpans = 20'000;

/// The client's part of a traced call, and where the server's part lies on its time line.
///
/// The two clocks are aligned by cause and effect: all that the server tells of happened between the call's
/// request and its answer; it admits a job before Opened is here; it has received chunk k after that was
/// written; it begins to send an output chunk before that is here. Each such pair bounds the server's origin
/// from one side; the middle of what they leave is taken, and half its width is the error, about half the
/// shortest round trip of a message. The spans of a server that are moved to this time line are thus right to
/// ±clock_error_us against the client's, and none lies outside of the call, unless the clocks drift apart
/// while it lasts; among themselves they need no alignment. Where the chunks of the two sides do not belong
/// together (they then contradict each other), the call's own bounds decide alone.
struct Trace {
  std::vector<ClientSpan> spans;  ///< of the last attempt, as they ended; kCall and kRetry of all
  uint64_t spans_dropped = 0;     ///< that found no room
  double server_origin_us = 0;    ///< add it to a ServerSpan's times
  double clock_error_us = 0;      ///< 0 or more
};

}  // namespace tilewire::client
