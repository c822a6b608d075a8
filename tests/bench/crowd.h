// Clients that stall: connections that speak HTTP/2 by hand, because gRPC's own client cannot stop in the
// middle of a message, nor leave what it received unread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tilewire::bench {

/// How far a stream of Kernels.Execute gets before its client falls silent. None waits for Opened, none ever
/// grants the server more window than HTTP/2's first 64 KiB, and all keep to the windows the server grants.
enum class Stall {
  kBeforeOpen,    ///< sends headers only
  kMidBlock,      ///< Open and one chunk of 64 KiB
  kMidMessage,    ///< Open and all but the last 1000 bytes of a message of 1 MiB
  kOneOperand,    ///< Open of an RMSE and the first operand
  kReadsNothing,  ///< a whole transpose, whose output nobody reads
};

/// Many stalled clients on one thread. Thread-safe.
class StalledCrowd {
 public:
  /// A connection for each of `stalls` to "host:port"; operands have `operand_bytes`, a multiple of 1 MiB.
  /// Throws std::runtime_error when one cannot connect.
  StalledCrowd(const std::string& address, const std::vector<Stall>& stalls, int64_t operand_bytes);
  /// Closes them.
  ~StalledCrowd();
  StalledCrowd(const StalledCrowd&) = delete;
  StalledCrowd& operator=(const StalledCrowd&) = delete;

  struct Counts {
    int streams = 0;   ///< in all
    int finished = 0;  ///< sent all that they wanted to send
    int reset = 0;     ///< the server reset the stream, without a status
    int cut = 0;       ///< of these: ENHANCE_YOUR_CALM, gRPC's word for its own lack of memory
    int ended = 0;     ///< the server ended the stream with a status
    int closed = 0;    ///< the connection is gone
    int64_t sent = 0;  ///< bytes of messages
  };
  Counts counts() const;
  /// Waits until nothing moved for `quiet`, at most for `timeout`; false when that passed.
  bool WaitUntilQuiet(std::chrono::milliseconds quiet, std::chrono::milliseconds timeout) const;

 private:
  class Stream;
  void Loop();

  std::vector<std::unique_ptr<Stream>> streams_;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> moved_{0};  ///< times that anything was read or written
  std::thread thread_;
};

}  // namespace tilewire::bench
