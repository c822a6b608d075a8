// A traced call as rows of pieces on one time line: what the trace file and the picture are made from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "client/cpp/client.h"

namespace tilewire::cli {

/// One piece of a track. Times are microseconds from the call's start, on the client's clock.
struct Piece {
  std::string name;  ///< of its stage; "finish" for the last kernels of an operation
  double begin_us, end_us;
  uint64_t bytes;     ///< 0: unknown
  std::string place;  ///< "block 3 of operand 1", "range 0", "offset 1048576"; empty where there is none
};

/// Pieces that come one after the other: a stream's or a lane's.
struct Track {
  bool server;       ///< else the client
  std::string name;  ///< "write, stream 0", "kernel, lane 2"
  std::vector<Piece> pieces;
};

/// The tracks of a traced reply in the order of the data's way: the client's call, streams out and in; the
/// server's queue, receive, stage, h2d, kernel, d2h, send, each by stream or lane, and other, what none of
/// them covers. Pieces ascend. Empty without a trace.
std::vector<Track> TracksOf(const client::Reply& reply);

/// "server cpu", "client".
std::string ProcessName(const client::Reply& reply, bool server);

/// "f32 (4096, 4096)".
std::string Describe(const ArraySpec& spec);
/// The operation in words: "rmse f32 (4096, 4096), array:ID -> f64 ()".
std::string DescribeCall(const client::Operation& operation, std::span<const client::ArraySource> operands,
                         std::span<const ArraySpec> results);
/// The same where there is one result.
inline std::string DescribeCall(const client::Operation& operation,
                                std::span<const client::ArraySource> operands, const ArraySpec& result) {
  return DescribeCall(operation, operands, std::span(&result, 1));
}

}  // namespace tilewire::cli
